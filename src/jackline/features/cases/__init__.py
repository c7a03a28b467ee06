"""Cases: the notebooks of investigations, for the command line, the MCP server and hooks."""
