"""One small module per command, imported when typed: `configure(parser)` and `execute(args, home, out)`."""
