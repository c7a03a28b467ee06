"""Features built on the core. The core never imports them: commands, tools and hooks are registered by dotted name."""
