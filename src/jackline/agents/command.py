"""Any command line as an agent: the prompt on standard input, the output as messages, the exit code as verdict. Pure.

A home-made agent may print jackline's own event lines among its text (agents/lines.py), and ask the gate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jackline.agents import helper, launching, lines, reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure
from jackline.errors import UsageError

DECLARATION = Declaration(
    name="command",
    binary=sys.executable,  # never started: the command comes with each run
    gate="advisory",
    gate_reason="a command does what it does; only one that asks the gate itself can be held back",
    chooses_session=True,  # for {session}: a command that keeps files by it has its own in each run
    resumes=False,
    structured=False,
    tokens=False,
    version_arguments=(),
    is_named_by_arguments=True,
)
_TEXT = 4_000


class Command:
    """Whatever is written after `--`."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        if not request.arguments:
            raise UsageError("which command? write it after --: `jackline run PROMPT --agent command -- ./agent.sh`")
        return launch(request, request.arguments)

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return parse(line)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return classify(exit_, heard, tail)


ADAPTER: Adapter = Command()


def launch(request: TurnRequest, words: Sequence[str]) -> Launch:
    """The words with their placeholders filled; the prompt goes to standard input unless a word asks for it."""
    taken = any("{prompt}" in word for word in words)
    stdin = None if taken else launching.prompt(request)
    return Launch(tuple(_filled(word, request) for word in words), helper.environment(request), stdin=stdin)


def parse(line: bytes) -> tuple[Heard, ...]:
    """One of our event lines, or else words."""
    heard = lines.parse(line)
    if heard is not reading.RAW:
        return heard
    text = line.decode("utf-8", "replace").replace("\0", "\ufffd").strip()
    return (Heard("message", text[:_TEXT]),)


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """What event lines said, else the exit code, which is all that a plain command says about its end."""
    outcome = lines.classify(exit_, heard, tail)
    return Outcome() if outcome.failure is Failure.NO_TERMINAL_EVENT else outcome


def _filled(word: str, request: TurnRequest) -> str:
    """Piece by piece: what is filled in must not be taken for a placeholder itself."""
    values = {
        "prompt": request.prompt,
        "workspace": request.workspace,
        "session": request.session or "",
        "model": request.model,
        "folder": request.folder,
    }
    filled = ""
    while word:
        before, brace, rest = word.partition("{")
        name, end, after = rest.partition("}")
        filled += before
        if end and name in values:
            filled, word = filled + values[name], after
        else:
            filled, word = filled + brace, rest
    return filled
