"""Scenarios that kill agents and supervisors on purpose: the drill, and the demo as two narrated cases of it."""
