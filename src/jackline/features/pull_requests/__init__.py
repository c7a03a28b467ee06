"""Polls the pull requests that runs wait for, inside a service."""
