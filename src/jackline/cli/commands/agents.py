"""`jackline agents`: lists the agents, what each can do, and why one cannot be used. It sends no prompt."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.cli.output import parse_columns
from jackline.clock import wall_ms
from jackline.domain.agent_ref import split_agent
from jackline.errors import StoreError
from jackline.formatting import format_iso, format_local, make_printable, shorten_path, shorten_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from jackline.app.agents import AgentProgram
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.adapter import Declaration
    from jackline.domain.agent_health import AgentHealth

_COLUMNS = parse_columns(
    "AGENT HEALTH* VERSION RESUME FORK STRUCTURED GATE COST PROGRAM~"
)  # PROGRAM: or why it cannot be used
_TERMINAL_COLUMNS = parse_columns("AGENT HEALTH* VERSION GATE PROGRAM~")
_WIDEST = ("not logged in", "00.00.000", "advisory", "")  # cells that are not known at first
_THREADS = 8
_NAMED_BY_RUN = "named after --"
_MAX_DETAIL_CHARS = 80


class _AgentRow(NamedTuple):
    """One agent: its declaration, its program, and its rest after a failure."""

    declaration: Declaration
    found: AgentProgram
    rest: AgentHealth | None

    @property
    def health(self) -> str:
        if self.found.why:
            return "unusable" if self.found.binary else "missing"
        if self.found.login:
            return "not logged in"
        return "resting" if self.rest else "ready"

    @property
    def binary(self) -> str:
        """The path of its program; empty if each run names its own."""
        return "" if self.declaration.is_named_by_arguments else self.found.binary


INSIDE_RUN = ("*",)


def configure(_parser: CommandParser) -> None:
    pass


def execute(_args: Namespace, home: Home, out: Output) -> int:
    names = agents.list_references(home.config)
    found = _find_agents(names, home, out)
    if out.stdout.is_terminal and not out.json:
        print_row = out.open_table(_TERMINAL_COLUMNS, (max(names, key=len), *_WIDEST))
        for row in found:  # each as it comes: a slow program does not hold the others back
            print_row(_format_line(row))
        return 0
    rows = sorted(found, key=lambda row: names.index(row.declaration.name))
    if out.json:
        out.print_json({"agents": [_to_json(row) for row in rows]})
    else:
        out.print_table(_COLUMNS, [_format_cells(row) for row in rows])
    return 0


def _find_agents(names: Sequence[str], home: Home, out: Output) -> Iterator[_AgentRow]:
    """Yield the agents as their programs answer, which are asked at the same time."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    try:
        rests = agents.list_pauses(home)
    except StoreError as error:  # the programs can be listed without it
        out.print_note(f"jackline: {error}")
        rests = {}
    declared = {name: agents.load_declaration(home.config, name) for name in names}

    def find_agent(name: str) -> _AgentRow:
        declaration, problem = declared[name]
        found = agents.AgentProgram(name, why=problem) if problem else agents.locate_program(home.config, declaration)
        return _AgentRow(declaration=declaration, found=found, rest=rests.get(name))

    with ThreadPoolExecutor(_THREADS) as pool:
        for future in as_completed([pool.submit(find_agent, name) for name in names]):
            yield future.result()


def _format_line(one: _AgentRow) -> list[str]:
    """Return what a person looks for; the other capabilities are in --json."""
    able = one.declaration
    program = shorten_path(one.binary, os.environ.get("HOME", ""), len(one.binary)) or _NAMED_BY_RUN
    problem = one.found.why or one.found.login.partition(": ")[2]
    rest = _format_health(one).partition(": ")[2]
    return [able.name, one.health, one.found.version or "-", able.gate, problem or rest or program]


def _format_cells(one: _AgentRow) -> list[str]:
    able = one.declaration
    return [
        able.name,
        _format_health(one),
        one.found.version or "-",
        *("yes" if can else "no" for can in (able.resumes, able.forks, able.structured)),
        able.gate,
        "yes" if able.cost else "no",
        one.found.why or one.found.login or one.binary or _NAMED_BY_RUN,
    ]


def _format_health(one: _AgentRow) -> str:
    if one.health != "resting" or one.rest is None:
        return one.health
    detail = shorten_text(make_printable(one.rest.detail), _MAX_DETAIL_CHARS)
    why = f"{one.rest.failure} ({detail})" if detail else one.rest.failure
    return f"resting: {why} until {format_local(one.rest.until, wall_ms())}"


def _to_json(one: _AgentRow) -> dict[str, object]:
    able = one.declaration
    return {
        "name": able.name,
        "account": split_agent(able.name).account or None,
        "health": one.health,
        "usable": not one.found.why,
        "binary": one.binary or None,
        "version": one.found.version or None,
        "minimum": ".".join(map(str, able.minimum)) or None,
        "why": one.found.why or one.found.login or None,
        "logged_in": None if able.login is None or one.found.why else not one.found.login,
        "rests_until": format_iso(one.rest.until) if one.rest else None,
        "rests_because": {"failure": one.rest.failure, "detail": one.rest.detail} if one.rest else None,
        "named_by_arguments": able.is_named_by_arguments,
        "install": able.install or None,
        "capabilities": {
            "resume": able.resumes,
            "fork": able.forks,
            "structured": able.structured,
            "gate": able.gate,
            "gate_reason": able.gate_reason,
            "tokens": able.tokens,
            "cost": able.cost,
            "chooses_session": able.chooses_session,
            "efforts": list(able.efforts),
            "compacts": able.compacts,
            "mcp": able.mcp,
            "mcp_reason": able.mcp_reason,
        },
    }
