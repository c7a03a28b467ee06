"""A fake model on loopback that plays a script: the real CLIs talk to it in tests, canaries and the demo."""
