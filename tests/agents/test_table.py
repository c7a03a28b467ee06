"""The conformance table says what was found, and has a row for every behaviour that is tested."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.agents import cells, table
from tools.agents.pins import read as pins

HERE = Path(__file__).parent
VERSION = pins()["claude"].version


def suite() -> list[str]:
    """Every test of what all agents do; not those of one agent's door and forks, nor of the drill."""
    sources = [HERE / f"test_{name}.py" for name in ("smoke", "sessions", "ends", "errors")]
    nodes = [node for path in sources for node in ast.parse(path.read_text()).body]
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def claude_column(*found: cells.Cell) -> dict[str, str]:
    rows = [line.split(" | ") for line in table.page(list(found)).splitlines() if line.startswith("| ")]
    return {row[0].removeprefix("| "): row[1] for row in rows[2:]}


def test_the_table_has_a_row_for_every_test_and_no_other() -> None:
    assert sorted(suite()) == sorted(cells.BEHAVIOURS)


def test_what_cannot_be_names_an_agent_a_behaviour_and_a_reason() -> None:
    for (agent, behaviour), reason in cells.IMPOSSIBLE.items():
        assert agent in cells.AGENTS
        assert behaviour in cells.BEHAVIOURS
        assert reason.strip()


def test_every_agent_is_pinned_and_has_its_time() -> None:
    assert set(cells.AGENTS) <= set(pins())
    assert set(cells.TURN_SECONDS) == set(cells.AGENTS)


def test_cells_say_what_was_found() -> None:
    column = claude_column(
        cells.Cell("claude", "test_hello", "pass", VERSION),
        cells.Cell("claude", "test_401", "fail", VERSION),
        cells.Cell("claude", "test_resume", "not possible: it forgets", VERSION),
        cells.Cell("claude", "test_429", "claude is not installed: run `make agents`", VERSION),
        cells.Cell("claude", "test_500", "pass", "0.0.1"),
    )
    assert column["hello"] == "pass"
    assert column["401: authentication"] == "fail"
    assert column["resume keeps the conversation"] == "not possible (1)"
    assert column["429: limit"] == "not run"  # skipped is not passed
    assert column["500: overloaded"] == "not run"  # of another version
    assert column["404: model not found"] == "not run"


def test_a_result_is_kept_until_the_table_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKLINE_CONFORMANCE", str(tmp_path / "results"))
    cell = cells.Cell("claude", "test_hello", "pass", VERSION, 1.5)
    cells.write(cell._replace(verdict="fail"))
    cells.write(cell)
    assert cells.read() == [cell]
