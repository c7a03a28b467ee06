"""The adapter of Gemini CLI (`gemini -o stream-json`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/gemini/ has its lines.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from jackline.agents import node, reading, verdict
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome, Scope, Usage
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DECLARATION = Declaration(
    name="gemini",
    binary="gemini",
    gate="advisory",
    gate_reason="it tells its calls when they begin and asks nobody: they are written down, and not held back",
    chooses_session=True,
    resumes=True,
    minimum=(0, 61, 0),
    install="npm install -g @google/gemini-cli",
    passes=(
        "GEMINI_API_KEY", "GEMINI_API_KEY_AUTH_MECHANISM", "GEMINI_MODEL", "GEMINI_CLI_HOME", "GEMINI_SYSTEM_MD",
        "GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_CLI_USE_COMPUTE_ADC", "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "GEMINI_CLI_TRUSTED_FOLDERS_PATH", "CODE_ASSIST_ENDPOINT",
        "GOOGLE_*", "CLOUD_SHELL", "CLOUDSDK_CONFIG", "GCLOUD_PROJECT",
    ),
)  # fmt: skip
_DEFAULTS_PATH = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
# Defaults and not settings: what the user or an administrator chose themselves stays as they chose it.
_DEFAULTS = {
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "maxAttempts": 2,  # ten by default, which is minutes of silence: we park the run and try again ourselves
        "retryFetchErrors": False,
    },
    "privacy": {"usageStatisticsEnabled": False},
}
_OWN_SESSION = "name the session with jackline's own --session"
_OWN_PROMPT = "the prompt comes on stdin"
_REFUSED = {
    "-o": "jackline reads stream-json",
    "--output-format": "jackline reads stream-json",
    "-p": _OWN_PROMPT,
    "--prompt": _OWN_PROMPT,
    "-i": _OWN_PROMPT,
    "--prompt-interactive": _OWN_PROMPT,
    "--acp": "use the agent acp for it",
    "--experimental-acp": "use the agent acp for it",
    "-r": _OWN_SESSION,
    "--resume": _OWN_SESSION,
    "--session-id": _OWN_SESSION,
    "--session-file": _OWN_SESSION,
    "-w": "it would go on in a folder that nobody looks into",
    "--worktree": "it would go on in a folder that nobody looks into",
}
_AUTHENTICATION_EXIT = 41
_INPUT_EXIT = 42
_SIGNALS = {130: 2, 143: 15}  # it catches them, tidies up and says so like a shell
# It exits with the provider's status, of which the kernel keeps eight bits.
_STATUSES = {one & 0xFF: one for one in (400, 401, 402, 403, 404, 408, 413, 429, 499, 500, 502, 503, 504, 529)}
_BAD_REQUEST, _FORBIDDEN = 400, 403
_GIVING_UP = {"Loop detected, stopping execution", "Maximum session turns exceeded"}
_NOTHING_ASKED = "it reported success and asked no model: the prompt and what came before it are too long for the model"
_LOST = re.compile(r"^Error resuming session:", re.MULTILINE)
_TEXTS = (
    (re.compile(r"token count.*exceeds|maximum number of tokens", re.IGNORECASE), Failure.CONTEXT_TOO_LONG),
    (re.compile(r"API key not valid|API_KEY_INVALID|API key expired", re.IGNORECASE), Failure.AUTHENTICATION),
    (re.compile(r"is not found for API version|model.*not found", re.IGNORECASE), Failure.MODEL_NOT_FOUND),
    (re.compile(r"exhausted your (?:daily quota|capacity)|quota will reset", re.IGNORECASE), Failure.LIMIT),
    (re.compile(r"fetch failed|terminated|socket|ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UND_ERR|network", re.IGNORECASE),
     Failure.CONNECTIVITY),
)  # fmt: skip
_BILLING = re.compile(r"billing", re.IGNORECASE)
_REPORT = re.compile(r"^Error when talking to Gemini API .*?\b(\w+Error):", re.MULTILINE)
_ERRORS = {
    "ModelNotFoundError": Failure.MODEL_NOT_FOUND,
    "TerminalQuotaError": Failure.LIMIT,
    "RetryableQuotaError": Failure.LIMIT,
}
_DELAY = re.compile(
    r"(?:retry (?:after|in)|resets? (?:after|in)) ((?:[\d.]{1,12}(?:ms|d|h|m|s) ?){1,5})", re.IGNORECASE
)
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|d|h|m|s)")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Gemini:
    """Gemini CLI."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        node.refuse(DECLARATION.name, request.arguments, _REFUSED)
        argv = (
            *node.program(request.binary or DECLARATION.binary, {}), "--output-format", "stream-json", "--skip-trust",
            *_choices(request), *request.arguments,
        )  # fmt: skip
        env = {**node.ENVIRONMENT, "GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_TELEMETRY_ENABLED": "false"}
        defaults = os.path.join(request.folder, "gemini-defaults.json")
        stdin = node.prompt(DECLARATION.name, request.prompt)
        # It reads such a file only where root alone can write, and would complain about any other at every start.
        if os.geteuid() != 0 or _DEFAULTS_PATH in request.environ:
            return Launch(argv, env, {}, stdin)
        return Launch(argv, {**env, _DEFAULTS_PATH: defaults}, {defaults: json.dumps(_DEFAULTS).encode()}, stdin)

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        if not line.strip():
            return ()
        fields = reading.fields_of(line)
        if fields is None:
            return reading.RAW
        match fields.get("type"):
            case "init":
                session = reading.text(fields.get("session_id"))
                return (Heard("session", session),) if session else ()
            case "message":
                return _message(fields)
            case "tool_use":
                return (_started(fields),)
            case "tool_result":
                return (_finished(fields),)
            case "error":
                words = reading.text(fields.get("message"))
                return (Heard("error", words, {"class": str(Failure.AGENT_ERROR), "gave_up": words in _GIVING_UP}),)
            case "result":
                return tuple(_result(fields))
            case _:
                return reading.RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        """The result decides, but not where it reports success after it stopped, or before it began, its work."""
        end = next((one for one in reversed(heard) if one.kind == "end"), None)
        if end is None:
            return _without_result(exit_, tail)
        if end.data.get("ok") is not True or any(one.data.get("gave_up") for one in heard):
            return _failed(exit_, heard, tail)
        if end.data.get("asked") is not True:
            return Outcome(Failure.CONTEXT_TOO_LONG, _NOTHING_ASKED)
        return verdict.of_exit(exit_, ended=True, tail=node.complaint(tail))


