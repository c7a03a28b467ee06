"""Reads the messages of a topic of an ntfy server: as a stream that stays open, or those that the server keeps."""

from __future__ import annotations

import json
import queue
import socket
import threading
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from jackline.errors import ChannelDown, ConfigError
from jackline.features.replies.reply_store import ReplyMessage
from jackline.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from http.client import HTTPResponse

SILENT_SECONDS = 150.0  # a server sends something every 45 seconds
_POLL_SECONDS, _CONNECT_SECONDS, _CLOSE_SECONDS = 30.0, 15.0, 1.0
_NOT_PERMITTED = frozenset({401, 403, 404})
_LONGEST_LINE, _MOST_SKIPPED = 65_536, 16_000_000
_MOST_WAITING = 100  # messages that were read and not handled
_LONGEST_ID = 64
_LATEST = 10**11  # seconds
_MOST_POLLED = 1000


class ReplyStream:
    """An open stream; a thread reads it, so that its user can stop while nothing arrives."""

    def __init__(self, address: str, since: int, headers: Mapping[str, str]) -> None:
        """`address` is that of the topic; messages from `since` on come first."""
        self.is_open = False  # whether the server has sent anything
        self._found: queue.Queue[ReplyMessage | ChannelDown | ConfigError] = queue.Queue(_MOST_WAITING)
        self._socket: socket.socket | None = None
        self._is_closing = False
        self._url, self._headers = f"{address}/json?since={since}", headers
        self._thread = threading.Thread(target=self._read, name="reply-stream", daemon=True)
        self._thread.start()

    def next(self, seconds: float) -> ReplyMessage | None:
        """The next message; None if none came in this time. ChannelDown or ConfigError if the stream has ended."""
        try:
            found = self._found.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """End the connection and the thread."""
        self._is_closing = True
        if self._socket is not None:
            with suppress(OSError):  # the server closed it first
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_CLOSE_SECONDS)  # one that is still connecting ends by itself

    def _keep(self, connected: socket.socket) -> None:
        connected.settimeout(SILENT_SECONDS)
        self._socket = connected

    def _read(self) -> None:
        try:
            with _open(self._url, self._headers, self._keep) as response:
                for event in _read_events(response):
                    self.is_open = True
                    if self._is_closing:
                        return
                    if message := _build_message(event):
                        self._put(message)
            self._put(ChannelDown("the server ended the stream"))
        except (ChannelDown, ConfigError) as error:
            self._put(error)

    def _put(self, found: ReplyMessage | ChannelDown | ConfigError) -> None:
        """Pass it on; wait while its user has enough to do, unless the stream is closed."""
        while not self._is_closing:
            with suppress(queue.Full):
                self._found.put(found, timeout=_CLOSE_SECONDS / 2)
                return


def poll_messages(address: str, since: int, headers: Mapping[str, str]) -> list[ReplyMessage]:
    """The messages that the server keeps, from `since` on; ChannelDown if it does not answer."""

    def limit(connected: socket.socket) -> None:
        connected.settimeout(_POLL_SECONDS)

    with _open(f"{address}/json?poll=1&since={since}", headers, limit) as response:
        found = (_build_message(event) for event in islice(_read_events(response), _MOST_POLLED))
        return [message for message in found if message is not None]


def _open(url: str, headers: Mapping[str, str], on_connect: Callable[[socket.socket], None]) -> HTTPResponse:
    """Make the request; ChannelDown if that fails, ConfigError if the server refuses to show the topic.

    No error repeats the address, which is a secret.
    """
    import http.client
    from urllib import error as errors
    from urllib.request import Request

    from jackline.features.notify.http_request import build_opener

    try:
        request = Request(url, headers={"User-Agent": f"jackline/{__version__}", **headers})  # noqa: S310 - checked
        response: HTTPResponse = build_opener(on_connect).open(request, timeout=_CONNECT_SECONDS)
    except errors.HTTPError as error:
        error.close()
        text = f"the server answered {error.code} {error.reason}"
        if error.code in _NOT_PERMITTED:
            raise ConfigError(f"{text}: check url, reply_topic and reply_token") from None
        raise ChannelDown(text) from None
    except errors.URLError as error:
        reason = getattr(error.reason, "strerror", "") or error.reason
        raise ChannelDown(f"the server cannot be reached: {reason}") from None
    except (ValueError, http.client.InvalidURL):  # the error would repeat the address or the token
        raise ConfigError("the request cannot be made: check url, reply_topic and reply_token") from None
    except (OSError, http.client.HTTPException) as error:
        raise ChannelDown(f"the connection broke: {error}") from None
    return response


def _read_events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """Every complete line that is an event; ChannelDown if the connection breaks.

    A message that is too long to be a reply is skipped: otherwise any writer to the topic could stop the reading.
    """
    import http.client

    unfinished = 0  # how much of a line that is too long was read
    while True:
        try:
            line = response.readline(_LONGEST_LINE)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ChannelDown(f"the connection broke: {type(error).__name__}") from None
        if not line and not unfinished:
            return
        is_end = line.endswith(b"\n")
        if not line or (not is_end and unfinished > _MOST_SKIPPED):
            raise ChannelDown("a message was cut off or does not end")
        if not is_end or unfinished:
            unfinished = 0 if is_end else unfinished + len(line)
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def _build_message(event: Mapping[str, Any]) -> ReplyMessage | None:
    """The message of an event; None for signs of life, and for what is no message."""
    message_id, time, text = (event.get(name) for name in ("id", "time", "message"))
    if event.get("event") != "message" or not isinstance(message_id, str) or not isinstance(text, str):
        return None
    if not isinstance(time, int) or not 0 <= time < _LATEST or not 0 < len(message_id) <= _LONGEST_ID:
        return None
    return ReplyMessage(id=message_id, time=time, text=text)
