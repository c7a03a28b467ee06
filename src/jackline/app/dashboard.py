"""dashboard.md in the home: written again whenever something changed, in bursts only once. It is never read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.app.home import Home


def changed(home: Home) -> None:
    """Something that the dashboard shows has changed: called by everything that writes, after it has written."""
