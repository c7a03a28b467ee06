"""Reports: the dashboard and the weekly retro."""
