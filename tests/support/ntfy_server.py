"""A server on loopback that speaks the part of ntfy's API that jackline uses, and fails on request.

Publishing by POST or PUT to /TOPIC (parameters as headers or in the query) or as JSON to /; reading by GET
/TOPIC/json, as an endless stream or with poll=1, from a message id, a time or the beginning. As in the real server:
an unknown message id means everything, a message that is longer than 4096 bytes becomes an attachment, a JSON body of
more than twice that is refused, and a stream is opened before the cached messages are read.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import queue
import secrets
import select
import socket
import string
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from email.header import decode_header, make_header
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self, cast
from urllib.parse import parse_qs, urlsplit

_LOOPBACK = "127.0.0.1"
_ID_LENGTH = 12
_MESSAGE_BYTES = 4096
_MAX_ACTIONS = 3
_TOPIC_LETTERS = frozenset(string.ascii_letters + string.digits + "-_")
_MAX_TOPIC = 64
_WAIT_S = 60.0
_LOOK_S = 0.05  # how often a stream looks whether its client is still there
_PRIORITIES = {"min": 1, "low": 2, "default": 3, "high": 4, "max": 5, "urgent": 5}

Message = dict[str, Any]


class Refusal(Exception):
    """An error as ntfy words it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class SeenRequest(NamedTuple):
    """A request as it arrived; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class NtfyServer:
    """Serves inside its `with` block; after it, no connection and no thread is left."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives the times of messages, in seconds."""
        self._clock = clock
        self._changed = threading.Condition()
        self._messages: list[Message] = []  # the cache, in the order of arrival
        self._streams: dict[queue.SimpleQueue[Message | None], frozenset[str]] = {}
        self._requests: list[SeenRequest] = []
        self._tokens: dict[str, frozenset[str]] = {}
        self._failures: list[int] = []
        self._hang: threading.Event | None = None
        self._cut_after: int | None = None
        self._holds_streams = False
        self._server: _NtfyHttpServer | None = None
        self._reserved: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        if self._reserved is not None:
            self._reserved.close()

    @property
    def url(self) -> str:
        """Its address: http://127.0.0.1:PORT."""
        return f"http://{_LOOPBACK}:{self.port}"

    # What a test looks at

    @property
    def requests(self) -> list[SeenRequest]:
        """Every request so far, refused ones too."""
        with self._changed:
            return list(self._requests)

    def list_messages(self, topic: str) -> list[Message]:
        """The messages of a topic, oldest first."""
        with self._changed:
            return [message for message in self._messages if message["topic"] == topic]

    def wait_for_messages(self, topic: str, count: int, timeout: float = _WAIT_S) -> list[Message]:
        """Wait until a topic has so many messages, and return them."""
        self._wait(lambda: len(self._of(topic)) >= count, f"{count} messages", timeout)
        return self.list_messages(topic)

    def wait_for_message(self, topic: str, text: str, timeout: float = _WAIT_S) -> Message:
        """Wait for a message with a text in its title or body, and return the first one."""

        def find() -> list[Message]:
            return [one for one in self._of(topic) if text in f"{one.get('title', '')}\n{one['message']}"]

        self._wait(lambda: bool(find()), f"a message with '{text}'", timeout)
        with self._changed:
            return find()[0]

    def wait_for_streams(self, topic: str, count: int = 1, timeout: float = _WAIT_S) -> None:
        """Wait until exactly so many clients listen to a topic."""
        self._wait(lambda: self._count_streams(topic) == count, f"{count} streams", timeout)

    def wait_for_requests(self, count: int, timeout: float = _WAIT_S) -> list[SeenRequest]:
        """Wait for so many requests, and return them."""
        self._wait(lambda: len(self._requests) >= count, f"{count} requests", timeout)
        return self.requests

    def _wait(self, is_so: Callable[[], bool], what: str, timeout: float) -> None:
        with self._changed:
            if not self._changed.wait_for(is_so, timeout):
                raise TimeoutError(f"no {what} within {timeout} s; cached: {self._messages}")

    def _of(self, topic: str) -> list[Message]:
        return [message for message in self._messages if message["topic"] == topic]

    def _count_streams(self, topic: str) -> int:
        return sum(topic in topics for topics in self._streams.values())

    # What a phone does

    def press(self, message: Message, label: str) -> None:
        """Make the HTTP request of a button, as the phone does."""
        action = next(one for one in message["actions"] if one["label"] == label)
        assert action["action"] == "http", action
        body = action.get("body", "").encode()
        headers = {"Content-Type": "text/plain", **action.get("headers", {})}
        method = action.get("method") or "POST"
        request = urllib.request.Request(action["url"], data=body, headers=headers, method=method)  # noqa: S310 - its own
        with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:  # noqa: S310 - its own
            answer.read()

    def publish(self, topic: str, text: str, **fields: object) -> Message:
        """Publish without HTTP; fields such as `time` and `id` replace the server's."""
        message = {**self._new_message("message", topic), "message": text, **fields}
        self.deliver(message)
        return message

    # What goes wrong

    def protect(self, token: str, *topics: str) -> None:
        """From now on every topic needs an access token; this one is for some topics."""
        self._tokens[token] = self._tokens.get(token, frozenset()) | frozenset(topics)

    def fail(self, *statuses: int) -> None:
        """Answer the next requests with these statuses, one each."""
        with self._changed:
            self._failures.extend(statuses)

    def hang(self) -> threading.Event:
        """Answer no request until the returned event is set, or the server dies."""
        self._hang = threading.Event()
        return self._hang

    def drop_streams(self) -> None:
        """End all open streams."""
        with self._changed:
            for stream in self._streams:
                stream.put(None)

    def cut_stream(self, after: int) -> None:
        """End the next stream after so many bytes of its messages, in the middle of a line if it is so."""
        self._cut_after = after

    def hold_streams(self) -> None:
        """Send nothing on streams that are opened from now on, as a proxy does that collects the answer first."""
        self._holds_streams = True

    def send_keepalives(self) -> None:
        """Send a keepalive event to all open streams."""
        with self._changed:
            for stream, topics in self._streams.items():
                stream.put(self._new_message("keepalive", ",".join(sorted(topics))))

    def forget(self) -> None:
        """Empty the cache."""
        with self._changed:
            self._messages.clear()

    def die(self) -> None:
        """Close the port and every connection; `start` opens the same port again, with the cache as it was."""
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        if self._hang is not None:
            self._hang.set()
            self._hang = None
        server.shutdown()
        thread.join()
        self.drop_streams()
        server.hang_up()
        server.server_close()
        self._server = self._thread = None

    def start(self) -> None:
        """Open the port and answer requests."""
        self._server = _NtfyHttpServer((_LOOPBACK, self.port), self)
        self.port = self._server.server_port
        if self._reserved is None:  # bound, and not listening: while the server is dead, nobody else gets its port
            self._reserved = socket.socket()
            _share_port(self._reserved)
            self._reserved.bind((_LOOPBACK, self.port))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="ntfy-stand-in")
        self._thread.start()

    # What its handler calls

    def note_request(self, request: SeenRequest) -> None:
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            failure = self._failures.pop(0) if self._failures else None
        if self._hang is not None:
            self._hang.wait()
        if failure is not None:
            raise Refusal(failure, "as the test wants it")

    def check_access(self, topics: frozenset[str], authorization: str) -> None:
        if not self._tokens:
            return
        scheme, _, token = authorization.partition(" ")
        if token and (scheme.lower() != "bearer" or token not in self._tokens):
            raise Refusal(HTTPStatus.UNAUTHORIZED, "unauthorized")
        if not token or not topics <= self._tokens[token]:
            raise Refusal(HTTPStatus.FORBIDDEN, "forbidden")

    def take_message(self, topic: str, text: bytes, parameters: Mapping[str, str]) -> Message:
        """Check and publish what a client sent."""
        message = self._new_message("message", topic)
        message["expires"] = message["time"] + 12 * 3600
        if len(text) > _MESSAGE_BYTES:
            message["message"] = "You received a file: attachment.txt"
            message["attachment"] = {"name": "attachment.txt", "size": len(text), "url": f"{self.url}/file/x.txt"}
        else:
            try:
                message["message"] = text.decode().strip() or parameters.get("message", "triggered")
            except UnicodeDecodeError:
                raise Refusal(HTTPStatus.BAD_REQUEST, "invalid request: message must be UTF-8 encoded") from None
        for name in ("title", "click"):
            if parameters.get(name):
                message[name] = parameters[name]
        if parameters.get("tags"):
            message["tags"] = [tag.strip() for tag in parameters["tags"].split(",")]
        if parameters.get("priority"):
            message["priority"] = _parse_priority(parameters["priority"])
        if parameters.get("actions"):
            message["actions"] = _parse_actions(parameters["actions"])
        self.deliver(message)
        return message

    def deliver(self, message: Message) -> None:
        with self._changed:
            for stream, topics in self._streams.items():
                if message["topic"] in topics:
                    stream.put(message)
            self._messages.append(message)
            self._changed.notify_all()

    def list_since(self, topics: frozenset[str], since: str) -> list[Message]:
        with self._changed:
            found = [message for message in self._messages if message["topic"] in topics]
            if len(since) == _ID_LENGTH and since.isalnum():
                ids = [message["id"] for message in self._messages]
                later = {id(one) for one in self._messages[ids.index(since) + 1 :]} if since in ids else None
                return [one for one in found if later is None or id(one) in later]
            if since in ("", "none"):
                return []
            if since == "latest":
                return found[-1:]
            if since != "all":
                if not since.isdigit():
                    raise Refusal(HTTPStatus.BAD_REQUEST, "invalid since parameter")
                found = [message for message in found if message["time"] >= int(since)]
            return sorted(found, key=lambda message: cast("int", message["time"]))

    def open_stream(self, topics: frozenset[str]) -> queue.SimpleQueue[Message | None]:
        stream: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        stream.put(self._new_message("open", ",".join(sorted(topics))))
        with self._changed:
            self._streams[stream] = topics
            self._changed.notify_all()
        return stream

    def close_stream(self, stream: queue.SimpleQueue[Message | None]) -> None:
        with self._changed:
            del self._streams[stream]
            self._changed.notify_all()

    @property
    def holds_streams(self) -> bool:
        return self._holds_streams

    def take_cut(self) -> int | None:
        cut, self._cut_after = self._cut_after, None
        return cut

    def _new_message(self, event: str, topic: str) -> Message:
        letters = string.ascii_letters + string.digits
        message_id = "".join(secrets.choice(letters) for _ in range(_ID_LENGTH))
        return {"id": message_id, "time": int(self._clock()), "event": event, "topic": topic}


