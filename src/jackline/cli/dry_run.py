"""What `run --dry-run` prints: the exact command line, names of the environment, files, prompt. It starts nothing."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from jackline.app.plan import plan
from jackline.cli.words import printable

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.cli.output import Output


def show(request: Request, home: Home, out: Output) -> int:
    """Print the plan, or exactly one JSON object."""
    planned = plan(request, home)
    command = shlex.join(planned.argv)
    if out.json:
        out.json_line({"dry_run": True, "command": command, **asdict(planned)})
        return 0
    facts = {
        "agent": ", then ".join((planned.agent, *planned.fallback)),
        "task": planned.task,
        "workspace": planned.workspace,
        "command": command,
        "stdin": "yes" if planned.stdin else "no",
        "environment": " ".join(planned.environment),
    }
    for name, text in facts.items():
        out.line(f"{name:<12} {printable(text)}")
    for path in planned.files:
        out.line(f"{'file':<12} {printable(path)}")
    out.line("\nprompt")
    for line in planned.prompt.splitlines():
        out.line(f"  {printable(line)}".rstrip())
    if planned.problem:
        out.note(f"jackline: {planned.problem}")
    return 0
