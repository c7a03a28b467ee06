"""The queue of work items: claimed by one, never by two; each change with its event."""

from __future__ import annotations

from jackline.store.base import Base


class Work(Base):
    """The part of the store that knows them."""