def _parse_priority(text: str) -> int:
    if text.isdigit() and 1 <= int(text) <= 5:
        return int(text)
    if text.lower() in _PRIORITIES:
        return _PRIORITIES[text.lower()]
    raise Refusal(HTTPStatus.BAD_REQUEST, "invalid priority parameter")


def _parse_actions(text: str) -> list[dict[str, Any]]:
    try:
        actions = json.loads(text)
    except ValueError:
        raise Refusal(HTTPStatus.BAD_REQUEST, "actions invalid: this server reads only JSON") from None
    if len(actions) > _MAX_ACTIONS:
        raise Refusal(HTTPStatus.BAD_REQUEST, "actions invalid: only 3 actions allowed")
    for action in actions:
        if action.get("action") not in ("view", "broadcast", "http") or not action.get("label"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "actions invalid")
        if action["action"] != "broadcast" and not action.get("url"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "actions invalid: parameter 'url' is required")
    return [{"id": secrets.token_hex(5), "clear": False, **action} for action in actions]


def _share_port(one: socket.socket) -> None:
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        one.setsockopt(socket.SOL_SOCKET, option, 1)


class _NtfyHttpServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for all of them
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], ntfy: NtfyServer) -> None:
        self.ntfy = ntfy
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _NtfyHandler)

    def server_bind(self) -> None:
        """Bind without the base class's host name lookup, which can block without a network."""
        _share_port(self.socket)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, peer = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, peer

    def close_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""

    def hang_up(self) -> None:
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client closed it first


