"""The operations that the commands and the library share; wires engine, store, exports and agents together."""
