"""Installs the pinned CLIs of the agents for the tests."""
