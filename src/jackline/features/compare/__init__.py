"""Compares the results of runs in one table."""
