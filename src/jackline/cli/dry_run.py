"""What `run --dry-run` prints: the exact command line, environment names, files, limits, prompt. It starts nothing."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from jackline.app.keys import shown
from jackline.app.plan import plan
from jackline.errors import AgentUnavailable
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.plan import Planned
    from jackline.app.request import Request
    from jackline.cli.output import Output


def show(request: Request, home: Home, out: Output) -> int:
    """Print the plan, or exactly one JSON object; the exit code is the one that a run would begin with."""
    planned = plan(request, home)
    command = shlex.join(planned.argv)
    code = AgentUnavailable.exit_code if planned.stuck else 0
    if out.json:
        out.json_line({"dry_run": True, "command": command, **asdict(planned), "exit_code": code})
    else:
        _print(planned, command, out)
    if planned.problem:
        out.note(f"jackline: {AgentUnavailable(planned.agent, why=planned.problem)}")
    return code


def _print(planned: Planned, command: str, out: Output) -> None:
    facts = {
        "agent": ", then ".join((planned.agent, *planned.fallback)),
        "task": planned.task,
        "workspace": planned.workspace,
        "command": command,
        "stdin": "yes" if planned.stdin else "no",
        "environment": " ".join(planned.environment),
        "model": planned.model or "the agent's own",
        "effort": planned.effort or "the agent's own",
        "proof": planned.proof or "none",
        "limits": ", ".join(f"{name} {shown(value)}" for name, value in planned.limits.items()),
    }
    for name, text in facts.items():
        out.line(f"{name:<12} {make_printable(text)}")
    for path in planned.files:
        out.line(f"{'file':<12} {make_printable(path)}")
    out.line("\nprompt")
    for line in planned.prompt.splitlines():
        out.line(f"  {make_printable(line)}".rstrip())
