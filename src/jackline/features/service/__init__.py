"""The service: one process that works on queued, due and lost runs, and does what the other features do in it."""
