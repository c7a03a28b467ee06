"""The contract between an agent and the engine: a declaration and three pure functions. Contracts only.

An adapter never starts a process, reads a file or sees the store. An agent that needs a conversation is a small helper
program that prints event lines, so that the engine knows only one kind of agent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.agent_ref import split_agent
from jackline.domain.events import NOTHING
from jackline.domain.states import Role
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.outcome import AgentEvent, Exit, Outcome
    from jackline.domain.states import Decision

_OFF = frozenset({"", "0", "false", "no", "off"})


class LoginFacts(NamedTuple):
    """How a CLI logs in, and what shows that it has: a variable, a file of its folder, or its own status command."""

    command: str  # what a person does to log in
    variables: tuple[str, ...]
    home_variable: str  # names the folder with its files
    folder: str  # that folder below the user's home, if the variable is not set
    files: tuple[str, ...]
    config: str = ""  # settings that may name a provider which needs no login
    status_arguments: tuple[str, ...] = ()  # ask whether it is logged in: exit code 1 means that it is not
    below: str = ""  # where its files are in the folder that `home_variable` names
    project_files: tuple[str, ...] = ()  # files of a project that may have credentials, in the workspace or above it
    project_words: tuple[str, ...] = ()  # besides the variables: what such a file has then


def is_any_text(_path: str, _text: str) -> bool:
    """Accept every text: for CLIs that take nothing but text from such files."""
    return True


class ProjectFiles(NamedTuple):
    """What a CLI takes from a project; names are relative to each folder that it reads, a folder covers its content."""

    settings: tuple[str, ...] = ()  # may start programs: left out until the project is trusted
    texts: tuple[str, ...] = ()  # for the model; also where they are part of `settings`
    refused: tuple[str, ...] = ()  # settings that no switch leaves out: the agent does not start
    refused_words: tuple[str, ...] = ()  # the same for a file of `settings` with one of these words
    is_text: Callable[[str, str], bool] = is_any_text  # a file of `texts` that is not counts as settings
    nested: tuple[
        str, ...
    ] = ()  # texts that the CLI also finds in every folder of the workspace that git does not ignore
    installed: tuple[str, ...] = ()  # what the CLI itself writes below `settings`
    permission_files: tuple[str, ...] = ()  # JSON into which the CLI itself writes its permission lists
    user_config: tuple[tuple[str, str], ...] = ()  # (variable, file in its folder) of the user's config; first set wins


class Declaration(NamedTuple):
    """The facts about an agent that are known without running it."""

    name: str  # `NAME@ACCOUNT` for an account of it
    binary: str  # looked up on the PATH; an absolute path if jackline provides the program
    gate: str  # "enforced" or "advisory"
    gate_reason: str
    chooses_session: bool  # the session id can be set before the start, so it is never lost
    resumes: bool
    forks: bool = False
    structured: bool = True  # it prints events, not just text
    tokens: bool = True  # it reports token usage
    cost: bool = False  # it reports the cost
    live_usage: bool = False  # it reports usage while a turn runs, so that a budget holds in the middle of a turn
    prices: str = ""  # the family of its usual models in the price table; empty: it may be free, or any
    minimum: tuple[int, ...] = ()  # the oldest supported version
    version_arguments: tuple[str, ...] = ("--version",)  # empty if there is no version to check
    install: str = ""  # the install command
    passes: tuple[str, ...] = ()  # variables it may see besides the common ones; a `*` at the end matches any suffix
    passes_if: Mapping[str, tuple[str, ...]] = NOTHING  # more variables, by the variable that enables them
    model_variables: tuple[str, ...] = ()  # more variables for its model, besides JACKLINE_<AGENT>_MODEL
    is_named_by_arguments: bool = False  # the arguments after `--` are the program and its arguments
    efforts: tuple[str, ...] = ()  # its values for reasoning effort; empty if it has none
    door: str = "socket"  # how it asks the gate: "socket" or "http"
    compacts: bool = False  # it compacts a full context, and a hook of it restores the run's case
    mcp: bool = False  # it accepts an MCP server for one turn, besides the user's own
    login: LoginFacts | None = None  # None: it needs no login, or that is unknown
    mcp_reason: str = ""  # why it cannot, or when it gets none
    switches_off: Mapping[str, str] = NOTHING  # its own protection that a flag of the launch switches off, by the flag
    project_files: ProjectFiles = ProjectFiles()
    # The variables that decide as whom it works: its settings folder, keys and tokens. Empty: it has no accounts.
    account_variables: tuple[str, ...] = ()
    read_only: str = ""  # its own read-only mode, which is on in turns that only read; empty: it has none
    binds_sessions: bool = False  # it finds a session only in the folder in which that was started

    @property
    def agent(self) -> str:
        """Its name without the account."""
        return split_agent(self.name).name

    def list_visible(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """The variables of `environ` that it may see; a condition that is 0 or false counts as not set."""
        more = (names for one, names in self.passes_if.items() if environ.get(one, "").lower() not in _OFF)
        return (*self.passes, *self.account_variables, *(name for names in more for name in names))


class McpServer(NamedTuple):
    """An MCP server that the agent starts, besides the user's own."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = NOTHING  # complete: not every CLI passes its own environment on
    name: str = "jackline"  # its name for the agent


