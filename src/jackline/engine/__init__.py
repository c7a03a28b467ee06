"""Carries out what the heart decided; the only layer that starts and ends processes."""
