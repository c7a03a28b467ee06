"""Files for people and other tools, generated from the store; never writes to the store."""
