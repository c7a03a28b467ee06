"""OpenAI's Codex (`codex exec --json`): how it is launched, and what its output means. Starts nothing, reads no file.

Pure, except for this machine's time zone. Every statement about the CLI was observed with the real one;
tests/agents/recorded/codex/ has its output.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.agents.agent_events import call_finished, call_started, error_event, retry_event, session_events
from jackline.agents.cli_args import OWN_SESSION, drop_options, encode_prompt, model_flag, reject_arguments
from jackline.agents.front_matter import has_only_text
from jackline.agents.json_fields import (
    RAW,
    as_count,
    as_dict,
    as_list,
    as_str,
    parse_duration_ms,
    parse_line,
    parse_object,
)
from jackline.agents.outcomes import (
    failure_of_status,
    failure_of_text,
    last_event,
    outcome_of_complaints,
    outcome_of_event,
    outcome_of_exit,
)
from jackline.domain.adapter import Adapter, Declaration, Launch, LoginFacts, ProjectFiles, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_INSTRUCTIONS = ("AGENTS.override.md", "AGENTS.md")  # the first one in a folder counts
_BYPASS = "--dangerously-bypass-approvals-and-sandbox"
_LONGEST_INSTRUCTIONS = 32 * 1024  # as the CLI itself
DECLARATION = Declaration(
    name="codex",
    binary="codex",
    gate="advisory",
    gate_reason="it reports calls while they run and asks no gate: calls are recorded, not held back",
    chooses_session=False,
    resumes=True,
    forks=True,
    prices="gpt",
    minimum=(0, 166, 0),
    install="npm install -g @openai/codex",
    login=LoginFacts(
        command="run `codex login`",
        variables=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
        home_variable="CODEX_HOME",
        folder=".codex",
        files=("auth.json",),
        config="config.toml",
        status_arguments=("login", "status"),
        project_files=(".codex/config.toml",),
        project_words=("model_provider",),
    ),
    switches_off={_BYPASS: "its sandbox and its questions before a call"},
    read_only="its read-only sandbox, which also closes the network",
    passes=(
        "CODEX_HOME", "CODEX_SQLITE_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE",
        # The user's own provider names the variable of its key in config.toml; these are the usual ones.
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT", "AZURE_OPENAI_API_KEY",
    ),
    efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"),
    mcp=True,
    project_files=ProjectFiles(
        settings=(".codex",),
        texts=(*_INSTRUCTIONS, ".codex/skills"),
        refused=(".codex/rules",),
        is_text=has_only_text,
    ),
    account_variables=(
        "CODEX_HOME", "CODEX_SQLITE_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY",
        "AZURE_OPENAI_API_KEY",
    ),
)  # fmt: skip
# Set by -c and not by --disable, which fails for a name that a version does not know. The number of retries can be set
# only together with the provider's name, and not for the built-in provider; its defaults end within 35 seconds.
_SETTINGS = (
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",  # otherwise it calls out at every start, and offline takes 5 s to end
    "features.unbounded_connection_retries=false",  # otherwise it retries a refused connection forever
)
_SERVER_GRACE_MS = 10_000  # how long it waits for servers before it asks the model; the default is too short under load
_REJECTED = {
    "--ephemeral": "such a session cannot be resumed",
    "--last": OWN_SESSION,
    "--worktree": "it would work outside the workspace",
    "--cd": "jackline names the workspace",
    "-C": "jackline names the workspace",
}
_SANDBOX = re.compile(r"-s|--sandbox\b|--approve-for-me$|(?:-c|--config=)?sandbox_mode=")
# They would end the read-only sandbox, or conflict with it; it overrides what -c and -p say about it.
_LOOSENING = frozenset({"-s", "--sandbox", "--approve-for-me", "--full-auto", "--yolo", "--add-dir", _BYPASS})
_SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLATFORMS = {
    ("linux", "x86_64"): ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    ("linux", "aarch64"): ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    ("darwin", "x86_64"): ("codex-darwin-x64", "x86_64-apple-darwin"),
    ("darwin", "arm64"): ("codex-darwin-arm64", "aarch64-apple-darwin"),
}
_LAUNCHER = "/@openai/codex/bin/codex.js"


class CodexAdapter:
    """OpenAI's Codex."""

    declaration = DECLARATION

    def __init__(self, now: Callable[[], int] = clock.wall_ms) -> None:
        """`now` dates a reset that is given as a time of day."""
        self._now = now

    def launch(self, request: TurnRequest) -> Launch:
        reject_arguments(DECLARATION.name, request.arguments, _REJECTED)
        effort = [f"model_reasoning_effort={request.effort}"] if request.effort else []
        settings = [*_SETTINGS, *effort, *_server_settings(request), *_trust_settings(request)]
        arguments = request.arguments
        # The bypass flag would silently override a sandbox that the user asks for. Neither ever asks for approval.
        sandbox: tuple[str, ...] = () if any(_SANDBOX.match(argument) for argument in arguments) else (_BYPASS,)
        if request.only_reads:
            arguments, sandbox = drop_options(arguments, _LOOSENING), ("--sandbox", "read-only")
        argv = (
            request.binary or DECLARATION.binary, "exec", *(word for one in settings for word in ("-c", one)),
            *((model_flag(request),) if request.model else ()), *arguments,
            # These come last because an option before them may take any number of words (--image).
            "--json", "--skip-git-repo-check",
            *sandbox, "-C", request.workspace,
            *_session_arguments(request), "-",
        )  # fmt: skip
        return Launch(argv=argv, stdin=_build_project_text(request) + encode_prompt(request))

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return parse_line(line, lambda fields: _parse_fields(fields, self._now()))

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        """The end decides; without one the last complaint, and before the session starts the text on stderr."""
        end = last_event(events, "end")
        if end is not None:
            is_ok = end.data.get("ok") is True
            return outcome_of_exit(exit_, ended=True, tail=tail) if is_ok else outcome_of_event(end)
        complaint = outcome_of_complaints([one for one in events if not one.data.get("notice")])
        if complaint is not None:
            return complaint
        # It exited before the end of the turn: its own error line is on stderr, below its log.
        lines = [line for line in tail.splitlines() if _OWN_LINE.match(line)]
        error = lines[-1] if lines and exit_.code else ""
        if last_event(events, "session") is None and _SESSION_LOST.search(error):
            return Outcome(failure=Failure.AGENT_ERROR, detail=error, session_lost=True)
        if _TOO_LARGE in error:
            return Outcome(failure=Failure.CONTEXT_TOO_LONG, detail=error)
        return outcome_of_exit(exit_, ended=False, tail=error or tail)

    def native_path(self, realpath: str) -> tuple[str, ...]:
        """Where the program behind this npm launcher may be, in order; empty if it is not a launcher.

        npm, pnpm and bun put the platform's package beside the launcher's or inside it; old versions used `vendor`.
        """
        platform = _PLATFORMS.get((sys.platform, os.uname().machine))
        if platform is None or not realpath.endswith(_LAUNCHER):
            return ()
        package, triple = platform
        scope = realpath.removesuffix("/codex/bin/codex.js")
        folders = (f"{scope}/{package}", f"{scope}/codex/node_modules/@openai/{package}", f"{scope}/codex")
        return tuple(f"{folder}/vendor/{triple}/bin/codex" for folder in folders)


