"""A fake model that plays a script in the protocols of the real providers."""
