"""jackline runs coding agents so that none of their work is lost and no effect happens twice.

The library API, loaded on first use: `open_home()` returns a Home that starts, finds, lists and reads runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.version import __version__

if TYPE_CHECKING:
    from jackline.app.home import Home, open_home
    from jackline.app.request import Request
    from jackline.errors import JacklineError
    from jackline.exports.manifest import load_manifest
    from jackline.exports.transcript import read_transcript
    from jackline.features.work import work_queue as work
    from jackline.store.models import QueueOptions

__all__ = [
    "Home", "JacklineError", "QueueOptions", "Request", "__version__", "load_manifest", "open_home", "read_transcript",
    "work",
]  # fmt: skip

_MODULES = {
    "Home": "jackline.app.home",
    "JacklineError": "jackline.errors",
    "QueueOptions": "jackline.store.models",
    "Request": "jackline.app.request",
    "load_manifest": "jackline.exports.manifest",
    "read_transcript": "jackline.exports.transcript",
    "open_home": "jackline.app.home",
    "work": "jackline.features.work.work_queue",
}


def __getattr__(name: str) -> object:
    """Import a name on first use: `import jackline` costs nothing."""
    if name not in _MODULES:
        message = f"module 'jackline' has no attribute '{name}'"
        raise AttributeError(message)
    from importlib import import_module

    module = import_module(_MODULES[name])
    return module if name == "work" else getattr(module, name)
