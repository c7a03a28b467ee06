"""What a provider's protocol is to the fake model: reads a request, writes a reply. Contracts only."""

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
    text: str  # all that the conversation holds as text, oldest first: system, user, assistant and tool results
    tools: tuple[Tool, ...] = ()
    results: int = 0  # how many tool results the conversation holds


class ToolCall(NamedTuple):
    """A tool that the fake model calls, by the name that the agent knows."""

    id: str
    tool: str
    input: Mapping[str, Any]


class Answer(NamedTuple):
    """What the fake model answers: thinking, words, calls, in this order; and what it claims to have used."""

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
        """Whether a request for a model's answer comes in this protocol; `path` is without the query."""
        ...

    def page(self, method: str, path: str) -> Mapping[str, Any] | None:
        """The JSON of a smaller question of this protocol (a list of models, a version, a count of tokens), or None."""
        ...

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        """The request in the words of all protocols."""
        ...

    def whole(self, answer: Answer) -> Mapping[str, Any]:
        """The answer as one JSON object."""
        ...

    def stream(self, answer: Answer) -> Iterator[bytes]:
        """The answer in pieces, each one flushed: first what announces it, then at least two pieces of its words."""
        ...

    def stream_type(self) -> str:
        """The content type of a stream."""
        ...

    def error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        """The body of an error; `kind` is the provider's own word for it, empty for the usual one of the status."""
        ...
