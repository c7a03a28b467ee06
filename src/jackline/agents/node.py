"""What the CLIs that are JavaScript have in common: how they are started, and which line of stderr is theirs. Pure."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from jackline.agents import launching, reading, verdict
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import TurnRequest

_SCRIPTS = (".js", ".mjs", ".cjs")
_COMPLAINT = re.compile(r"^(?:Error|Unknown argument|Invalid ).*", re.MULTILINE)
_LONGEST = 500
_MOST_STDIN = 8 * 1024 * 1024  # both cut off what comes after it, one of them without a word

# Node queues what a pipe does not take at once, and `process.exit` throws the queue away: the end of a long answer,
# and with it the terminal event, would be lost. The option is taken back before anything else is started, so that
# no other program of the agent sees it; it goes by the environment because a wrapper may stand where node is expected.
_BLOCKING = (
    "delete process.env.NODE_OPTIONS;"
    "for(const stream of[process.stdout,process.stderr])stream._handle?.setBlocking?.(true)"
)
ENVIRONMENT = {"NODE_OPTIONS": f"--import=data:text/javascript,{quote(_BLOCKING, safe='')}"}


def program(binary: str, launchers: Mapping[str, str], *options: str) -> tuple[str, ...]:
    """The start of the command line: node itself on the program itself.

    A launcher of the package (`launchers`: its file name → that of the program beside it) would stay in between:
    whoever kills it leaves the agent working. What is no script is a wrapper, and knows its node better than we do.
    """
    if not binary.endswith(_SCRIPTS):
        return (binary,)
    folder, name = os.path.split(binary)
    return ("node", *options, os.path.join(folder, launchers.get(name, name)))


def prompt(agent: str, request: TurnRequest) -> bytes:
    """The prompt for stdin; UsageError where the CLI would read only its beginning."""
    data = launching.prompt(request)
    if len(data) > _MOST_STDIN:
        raise UsageError(f"{agent} reads 8 MiB of prompt and this one has {len(data)} bytes: put the rest into a file")
    return data


def complaint(tail: str) -> str:
    """The line of stderr that says what is wrong: below it may stand a stack trace or a page of help."""
    plain = reading.colourless(tail)
    found = _COMPLAINT.search(plain)
    return found[0].strip()[:_LONGEST] if found else verdict.last_line(plain)
