"""The ollama server over HTTP: one question, one answer in pieces. It knows no tools and keeps no conversation."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from . import address
from .borrowed import failed
from .turn import refused

SECONDS = 600.0  # without a byte: a large model may take minutes to be loaded
LINE_BYTES = 2**24
ANSWER_CHARACTERS = 2**24
ERROR_BYTES = 2**16
OK = 200
NOT_FOUND = 404


class Answer(NamedTuple):
    """All that the model said, put together."""

    content: str
    thinking: str
    calls: tuple[dict[str, Any], ...]
    reason: str
    tokens_input: int
    tokens_output: int


class Server:
    """An ollama server; every way in which it can fail ends the turn with its class."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.address = address_of(environ.get("OLLAMA_HOST", ""))
        self._key = environ.get("OLLAMA_API_KEY", "")
        self._seconds = float(environ.get("JACKLINE_ANSWER_SECONDS") or SECONDS)

    def models(self) -> list[str]:
        """The names of what is installed."""
        body = b"".join(self._lines("GET", "/api/tags", None))
        models = _fields(body).get("models")
        found = models if isinstance(models, list) else []
        return [str(one["name"]) for one in found if isinstance(one, dict) and "name" in one]

    def chat(self, question: Mapping[str, Any], pulse: Callable[[], None]) -> Answer:
        """Ask, and hear the answer to its end; `pulse` is called with every piece of it."""
        pieces = []
        size = 0
        for line in self._lines("POST", "/api/chat", json.dumps(question).encode(), str(question["model"])):
            pulse()
            piece = _fields(line)
            pieces.append(piece)
            size += len(line)
            if "error" in piece:  # the status was sent long ago; by its nature this is an error of the server
                raise failed("overloaded", f"ollama broke off: {piece['error']}")
            if piece.get("done") is True:
                return _answer(pieces)
            if size > ANSWER_CHARACTERS:
                raise failed("agent_error", f"the model's answer is longer than {ANSWER_CHARACTERS} bytes")
        raise failed("connectivity", "ollama broke off in the middle of an answer")

    def _lines(self, method: str, path: str, body: bytes | None, model: str = "") -> Iterator[bytes]:
        connection = self._connect()
        try:
            connection.request(method, self._prefix + path, body, self._headers())
            response = connection.getresponse()
            if response.status != OK:
                self._complain(response, model)
            while line := response.readline(LINE_BYTES):
                if line.strip():
                    yield line
        except ConnectionRefusedError:
            raise failed("connectivity", f"nobody answers at {self.address}: is `ollama serve` running?") from None
        except TimeoutError:
            raise failed("connectivity", f"ollama at {self.address} said nothing for {self._seconds:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise failed("connectivity", f"the connection to ollama at {self.address} broke: {error!r}") from None
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "127.0.0.1", parts.port, timeout=self._seconds)

    @property
    def _prefix(self) -> str:
        return urlsplit(self.address).path.rstrip("/")

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        return {**headers, "Authorization": f"Bearer {self._key}"} if self._key else headers

    def _complain(self, response: http.client.HTTPResponse, model: str) -> NoReturn:
        said = response.read(ERROR_BYTES)
        detail = str(_fields(said).get("error") or said.decode("utf-8", "replace").strip() or response.reason)
        if response.status == NOT_FOUND and model:
            raise failed("model_not_found", f"{detail}: `ollama pull {model}` brings it, --model names another")
        raise refused(response.status, f"ollama says {response.status}: {detail}")


def address_of(host: str) -> str:
    """What OLLAMA_HOST means."""
    try:
        return address.address_of(host)
    except ValueError as error:
        raise failed("connectivity", str(error)) from None


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _answer(pieces: list[dict[str, Any]]) -> Answer:
    messages = [piece["message"] for piece in pieces if isinstance(piece.get("message"), dict)]
    calls = [call for message in messages for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    last = pieces[-1]
    return Answer(
        content="".join(str(message.get("content") or "") for message in messages),
        thinking="".join(str(message.get("thinking") or "") for message in messages),
        calls=tuple(calls),
        reason=str(last.get("done_reason") or ""),
        tokens_input=_count(last.get("prompt_eval_count")),
        tokens_output=_count(last.get("eval_count")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
