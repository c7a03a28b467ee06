"""What is written down, on SQLite and PostgreSQL; it compares and sets, and decides nothing.

`open.open_store` gives a `contract.Store`. The named queries in `queries/` are shared by both backends.
"""
