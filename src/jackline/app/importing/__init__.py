"""What the predecessors left, taken over: found by its shape, read as far as it can be read, written down once.

Nothing of theirs is changed. What cannot be read is told with its file, its line or row, and the reason.
"""
