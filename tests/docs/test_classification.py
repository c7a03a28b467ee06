"""The table of evidence has every agent and every class that its code can come to, and names only what the code has."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from jackline.agents import registry
from jackline.domain.adapter import TurnRequest
from jackline.domain.states import Failure
from tests.docs.pages import ROOT, read
from tests.support import recordings

PAGE = "docs/classification.md"
AGENTS = ROOT / "src" / "jackline" / "agents"
NEVER = "—"
SAME = "as opencode"
ANY = {"command", "scripted"}  # whoever prints an event line names the class
HELPERS = {"acp": AGENTS / "helpers" / "acp_client.py", "ollama": AGENTS / "helpers" / "ollama_loop.py"}
CODE = re.compile(r"`([^`]+)`")
WORDS = re.compile(r"\"([^\"]+)\"")
OF_EXIT = {Failure.CRASHED, Failure.AGENT_ERROR, Failure.NO_TERMINAL_EVENT}
ENDS = {
    "outcome_of_exit(": OF_EXIT,
    "failure_of_status(": {
        Failure.AUTHENTICATION, Failure.BILLING, Failure.MODEL_NOT_FOUND, Failure.CONNECTIVITY,
        Failure.CONTEXT_TOO_LONG, Failure.LIMIT, Failure.OVERLOADED, Failure.AGENT_ERROR,
    },
}  # fmt: skip


def rows(beginning: str) -> list[list[str]]:
    """The table below a heading or a sentence: its lines as cells, the header first."""
    below = read(PAGE).partition(beginning)[2].splitlines()
    start = next(number for number, line in enumerate(below) if line.startswith("| "))
    table = []
    for line in below[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip().strip("|").split(" | ")])
    return [table[0], *table[2:]]


@cache
def evidence() -> dict[tuple[str, str], str]:
    """The cell of an agent and a class."""
    header, *lines = rows("## The evidence")
    return {
        (agent, line[0].strip("`")): cell
        for line in lines
        for agent, cell in zip(header[1:], line[1:], strict=True)
    }  # fmt: skip


def own_classes() -> set[str]:
    return {line[0].strip("`") for line in rows("jackline itself detects these classes")[1:]}


@cache
def sources(agent: str) -> tuple[Path, ...]:
    """The files that read and judge what an agent prints."""
    if agent in HELPERS:
        return tuple(_imported(HELPERS[agent], frozenset()))
    base = "opencode" if agent == "kilo" else agent
    return tuple(sorted({*AGENTS.glob(f"{base}.py"), *AGENTS.glob(f"{base}/*.py")}))


def _imported(path: Path, seen: frozenset[Path]) -> frozenset[Path]:
    """A module of a helper program, and those that it imports."""
    seen = seen | {path}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for other in (folder.with_suffix(".py"), *(folder / f"{name.name}.py" for name in node.names)):
                if other.is_file() and other not in seen:
                    seen = _imported(other, seen)
    return seen


def text_of(agent: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sources(agent))


def recorded(agent: str) -> str:
    return "\n".join(line.decode() for one in recordings.RECORDINGS if one.agent == agent for line in one.lines)


@cache
def possible(agent: str) -> frozenset[str]:
    """Every class that an agent's code can come to."""
    if agent in ANY:
        return frozenset(Failure) - ({Failure.NO_TERMINAL_EVENT} if agent == "command" else set())
    code = text_of(agent)
    named = {str(Failure[name]) for name in re.findall(r"\bFailure\.([A-Z_]+)\b", code)}
    shared = {str(one) for call, ends in ENDS.items() if call in code for one in ends}
    if agent in HELPERS:
        named |= set(re.findall(r"(?:build_failure\(|: \(?)\"([a-z_]+)\"", code)) & set(Failure)
        shared = {*map(str, OF_EXIT), "overloaded", "limit"}  # event_lines, build_http_failure
    return frozenset(named | shared)


def test_the_helpers_are_read_to_the_bottom() -> None:
    names = {path.name for path in sources("ollama")}
    assert {"ollama_server.py", "helper_turn.py", "agent_io.py"} <= names
    assert {"acp_rpc.py", "acp_updates.py"} <= {path.name for path in sources("acp")}


def test_every_agent_of_the_registry_has_a_column() -> None:
    assert set(rows("## The evidence")[0][1:]) == set(registry.AGENTS)


def test_every_class_is_on_the_page() -> None:
    assert {failure for _, failure in evidence()} | own_classes() == set(Failure)


@pytest.mark.parametrize("agent", sorted(registry.AGENTS))
def test_a_cell_is_filled_where_the_code_can_come_to_it_and_nowhere_else(agent: str) -> None:
    told = {failure for (column, failure), cell in evidence().items() if column == agent and cell != NEVER}
    assert told == possible(agent) & {failure for _, failure in evidence()}
    assert possible(agent) - told <= own_classes()


@pytest.mark.parametrize("agent", sorted(registry.AGENTS))
def test_fields_and_words_that_a_cell_names_are_in_the_code_or_were_recorded(agent: str) -> None:
    known = re.sub(r"\\b|\\", "", text_of(agent)) + recorded(agent)
    for (column, failure), cell in evidence().items():
        if column != agent or cell == SAME:
            continue
        for named in (*CODE.findall(cell), *WORDS.findall(cell)):
            for piece in filter(None, re.split(r"\s*…\s*", named)):
                assert piece.lower() in known.lower(), f"{failure}: {named}"


@pytest.mark.parametrize("recording", recordings.RECORDINGS, ids=str)
def test_what_was_recorded_has_its_cell(recording: recordings.Recording) -> None:
    if recording.failure is not None:
        assert evidence()[recording.agent, recording.failure] != NEVER


@pytest.mark.parametrize("agent", sorted({one.agent for one in recordings.RECORDINGS}))
def test_how_long_each_recorded_cli_tries_is_told(agent: str) -> None:
    header, *lines = rows("## How long a CLI tries")
    (line,) = [line for line in lines if line[0] == agent]
    assert len(line) == len(header)
    assert all(cell.isdecimal() or cell == "not measured" for cell in line[1:-1])
    variables = set(re.findall(r"`([A-Z_]{9,})`", line[-1]))
    launch = registry.load_adapter(agent).launch(TurnRequest("r", 1, 1, "work", "x", "/w", "/f", "", ""))
    assert variables <= launch.env.keys()
