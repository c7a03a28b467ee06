"""Compares runs: what each made of its task, in one table."""
