"""Programs for those who work on jackline; nothing here is part of the package."""
