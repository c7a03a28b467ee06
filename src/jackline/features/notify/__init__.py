"""Delivers notices to the channels of a person: ntfy, Apprise, webhooks, commands, the terminal's bell."""
