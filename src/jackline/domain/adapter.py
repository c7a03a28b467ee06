"""What an agent is to the engine: a declaration and three pure functions. Contracts only.

An adapter never spawns, never reads a file and never sees the store. An agent that needs a conversation is a small
helper program that speaks event lines, so that the engine knows one kind of agent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Exit, Heard, Outcome
    from jackline.domain.states import Decision

_OFF = frozenset({"", "0", "false", "no", "off"})


class Declaration(NamedTuple):
    """What can be known of an agent without running it."""

    name: str
    binary: str  # what is looked for on the PATH; an absolute path where jackline brings the program itself
    gate: str  # "enforced" or "advisory"
    gate_reason: str
    chooses_session: bool  # the session id can be given before the start, so it is never lost
    resumes: bool
    forks: bool = False
    structured: bool = True  # it prints events, not just text
    tokens: bool = True  # it says what it used
    cost: bool = False  # it says what that costs
    minimum: tuple[int, ...] = ()  # the oldest version whose behaviour is known
    version_arguments: tuple[str, ...] = ("--version",)  # empty: there is nothing to ask
    install: str = ""  # the command that brings it
    passes: tuple[
        str, ...
    ] = ()  # environment it may see besides the common ones; a `*` at the end takes all that follows
    passes_if: Mapping[str, tuple[str, ...]] = NOTHING  # when this one is set, these too
    model_variables: tuple[str, ...] = ()  # further names for its model, beside JACKLINE_<AGENT>_MODEL
    is_named_by_arguments: bool = False  # the words after `--` are the program and its arguments
    efforts: tuple[str, ...] = ()  # the words for reasoning effort that it knows; empty: it takes none
    door: str = "socket"  # by which it asks the gate: "socket" or "http"
    compacts: bool = False  # it forgets when its context is full, and a hook of it gives the run's case back
    mcp: bool = False  # for one turn it can be given an MCP server besides the user's own
    mcp_reason: str = ""  # why it cannot, or when it does not get one

    def seen(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """The names that it may see of such an environment; what is switched off by 0 or false is not set."""
        more = (names for one, names in self.passes_if.items() if environ.get(one, "").lower() not in _OFF)
        return (*self.passes, *(name for names in more for name in names))


class McpServer(NamedTuple):
    """A server of tools that the agent is to start for itself, besides those of the user's own."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = NOTHING  # all that it needs: not every CLI passes its own environment on
    name: str = "jackline"  # by which the agent knows it


class TurnRequest(NamedTuple):
    """Everything a launch may depend on."""

    run_id: str
    attempt: int
    turn: int
    role: str
    prompt: str
    workspace: str  # absolute
    folder: str  # a folder of the run's own where the agent may keep its state
    gate: str  # where the gate listens: the path of a unix socket, or an http address
    token: str  # what the gate asks for
    session: str | None = None
    resume: bool = False  # `session` exists already and is to be gone on with
    fork_of: str = ""  # with it, `session` is new and begins as a copy of this one
    binary: str = ""  # where the program was found
    model: str = ""  # empty: the CLI's own default
    effort: str = ""  # empty: the CLI's own default
    arguments: tuple[str, ...] = ()  # passed through as they are
    environ: Mapping[str, str] = NOTHING  # of ours, what `Declaration.passes` names
    options: Mapping[str, str] = NOTHING
    mcp: McpServer | None = None
    usd_micros_left: int | None = None  # what the run may still spend; None: it has no limit in USD
    reminder: tuple[str, ...] = ()  # the command that gives the run's case back, for an agent that compacts


class Launch(NamedTuple):
    """How to start the agent: nothing is inherited but the allow-list and what stands here."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = NOTHING
    files: Mapping[str, bytes] = NOTHING
    stdin: bytes | None = None


class Adapter(Protocol):
    """One agent."""

    @property
    def declaration(self) -> Declaration:
        """The frozen facts."""
        ...

    def launch(self, request: TurnRequest) -> Launch:
        """The command line, environment and files of a turn."""
        ...

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        """What a line of output says; a line that cannot be read is `raw`, never an exception."""
        ...

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        """How the turn ended: by the telling lines (end, error, limit, session), then the exit, last stderr's tail."""
        ...


class Asked(NamedTuple):
    """What an agent's hook says before a call."""

    tool: str
    input: object
    agent_call: str  # the agent's own name for the call
    folder: str = ""  # where it would run
    helper: str = ""  # the subagent that asks, by the agent's own name for it
    launches: bool = False  # the call would start a subagent


class Told(NamedTuple):
    """What an agent's hook says after a call."""

    agent_call: str
    ok: bool
    exit_code: int | None = None
    output: str = ""
    duration_ms: int | None = None
    is_over: bool = True  # False: it goes on in the background, and nobody knows its outcome yet
    helper: str = ""  # the subagent that the call started
    input: object = None  # what it was really made with, as far as the agent tells


class Helper(NamedTuple):
    """What an agent's hook says of a subagent: that it began, or what it came to."""

    name: str
    ended: bool = False
    output: str = ""


class Hooks(Protocol):
    """How an agent with hooks speaks, in the words of its own JSON. Pure; an adapter with an http door has one."""

    @property
    def daring(self) -> tuple[str, ...]:
        """Arguments that let a shell command run although nobody was asked: so a canary sees a door that is open."""
        ...

    def read(self, fields: Mapping[str, Any]) -> Asked | Told | Helper | None:
        """What a hook says; None for one that means nothing to the gate. ValueError if it cannot be understood."""
        ...

    def answer(self, asked: Asked, decision: Decision, reason: str, output: str) -> dict[str, Any]:
        """The gate's decision; `ask` lets the agent end before the call, to be resumed with it."""
        ...

    def meant(self, asked: Asked, decision: Decision) -> object:
        """The input that the answer lets run; None where nothing may run."""
        ...

    def stored(self, asked: Asked, output: str) -> dict[str, Any]:
        """What to say after the harmless call that stands in for one with a stored result."""
        ...


class Moment(StrEnum):
    """When an agent runs the reminder."""

    BEFORE = "before"  # its context is about to be compacted
    AFTER = "after"  # it was, or its session goes on in a new process


class Compaction(Protocol):
    """How an agent that compacts speaks to the reminder, in the words of its own JSON. Pure."""

    @property
    def most_bytes(self) -> int:
        """How much may be given back."""
        ...

    def moment(self, fields: Mapping[str, Any]) -> Moment | None:
        """What its hook says; None for one that is nothing to us."""
        ...

    def said(self, moment: Moment, text: str) -> str:
        """What the reminder prints, so that the agent reads the text."""
        ...
