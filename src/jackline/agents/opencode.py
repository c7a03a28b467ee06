"""opencode (`opencode run`) and its forks: how they are launched, and what their output means. Starts nothing.

Every statement about the CLI was observed with the real one; tests/agents/recorded/opencode/ has its output. A session
has no id before the first event. There is no last event: a turn is done when its last step finished for the reason
`stop`. kilo is a fork and shares this module.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jackline.agents.agent_events import call_finished, call_started, error_event, session_events
from jackline.agents.cli_args import drop_options, encode_prompt, model_flag, reject_arguments
from jackline.agents.front_matter import has_only_text
from jackline.agents.json_fields import (
    RAW,
    as_count,
    as_dict,
    as_list,
    as_str,
    parse_line,
    parse_object,
    strip_colours,
    usd_to_micros,
)
from jackline.agents.outcomes import failure_of_status, failure_of_text, last_event, outcome_of_event, outcome_of_exit
from jackline.domain.adapter import Adapter, Declaration, Launch, ProjectFiles, TurnRequest, UntrustedSettings
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Usage
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

_INSTALLED = ("node_modules", ".gitignore", "bun.lock", "bun.lockb", "package-lock.json")
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
GATE_REASON = "it runs its tools itself and reports a call only after it finished"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # each model supports some of them
KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_LOCATION",
    "AZURE_API_KEY", "AZURE_RESOURCE_NAME", "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME",
    "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "ZHIPU_API_KEY",
)  # fmt: skip
# Never the keys to a whole AWS account: a Bedrock token or a profile selects the account instead.
KEYS_IF = {
    "AWS_BEARER_TOKEN_BEDROCK": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"),
    "AWS_PROFILE": ("AWS_PROFILE", "AWS_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
}
# Not every variable with the prefix: those that it sets for its own children (role, process id) must not reach it.
_VARIABLES = (
    "API_KEY", "AUTH_CONTENT", "CONFIG*", "DB", "DISABLE_*", "ENABLE_*", "EXPERIMENTAL*", "MODELS_*", "PERMISSION",
    "WEBSEARCH_PROVIDER",
)  # fmt: skip
# These tools wait for a person. A session created by `run` denies them by itself; a fork, or a manual one, does not.
QUESTIONS = ("question", "plan_enter", "plan_exit")
_REJECTED = {
    "--format": "jackline reads its events",
    **dict.fromkeys(("--session", "-s", "--continue", "-c", "--fork", "--cloud-fork"), "jackline names the session"),
    **dict.fromkeys(("--attach", "--dir", "--port"), "it works in this workspace, with its own server"),
    **dict.fromkeys(("--interactive", "-i", "--mini"), "a run is not interactive"),
    "--share": "a run is not published",
    "--command": "the prompt would become its arguments",
}
_PLATFORMS = ("x64", "x64-baseline", "arm64", "x64-musl", "x64-baseline-musl", "arm64-musl")


def list_variables(prefix: str) -> tuple[str, ...]:
    """The variables that the program itself reads, and the usual ones of providers."""
    return (*(f"{prefix}_{name}" for name in _VARIABLES), *KEYS)


def list_account_variables(prefix: str) -> tuple[str, ...]:
    """The variables that decide as whom it works: its logins are in a folder of XDG_DATA_HOME."""
    return ("XDG_DATA_HOME", *(f"{prefix}_{name}" for name in ("API_KEY", "AUTH_CONTENT", "DB")), *KEYS, *KEYS_IF)


def build_project_files(names: tuple[str, ...], folders: tuple[str, ...]) -> ProjectFiles:
    """What it takes from a project: files of these names, and folders with more of them, with tools and with skills."""
    return ProjectFiles(
        settings=(*(f"{name}.{end}" for name in (*names, "tui") for end in ("json", "jsonc")), *folders),
        texts=(*INSTRUCTIONS, *(f"{folder}/{name}" for folder in folders for name in ("skill", "skills"))),
        is_text=has_only_text,
        # Only plugins and tools load it, which are covered.
        installed=tuple(f"{folder}/{name}" for folder in folders for name in _INSTALLED),
    )


SWITCHES = {"DISABLE_AUTOUPDATE": "1", "DISABLE_MODELS_FETCH": "1", "DISABLE_LSP_DOWNLOAD": "1", "DISABLE_SHARE": "1"}
SWITCHES_OFF = {"--auto": "its questions before a call"}
READ_ONLY = "its permissions, without a shell, edits and subagents"
CHANGING_TOOLS = ("edit", "bash", "task")  # denied to a turn that only reads
_LOOSENING = frozenset({"--agent", "--auto"})
DECLARATION = Declaration(
    name="opencode",
    binary="opencode",
    gate="advisory",
    gate_reason=GATE_REASON,
    chooses_session=False,
    resumes=True,
    forks=True,
    cost=True,
    live_usage=True,
    prices="all",
    minimum=(1, 18),
    install="npm install -g opencode-ai",
    switches_off=SWITCHES_OFF,
    read_only=READ_ONLY,
    passes=list_variables("OPENCODE"),
    passes_if=KEYS_IF,
    model_variables=("OPENCODE_MODEL",),
    efforts=EFFORTS,
    mcp=True,
    project_files=build_project_files(("opencode",), (".opencode",))._replace(
        # It loads the modules of plugins even if a switch leaves the project's configuration out.
        refused=(".opencode/plugin", ".opencode/plugins"),
        refused_words=("plugin", "\\u", "{file:", "{env:"),
    ),
    account_variables=list_account_variables("OPENCODE"),
)


@dataclass(frozen=True, slots=True)
class OpencodeAdapter:
    """The program, or a fork of it: they differ in names and in the features to switch off."""

    declaration: Declaration
    prefix: str  # of its variables
    package: str  # of npm, with the launcher
    platform: str  # the prefix of the packages with the program itself
    switches: Mapping[str, str]
    denied_tools: tuple[str, ...] = QUESTIONS
    usual_agent: str = "build"
    changing_tools: tuple[str, ...] = CHANGING_TOOLS

    def launch(self, request: TurnRequest) -> Launch:
        reject_arguments(self.declaration.name, request.arguments, _REJECTED)
        return Launch(
            argv=(request.binary or self.declaration.binary, *_build_arguments(request, self.usual_agent)),
            env={
                **{f"{self.prefix}_{name}": value for name, value in self.switches.items()},
                **({f"{self.prefix}_DISABLE_PROJECT_CONFIG": "1"} if request.untrusted else {}),
                **self._build_config(request),
                # Otherwise the user's own permissions come last.
                **({f"{self.prefix}_PERMISSION": "{}"} if request.only_reads else {}),
            },
            stdin=encode_prompt(request),
        )

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return parse_line(line, _parse_fields)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        """The last end or error decides: an error before a later step is over."""
        tail, last = strip_colours(tail), last_event(events, "end", "error")
        if last is None and exit_.code and _SESSION_LOST.search(tail):
            return Outcome(failure=Failure.AGENT_ERROR, detail="Session not found", session_lost=True)
        if last is None or exit_.lost or exit_.signal is not None:
            return outcome_of_exit(exit_, ended=False, tail=tail)
        if last.kind == "error":
            return outcome_of_event(_resolve_log_error(last, tail))
        if last.data.get("ok") is not True:
            return Outcome(failure=Failure.AGENT_ERROR, detail=f"the model stopped before it was done: {last.text}")
        if exit_.code == 1 and last_event(events, "error") is not None:
            return Outcome()  # the exit code reports that error, even if the turn continued and ended well
        return outcome_of_exit(exit_, ended=True, tail=tail)

    def native_path(self, realpath: str) -> tuple[str, ...]:
        """Where the program behind this npm launcher may be, in order; empty if it is not a launcher.

        It is beside the launcher, or in the platform's package, which is inside the launcher's or beside it. Since 1.18
        opencode's `bin/opencode.exe` is the program itself; before, `bin/opencode` started it and kept running.
        """
        program = self.declaration.binary
        root, found, name = realpath.rpartition(f"/{self.package}/bin/")
        if not found or name.endswith(".exe") or "/" in name:
            return ()
        folders = (f"{root}/{self.package}/node_modules", root)
        cached = f"{root}/{self.package}/bin/.{program}"  # its installer verified this one on this processor
        packages = [f"{self.platform}-linux-{one}" for one in _PLATFORMS]
        return (cached, *(f"{folder}/{one}/bin/{program}" for folder in folders for one in packages))

    def _build_config(self, request: TurnRequest) -> dict[str, str]:
        """Settings that override the user's; the user's own content of this variable is kept."""
        name = f"{self.prefix}_CONFIG_CONTENT"
        theirs = parse_object(request.environ.get(name, "{}").encode("utf-8", "replace"))
        if theirs is None:
            return {}  # JSON with comments, or invalid: the CLI reports it
        permission = theirs.get("permission")
        rules = {"*": permission} if isinstance(permission, str) else as_dict(permission)
        denied = (*self.denied_tools, *(self.changing_tools if request.only_reads else ()))
        # The last matching rule wins, so ours come last.
        kept = {tool: rule for tool, rule in rules.items() if tool not in denied}
        ours: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            "permission": {**kept, **dict.fromkeys(denied, "deny")},
        }
        if request.only_reads:  # the permissions of an agent come after those of all agents
            permissions = {"permission": dict.fromkeys(denied, "deny")}
            ours["agent"] = {**as_dict(theirs.get("agent")), self.usual_agent: permissions}
        if request.untrusted is not None:
            ours |= self._build_texts(request.untrusted, theirs)
        servers = as_dict(theirs.get("mcp"))
        if request.mcp is not None:
            argv, env = list(request.mcp.argv), dict(request.mcp.env)
            server = {"type": "local", "command": argv, "environment": env, "enabled": True}
            servers = {**servers, request.mcp.name: server}
        return {name: json.dumps({**theirs, **ours, **({"mcp": servers} if servers else {})})}

    def _build_texts(self, untrusted: UntrustedSettings, theirs: dict[str, Any]) -> dict[str, Any]:
        """The project's instructions and skills, which the CLI leaves out together with the project's settings."""
        found = [
            [path for folder in untrusted.folders if (path := f"{folder}/{name}") in untrusted.texts]
            for name in INSTRUCTIONS
        ]
        skills = [f"{folder}/{name}" for folder in untrusted.folders for name in self.declaration.project_files.texts]
        paths = [top for top in skills if any(path.startswith(f"{top}/") for path in untrusted.texts)]
        known = as_dict(theirs.get("skills"))
        return {
            # As the CLI does: all files of the first name that is found.
            "instructions": [*as_list(theirs.get("instructions")), *next(filter(None, found), [])],
            **({"skills": {**known, "paths": [*as_list(known.get("paths")), *paths]}} if paths else {}),
        }


ADAPTER: Adapter = OpencodeAdapter(DECLARATION, "OPENCODE", "opencode-ai", "opencode", SWITCHES)


def _build_arguments(request: TurnRequest, usual_agent: str) -> tuple[str, ...]:
    # The log goes to stderr because an error event may only say "check the log".
    approves = ("--agent", usual_agent) if request.only_reads else ("--auto",)
    given = ["run", *approves, "--format", "json", "--thinking", "--print-logs", "--log-level", "ERROR"]
    if request.fork_of:
        given += ["--session", request.fork_of, "--fork"]
    elif request.resume and request.session:
        given += ["--session", request.session]
    else:
        given += ["--title", f"jackline {request.run_id}"]  # otherwise it asks a model for one
    given += [model_flag(request)] if request.model else []
    given += ["--variant", request.effort] if request.effort else []
    return (*given, *(drop_options(request.arguments, _LOOSENING) if request.only_reads else request.arguments))


# --- output ----------------------------------------------------------------------------------------------


def _parse_fields(fields: dict[str, Any]) -> tuple[AgentEvent, ...]:
    part = as_dict(fields.get("part"))
    match fields.get("type"):
        case "step_start":
            return session_events(fields.get("sessionID"))
        case "text":
            return (AgentEvent(kind="message", text=as_str(part.get("text"))),)
        case "reasoning":
            return (AgentEvent(kind="thinking", text=as_str(part.get("text"))),)
        case "tool_use":
            # Reported only after the call finished.
            call, state = part.get("callID"), as_dict(part.get("state"))
            code = as_dict(state.get("metadata")).get("exit")
            output = as_str(state.get("output")) or as_str(state.get("error"))
            ok = state.get("status") == "completed" and not code
            started = call_started(call, part.get("tool"), state.get("input"))
            return started, call_finished(call, output, ok=ok, exit_code=code)
        case "step_finish":
            return _parse_step_end(part)
        case "error":
            error = _parse_error(as_dict(fields.get("error")), as_count(fields.get("timestamp")))
            return (*session_events(fields.get("sessionID")), error)
    return RAW


def _parse_step_end(part: dict[str, Any]) -> tuple[AgentEvent, ...]:
    tokens = as_dict(part.get("tokens"))
    cache = as_dict(tokens.get("cache"))
    cached = as_count(cache.get("read"))
    usage = Usage(
        tokens_input=as_count(tokens.get("input")) + cached + as_count(cache.get("write")),
        tokens_output=as_count(tokens.get("output")) + as_count(tokens.get("reasoning")),
        tokens_cached=cached,
        usd_micros=usd_to_micros(part.get("cost")),
    )
    reason = as_str(part.get("reason"))
    event = AgentEvent("usage", usage=usage, priced=True)  # a model without a price costs 0
    if reason == "tool-calls":
        return (event,)  # another step follows
    return event, AgentEvent(kind="end", text=reason, data={"ok": reason == "stop"})


# --- errors ----------------------------------------------------------------------------------------------

_ERROR_NAMES = {
    "ProviderAuthError": Failure.AUTHENTICATION,
    "ContextOverflowError": Failure.CONTEXT_TOO_LONG,
}
_PROVIDER_CODES = {
    "insufficient_quota": Failure.BILLING,
    "billing_hard_limit_reached": Failure.BILLING,
    "model_not_found": Failure.MODEL_NOT_FOUND,
    "context_length_exceeded": Failure.CONTEXT_TOO_LONG,
}
_TEXTS = (
    (re.compile(r"^(ProviderModelNotFoundError: )?Model not found: "), Failure.MODEL_NOT_FOUND),
    (re.compile(r"^Cannot connect to API|timed out|socket connection was closed", re.IGNORECASE), Failure.CONNECTIVITY),
)
_SESSION_LOST = re.compile(r"^(Error: )?Session not found$", re.MULTILINE)


def _parse_error(error: dict[str, Any], now: int) -> AgentEvent:
    """An error event; `now`, in milliseconds, is its timestamp."""
    data = as_dict(error.get("data"))
    name, message = as_str(error.get("name")), as_str(data.get("message"))
    status = as_count(data.get("statusCode"))
    failure = _find_failure(name, message, status, data)
    resets_at = None
    if failure is Failure.LIMIT:  # it ends after the seconds that the provider gave, if any
        seconds = as_str(as_dict(data.get("responseHeaders")).get("retry-after"))
        is_valid = now and seconds.isdecimal() and len(seconds) < len("1000000000")
        resets_at = now + int(seconds) * 1000 if is_valid else None
    ref = as_str(data.get("ref"))
    return error_event(message or name, failure, status=status, ref=ref, resets_at=resets_at)


def _find_failure(name: str, message: str, status: int, data: Mapping[str, Any]) -> Failure:
    if name in _ERROR_NAMES:
        return _ERROR_NAMES[name]
    if status:
        body = parse_object(as_str(data.get("responseBody")).encode("utf-8", "replace")) or {}
        code = as_str(as_dict(body.get("error")).get("code"))
        return _PROVIDER_CODES.get(code) or failure_of_status(status)
    if data.get("isRetryable") is True:
        return Failure.CONNECTIVITY  # there was no response, and the CLI would have retried
    return failure_of_text(message, _TEXTS) or Failure.AGENT_ERROR


def _resolve_log_error(error: AgentEvent, tail: str) -> AgentEvent:
    """Replace an error that only refers to a line of the log with the text of that line."""
    ref = error.data.get("ref")
    found = re.search(rf'\bref={re.escape(ref)} error="([^"]*)"', tail) if ref else None
    if found is None:
        return error
    failure = failure_of_text(found[1], _TEXTS) or Failure.AGENT_ERROR
    return AgentEvent(kind="error", text=found[1], data={**error.data, "class": str(failure)})
