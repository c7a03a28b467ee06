"""Answers from a phone: one-time codes in notices, and a listener that takes replies from a topic of an ntfy server."""