ADAPTER: Adapter = CodexAdapter()


def _server_settings(request: TurnRequest) -> tuple[str, ...]:
    """Our server as TOML settings; the servers of the user's config.toml stay."""
    if request.mcp is None:
        return ()
    program, *arguments = request.mcp.argv
    table = f"mcp_servers.{request.mcp.name}"
    env = ",".join(f"{name}={_to_toml(value)}" for name, value in request.mcp.env.items())
    return (
        f"{table}.command={_to_toml(program)}",
        f"{table}.args={_to_toml(arguments)}",
        f"{table}.env={{{env}}}",
        f"mcp_optional_startup_grace_ms={_SERVER_GRACE_MS}",
    )


def _trust_settings(request: TurnRequest) -> tuple[str, ...]:
    """Say that the project is not trusted: otherwise the CLI trusts it, and writes that into the user's config.toml.

    As one table, because a quoted key after `projects.` has no effect. It names each folder that could be the project.
    """
    if request.untrusted is None:
        return ()
    folders = dict.fromkeys((request.workspace, *request.untrusted.folders, request.untrusted.repository))
    tables = ",".join(f'{_to_toml(folder)}={{trust_level="untrusted"}}' for folder in folders)
    return (f"projects={{{tables}}}",)


def _build_project_text(request: TurnRequest) -> bytes:
    """The project's AGENTS.md, which the CLI does not read in a project that is not trusted; once in a session."""
    if request.untrusted is None or request.resume or request.fork_of:
        return b""
    parts = []
    for folder in reversed(request.untrusted.folders):
        found = (request.untrusted.texts.get(os.path.join(folder, name)) for name in _INSTRUCTIONS)
        if text := next(filter(None, found), ""):
            parts.append(f"# AGENTS.md instructions for {folder}\n\n<INSTRUCTIONS>\n{text}\n</INSTRUCTIONS>\n\n")
    return "".join(parts)[:_LONGEST_INSTRUCTIONS].encode("utf-8", "replace")


