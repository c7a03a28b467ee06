"""The command line: parses words, calls the app, prints; decides nothing itself."""
