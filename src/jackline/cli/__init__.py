"""The command line: parses arguments, calls the app, prints; it makes no decisions."""
