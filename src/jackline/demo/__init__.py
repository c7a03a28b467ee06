"""The demo: two acts in which an agent is killed around an effect, and what jackline makes of it."""
