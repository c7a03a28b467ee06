"""The adapter of opencode (`opencode run`) and its forks. Pure, like every adapter: starts nothing, reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/opencode/ has its lines. Its session has no id
before the first event. kilo is a fork of it and shares what stands here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jackline.agents import launching, opencode_errors, opencode_lines, reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

GATE_REASON = "it runs its tools itself and tells of a call only when it is over"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # the model decides which of them it has
KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_LOCATION",
    "AZURE_API_KEY", "AZURE_RESOURCE_NAME", "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME",
    "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "ZHIPU_API_KEY",
)  # fmt: skip
# Never the keys to a whole account of AWS: a token for Bedrock, or a profile, is what names an account for it.
KEYS_IF = {
    "AWS_BEARER_TOKEN_BEDROCK": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"),
    "AWS_PROFILE": ("AWS_PROFILE", "AWS_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
}
# Not all that begins with the prefix: what it tells its own children (a process's role, its id) must not reach it.
_VARIABLES = (
    "API_KEY", "AUTH_CONTENT", "CONFIG*", "DB", "DISABLE_*", "ENABLE_*", "EXPERIMENTAL*", "MODELS_*", "PERMISSION",
    "WEBSEARCH_PROVIDER",
)  # fmt: skip
# They wait for a person. A session that `run` made refuses these by itself; a fork, or one begun by hand, does not.
QUESTIONS = ("question", "plan_enter", "plan_exit")
_REFUSED = {
    "--format": "jackline reads its events",
    **dict.fromkeys(("--session", "-s", "--continue", "-c", "--fork", "--cloud-fork"), "jackline names the session"),
    **dict.fromkeys(("--attach", "--dir", "--port"), "it works in this workspace, and on its own"),
    **dict.fromkeys(("--interactive", "-i", "--mini"), "nobody sits in front of it"),
    "--share": "a run is not published",
    "--command": "the prompt would become its arguments",
}
_PLATFORMS = ("x64", "x64-baseline", "arm64", "x64-musl", "x64-baseline-musl", "arm64-musl")


def passes(prefix: str) -> tuple[str, ...]:
    """The variables that the program itself reads, and the usual ones of providers."""
    return (*(f"{prefix}_{name}" for name in _VARIABLES), *KEYS)


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
    passes_if=KEYS_IF,
    model_variables=("OPENCODE_MODEL",),
    efforts=EFFORTS,
    mcp=True,
)


@dataclass(frozen=True, slots=True)
class Opencode:
    """The program, or a fork of it: they differ in names and in what has to be switched off."""

    declaration: Declaration
    prefix: str  # of its variables
    package: str  # of npm, with the launcher
    platform: str  # what the names of the packages with the program itself begin with
    switches: Mapping[str, str]
    refused: tuple[str, ...] = QUESTIONS  # tools that it may not use

    def launch(self, request: TurnRequest) -> Launch:
        launching.refuse(self.declaration.name, request.arguments, _REFUSED)
        return Launch(
            argv=(request.binary or self.declaration.binary, *_arguments(request)),
            env={**{f"{self.prefix}_{name}": value for name, value in self.switches.items()}, **self._config(request)},
            stdin=launching.prompt(request),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return reading.parsed(line, opencode_lines.heard)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return opencode_errors.classify(exit_, heard, reading.colourless(tail))

    def native_path(self, realpath: str) -> tuple[str, ...]:
        """Where the program may lie whose npm launcher this is, in order; nothing if it is no launcher.

        It is beside the launcher, or in the package of the platform, which is inside the launcher's or beside it.
        Since 1.18 opencode's `bin/opencode.exe` is the program itself; before, `bin/opencode` started it and stayed.
        """
        program = self.declaration.binary
        root, found, name = realpath.rpartition(f"/{self.package}/bin/")
        if not found or name.endswith(".exe") or "/" in name:
            return ()
        folders = (f"{root}/{self.package}/node_modules", root)
        cached = f"{root}/{self.package}/bin/.{program}"  # the one that its installation tried out on this processor
        packages = [f"{self.platform}-linux-{one}" for one in _PLATFORMS]
        return (cached, *(f"{folder}/{one}/bin/{program}" for folder in folders for one in packages))

    def _config(self, request: TurnRequest) -> dict[str, str]:
        """Settings that it lays over the user's; what the user has in this variable already stays in it."""
        name = f"{self.prefix}_CONFIG_CONTENT"
        theirs = reading.fields_of(request.environ.get(name, "{}").encode("utf-8", "replace"))
        if theirs is None:
            return {}  # JSON with comments, or nonsense: it says so itself
        permission = theirs.get("permission")
        rules = {"*": permission} if isinstance(permission, str) else reading.table(permission)
        # The last rule that fits counts, so ours come last.
        kept = {tool: rule for tool, rule in rules.items() if tool not in self.refused}
        ours = {"autoupdate": False, "share": "disabled", "permission": {**kept, **dict.fromkeys(self.refused, "deny")}}
        servers = {**reading.table(theirs.get("mcp")), **_servers(request)}
        return {name: json.dumps({**theirs, **ours, **({"mcp": servers} if servers else {})})}


ADAPTER: Adapter = Opencode(DECLARATION, "OPENCODE", "opencode-ai", "opencode", SWITCHES)


def _servers(request: TurnRequest) -> dict[str, Any]:
    if request.mcp is None:
        return {}
    server = {"type": "local", "command": list(request.mcp.argv), "environment": dict(request.mcp.env), "enabled": True}
    return {request.mcp.name: server}


def _arguments(request: TurnRequest) -> tuple[str, ...]:
    # Its log goes to stderr because an event of an error may only say "check the log".
    given = ["run", "--auto", "--format", "json", "--thinking", "--print-logs", "--log-level", "ERROR"]
    if request.fork_of:
        given += ["--session", request.fork_of, "--fork"]
    elif request.resume and request.session:
        given += ["--session", request.session]
    else:
        given += ["--title", f"jackline {request.run_id}"]  # else it asks a model for one
    given += [launching.model(request)] if request.model else []
    given += ["--variant", request.effort] if request.effort else []
    return (*given, *request.arguments)
