"""Executes what the run machine decides; the only layer that starts and ends processes."""
