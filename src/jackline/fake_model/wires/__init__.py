"""The providers' protocols, one module each: read a request, write a reply. They never do I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.fake_model.wire import Wire

WIRES: dict[str, str] = {
    "anthropic": "jackline.fake_model.wires.anthropic_messages:WIRE",
    "responses": "jackline.fake_model.wires.openai_responses:WIRE",
    "chat": "jackline.fake_model.wires.openai_chat:WIRE",
    "gemini": "jackline.fake_model.wires.gemini_api:WIRE",
    "ollama": "jackline.fake_model.wires.ollama_api:WIRE",
}


def load_wires() -> tuple[Wire, ...]:
    """Import every wire."""
    from importlib import import_module

    found = (path.partition(":") for path in WIRES.values())
    return tuple(getattr(import_module(module), name) for module, _, name in found)
