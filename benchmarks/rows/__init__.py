"""One module for each row of the benchmark; each returns a table."""
