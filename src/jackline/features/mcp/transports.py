"""Transports of the server: stdin and stdout, or HTTP on loopback with a token. It never listens on another address."""

from __future__ import annotations

import hmac
import json
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING

import anyio

from jackline.errors import UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from jackline.features.mcp.state_server import StateServer

LOOPBACK = "127.0.0.1"
PATH = "/mcp"


def serve_stdio(server: StateServer) -> None:
    """Serve until stdin ends."""
    # A thread reads stdin, and Python would wait for it at exit. Committed state is safe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(server.run_stdio_async)


def listen(port: int) -> socket.socket:
    """Open a socket on loopback; UsageError if the port is in use."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another one with --port") from None
    return made


def get_url(listening: socket.socket) -> str:
    """The URL for clients."""
    return f"http://{LOOPBACK}:{listening.getsockname()[1]}{PATH}"


def serve_http(server: StateServer, listening: socket.socket, token: str) -> None:
    """Serve clients with the token until a signal ends the process."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    port = listening.getsockname()[1]
    names = [f"{LOOPBACK}:{port}", f"localhost:{port}"]
    # A web page can reach loopback under its own host name (DNS rebinding).
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = TokenGuard(server.streamable_http_app(streamable_http_path=PATH, transport_security=security), token)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=1
    )
    anyio.run(partial(uvicorn.Server(config).serve, sockets=[listening]))


class TokenGuard:
    """An ASGI application that requires the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        has_token = len(given) == 1 and hmac.compare_digest(given[0], self._token)
        if scope["type"] == "http" and not has_token:
            await _send_unauthorized(send)
        else:
            await self._app(scope, receive, send)


async def _send_unauthorized(send: Send) -> None:
    body = json.dumps({"error": "missing or wrong token: send `Authorization: Bearer TOKEN`"}).encode()
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
