"""The database, SQLite or PostgreSQL. It compares and sets; it decides nothing.

`open.open_store` returns a `store.Store`. The named queries in `queries/` are shared by both backends.
"""
