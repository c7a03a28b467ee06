"""An agent's instance: a home with persona files, laid down once by `jackline scaffold` and used by a host."""
