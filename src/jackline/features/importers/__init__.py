"""Imports data of older tools: finds it by its shape, reads as much as possible, and stores it once.

The sources are never changed. Unreadable data is reported with its file, its line or row, and the reason.
"""
