"""Records, transition tables and decisions. Pure: standard library only, no clock, no I/O."""
