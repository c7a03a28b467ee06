"""The adapter of OpenAI's Codex (`codex exec --json`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/codex/ has its lines.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.agents import codex_errors, reading, verdict
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome, Scope, Usage
from jackline.domain.states import Failure
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

DECLARATION = Declaration(
    name="codex",
    binary="codex",
    gate="advisory",
    gate_reason="it tells its calls while they run and asks nobody: they are written down, and not held back",
    chooses_session=False,
    resumes=True,
    forks=True,
    minimum=(0, 166, 0),
    install="npm install -g @openai/codex",
    passes=(
        "CODEX_HOME", "CODEX_SQLITE_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE",
        # A provider of the user's own names the variable of its key in config.toml; these are the usual ones.
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT", "AZURE_OPENAI_API_KEY",
    ),
    efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"),
)  # fmt: skip
# By -c and not by --disable, which fails for a name that a version does not know. How often a provider is asked again
# can only be set with the provider's name, and not at all for the built-in one; its defaults end within 35 seconds.
_SETTINGS = (
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",  # else it calls out at every start, and offline takes 5 s to end
    "features.unbounded_connection_retries=false",  # else a refused connection is tried for ever
)
_REFUSED = {
    "--ephemeral": "such a session cannot be resumed",
    "--last": "name the session with jackline's own --session",
    "--worktree": "it would work where nobody looks",
    "--cd": "jackline names the workspace",
    "-C": "jackline names the workspace",
}
_SANDBOX = re.compile(r"-s|--sandbox\b|--approve-for-me$|(?:-c|--config=)?sandbox_mode=")
_THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLATFORMS = {
    ("linux", "x86_64"): ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    ("linux", "aarch64"): ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    ("darwin", "x86_64"): ("codex-darwin-x64", "x86_64-apple-darwin"),
    ("darwin", "arm64"): ("codex-darwin-arm64", "aarch64-apple-darwin"),
}
_LAUNCHER = "/@openai/codex/bin/codex.js"
_BEGUN = "item.started"
_RETRY = re.compile(
    r"Reconnecting\.\.\. (?:(?P<attempt>\d{1,9})/\d+|waiting for network)(?: \((?P<reason>.*)\))?", re.DOTALL
)
_SHELL = re.compile(r"\S*/(?:ba|z|da|k)?sh -l?c (.+)", re.DOTALL)
_QUOTED = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"|(?P<plain>[^\s'\"\\]+)|\\(?P<one>.)", re.DOTALL
)
_OWN_LINE = re.compile(r"[Ee]rror\b")
_LOST = re.compile(r"^Error: thread/(?:resume|fork): .*no rollout found for thread id")
_TOO_LARGE = '"input_error_code":"input_too_large"'


class Codex:
    """OpenAI's Codex."""

    declaration = DECLARATION

    def __init__(self, now: Callable[[], int] = clock.wall_ms) -> None:
        """`now` dates a reset that is told as a time of the day."""
        self._now = now

    def launch(self, request: TurnRequest) -> Launch:
        _refuse_unfit(request.arguments)
        settings = [*_SETTINGS, *([f"model_reasoning_effort={request.effort}"] if request.effort else ())]
        argv = (
            request.binary or DECLARATION.binary, "exec", *(word for one in settings for word in ("-c", one)),
            *(("-m", request.model) if request.model else ()), *request.arguments,
            # These come last because an option before them may take as many words as there are (--image).
            "--json", "--skip-git-repo-check", *_freedom(request.arguments), "-C", request.workspace,
            *_session(request), "-",
        )  # fmt: skip
        return Launch(argv=argv, stdin=request.prompt.encode("utf-8", "replace"))

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        if not line.strip():
            return ()
        fields = reading.fields_of(line)
        if fields is None:
            return reading.RAW
        match fields.get("type"):
            case "thread.started":
                return (Heard("session", reading.text(fields.get("thread_id"))),)
            case "turn.started":
                return ()
            case "item.started" | "item.updated" | "item.completed" as stage:
                return _item(stage, reading.table(fields.get("item")))
            case "error":
                return (self._complaint(reading.text(fields.get("message"))),)
            case "turn.failed":
                return (self._failed(reading.table(fields.get("error"))),)
            case "turn.completed":
                return _completed(reading.table(fields.get("usage")))
        return reading.RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        """The end decides; without one what it complained about, and at the very start what stderr says."""
        ends = [one for one in heard if one.kind == "end"]
        if ends and ends[-1].data.get("ok") is not True:
            return _judged(ends[-1])
        complaints = tuple(one for one in heard if not one.data.get("notice"))
        said = None if ends else verdict.said(complaints)
        if said is not None:
            return said
        if exit_.code and not ends:
            return _refused(exit_, tail, begun=any(one.kind == "session" for one in heard))
        return verdict.of_exit(exit_, ended=bool(ends), tail=tail)

    def _complaint(self, text: str) -> Heard:
        """An error line; one that announces another try is no error."""
        if found := _RETRY.match(text):
            status = codex_errors.status_of(found["reason"] or "")
            return Heard("retry", text, {"attempt": int(found["attempt"] or 0), "delay_ms": None, "status": status})
        complaint = codex_errors.read(text, self._now())
        if complaint.failure is Failure.LIMIT:
            return Heard("limit", complaint.text, {"resets_at": complaint.resets_at})
        return Heard("error", complaint.text, {"class": str(complaint.failure)})

    def _failed(self, error: dict[str, Any]) -> Heard:
        complaint = codex_errors.read(reading.text(error.get("message")), self._now())
        told = {"ok": False, "class": str(complaint.failure), "resets_at": complaint.resets_at}
        return Heard("end", complaint.text, told)


