"""Triggers: issues, review comments, work items and ended runs that start runs."""
