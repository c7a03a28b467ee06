"""The adapter of Qwen Code (`qwen -o stream-json`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/qwen/ has its lines.
"""

from __future__ import annotations

import json
import os.path
import re
from typing import TYPE_CHECKING, Any

from jackline.agents import node, reading, verdict
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome, Scope, Usage
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DECLARATION = Declaration(
    name="qwen",
    binary="qwen",
    gate="advisory",
    gate_reason="it tells its calls when they begin and asks nobody: they are written down, and not held back",
    chooses_session=True,
    resumes=True,
    forks=True,
    minimum=(0, 24, 4),
    install="npm install -g @qwen-code/qwen-code  (needs Node 22)",
    passes=(
        "OPENAI_*", "DASHSCOPE_*", "BAILIAN_*", "MODELSCOPE_*", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL", "GEMINI_API_KEY", "GEMINI_MODEL", "GOOGLE_*", "QWEN_API_KEY", "OPENROUTER_API_KEY",
        "DEEPSEEK_API_KEY", "MOONSHOT_API_KEY", "MINIMAX_API_KEY", "ZAI_API_KEY", "XAI_API_KEY", "REQUESTY_API_KEY",
        "QWEN_HOME", "QWEN_RUNTIME_DIR", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_TLS_INSECURE", "QWEN_SYSTEM_MD",
        "QWEN_CODE_MAX_OUTPUT_TOKENS", "QWEN_STREAM_IDLE_TIMEOUT_MS", "QWEN_STREAM_MAX_LIFETIME_MS",
        "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
    ),
    model_variables=("QWEN_MODEL",),
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
)  # fmt: skip
_LAUNCHERS = {"cli-entry.js": "cli.js"}
_DEFAULTS_PATH, _SETTINGS_PATH = "QWEN_CODE_SYSTEM_DEFAULTS_PATH", "QWEN_CODE_SYSTEM_SETTINGS_PATH"
# Defaults and not settings: what the user or an administrator chose themselves stays as they chose it.
_DEFAULTS = {
    "general": {"enableAutoUpdate": False},
    # Each of these is a further conversation with the model, with tools, after the turn is done.
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False, "enableAutoSkill": False},
    # Three layers of retries multiply; this switches two of them off, and the third cannot be told.
    "model": {"generationConfig": {"maxRetries": 0}},
}
_OWN_SESSION = "name the session with jackline's own --session"
_OWN_PROMPT = "the prompt comes on stdin"
_REFUSED = {
    "-o": "jackline reads stream-json",
    "--output-format": "jackline reads stream-json",
    "--input-format": "the prompt comes as text on stdin",
    "--input-file": _OWN_PROMPT,
    "-p": _OWN_PROMPT,
    "--prompt": _OWN_PROMPT,
    "-i": _OWN_PROMPT,
    "--prompt-interactive": _OWN_PROMPT,
    "--acp": "use the agent acp for it",
    "-r": _OWN_SESSION,
    "--resume": _OWN_SESSION,
    "-c": _OWN_SESSION,
    "--continue": _OWN_SESSION,
    "--session-id": _OWN_SESSION,
    "--fork-session": _OWN_SESSION,
    "--worktree": "it would go on in a folder that nobody looks into",
}
_SIGNALS = {130: 2, 143: 15}  # it catches them, tidies up and says so like a shell
_LOST = re.compile(r"^No saved session found with ", re.MULTILINE)
_EXIT_CODE = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)
_STATUS = re.compile(r"^\[API Error: (\d{3})\b|\(HTTP (\d{3})\)")
_BAD_REQUESTS = {400, 403}  # providers use these for more than one thing, and only their words tell
_CONTEXT = (
    r"context[_ ]length|context window|maximum context|context is too large|input length|too many tokens|"
    r"prompt is too long"
)
_TEXTS = (
    (re.compile(_CONTEXT, re.IGNORECASE), Failure.CONTEXT_TOO_LONG),
    (re.compile(r"insufficient[_ ](?:balance|quota)|arrearage|overdue|billing", re.IGNORECASE), Failure.BILLING),
    (re.compile(r"quota|rate.?limit", re.IGNORECASE), Failure.LIMIT),
    (re.compile(r"API key|auth type|credential", re.IGNORECASE), Failure.AUTHENTICATION),
    (re.compile(r"Connection error|fetch failed|terminated|socket|ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UND_ERR|"
                r"stream activity|timed? ?out", re.IGNORECASE), Failure.CONNECTIVITY),
)  # fmt: skip


