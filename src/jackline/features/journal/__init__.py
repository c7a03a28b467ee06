"""The journal: events of people and agents, and the timeline of everything that happened."""
