"""Finds secrets in texts and streams, and redacts them. Pure."""
