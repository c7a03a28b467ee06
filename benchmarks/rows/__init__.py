"""One module for each row of the benchmark; each gives back a table."""