class _NtfyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _ntfy(self) -> NtfyServer:
        return cast("NtfyServer", self.server.ntfy)  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        self._answer(self._subscribe)

    def do_POST(self) -> None:
        self._answer(self._publish)

    def do_PUT(self) -> None:
        self._answer(self._publish)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, handle: Callable[[bytes], None]) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): _decode(value) for name, value in self.headers.items()}
        try:
            self._ntfy.note_request(SeenRequest(self.command, self.path, headers, body))
            handle(body)
        except Refusal as error:
            answer = {"code": error.status * 100 + 1, "http": error.status, "error": error.text}
            self._send_json(error.status, answer)

    def _publish(self, body: bytes) -> None:
        path = urlsplit(self.path).path.strip("/")
        if path:
            parameters = self._read_parameters()
        else:
            path, body, parameters = _read_json_message(body)
        topics = _read_topics(path)
        if len(topics) != 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, "invalid request: topic invalid")
        self._ntfy.check_access(topics, self.headers.get("Authorization", ""))
        self._send_json(HTTPStatus.OK, self._ntfy.take_message(path, body, parameters))

    def _read_parameters(self) -> dict[str, str]:
        parameters = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
        for name, value in self.headers.items():
            parameters[name.lower().removeprefix("x-")] = _decode(value)
        return parameters

    def _subscribe(self, _: bytes) -> None:
        path, kind = posixpath.split(urlsplit(self.path).path.strip("/"))
        if kind != "json" or not path:
            raise Refusal(HTTPStatus.NOT_FOUND, "page not found")
        topics = _read_topics(path)
        self._ntfy.check_access(topics, self.headers.get("Authorization", ""))
        parameters = self._read_parameters()
        if parameters.get("poll") in ("1", "true", "yes"):
            found = self._ntfy.list_since(topics, parameters.get("since") or "all")
            self._send(HTTPStatus.OK, "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in found).encode())
            return
        stream = self._ntfy.open_stream(topics)
        try:
            self._stream(stream, self._ntfy.list_since(topics, parameters.get("since", "")))
        finally:
            self._ntfy.close_stream(stream)

    def _stream(self, stream: queue.SimpleQueue[Message | None], cached: list[Message]) -> None:
        """Send messages in chunks until the test or the client ends it."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        left = self._ntfy.take_cut()
        pending = [self._next_message(stream), *cached]
        while self._ntfy.holds_streams:
            if self._next_message(stream) is None:
                return
        while True:
            message = pending.pop(0) if pending else self._next_message(stream)
            if message is None:
                return  # without the last chunk: the client sees a broken stream
            line = f"{json.dumps(message, ensure_ascii=False)}\n".encode()
            if left is not None and message["event"] == "message":
                line, left = line[:left], left - len(line)
            if line:
                try:
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                except OSError:
                    return
            if left is not None and left <= 0:
                return

    def _next_message(self, stream: queue.SimpleQueue[Message | None]) -> Message | None:
        """The next message; None at the end of the stream, or if the client has gone."""
        while True:
            try:
                return stream.get(timeout=_LOOK_S)
            except queue.Empty:
                if select.select([self.connection], [], [], 0)[0]:
                    return None  # a client sends nothing more: it has closed the connection

    def _send_json(self, status: int, answer: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(answer).encode() + b"\n")

    def _send(self, status: int, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


def _decode(value: str) -> str:
    """A header's text: UTF-8 as it is, or encoded as in e-mail."""
    with contextlib.suppress(UnicodeError):
        value = value.encode("latin-1").decode()
    return str(make_header(decode_header(value))) if "=?" in value else value


def _read_topics(path: str) -> frozenset[str]:
    topics = frozenset(path.split(","))
    if any(not topic or len(topic) > _MAX_TOPIC or not _TOPIC_LETTERS.issuperset(topic) for topic in topics):
        raise Refusal(HTTPStatus.NOT_FOUND, "page not found")
    return topics


def _read_json_message(body: bytes) -> tuple[str, bytes, dict[str, str]]:
    """The topic, the text and the parameters of a message that was published as JSON."""
    if len(body) > 2 * _MESSAGE_BYTES:
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "JSON body too large")
    try:
        values = json.loads(body)
        topic, text = values["topic"], values.get("message") or "triggered"
        parameters = {name: str(values[name]) for name in ("title", "click", "priority") if values.get(name)}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid request: request body must be message JSON") from None
    if values.get("tags"):
        parameters["tags"] = ",".join(values["tags"])
    if values.get("actions"):
        parameters["actions"] = json.dumps(values["actions"])
    return topic, text.encode(), parameters
