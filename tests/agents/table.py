"""`python -m tests.agents.table`: writes docs/conformance.md from the test results. It runs no test itself."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.agents import cells
from tests.support.skips import NOT_POSSIBLE
from tools.agents.pins import read as pins

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"
_NOT_RUN = "not run"
_HEAD = """# Conformance of the agents

<!-- Written by `make conformance` from the results of tests/agents: do not edit. -->

Every cell is a test that starts the real CLI with `jackline run`, with a separate HOME and dummy keys, against the
[fake model](fake-model.md) on loopback. The results do not apply to real models or to other versions.
`make conformance` runs all tests and writes this page.

"""
_TAIL = """
With 429 and 500 the fake model sends a retry time, because some CLIs retry for more than a minute. With a refused
connection this is not possible.

## Agents without such a CLI

- **ollama**: its helper contains the tool loop. It is tested as a separate process with a gate and the fake model,
  which implements ollama's protocol (`tests/integration/test_ollama_agent.py`), but not with an ollama server or a real
  model.
- **acp**: tested with a small agent that covers every case, and with two real agents against the fake model, gemini
  {gemini} with `--acp` and opencode {opencode} with `acp`: tool calls, an unknown session, ending the shell with the
  turn; resume with opencode only, a wrong key with gemini only (`tests/integration/test_acp_agent.py`). No other ACP
  agent is tested.
- **command**: tested with shell scripts, alone and with `jackline run` (`tests/integration/test_command_agent.py`).
- **scripted**: it has no model. Most other tests use it, including those that kill all processes at every
  [crash point](crash-points.md).
"""


def page(found: list[cells.Cell]) -> str:
    """The whole page."""
    by_place = {(cell.agent, cell.behaviour): cell for cell in found}
    notes: list[str] = []
    rows = [_row(name, title, by_place, notes) for name, title in cells.BEHAVIOURS.items()]
    versions = {agent: pin.version for agent, pin in pins().items()}
    head = ["behaviour", *(f"{agent} {versions[agent]}" for agent in cells.AGENTS)]
    lines = [_line(head), _line(["---"] * len(head)), *rows]
    return _HEAD + "\n".join(lines) + "\n" + _numbered(notes) + _TAIL.format(**versions)


def _row(name: str, title: str, by_place: dict[tuple[str, str], cells.Cell], notes: list[str]) -> str:
    return _line([title, *(_cell(by_place.get((agent, name)), agent, notes) for agent in cells.AGENTS)])


def _cell(cell: cells.Cell | None, agent: str, notes: list[str]) -> str:
    """A result of another version than the pinned one proves nothing about it."""
    if cell is None or cell.version != pins()[agent].version:
        return _NOT_RUN
    if not cell.verdict.startswith(NOT_POSSIBLE):
        return cell.verdict if cell.verdict in {"pass", "fail"} else _NOT_RUN
    reason = cell.verdict.removeprefix(NOT_POSSIBLE)
    if reason not in notes:
        notes.append(reason)
    return f"not possible ({notes.index(reason) + 1})"


def _numbered(notes: list[str]) -> str:
    lines = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\nNot possible:\n\n" + "\n".join(lines) + "\n" if lines else ""


def _line(words: list[str]) -> str:
    return f"| {' | '.join(words)} |"


def main() -> None:
    found = cells.read()
    if not found:
        sys.exit(f"there are no results in {cells.folder()}: run pytest tests/agents first")
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
