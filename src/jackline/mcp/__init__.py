"""jackline as an MCP server: tools, resources and prompts over what `app` can do. It decides nothing itself.

Nothing but `cli.commands.mcp` imports this package: the official SDK behind it is an extra, and takes its time to load.
"""
