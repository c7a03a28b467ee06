"""The protocols of the providers, one file each: how a request is read and a reply is written. They never do I/O."""

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
    """Every wire."""
    from importlib import import_module

    found = []
    for place in WIRES.values():
        module, _, name = place.partition(":")
        found.append(getattr(import_module(module), name))
    return tuple(found)
