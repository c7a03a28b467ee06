"""The operations that the commands and the library share; wires engine, store, views and agents together."""
