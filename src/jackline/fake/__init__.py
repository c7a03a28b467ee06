"""A fake model on loopback that plays a script: real CLIs talk to it in tests, canaries and the demo.

This package is the stable name of its API and its program; each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.fake_model.pointing import point
    from jackline.fake_model.script import Reply, Script, load_script
    from jackline.fake_model.server import FakeModel

__all__ = ["FakeModel", "Reply", "Script", "load_script", "point"]
_MODULES = {"FakeModel": "server", "Reply": "script", "Script": "script", "load_script": "script", "point": "pointing"}


def __getattr__(name: str) -> object:
    """Import on first use: a program that only needs the script must not load the server."""
    if name not in _MODULES:
        raise AttributeError(f"module 'jackline.fake' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"jackline.fake_model.{_MODULES[name]}"), name)
