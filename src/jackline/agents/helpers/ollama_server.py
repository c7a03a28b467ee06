"""The ollama server over HTTP: one request, one streamed answer. It knows no tools and stores no conversation."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from ..scripted.playback.agent_io import build_failure
from .helper_turn import as_count, build_http_failure
from .ollama_address import parse_address

SECONDS = 600.0  # without a byte: loading a large model may take minutes
LINE_BYTES = 2**24
ANSWER_CHARACTERS = 2**24
ERROR_BYTES = 2**16
OK = 200
NOT_FOUND = 404


class ModelAnswer(NamedTuple):
    """A complete answer of the model."""

    content: str
    thinking: str
    calls: tuple[dict[str, Any], ...]
    reason: str
    tokens_input: int
    tokens_output: int


class OllamaServer:
    """An ollama server; every failure ends the turn with its failure class."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self.address = parse_address(environ.get("OLLAMA_HOST", ""))
        except ValueError as error:
            raise build_failure("connectivity", str(error)) from None
        self._key = environ.get("OLLAMA_API_KEY", "")
        self._seconds = float(environ.get("JACKLINE_ANSWER_SECONDS") or SECONDS)

    def list_models(self) -> list[str]:
        """The names of the installed models."""
        body = b"".join(self._request("GET", "/api/tags", None))
        models = _parse_object(body).get("models")
        found = models if isinstance(models, list) else []
        return [str(one["name"]) for one in found if isinstance(one, dict) and "name" in one]

    def chat(self, request: Mapping[str, Any], heartbeat: Callable[[], None]) -> ModelAnswer:
        """Send a request and read the whole answer; `heartbeat` is called with every piece of it."""
        pieces = []
        size = 0
        for line in self._request("POST", "/api/chat", json.dumps(request).encode(), str(request["model"])):
            heartbeat()
            piece = _parse_object(line)
            pieces.append(piece)
            size += len(line)
            if "error" in piece:  # the status was sent long ago; this is an error of the server
                raise build_failure("overloaded", f"ollama reported an error: {piece['error']}")
            if piece.get("done") is True:
                return _join_pieces(pieces)
            if size > ANSWER_CHARACTERS:
                raise build_failure("agent_error", f"the model's answer is longer than {ANSWER_CHARACTERS} bytes")
        raise build_failure("connectivity", "ollama ended in the middle of an answer")

    def _request(self, method: str, path: str, body: bytes | None, model: str = "") -> Iterator[bytes]:
        parts = urlsplit(self.address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=self._seconds)
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            if response.status != OK:
                self._raise_failure(response, model)
            while line := response.readline(LINE_BYTES):
                if line.strip():
                    yield line
        except ConnectionRefusedError:
            detail = f"there is no answer at {self.address}: is `ollama serve` running?"
            raise build_failure("connectivity", detail) from None
        except TimeoutError:
            detail = f"ollama at {self.address} sent nothing for {self._seconds:g} s"
            raise build_failure("connectivity", detail) from None
        except (OSError, http.client.HTTPException) as error:
            detail = f"the connection to ollama at {self.address} broke: {error!r}"
            raise build_failure("connectivity", detail) from None
        finally:
            connection.close()

    def _raise_failure(self, response: http.client.HTTPResponse, model: str) -> NoReturn:
        body = response.read(ERROR_BYTES)
        detail = str(_parse_object(body).get("error") or body.decode("utf-8", "replace").strip() or response.reason)
        if response.status == NOT_FOUND and model:
            how = f"install it with `ollama pull {model}`, or choose another with --model"
            raise build_failure("model_not_found", f"{detail}: {how}")
        raise build_http_failure(response.status, f"ollama answered {response.status}: {detail}")


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _join_pieces(pieces: list[dict[str, Any]]) -> ModelAnswer:
    messages = [piece["message"] for piece in pieces if isinstance(piece.get("message"), dict)]
    calls = [call for message in messages for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    last = pieces[-1]
    return ModelAnswer(
        content="".join(str(message.get("content") or "") for message in messages),
        thinking="".join(str(message.get("thinking") or "") for message in messages),
        calls=tuple(calls),
        reason=str(last.get("done_reason") or ""),
        tokens_input=as_count(last.get("prompt_eval_count")),
        tokens_output=as_count(last.get("eval_count")),
    )
