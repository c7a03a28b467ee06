"""jackline as an MCP server: tools, resources and prompts that call the same functions as the command line.

Only the command `jackline mcp` imports this package: the official SDK takes long to import. Agents start `relay.py`,
which needs no import and starts that command when a tool is called.
"""
