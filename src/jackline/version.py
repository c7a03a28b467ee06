"""The version of jackline, written only here; imports nothing, so that reading it is free."""

__version__ = "0.1.0"
