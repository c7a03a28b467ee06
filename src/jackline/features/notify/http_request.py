"""Makes the HTTP requests of channels: no redirects, a bounded answer in bounded time. It knows no channel."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from jackline.errors import ChannelDown, MessageRefused
from jackline.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPResponse
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector

_MOST_ANSWER = 10_000
_SHOWN_ANSWER = 200
_REFUSED = frozenset({400, 405, 406, 411, 413, 414, 415, 422, 431})  # about this message, not about the channel


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> str:
    """The server's answer to a message; errors as of `get`."""
    return _request(url, body, headers, timeout_s, _MOST_ANSWER)


def get(url: str, headers: Mapping[str, str], timeout_s: float, most_bytes: int) -> str:
    """The server's answer; ChannelDown if there is none or it may be better later, MessageRefused if it never will.

    Neither error repeats the address, which may be a secret.
    """
    return _request(url, None, headers, timeout_s, most_bytes)


def _request(url: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float, most_bytes: int) -> str:
    from urllib.error import HTTPError

    with _Deadline(timeout_s) as deadline:
        try:
            answer = _exchange(build_opener(deadline.keep), url, body, headers, timeout_s, most_bytes)
        except HTTPError as error:  # its status is an answer, even if the rest of it does not come in time
            raise _describe_status(error) from None
        except ChannelDown:
            if not deadline.is_over:
                raise
        else:
            if body is not None or not deadline.is_over:  # what came of an answer to GET may not be complete
                return answer
    raise ChannelDown(f"the server did not answer within {timeout_s:.0f} s")


def _exchange(
    opener: OpenerDirector, url: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float, most_bytes: int
) -> str:
    import http.client
    from urllib import error as errors
    from urllib.request import Request

    try:
        method = "GET" if body is None else "POST"
        sent = {"User-Agent": f"jackline/{__version__}", **headers}
        request = Request(url, body, sent, method=method)  # noqa: S310 - settings with another scheme are refused
        with opener.open(request, timeout=timeout_s) as response:
            answer: bytes = response.read(most_bytes)
            return answer.decode(errors="replace")
    except errors.HTTPError:
        raise
    except errors.URLError as error:
        raise ChannelDown(
            f"the server cannot be reached: {getattr(error.reason, 'strerror', '') or error.reason}"
        ) from None
    except TimeoutError:
        raise ChannelDown(f"the server did not answer within {timeout_s:.0f} s") from None
    except (ValueError, http.client.InvalidURL):  # the error would repeat the address or a header
        raise ChannelDown("the request cannot be made: check the address and the secrets of the channel") from None
    except (OSError, http.client.HTTPException) as error:
        raise ChannelDown(f"the connection broke: {error}") from None


def _describe_status(error: HTTPError) -> MessageRefused | ChannelDown:
    from http.client import HTTPException

    shown = ""
    with error, suppress(OSError, HTTPException):
        shown = error.read(_SHOWN_ANSWER).decode(errors="replace").strip()
    text = f"the server answered {error.code} {error.reason}: {shown}".rstrip(": ")
    return (MessageRefused if error.code in _REFUSED else ChannelDown)(text)


def build_opener(on_connect: Callable[[socket.socket], None]) -> OpenerDirector:
    """An opener that follows no redirect, and passes each connection on before it sends a request."""
    import http.client
    from urllib import request as urls

    class PlainConnection(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            on_connect(self.sock)

    class SecureConnection(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            on_connect(self.sock)

    class Plain(urls.HTTPHandler):
        def http_open(self, request: urls.Request) -> HTTPResponse:
            return self.do_open(PlainConnection, request)

    class Secure(urls.HTTPSHandler):
        def https_open(self, request: urls.Request) -> HTTPResponse:
            return self.do_open(SecureConnection, request)

    class NoRedirects(urls.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None  # it would send the token to another host

    return urls.build_opener(Plain, Secure, NoRedirects)


class _Deadline:
    """Closes connections after some time: a server that sends a byte now and then never runs into their timeout."""

    def __init__(self, timeout_s: float) -> None:
        self.is_over = False
        self._connections: list[socket.socket] = []
        self._timer = threading.Timer(timeout_s, self._close)
        self._timer.daemon = True

    def keep(self, connection: socket.socket) -> None:
        """Close this connection, too."""
        self._connections.append(connection)

    def _close(self) -> None:
        self.is_over = True
        for connection in self._connections:
            with suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
