"""Events beside those of runs: appended to a stream of their own, and the timeline over every stream."""

from __future__ import annotations

from jackline.store.base import Base


class Journal(Base):
    """The part of the store that knows them."""
