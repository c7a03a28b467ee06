"""The case: what the command line, the MCP server and the hooks do with a notebook. Nothing heavy is imported here.

`place` finds the case that is meant, `beginning` starts one, `writing` adds to it, `running` runs commands for it,
`reviewing` looks at its learnings, `closing` ends it, `handing_over` tells the next agent, `files` writes its files.
"""
