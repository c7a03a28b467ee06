"""jackline runs coding agents so that nothing they did is lost and nothing they did happens twice.

The library API, loaded on first use: `open_home()` gives a Home to start, find, list and read runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.version import __version__

if TYPE_CHECKING:
    from jackline.app.home import Home, open_home
    from jackline.app.request import Request

__all__ = ["Home", "Request", "__version__", "open_home"]

_WHERE = {"Home": "jackline.app.home", "open_home": "jackline.app.home", "Request": "jackline.app.request"}


def __getattr__(name: str) -> object:
    """Import what is asked for only now: `import jackline` costs nothing."""
    if name not in _WHERE:
        message = f"module 'jackline' has no attribute '{name}'"
        raise AttributeError(message)
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)