def _to_toml(value: object) -> str:
    """TOML writes texts and lists as JSON does, but has no surrogate pairs."""
    return json.dumps(value, ensure_ascii=False)


def _session_arguments(request: TurnRequest) -> tuple[str, ...]:
    command, session = ("fork", request.fork_of) if request.fork_of else ("resume", request.session)
    if not session or (command == "resume" and not request.resume):
        return ()
    if not _SESSION_ID.fullmatch(session):  # Codex would take it for a name, and silently start a new session
        raise UsageError(
            f"'{session}' is not a codex session; give its id, such as 01a1e166-08e0-7f50-a6f3-f2d3feee67f2"
        )
    return (command, session)


# --- output ----------------------------------------------------------------------------------------------

_RETRY = re.compile(
    r"Reconnecting\.\.\. (?:(?P<attempt>\d{1,9})/\d+|waiting for network)(?: \((?P<reason>.*)\))?", re.DOTALL
)
_SHELL = re.compile(r"\S*/(?:ba|z|da|k)?sh -l?c (.+)", re.DOTALL)
_QUOTED = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"|(?P<plain>[^\s'\"\\]+)|\\(?P<one>.)", re.DOTALL
)


def _parse_fields(fields: dict[str, Any], now: int) -> Iterable[AgentEvent]:
    """Convert the fields of a line to events; `now`, in milliseconds, dates a reset given as a time of day."""
    match fields.get("type"):
        case "thread.started":
            return session_events(fields.get("thread_id"))
        case "turn.started":
            return ()
        case "item.started" | "item.updated" | "item.completed" as stage:
            return _parse_item(stage, as_dict(fields.get("item")))
        case "error":
            return (_parse_error(as_str(fields.get("message")), now),)
        case "turn.failed":
            error = classify_error(as_str(as_dict(fields.get("error")).get("message")), now)
            data = {"ok": False, "class": str(error.failure), "resets_at": error.resets_at}
            return (AgentEvent(kind="end", text=error.text, data=data),)
        case "turn.completed":
            # The figures cover the whole session, and those of a fork include the session that it started from.
            names = ("input_tokens", "output_tokens", "cached_input_tokens")
            usage = Usage(*(as_count(as_dict(fields.get("usage")).get(name)) for name in names))
            return (AgentEvent("usage", usage=usage, scope=Scope.SESSION), AgentEvent("end", data={"ok": True}))
    return RAW


