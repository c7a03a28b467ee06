"""The contract of a provider's protocol: its records, and what a wire reads and writes. Never does I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LARGEST_PIECE = 65_536


class OfferedTool(NamedTuple):
    """A tool that the agent offers to the model."""

    name: str
    schema: Mapping[str, Any] = NOTHING  # JSON schema of its input


class ModelRequest(NamedTuple):
    """One request to the model, whatever the protocol."""

    wire: str
    model: str
    stream: bool
    text: str  # all text of the conversation, oldest first: system, user, assistant and tool results
    tools: tuple[OfferedTool, ...] = ()
    results: int = 0  # the number of tool results in the conversation


class ToolCall(NamedTuple):
    """A tool call of the fake model, with the agent's name for the tool."""

    id: str
    tool: str
    input: Mapping[str, Any]


class FakeAnswer(NamedTuple):
    """An answer of the fake model: thinking, text and calls, in this order, and its token counts."""

    id: str  # fresh for each answer
    model: str
    say: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    tokens_input: int = 11
    tokens_output: int = 7
    tokens_cached: int = 0  # contained in tokens_input


class Wire(Protocol):
    """One provider's protocol."""

    name: str

    def handles(self, method: str, path: str) -> bool:
        """Whether a request for an answer uses this protocol; `path` has no query."""
        ...

    def build_page(self, method: str, path: str) -> Mapping[str, Any] | None:
        """The JSON of another endpoint of this protocol (list of models, version, token count), or None."""
        ...

    def parse_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:
        """Convert the request to the common form."""
        ...

    def build_response(self, answer: FakeAnswer) -> Mapping[str, Any]:
        """The answer as one JSON object."""
        ...

    def stream_response(self, answer: FakeAnswer) -> Iterator[bytes]:
        """The answer in pieces, each flushed: first its announcement, then at least two pieces of its text."""
        ...

    def stream_type(self) -> str:
        """The content type of a stream."""
        ...

    def build_error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        """The body of an error; `kind` is the provider's own word for it, empty for the usual one of the status."""
        ...


def split_text(text: str) -> Iterator[str]:
    """Split a text for a stream into at least two pieces (one for a single character, none for an empty text)."""
    size = min(_LARGEST_PIECE, (len(text) + 1) // 2) or 1
    return (text[start : start + size] for start in range(0, len(text), size))
