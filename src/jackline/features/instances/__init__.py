"""Instances of agents: homes with persona files, created by `jackline scaffold` and used by a host."""
