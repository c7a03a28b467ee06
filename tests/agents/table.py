"""`python -m tests.agents.table`: writes docs/conformance.md from what the tests found. It runs no test itself."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.agents import cells
from tools.agents.pins import read as pins

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"
_NOT_RUN = "not run"
_HEAD = """# What each agent was seen to do

<!-- Written by `make conformance` from the results of tests/agents: do not edit. -->

Every cell is a test that starts the real CLI by `jackline run`, with a HOME of its own and dummy keys, against the
[fake model](fake-model.md) on loopback. It says nothing about a model, and nothing about other versions.
`make conformance` runs them all and writes this page.

"""
_TAIL = """
With 429 and 500 the fake model says how soon one may try again, because some CLIs go on trying for more than a minute;
with a refused connection nobody can say it.

## Agents without such a CLI

- **ollama**: its helper owns the tool loop. It was tested as a process of its own against the fake model, which speaks
  ollama's protocol, and a gate (`tests/integration/test_ollama_agent.py`). No ollama server and no model was involved.
- **acp**: with a small agent of the tests that does each thing that can happen, and with two real ones against the fake
  model, gemini {gemini} by its `--acp` and opencode {opencode} by its `acp`: tool calls, an unknown session, the end of
  the shell with the turn; resume of opencode alone, a wrong key of gemini alone
  (`tests/integration/test_acp_agent.py`). No other ACP agent was tried.
- **command**: with shell scripts, alone and by `jackline run` (`tests/integration/test_command_agent.py`).
- **scripted**: it has no model. It is what most other tests run, those that kill everything at every
  [crash point](crash-points.md) too.
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
    if not cell.verdict.startswith(cells.NOT_POSSIBLE):
        return cell.verdict if cell.verdict in {"pass", "fail"} else _NOT_RUN
    reason = cell.verdict.removeprefix(cells.NOT_POSSIBLE)
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
