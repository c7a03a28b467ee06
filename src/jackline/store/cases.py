"""Notebooks of investigations: entries with numbers that are never doubled, one active case for each place."""

from __future__ import annotations

from jackline.store.base import Base


class Cases(Base):
    """The part of the store that knows them."""
