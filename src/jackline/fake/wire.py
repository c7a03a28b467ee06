"""The contract of a provider's protocol: read a request, write a reply. Contracts only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Tool(NamedTuple):
    """A tool that the agent offers to the model."""

    name: str
    schema: Mapping[str, Any] = NOTHING  # JSON schema of its input


class Asked(NamedTuple):
    """One request to the model, whatever the protocol."""

    wire: str
    model: str
    stream: bool
    text: str  # all text of the conversation, oldest first: system, user, assistant and tool results
    tools: tuple[Tool, ...] = ()
    results: int = 0  # the number of tool results in the conversation


class ToolCall(NamedTuple):
    """A tool call of the fake model, with the agent's name for the tool."""

    id: str
    tool: str
    input: Mapping[str, Any]


class Answer(NamedTuple):
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

    def owns(self, method: str, path: str) -> bool:
        """Whether a request for an answer uses this protocol; `path` has no query."""
        ...

    def page(self, method: str, path: str) -> Mapping[str, Any] | None:
        """The JSON of another endpoint of this protocol (list of models, version, token count), or None."""
        ...

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        """Convert the request to the common form."""
        ...

    def whole(self, answer: Answer) -> Mapping[str, Any]:
        """The answer as one JSON object."""
        ...

    def stream(self, answer: Answer) -> Iterator[bytes]:
        """The answer in pieces, each flushed: first its announcement, then at least two pieces of its text."""
        ...

    def stream_type(self) -> str:
        """The content type of a stream."""
        ...

    def error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        """The body of an error; `kind` is the provider's own word for it, empty for the usual one of the status."""
        ...