ADAPTER: Adapter = Codex()


def native_path(realpath: str) -> tuple[str, ...]:
    """Where the program may lie whose npm launcher this is, in order; nothing if it is no launcher.

    npm, pnpm and bun put the package of the platform beside the launcher's, or inside it; old ones had it in `vendor`.
    """
    platform = _PLATFORMS.get((sys.platform, os.uname().machine))
    if platform is None or not realpath.endswith(_LAUNCHER):
        return ()
    package, triple = platform
    beside = realpath.removesuffix("/codex/bin/codex.js")
    places = (f"{beside}/{package}", f"{beside}/codex/node_modules/@openai/{package}", f"{beside}/codex")
    return tuple(f"{place}/vendor/{triple}/bin/codex" for place in places)


# --- launching -------------------------------------------------------------------------------------------


def _refuse_unfit(arguments: tuple[str, ...]) -> None:
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in _REFUSED:
            raise UsageError(f"codex cannot be started with {name}: {_REFUSED[name]}")


def _freedom(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """No sandbox, unless one is asked for: the flag would silently win. Nothing is ever asked with either."""
    asks = any(_SANDBOX.match(argument) for argument in arguments)
    return () if asks else ("--dangerously-bypass-approvals-and-sandbox",)


def _session(request: TurnRequest) -> tuple[str, ...]:
    if request.fork_of:
        return ("fork", _thread(request.fork_of))
    return ("resume", _thread(request.session)) if request.resume and request.session else ()


def _thread(session: str) -> str:
    """A session's id; of anything else Codex believes that it is a name, and silently begins a new session."""
    if not _THREAD.fullmatch(session):
        raise UsageError(
            f"'{session}' is no session of codex: give its id, such as 01a1e166-08e0-7f50-a6f3-f2d3feee67f2"
        )
    return session


# --- reading ---------------------------------------------------------------------------------------------


def _item(stage: str, item: dict[str, Any]) -> tuple[Heard, ...]:
    done = stage == "item.completed"
    match item.get("type"):
        case "agent_message":
            return (Heard("message", reading.text(item.get("text"))),) if done else ()
        case "reasoning":
            return (Heard("thinking", reading.text(item.get("text"))),) if done else ()
        case "todo_list":  # at the end of the turn it is told once more
            return () if done else (Heard("thinking", _plan(item)),)
        case "error":  # a warning: what ends a turn is told by `turn.failed`
            told = {"class": str(Failure.AGENT_ERROR), "notice": True}
            return (Heard("error", reading.text(item.get("message")), told),)
        case "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call" | "web_search":
            return _call(stage, item)
    return reading.RAW


def _call(stage: str, item: dict[str, Any]) -> tuple[Heard, ...]:
    """A call's id is one of this process: a resumed session counts from the beginning again."""
    call = reading.text(item.get("id"))
    if stage != "item.completed":
        tool, given = _asked(item)
        return (Heard("call.started", data={"call": call, "tool": tool, "input": given}),) if stage == _BEGUN else ()
    code = item.get("exit_code")
    ok = item.get("status", "completed") == "completed"
    told = {"call": call, "ok": ok, "output": _output(item)}
    return (Heard("call.finished", data={**told, "exit_code": code} if isinstance(code, int) else told),)


def _asked(item: dict[str, Any]) -> tuple[str, Any]:
    match item.get("type"):
        case "command_execution":
            return "shell", {"command": _unwrapped(reading.text(item.get("command")))}
        case "file_change":
            return "apply_patch", {"changes": reading.items(item.get("changes"))}
        case "mcp_tool_call":
            return f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments")
        case "collab_tool_call":
            return reading.text(item.get("tool")), {"prompt": item.get("prompt")}
    return "web_search", {"query": reading.text(item.get("query"))}


def _output(item: dict[str, Any]) -> str:
    if item.get("type") != "mcp_tool_call":
        return reading.text(item.get("aggregated_output"))
    parts = map(reading.table, reading.items(reading.table(item.get("result")).get("content")))
    texts = [reading.text(part.get("text")) for part in parts]
    return "\n".join([*texts, reading.text(reading.table(item.get("error")).get("message"))]).strip()


def _unwrapped(command: str) -> str:
    """What stands inside of `/bin/bash -lc '…'`; the whole where it is not exactly that."""
    found = _SHELL.fullmatch(command)
    words = list(_QUOTED.finditer(found[1])) if found else []
    if not found or sum(len(word[0]) for word in words) != len(found[1]):
        return command
    return "".join(_unquoted(word) for word in words)


def _unquoted(word: re.Match[str]) -> str:
    if word["double"] is not None:
        return re.sub(r"\\([$`\"\\!\n])", r"\1", word["double"])
    return word["single"] or word["plain"] or word["one"] or ""


def _plan(item: dict[str, Any]) -> str:
    steps = map(reading.table, reading.items(item.get("items")))
    return "\n".join(f"[{'x' if step.get('completed') is True else ' '}] {step.get('text')}" for step in steps)


def _completed(usage: dict[str, Any]) -> tuple[Heard, ...]:
    """The figures are those of the whole session, and a fork's contain those of the session that it began as."""
    used = Usage(
        tokens_input=reading.whole(usage.get("input_tokens")),
        tokens_output=reading.whole(usage.get("output_tokens")),
        tokens_cached=reading.whole(usage.get("cached_input_tokens")),
    )
    return Heard("usage", usage=used, scope=Scope.SESSION), Heard("end", data={"ok": True})


# --- judging ---------------------------------------------------------------------------------------------


def _judged(end: Heard) -> Outcome:
    told = verdict.said((Heard("error", end.text, end.data),))
    return told or Outcome(Failure.AGENT_ERROR, end.text)


def _refused(exit_: Exit, tail: str, *, begun: bool) -> Outcome:
    """It ended before the turn began: then its own error line is on stderr, below what it logs."""
    lines = [line for line in tail.splitlines() if _OWN_LINE.match(line)]
    words = lines[-1] if lines else ""
    if not begun and _LOST.search(words):
        return Outcome(Failure.AGENT_ERROR, words, session_lost=True)
    if _TOO_LARGE in words:
        return Outcome(Failure.CONTEXT_TOO_LONG, words)
    return verdict.of_exit(exit_, ended=False, tail=words or tail)