def _parse_error(text: str, now: int) -> AgentEvent:
    """An error line; one that announces a retry is not an error."""
    if found := _RETRY.match(text):
        return retry_event(text, attempt=int(found["attempt"] or 0), status=_find_status(found["reason"] or ""))
    error = classify_error(text, now)
    if error.failure is Failure.LIMIT:
        return AgentEvent(kind="limit", text=error.text, data={"resets_at": error.resets_at})
    return error_event(error.text, error.failure)


def _parse_item(stage: str, item: dict[str, Any]) -> tuple[AgentEvent, ...]:
    done = stage == "item.completed"
    match item.get("type"):
        case "agent_message":
            return (AgentEvent(kind="message", text=as_str(item.get("text"))),) if done else ()
        case "reasoning":
            return (AgentEvent(kind="thinking", text=as_str(item.get("text"))),) if done else ()
        case "todo_list":  # repeated at the end of the turn
            steps = map(as_dict, as_list(item.get("items")))
            plan = (f"[{'x' if step.get('completed') is True else ' '}] {step.get('text')}" for step in steps)
            return () if done else (AgentEvent(kind="thinking", text="\n".join(plan)),)
        case "error":  # a warning: `turn.failed` reports the error that ends a turn
            return (error_event(as_str(item.get("message")), Failure.AGENT_ERROR, notice=True),)
        case "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call" | "web_search":
            # A call's id belongs to this process: a resumed session counts from the beginning again.
            if stage == "item.started":
                return (call_started(item.get("id"), *_parse_tool(item)),)
            ok = item.get("status", "completed") == "completed"
            finished = call_finished(item.get("id"), _extract_output(item), ok=ok, exit_code=item.get("exit_code"))
            return (finished,) if done else ()
    return RAW


def _parse_tool(item: dict[str, Any]) -> tuple[str, Any]:
    match item.get("type"):
        case "command_execution":
            return "shell", {"command": _unwrap_shell(as_str(item.get("command")))}
        case "file_change":
            return "apply_patch", {"changes": as_list(item.get("changes"))}
        case "mcp_tool_call":
            return f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments")
        case "collab_tool_call":
            return as_str(item.get("tool")), {"prompt": item.get("prompt")}
    return "web_search", {"query": as_str(item.get("query"))}


def _extract_output(item: dict[str, Any]) -> str:
    if item.get("type") != "mcp_tool_call":
        return as_str(item.get("aggregated_output"))
    parts = map(as_dict, as_list(as_dict(item.get("result")).get("content")))
    texts = [as_str(part.get("text")) for part in parts]
    return "\n".join([*texts, as_str(as_dict(item.get("error")).get("message"))]).strip()


def _unwrap_shell(command: str) -> str:
    """The command inside `/bin/bash -lc '…'`; the whole text if it has another form."""
    found = _SHELL.fullmatch(command)
    words = list(_QUOTED.finditer(found[1])) if found else []
    if not found or sum(len(word[0]) for word in words) != len(found[1]):
        return command
    return "".join(
        re.sub(r"\\([$`\"\\!\n])", r"\1", word["double"] or "") or word["single"] or word["plain"] or word["one"] or ""
        for word in words
    )


# --- errors: only ever of a line of the CLI itself (`error`, `turn.failed`), never of the model's words -----

