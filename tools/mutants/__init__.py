"""Mutants: small edits of the source that each remove one guard, and the tests that must notice."""