class Qwen:
    """Qwen Code."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        node.refuse(DECLARATION.name, request.arguments, _REFUSED)
        # Its launcher lets it collect garbage when memory runs short, by this option of node.
        start = node.program(request.binary or DECLARATION.binary, _LAUNCHERS, "--expose-gc")
        named = _files(request)
        return Launch(
            argv=(*start, "--output-format", "stream-json", *_choices(request), *request.arguments),
            env={
                **node.ENVIRONMENT,
                "QWEN_CODE_NO_RELAUNCH": "true",
                "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
                "QWEN_TELEMETRY_ENABLED": "false",
                "QWEN_USAGE_STATISTICS_ENABLED": "false",
                **{variable: file for variable, (file, _) in named.items()},
            },
            files=dict(named.values()),
            stdin=node.prompt(DECLARATION.name, request.prompt),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        if not line.strip():
            return ()
        fields = reading.fields_of(line)
        if fields is None:
            return reading.RAW
        match fields.get("type"):
            case "system":
                return _system(fields)
            case "assistant":
                return tuple(_assistant(fields))
            case "user":
                return tuple(_results(fields))
            case "result":
                return tuple(_result(fields))
            case "stream_event":
                return ()  # the state of its goals, and pieces of what comes whole
            case _:
                return reading.RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        """The last result decides: what was complained about before a good one was got over."""
        end = next((one for one in reversed(heard) if one.kind == "end"), None)
        if end is not None and end.data.get("ok") is not True:
            return verdict.said([one for one in heard if one.kind == "error"]) or Outcome(Failure.AGENT_ERROR)
        if end is None and _LOST.search(tail):
            return Outcome(Failure.AGENT_ERROR, verdict.last_line(tail), session_lost=True)
        if exit_.code in _SIGNALS:
            return verdict.of_exit(Exit(None, _SIGNALS[exit_.code]), ended=end is not None)
        return verdict.of_exit(exit_, ended=end is not None, tail=node.complaint(tail))


ADAPTER: Adapter = Qwen()


# --- launch


def _choices(request: TurnRequest) -> Iterator[str]:
    if not any(one.partition("=")[0] == "--approval-mode" for one in request.arguments):  # it takes one of the two
        yield "--yolo"
    if request.fork_of:
        yield from ("--resume", request.fork_of, "--fork-session")  # it chooses the new id itself, and tells it first
    elif request.session:
        yield from ("--resume" if request.resume else "--session-id", request.session)
    if request.model:
        yield from ("--model", request.model)


def _files(request: TurnRequest) -> dict[str, tuple[str, bytes]]:
    """By the variable that names each: the file and what is in it."""
    wanted: dict[str, tuple[str, Any]] = {
        # The user sent it into this folder to work there: it must not fall back to asking.
        "QWEN_CODE_TRUSTED_FOLDERS_PATH": ("qwen-trusted.json", {request.workspace: "TRUST_FOLDER"}),
    }
    if _DEFAULTS_PATH not in request.environ:
        wanted[_DEFAULTS_PATH] = ("qwen-defaults.json", _DEFAULTS)
    if request.effort:  # there is no flag for it, and it must win over the user's own
        wanted[_SETTINGS_PATH] = ("qwen-settings.json", {"model": {"reasoningEffort": request.effort}})
    return {
        variable: (os.path.join(request.folder, name), json.dumps(fields).encode())
        for variable, (name, fields) in wanted.items()
    }


# --- parse


def _system(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    match fields.get("subtype"):
        case "init":
            session = reading.text(fields.get("session_id"))
            return (Heard("session", session),) if session else ()
        case "retry":
            told = reading.table(fields.get("data"))
            data = {"attempt": reading.whole(told.get("attempt")), "delay_ms": reading.whole(told.get("delayMs"))}
            return (Heard("retry", reading.text(told.get("reason")), {**data, "status": 0}),)
        case _:
            return ()


def _assistant(fields: Mapping[str, Any]) -> Iterator[Heard]:
    message = reading.table(fields.get("message"))
    is_subagent = bool(fields.get("parent_tool_use_id"))
    for block in map(reading.table, reading.items(message.get("content"))):
        yield from _block(block, is_subagent=is_subagent)
    # The result's sum is that of the session since it began, so the messages are added up.
    yield Heard("usage", usage=_usage(message), scope=Scope.MESSAGE, of=reading.text(message.get("id")))


def _block(block: Mapping[str, Any], *, is_subagent: bool) -> Iterator[Heard]:
    match block.get("type"):
        case "text" if not is_subagent:
            yield Heard("message", reading.text(block.get("text")))
        case "thinking" if not is_subagent:
            yield Heard("thinking", reading.text(block.get("thinking")))
        case "tool_use":
            call, tool = reading.text(block.get("id")), reading.text(block.get("name"))
            yield Heard("call.started", data={"call": call, "tool": tool, "input": block.get("input")})


def _usage(message: Mapping[str, Any]) -> Usage:
    """What was read from a cache is contained in the input."""
    counts = reading.table(message.get("usage"))
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    return Usage(*(reading.whole(counts.get(name)) for name in names))


def _results(fields: Mapping[str, Any]) -> Iterator[Heard]:
    message = reading.table(fields.get("message"))
    for block in map(reading.table, reading.items(message.get("content"))):
        if block.get("type") == "tool_result":
            yield _finished(block)


def _finished(block: Mapping[str, Any]) -> Heard:
    output, is_error = _words(block.get("content")), block.get("is_error") is True
    data: dict[str, Any] = {"call": reading.text(block.get("tool_use_id")), "ok": not is_error, "output": output}
    codes = _EXIT_CODE.findall(output) if is_error else []  # the command's own output comes before it
    return Heard("call.finished", data={**data, "exit_code": int(codes[-1])} if codes else data)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(reading.text(reading.table(part).get("text")) for part in reading.items(content))


def _result(fields: Mapping[str, Any]) -> Iterator[Heard]:
    is_ok = fields.get("is_error") is False
    if not is_ok:
        words = reading.text(reading.table(fields.get("error")).get("message")) or "it failed and did not say why"
        yield Heard("error", " ".join(words.split()), {"class": str(_failure(words))})
    yield Heard("end", data={"ok": is_ok})


def _failure(words: str) -> Failure:
    """Of the CLI's own error line, which is all that it tells: `[API Error: 401 …]`."""
    found = _STATUS.search(words)
    status = int(found[1] or found[2]) if found else 0
    if not status or status in _BAD_REQUESTS:
        told = verdict.of_text(words, _TEXTS)
        if told is not None:
            return told
    return verdict.of_status(status)
