"""Where an ollama server is: what OLLAMA_HOST means to ollama's own tools too. Pure; it connects to nothing."""

from __future__ import annotations

from urllib.parse import urlsplit

ADDRESS = "http://127.0.0.1:11434"
PORT = 11434


def address_of(host: str) -> str:
    """A URL from what servers and clients share: a name, a port, an address to listen at, or a URL; else ValueError."""
    host = host.strip().strip("\"'")
    if not host:
        return ADDRESS
    scheme, _, rest = host.rpartition("://")
    place, _, path = rest.partition("/")
    try:
        parts = urlsplit(f"//{place}")
        port = parts.port
    except ValueError:
        message = f"OLLAMA_HOST is {host!r}, which is no address"
        raise ValueError(message) from None
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - where one listens, not whom one calls
    shown = f"[{name}]" if ":" in name else name
    port = port or {"http": 80, "https": 443}.get(scheme, PORT)
    return f"{scheme or 'http'}://{shown}:{port}" + (f"/{path}" if path else "")


def host_and_port(host: str) -> tuple[str, int]:
    """The same for whoever only wants to connect."""
    parts = urlsplit(address_of(host))
    return parts.hostname or "127.0.0.1", parts.port or PORT
