"""The adapter of OpenAI's Codex (`codex exec --json`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/codex/ has its lines.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

from jackline import clock
from jackline.agents import codex_errors, codex_lines, launching, reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome
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
    mcp=True,
)  # fmt: skip
# By -c and not by --disable, which fails for a name that a version does not know. How often a provider is asked again
# can only be set with the provider's name, and not at all for the built-in one; its defaults end within 35 seconds.
_SETTINGS = (
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",  # else it calls out at every start, and offline takes 5 s to end
    "features.unbounded_connection_retries=false",  # else a refused connection is tried for ever
)
_GRACE_MS = 10_000  # until then it waits for servers before it asks the model; by default too short for a busy machine
_REFUSED = {
    "--ephemeral": "such a session cannot be resumed",
    "--last": launching.OWN_SESSION,
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


class Codex:
    """OpenAI's Codex."""

    declaration = DECLARATION

    def __init__(self, now: Callable[[], int] = clock.wall_ms) -> None:
        """`now` dates a reset that is told as a time of the day."""
        self._now = now

    def launch(self, request: TurnRequest) -> Launch:
        launching.refuse(DECLARATION.name, request.arguments, _REFUSED)
        effort = [f"model_reasoning_effort={request.effort}"] if request.effort else []
        settings = [*_SETTINGS, *effort, *_server(request)]
        argv = (
            request.binary or DECLARATION.binary, "exec", *(word for one in settings for word in ("-c", one)),
            *((launching.model(request),) if request.model else ()), *request.arguments,
            # These come last because an option before them may take as many words as there are (--image).
            "--json", "--skip-git-repo-check", *_freedom(request.arguments), "-C", request.workspace,
            *_session(request), "-",
        )  # fmt: skip
        return Launch(argv=argv, stdin=launching.prompt(request))

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return reading.parsed(line, lambda fields: codex_lines.heard(fields, self._now()))

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return codex_errors.classify(exit_, heard, tail)

    def native_path(self, realpath: str) -> tuple[str, ...]:
        """Where the program may lie whose npm launcher this is, in order; nothing if it is no launcher.

        npm, pnpm and bun put the package of the platform beside the launcher's, or inside it; old ones in `vendor`.
        """
        platform = _PLATFORMS.get((sys.platform, os.uname().machine))
        if platform is None or not realpath.endswith(_LAUNCHER):
            return ()
        package, triple = platform
        beside = realpath.removesuffix("/codex/bin/codex.js")
        places = (f"{beside}/{package}", f"{beside}/codex/node_modules/@openai/{package}", f"{beside}/codex")
        return tuple(f"{place}/vendor/{triple}/bin/codex" for place in places)


ADAPTER: Adapter = Codex()


def _server(request: TurnRequest) -> tuple[str, ...]:
    """Our server as settings, each a value of TOML; those of the user's own config.toml stay."""
    if request.mcp is None:
        return ()
    program, *arguments = request.mcp.argv
    table = f"mcp_servers.{request.mcp.name}"
    env = ",".join(f"{name}={_text(value)}" for name, value in request.mcp.env.items())
    return (
        f"{table}.command={_text(program)}",
        f"{table}.args={_text(arguments)}",
        f"{table}.env={{{env}}}",
        f"mcp_optional_startup_grace_ms={_GRACE_MS}",
    )


def _text(value: object) -> str:
    """A value of TOML, which writes texts and lists as JSON does, but knows no pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False)


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
