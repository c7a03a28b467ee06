"""The scripted agent: its adapter, the script format, and the program that plays a script (`playback`)."""