_PROVIDER_CODES = {  # of a provider's error that Codex passes on unchanged
    "context_length_exceeded": Failure.CONTEXT_TOO_LONG,
    "insufficient_quota": Failure.BILLING,
    "invalid_api_key": Failure.AUTHENTICATION,
    "model_not_found": Failure.MODEL_NOT_FOUND,
    "rate_limit_exceeded": Failure.LIMIT,
    "usage_limit_reached": Failure.LIMIT,
}
_STATUS = re.compile(r"^(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
# The text before a colon is Codex's own, the rest can have any source: so every pattern matches at the beginning.
_PATTERNS = tuple(
    (re.compile(pattern), failure)
    for pattern, failure in (
        (r"^You.ve (?:hit|reached) your (?:usage|spend|monthly) ", Failure.LIMIT),
        (r"^rate limit exceeded: ", Failure.LIMIT),
        (r"^Quota exceeded\b", Failure.BILLING),
        (r"^To use Codex with your ChatGPT plan, upgrade", Failure.BILLING),
        (r"^Your workspace is out of credits", Failure.BILLING),
        (r"^Selected model is at capacity", Failure.OVERLOADED),
        (r"^We.re currently experiencing high demand", Failure.OVERLOADED),
        (r"^Codex ran out of room in the model's context window", Failure.CONTEXT_TOO_LONG),
        (r"^The (?:requested )?model .{1,200} does not exist\b", Failure.MODEL_NOT_FOUND),
        (r"^The .{1,200} model is not supported\b", Failure.MODEL_NOT_FOUND),
        (r"^The .{1,200} model requires a newer version of Codex", Failure.MODEL_NOT_FOUND),
        (r"^Missing environment variable: ", Failure.AUTHENTICATION),
        (r"^Your .{1,40} could not be refreshed\b", Failure.AUTHENTICATION),
        (r"^(?:Connection failed|stream disconnected before completion): ", Failure.CONNECTIVITY),
        (r"^(?:request timed out|timeout waiting for child process to exit)", Failure.CONNECTIVITY),
    )
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RESETS_AT = re.compile(
    rf"\b[Tt]ry again at (?:(?P<month>{'|'.join(_MONTHS)})[a-z]* "
    r"(?P<day>\d{1,2})[a-z]{2}, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2}) (?P<half>[AP]M)"
)
_RESETS_IN = re.compile(r"\b[Tt]ry again in (\d{1,9}(?:\.\d{1,9})? ?(?:ms|s|m|h))")
_MINUTE_MS = 60_000
_OWN_LINE = re.compile(r"[Ee]rror\b")
_SESSION_LOST = re.compile(r"^Error: thread/(?:resume|fork): .*no rollout found for thread id")
_TOO_LARGE = '"input_error_code":"input_too_large"'


class ErrorLine(NamedTuple):
    """A classified error line."""

    failure: Failure
    text: str
    resets_at: int | None = None


def classify_error(text: str, now: int) -> ErrorLine:
    """Classify an error line, and find when to retry; `now` is in milliseconds."""
    # For status 400, the line is the provider's whole answer.
    fields = parse_object(text.encode("utf-8", "replace")) or {}
    error = as_dict(fields.get("error"))
    code = as_str(error.get("code")) or as_str(error.get("type"))
    message = as_str(error.get("message")) or as_str(fields.get("detail")) or text
    status = _find_status(message)
    failure = (
        _PROVIDER_CODES.get(code)
        or (None if status is None else failure_of_status(status))
        or failure_of_text(message, _PATTERNS)
        or Failure.AGENT_ERROR
    )
    return ErrorLine(
        failure=failure, text=message, resets_at=_find_reset(message, now) if failure is Failure.LIMIT else None
    )


def _find_status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


def _find_reset(text: str, now: int) -> int | None:
    """Find a delay, or a time of day in this machine's zone, today if there is no date."""
    if found := _RESETS_IN.search(text):
        return now + parse_duration_ms(found[1])
    found = _RESETS_AT.search(text)
    if found is None:
        return None
    today = time.localtime(now / 1000)
    month = _MONTHS.index(found["month"]) + 1 if found["month"] else today.tm_mon
    year, day = int(found["year"] or today.tm_year), int(found["day"] or today.tm_mday)
    hour = int(found["hour"]) % 12 + (12 if found["half"] == "PM" else 0)
    try:
        seconds = time.mktime((year, month, day, hour, int(found["minute"]), 0, 0, 0, -1))
    except (OverflowError, ValueError):
        return None
    return round(seconds) * 1000 + _MINUTE_MS  # Codex rounds the minute down
