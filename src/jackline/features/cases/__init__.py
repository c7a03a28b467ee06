"""Cases: what the command line, the MCP server and the hooks do with the notebook of an investigation."""
