"""Prints calls of a run: a table with the commands themselves, or one call whole. It changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.cli.output import Column, parse_columns
from jackline.cli.run_json import to_json_values
from jackline.clock import wall_ms
from jackline.domain.call_text import HOST_NOTES, describe_ledger_call, find_call_folder, format_call, format_target
from jackline.domain.states import CallState, Decision
from jackline.formatting import format_call_time, format_local, make_printable, make_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

_TERMINAL_COLUMNS = parse_columns("CALL STATE* CLASS EXIT> TOOK> WHAT~")
_MIN_SUFFIX = 6


def build_call_table(
    calls: Sequence[Call], shown: int, workspace: str, out: Output
) -> tuple[Sequence[Column], list[list[str]]]:
    """Return columns and rows of the last calls; in a pipe each row is complete."""
    last = calls[-shown:]
    if not out.stdout.is_terminal:
        return (), [_format_whole_row(call, workspace) for call in last]
    size = find_suffix_length([call.id for call in calls])
    return _TERMINAL_COLUMNS, [
        [
            call.id[-size:],
            display_state(call),
            call.call_class,
            "" if call.exit_code in {None, 0} else str(call.exit_code),
            "" if call.duration_ms is None else format_call_time(call.duration_ms),
            describe_ledger_call(call, workspace),
        ]
        for call in last
    ]


def _format_whole_row(call: Call, workspace: str) -> list[str]:
    return [
        call.id,
        call.tool,
        call.call_class,
        display_state(call),
        call.decision,
        call.answer or "-",
        "-" if call.exit_code is None else str(call.exit_code),
        format_target(call.target) or "-",
        describe_ledger_call(call, workspace),
    ]


def find_suffix_length(ids: Sequence[str]) -> int:
    """Return the number of characters at the end of an id that tell these ids apart: ids of one day begin alike."""
    size = _MIN_SUFFIX
    while len({one[-size:] for one in ids}) < len(set(ids)):
        size += 1
    return size


def display_state(call: Call) -> str:
    """Return the state in words; the ledger keeps a call that needed approval as denied, whatever the answer was."""
    if call.decision is not Decision.ASK or call.state is not CallState.DENIED or call.answer == "deny":
        return call.state
    return "approved" if call.answer else "asked"


def print_call(home: Home, run: Run, call: Call, out: Output) -> None:
    """Print all of a call: its input, its decision and its output."""
    call = home.store().blobs.load_call(call)
    text = format_call(call.tool, call.input, workspace=run.spec.workspace, folder=find_call_folder(call))
    if out.json:
        out.print_json({**to_json_values(call), "text": text})
        return
    out.print_line(out.colorize(f"call {call.id} of run {run.id} (#{run.number})", "bold"))
    for name, value in _list_facts(call):
        if value:
            out.print_line(f"{name:<10} {make_printable(value)}")
    for title, body in (("input", text), ("output", make_readable(call.output))):
        if body:
            out.print_line(f"\n{out.colorize(title, 'bold')}\n{body.rstrip()}")


def _list_facts(call: Call) -> list[tuple[str, str]]:
    now = wall_ms()
    return [
        ("state", display_state(call)),
        ("tool", call.tool),
        ("class", call.call_class),
        ("rule", call.rule),
        ("decision", call.decision),
        ("answer", call.answer),
        ("reason", call.reason),
        ("target", format_target(call.target)),
        ("folder", find_call_folder(call)),
        ("exit code", "" if call.exit_code is None else str(call.exit_code)),
        ("asked", format_local(call.prepared_at, now)),
        ("ended", format_local(call.finished_at, now) if call.finished_at is not None else ""),
        ("took", "" if call.duration_ms is None else format_call_time(call.duration_ms)),
        ("place", f"attempt {call.attempt}, turn {call.turn}, step {call.step}, asked over {call.door}"),
        ("part of", call.parent_id or ""),
        ("repeats", call.original or ""),
        ("external", " ".join(f"{name}={value}" for name, value in load_external(call).items())),
    ]


def load_external(call: Call) -> dict[str, Any]:
    """Return the ids and values that were found for a call, by name."""
    found = json.loads(call.external) if call.external else {}
    return {name: value for name, value in found.items() if name not in HOST_NOTES} if isinstance(found, dict) else {}
