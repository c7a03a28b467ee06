"""The look back at a week: what came of it, where time and money went, what to do about it. Pure folds over lines."""