class UntrustedSettings(NamedTuple):
    """Settings of a project that is not trusted: the agent is started without them, and with the project's texts."""

    folders: tuple[str, ...]  # where the CLI looks for them: the workspace, then its parents
    repository: str  # the root of the main worktree
    left_out: Mapping[str, str]  # the contents of the files, by path; empty for what is not text
    texts: Mapping[str, str] = NOTHING  # for the model, by path
    user_config: str = ""  # the user's own configuration of the CLI; never written anywhere


class TurnRequest(NamedTuple):
    """The input of a launch."""

    run_id: str
    attempt: int
    turn: int
    role: str
    prompt: str
    workspace: str  # absolute
    folder: str  # a folder of the run, for the agent's state
    gate: str  # the gate's address: the path of a unix socket, or an http address
    token: str  # authenticates to the gate
    session: str | None = None
    resume: bool = False  # continue the existing `session`
    fork_of: str = ""  # if set, `session` is new and starts as a copy of this one
    binary: str = ""  # the path of the program
    model: str = ""  # empty for the CLI's own default
    effort: str = ""  # empty for the CLI's own default
    arguments: tuple[str, ...] = ()  # passed through unchanged
    environ: Mapping[str, str] = NOTHING  # the part of our environment that `Declaration.passes` names
    options: Mapping[str, str] = NOTHING
    mcp: McpServer | None = None
    usd_micros_left: int | None = None  # the rest of the run's budget; None: no limit in USD
    reminder: tuple[str, ...] = ()  # the command that restores the run's case, for an agent that compacts
    untrusted: UntrustedSettings | None = None  # None: the project has none, or is trusted

    @property
    def only_reads(self) -> bool:
        """Whether the turn may change nothing: a review, or a plan."""
        return self.role != Role.WORK


class Launch(NamedTuple):
    """How to start the agent: it inherits only the allow-list and these values."""

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
        """Build the command line, environment and files of a turn."""
        ...

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        """Convert a line of output to events; an unreadable line is `raw`, never an exception."""
        ...

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        """Classify the end of a turn: by end, error, limit and session events, then the exit, then stderr's tail."""
        ...


class ToolRequested(NamedTuple):
    """An agent's hook asks before a call."""

    tool: str
    input: object
    agent_call: str  # the agent's own id for the call
    folder: str = ""  # its working directory
    subagent: str = ""  # the subagent that asks, by the agent's own id for it
    starts_subagent: bool = False  # the call would start a subagent


class ToolFinished(NamedTuple):
    """An agent's hook reports the end of a call."""

    agent_call: str
    ok: bool
    exit_code: int | None = None
    output: str = ""
    duration_ms: int | None = None
    is_over: bool = True  # False: it continues in the background, and its outcome is unknown
    subagent: str = ""  # the subagent that the call started
    input: object = None  # the input that it really ran with, if the agent reports it


class SubagentEvent(NamedTuple):
    """An agent's hook reports the start or the end of a subagent."""

    name: str
    ended: bool = False
    output: str = ""


class Hooks(Protocol):
    """Converts the JSON of an agent's hooks. Pure; an adapter that asks the gate over http has one."""

    @property
    def canary_args(self) -> tuple[str, ...]:
        """Arguments that let a shell command run without asking, so that a canary detects hooks that do not work."""
        ...

    def parse(self, fields: Mapping[str, Any]) -> ToolRequested | ToolFinished | SubagentEvent | None:
        """Parse a hook; None if it does not concern the gate. ValueError if it is invalid."""
        ...

    def build_answer(self, asked: ToolRequested, decision: Decision, reason: str, output: str) -> dict[str, Any]:
        """Build the gate's answer; `ask` makes the agent exit before the call, to be resumed with it."""
        ...

    def approved_input(self, asked: ToolRequested, decision: Decision) -> object:
        """The input that the answer allows to run; None if nothing may run."""
        ...

    def replay_result(self, asked: ToolRequested, output: str) -> dict[str, Any]:
        """Build the answer after the no-op that replaces a call with a stored result."""
        ...


class CompactionMoment(StrEnum):
    """When an agent runs the reminder."""

    BEFORE = "before"  # its context is about to be compacted
    AFTER = "after"  # it was compacted, or its session continues in a new process


class Compaction(Protocol):
    """Converts the JSON between an agent that compacts and the reminder. Pure."""

    @property
    def most_bytes(self) -> int:
        """The limit for the restored text."""
        ...

    def parse_moment(self, fields: Mapping[str, Any]) -> CompactionMoment | None:
        """Parse a hook; None if it does not concern the reminder."""
        ...

    def render_reminder(self, moment: CompactionMoment, text: str) -> str:
        """Build the reminder's output, so that the agent reads the text."""
        ...
