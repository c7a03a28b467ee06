"""What dashboards and retrospectives read: bounded look-ups and sums over a span of time, never over everything."""

from __future__ import annotations

from jackline.store.base import Base


class Reporting(Base):
    """The part of the store that knows them."""
