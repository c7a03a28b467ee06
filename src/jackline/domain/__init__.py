"""The pure part: words, tables, decisions and folds. Standard library only, no clock, no I/O."""
