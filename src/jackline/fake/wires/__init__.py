"""The providers' protocols, one module each: read a request, write a reply. They never do I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.fake.wire import Wire

WIRES: dict[str, str] = {
    "anthropic": "jackline.fake.wires.anthropic:WIRE",
    "responses": "jackline.fake.wires.responses:WIRE",
    "chat": "jackline.fake.wires.chat:WIRE",
    "gemini": "jackline.fake.wires.gemini:WIRE",
    "ollama": "jackline.fake.wires.ollama:WIRE",
}


def load() -> tuple[Wire, ...]:
    """Import every wire."""
    from importlib import import_module

    wires = []
    for path in WIRES.values():
        module, _, name = path.partition(":")
        wires.append(getattr(import_module(module), name))
    return tuple(wires)
