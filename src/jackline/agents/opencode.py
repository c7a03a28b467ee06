"""opencode: how a turn of it is launched, read and judged. Starts nothing, and leaves the user's settings as they are.

It prints an event a line and has no last one: a turn is done when its last step finished for the reason `stop`. Its
session has no id before the first event. kilo is a fork of it and shares what stands here.
"""

from __future__ import annotations

import json
import os.path
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jackline.agents import reading, verdict
from jackline.domain.adapter import Adapter, Declaration, Launch
from jackline.domain.outcome import Heard, Outcome, Usage
from jackline.domain.states import Failure
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import TurnRequest
    from jackline.domain.outcome import Exit

GATE_REASON = "it runs its tools itself and tells of a call only when it is over"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # the model decides which of them it has
KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_LOCATION",
    "AWS_PROFILE", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK", "AZURE_API_KEY", "AZURE_RESOURCE_NAME", "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME",
    "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "ZHIPU_API_KEY",
)  # fmt: skip
# Not all that begins with the prefix: what it tells its own children (a process's role, its id) must not reach it.
_VARIABLES = (
    "API_KEY", "AUTH_CONTENT", "CONFIG*", "DB", "DISABLE_*", "ENABLE_*", "EXPERIMENTAL*", "MODELS_*", "PERMISSION",
    "WEBSEARCH_PROVIDER",
)  # fmt: skip
# They wait for a person. A session that `run` made refuses these by itself; a fork, or one begun by hand, does not.
QUESTIONS = ("question", "plan_enter", "plan_exit")
_UNFIT = {
    "--format": "jackline reads its events",
    **dict.fromkeys(("--session", "-s", "--continue", "-c", "--fork", "--cloud-fork"), "jackline names the session"),
    **dict.fromkeys(("--attach", "--dir", "--port"), "it works in this workspace, and on its own"),
    **dict.fromkeys(("--interactive", "-i", "--mini"), "nobody sits in front of it"),
    "--share": "a run is not published",
    "--command": "the prompt would become its arguments",
}
_PLATFORMS = ("x64", "x64-baseline", "arm64", "x64-musl", "x64-baseline-musl", "arm64-musl")
_NAMED = {
    "ProviderAuthError": Failure.AUTHENTICATION,
    "ContextOverflowError": Failure.CONTEXT_TOO_LONG,
}
_CODED = {
    "insufficient_quota": Failure.BILLING,
    "billing_hard_limit_reached": Failure.BILLING,
    "model_not_found": Failure.MODEL_NOT_FOUND,
    "context_length_exceeded": Failure.CONTEXT_TOO_LONG,
}
_TEXTS = (
    (re.compile(r"^(ProviderModelNotFoundError: )?Model not found: "), Failure.MODEL_NOT_FOUND),
    (re.compile(r"^Cannot connect to API|timed out|socket connection was closed", re.IGNORECASE), Failure.CONNECTIVITY),
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LOST = re.compile(r"^(Error: )?Session not found$", re.MULTILINE)


def passes(prefix: str) -> tuple[str, ...]:
    """The variables that the program itself reads, and the usual ones of providers."""
    return (*(f"{prefix}_{name}" for name in _VARIABLES), *KEYS)


@dataclass(frozen=True, slots=True)
class Opencode:
    """The program, or a fork of it: they differ in names and in what has to be switched off."""

    declaration: Declaration
    prefix: str  # of its variables
    switches: Mapping[str, str]
    refused: tuple[str, ...] = QUESTIONS  # tools that it may not use

    def launch(self, request: TurnRequest) -> Launch:
        self._refuse_unfit(request.arguments)
        return Launch(
            argv=(request.binary or self.declaration.binary, *_arguments(request)),
            env={**{f"{self.prefix}_{name}": value for name, value in self.switches.items()}, **self._config(request)},
            stdin=request.prompt.encode("utf-8", "replace"),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        if not line.strip():
            return ()
        fields = reading.fields_of(line)
        return _heard(fields) if fields is not None else reading.RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return _classify(exit_, heard, _COLOUR.sub("", tail))

    def _refuse_unfit(self, arguments: tuple[str, ...]) -> None:
        for argument in arguments:
            flag = argument.partition("=")[0]
            if flag in _UNFIT:
                raise UsageError(f"{self.declaration.name} cannot be given {flag} here: {_UNFIT[flag]}; leave it out")

    def _config(self, request: TurnRequest) -> dict[str, str]:
        """Settings that it lays over the user's; what the user has in this variable already stays in it."""
        name = f"{self.prefix}_CONFIG_CONTENT"
        theirs = reading.fields_of(request.environ.get(name, "{}").encode("utf-8", "replace"))
        if theirs is None:
            return {}  # JSON with comments, or nonsense: it says so itself
        permission = theirs.get("permission")
        rules = {"*": permission} if isinstance(permission, str) else reading.table(permission)
        kept = {
            name: rule for name, rule in rules.items() if name not in self.refused
        }  # the last rule that fits counts
        ours = {"autoupdate": False, "share": "disabled", "permission": {**kept, **dict.fromkeys(self.refused, "deny")}}
        return {name: json.dumps({**theirs, **ours})}


SWITCHES = {"DISABLE_AUTOUPDATE": "1", "DISABLE_MODELS_FETCH": "1", "DISABLE_LSP_DOWNLOAD": "1", "DISABLE_SHARE": "1"}
DECLARATION = Declaration(
    name="opencode",
    binary="opencode",
    gate="advisory",
    gate_reason=GATE_REASON,
    chooses_session=False,
    resumes=True,
    forks=True,
    cost=True,
    minimum=(1, 18),
    install="npm install -g opencode-ai",
    passes=passes("OPENCODE"),
    model_variables=("OPENCODE_MODEL",),
    efforts=EFFORTS,
)
ADAPTER: Adapter = Opencode(DECLARATION, "OPENCODE", SWITCHES)


def native_path(realpath: str) -> tuple[str, ...]:
    """Where the program may lie whose npm launcher this is, in order; nothing if it is no launcher.

    Since 1.18 npm's `bin/opencode.exe` is the program itself; before, `bin/opencode` started it and stayed.
    """
    return native_paths(realpath, "opencode-ai", "opencode", "opencode")


def native_paths(realpath: str, package: str, platform: str, program: str) -> tuple[str, ...]:
    """The same for any fork: beside the launcher, or in the package of the platform, inside or beside its own."""
    root, found, name = realpath.rpartition(f"/{package}/bin/")
    if not found or name.endswith(".exe") or "/" in name:
        return ()
    folders = (f"{root}/{package}/node_modules", root)
    names = [f"{platform}-linux-{one}/bin/{program}" for one in _PLATFORMS]
    cached = f"{root}/{package}/bin/.{program}"  # the one that its installation tried out on this processor
    return (cached, *(os.path.join(folder, name) for folder in folders for name in names))


def _arguments(request: TurnRequest) -> tuple[str, ...]:
    # Its log goes to stderr because an event of an error may only say "check the log".
    given = ["run", "--auto", "--format", "json", "--thinking", "--print-logs", "--log-level", "ERROR"]
    if request.fork_of:
        given += ["--session", request.fork_of, "--fork"]
    elif request.resume and request.session:
        given += ["--session", request.session]
    else:
        given += ["--title", f"jackline {request.run_id}"]  # else it asks a model for one
    given += ["--model", request.model] if request.model else []
    given += ["--variant", request.effort] if request.effort else []
    return (*given, *request.arguments)


def _heard(fields: dict[str, Any]) -> tuple[Heard, ...]:
    part = reading.table(fields.get("part"))
    session = Heard("session", reading.text(fields.get("sessionID")))
    match fields.get("type"):
        case "step_start":
            return (session,)
        case "text":
            return (Heard("message", reading.text(part.get("text"))),)
        case "reasoning":
            return (Heard("thinking", reading.text(part.get("text"))),)
        case "tool_use":
            return _call(part)
        case "step_finish":
            return _step(part)
        case "error":
            return (session, _error(reading.table(fields.get("error")), reading.whole(fields.get("timestamp"))))
    return reading.RAW


def _call(part: dict[str, Any]) -> tuple[Heard, ...]:
    state = reading.table(part.get("state"))
    code = reading.table(state.get("metadata")).get("exit")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    call = reading.text(part.get("callID"))
    started = {"call": call, "tool": reading.text(part.get("tool")), "input": state.get("input")}
    output = reading.text(state.get("output")) or reading.text(state.get("error"))
    finished = {"call": call, "ok": state.get("status") == "completed" and not exit_code, "output": output}
    if exit_code is not None:
        finished["exit_code"] = exit_code
    return Heard("call.started", data=started), Heard("call.finished", data=finished)


def _step(part: dict[str, Any]) -> tuple[Heard, ...]:
    tokens = reading.table(part.get("tokens"))
    cache = reading.table(tokens.get("cache"))
    cached = reading.whole(cache.get("read"))
    usage = Usage(
        tokens_input=reading.whole(tokens.get("input")) + cached + reading.whole(cache.get("write")),
        tokens_output=reading.whole(tokens.get("output")) + reading.whole(tokens.get("reasoning")),
        tokens_cached=cached,
        usd_micros=reading.micros(part.get("cost")),
    )
    reason = reading.text(part.get("reason"))
    used = Heard("usage", usage=usage)
    if reason == "tool-calls":
        return (used,)  # another step follows
    return used, Heard("end", reason, {"ok": reason == "stop"})


def _error(error: dict[str, Any], now: int) -> Heard:
    data = reading.table(error.get("data"))
    name, words = reading.text(error.get("name")), reading.text(data.get("message"))
    status = reading.whole(data.get("statusCode"))
    failure = _class(name, words, status, data)
    told: dict[str, Any] = {"class": str(failure), "status": status, "ref": reading.text(data.get("ref"))}
    if failure is Failure.LIMIT:
        told["resets_at"] = _resets_at(reading.table(data.get("responseHeaders")), now)
    return Heard("error", words or name, told)


def _class(name: str, words: str, status: int, data: Mapping[str, Any]) -> Failure:
    body = reading.fields_of(reading.text(data.get("responseBody")).encode("utf-8", "replace")) or {}
    code = reading.text(reading.table(body.get("error")).get("code"))
    if name in _NAMED:
        return _NAMED[name]
    if status:
        return _CODED.get(code) or verdict.of_status(status)
    if data.get("isRetryable") is True:
        return Failure.CONNECTIVITY  # no answer came, and it would have tried again
    return verdict.of_text(words, _TEXTS) or Failure.AGENT_ERROR


def _resets_at(headers: Mapping[str, Any], now: int) -> int | None:
    """When a limit ends, where the provider said after how many seconds; `now` is the time of the event."""
    seconds = reading.text(headers.get("retry-after"))
    return now + int(seconds) * 1000 if now and seconds.isdecimal() and len(seconds) < len("1000000000") else None


def _classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """The last word counts: an error that a later step got over is none."""
    last = next((one for one in reversed(heard) if one.kind in ("end", "error")), None)
    if last is None and exit_.code and _LOST.search(tail):
        return Outcome(Failure.AGENT_ERROR, "Session not found", session_lost=True)
    if last is None or exit_.lost or exit_.signal is not None:
        return verdict.of_exit(exit_, ended=False, tail=tail)
    if last.kind == "error":
        return verdict.said((_explained(last, tail),)) or Outcome(Failure.AGENT_ERROR)
    if last.data.get("ok") is not True:
        return Outcome(Failure.AGENT_ERROR, f"the model stopped for another reason than being done: {last.text}")
    if exit_.code == 1 and any(one.kind == "error" for one in heard):
        return Outcome()  # the code stands for that error, also when the turn went on and ended well
    return verdict.of_exit(exit_, ended=True, tail=tail)


def _explained(error: Heard, tail: str) -> Heard:
    """An error that only names a line of the log, with what that line says."""
    ref = error.data.get("ref")
    if not ref:
        return error
    found = re.search(rf'\bref={re.escape(ref)} error="([^"]*)"', tail)
    if found is None:
        return error
    failure = verdict.of_text(found[1], _TEXTS) or Failure.AGENT_ERROR
    return Heard("error", found[1], {**error.data, "class": str(failure)})
