"""The conformance table: agents, behaviours, the cells that cannot be, and where results are kept between runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

AGENTS = ("claude", "codex", "gemini", "kilo", "opencode", "qwen")

# The test that proves it, and what a reader calls it; in the order of the table.
BEHAVIOURS = {
    "test_hello": "hello",
    "test_tool_call": "a tool call is recorded",
    "test_edit_and_commit": "edit and commit, tokens in the summary",
    "test_tokens_and_session": "tokens and session recorded",
    "test_resume": "resume keeps the conversation",
    "test_tokens_across_a_resume": "tokens across a crash and its resume are counted once",
    "test_tokens_of_an_adopted_session": "a session started by hand: only the run's own tokens count",
    "test_unknown_session": "unknown session: a new one is started, and the run reports it",
    "test_timeout": "timeout ends the whole process tree, including a detached shell",
    "test_sigkill_of_the_cli": "SIGKILL of the CLI during a shell call: resumed, nothing happens twice",
    "test_cut_off_call_is_named": "the resumed agent is told which call was interrupted",
    "test_sigkill_of_the_supervisor": "SIGKILL of the supervisor: the agent is ended, then resumed",
    "test_401": "401: authentication",
    "test_404": "404: model not found",
    "test_429": "429: limit",
    "test_500": "500: overloaded",
    "test_refused": "refused connection: connectivity",
    "test_words_of_an_error": "an answer that contains “429” and “rate limit” succeeds",
    "test_long_line": "an answer of 10 MB",
}

_FINISHED_ONLY = "it reports a call only when it has ended, so the interrupted call is unknown"
# Never to hide a failure: only what the CLI itself makes impossible, and why.
IMPOSSIBLE = {
    ("codex", "test_tokens_of_an_adopted_session"): "it reports only totals of the whole thread, so the first turn of"
    " the run includes the earlier usage by hand",
    ("gemini", "test_tokens_across_a_resume"): "it reports tokens only at the end of a turn, so those of a killed turn"
    " are never reported",
    ("kilo", "test_cut_off_call_is_named"): _FINISHED_ONLY,
    ("opencode", "test_cut_off_call_is_named"): _FINISHED_ONLY,
}

# How long a turn may take before it is ended, so that the CLI has begun its shell call by then on a busy machine.
TURN_SECONDS = {"claude": 12, "codex": 12, "gemini": 20, "kilo": 60, "opencode": 30, "qwen": 30}
# Session ids in each CLI's own form that no session has.
UNKNOWN_SESSION = {
    "kilo": "ses_0000000000000000000000000a",
    "opencode": "ses_0000000000000000000000000a",
}
UNKNOWN_UUID = "00000000-0000-4000-8000-00000000000a"


class Cell(NamedTuple):
    """How one behaviour of one agent was found."""

    agent: str
    behaviour: str  # the name of its test
    verdict: str  # pass, fail, or why it was not tried
    version: str
    seconds: float = 0.0


def folder() -> Path:
    """Where results are kept between the tests and the table."""
    root = Path(__file__).parent.parent.parent
    return Path(os.environ.get("JACKLINE_CONFORMANCE") or root / "build" / "conformance")


def write(cell: Cell) -> None:
    """One file a cell: workers that run side by side never write the same one."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{cell.agent}.{cell.behaviour}.json").write_text(json.dumps(cell._asdict()) + "\n")


def read() -> list[Cell]:
    """Every result of a behaviour that there still is."""
    cells = [Cell(**json.loads(path.read_text())) for path in sorted(folder().glob("*.json"))]
    return [cell for cell in cells if cell.agent in AGENTS and cell.behaviour in BEHAVIOURS]