ADAPTER: Adapter = Gemini()


# --- launch


def _choices(request: TurnRequest) -> Iterator[str]:
    if not any(one.partition("=")[0] == "--approval-mode" for one in request.arguments):  # it takes one of the two
        yield "--yolo"
    if request.session:
        yield from ("--resume" if request.resume else "--session-id", request.session)
    if request.model:
        yield from ("--model", request.model)


# --- parse


def _message(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    """A piece of what the model says: `delta` tells that the next one goes on with it."""
    if fields.get("role") != "assistant":
        return ()  # our own prompt
    data = {"delta": True} if fields.get("delta") is True else {}
    return (Heard("message", reading.text(fields.get("content")), data),)


def _started(fields: Mapping[str, Any]) -> Heard:
    call, tool = reading.text(fields.get("tool_id")), reading.text(fields.get("tool_name"))
    return Heard("call.started", data={"call": call, "tool": tool, "input": fields.get("parameters")})


def _finished(fields: Mapping[str, Any]) -> Heard:
    """It says success of a command that failed, too: its exit code is not told."""
    output = reading.text(fields.get("output")) or reading.text(reading.table(fields.get("error")).get("message"))
    call, ok = reading.text(fields.get("tool_id")), fields.get("status") == "success"
    return Heard("call.finished", data={"call": call, "ok": ok, "output": output})


def _result(fields: Mapping[str, Any]) -> Iterator[Heard]:
    stats = reading.table(fields.get("stats"))
    yield Heard("usage", usage=_usage(stats), scope=Scope.TURN)
    is_ok = fields.get("status") == "success"
    message = reading.text(reading.table(fields.get("error")).get("message"))
    if message and not is_ok:
        yield _complaint(message, reading.text(fields.get("timestamp")))
    yield Heard("end", data={"ok": is_ok, "asked": bool(reading.table(stats.get("models")))})


def _usage(stats: Mapping[str, Any]) -> Usage:
    """Of this process alone, resumed or not. Thoughts are in the total, and in none of its parts."""
    total, told = reading.whole(stats.get("total_tokens")), reading.whole(stats.get("output_tokens"))
    tokens_input = reading.whole(stats.get("input_tokens"))
    return Usage(tokens_input, max(told, total - tokens_input), reading.whole(stats.get("cached")))


def _complaint(message: str, timestamp: str) -> Heard:
    """The CLI wraps the provider's words, and sometimes the whole JSON of its error: `[API Error: {…}]`."""
    words = message.removeprefix("[API Error: ")
    error = reading.table((reading.fields_of(words.rpartition("]")[0].encode()) or {}).get("error"))
    words = reading.text(error.get("message")) or message
    data = {"status": reading.whole(error.get("code")), "resets_at": _resets_at(words, timestamp)}
    failure = _failure(data["status"] or 0, words) or Failure.AGENT_ERROR
    return Heard("error", " ".join(words.split()), {"class": str(failure), **data})


def _resets_at(words: str, timestamp: str) -> int | None:
    """When to come back: the words tell a delay, the line tells when they were said."""
    from datetime import datetime

    delay = _DELAY.search(words)
    if delay is None:
        return None
    try:
        said = datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None
    return round(said * 1000 + sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(delay[1])))


# --- classify


def _failure(status: int, words: str) -> Failure | None:
    """None where neither the status nor the words tell."""
    if status in {0, _BAD_REQUEST}:
        return verdict.of_text(words, _TEXTS)
    if status == _FORBIDDEN and _BILLING.search(words):
        return Failure.BILLING
    return verdict.of_status(status)


def _failed(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    error = next((one for one in reversed(heard) if one.kind == "error"), Heard("error", node.complaint(tail)))
    status = error.data.get("status") or _STATUSES.get(exit_.code or 0, 0)
    named = _REPORT.search(tail)
    failure = _failure(status, error.text) or _ERRORS.get(named[1] if named else "", Failure.AGENT_ERROR)
    return verdict.said((Heard("error", error.text, {**error.data, "class": str(failure)}),)) or Outcome(failure)


def _without_result(exit_: Exit, tail: str) -> Outcome:
    if exit_.code in _SIGNALS:
        return verdict.of_exit(Exit(None, _SIGNALS[exit_.code]), ended=False)
    if exit_.code == _AUTHENTICATION_EXIT:
        return Outcome(Failure.AUTHENTICATION, node.complaint(tail))
    if exit_.code == _INPUT_EXIT and _LOST.search(tail):
        return Outcome(Failure.AGENT_ERROR, node.complaint(tail), session_lost=True)
    return verdict.of_exit(exit_, ended=False, tail=node.complaint(tail))
