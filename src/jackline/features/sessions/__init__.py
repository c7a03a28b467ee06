"""Finds the sessions of the installed CLIs on this machine, for `run --session`."""
