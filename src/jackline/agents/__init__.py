"""One module or folder per agent: how to launch it and how to read its output. Must not import the store."""
