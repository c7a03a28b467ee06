"""How a client reaches the server: over stdin and stdout, or by HTTP on loopback with a token. Nothing else listens."""

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

    from jackline.mcp.server import Server

LOOPBACK = "127.0.0.1"
PATH = "/mcp"


def serve_stdio(server: Server) -> None:
    """Serve until stdin ends."""
    # A thread waits for stdin, and Python would wait for the thread. Whatever was committed is safe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(server.run_stdio_async)


def listen(port: int) -> socket.socket:
    """A socket on loopback; UsageError if the port is taken."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise UsageError(f"port {port} cannot be used ({error.strerror}): name another one with --port") from None
    return made


def address_of(listening: socket.socket) -> str:
    """Where clients find it."""
    return f"http://{LOOPBACK}:{listening.getsockname()[1]}{PATH}"


def serve_http(server: Server, listening: socket.socket, token: str) -> None:
    """Serve everybody who knows the token, until a signal ends it."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    port = listening.getsockname()[1]
    names = [f"{LOOPBACK}:{port}", f"localhost:{port}"]
    # A page in a browser may reach loopback by a name of its own: it must not get past here.
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = Guarded(server.streamable_http_app(streamable_http_path=PATH, transport_security=security), token)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=1
    )
    anyio.run(partial(uvicorn.Server(config).serve, sockets=[listening]))


class Guarded:
    """An ASGI application that answers only requests with the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_known(scope):
            await _refuse(send)
        else:
            await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._token)


async def _refuse(send: Send) -> None:
    body = json.dumps({"error": "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`"}).encode()
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
