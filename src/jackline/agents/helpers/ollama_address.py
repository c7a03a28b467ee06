"""Parses OLLAMA_HOST as ollama's own tools do. Pure; connects to nothing."""

from __future__ import annotations

from urllib.parse import urlsplit

DEFAULT_ADDRESS = "http://127.0.0.1:11434"
PORT = 11434


def parse_address(host: str) -> str:
    """Convert a host name, a port, a listen address or a URL to a URL; ValueError if it is none of them."""
    host = host.strip().strip("\"'")
    if not host:
        return DEFAULT_ADDRESS
    scheme, _, rest = host.rpartition("://")
    server, _, path = rest.partition("/")
    try:
        parts = urlsplit(f"//{server}")
        port = parts.port
    except ValueError:
        raise ValueError(f"OLLAMA_HOST is {host!r}, which is not an address") from None
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - a listen address, replaced by one to connect to
    shown = f"[{name}]" if ":" in name else name
    port = port or {"http": 80, "https": 443}.get(scheme, PORT)
    return f"{scheme or 'http'}://{shown}:{port}" + (f"/{path}" if path else "")


def parse_host_and_port(host: str) -> tuple[str, int]:
    """Host and port to connect to."""
    parts = urlsplit(parse_address(host))
    return parts.hostname or "127.0.0.1", parts.port or PORT
