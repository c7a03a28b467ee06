"""Why queued runs have not started, in words. It changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.cli.output import parse_columns
from jackline.cli.run_json import row_to_json
from jackline.clock import wall_ms
from jackline.domain.states import RunState
from jackline.extensions import call_hook
from jackline.formatting import format_age, format_iso, format_local, join_some, shorten_path
from jackline.worktrees import find_run_worktree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.store.models import QueueWait, RunSummary

    FormatTime = Callable[[int, int], str]  # of a time, and the present one

_MOST = 1_000_000
_MOST_RUNS = 3
READY, HELD = "ready", "held"
_PATH_COLUMNS = 24
_COLUMNS = parse_columns("REPOSITORY #> WAITS PRIORITY> AGENT PROMPT~ ADDED")
_ENDED = {RunState.FAILED: "which failed", RunState.CANCELLED: "which was cancelled"}


def explain_waits(home: Home, run_ids: Sequence[str], format_time: FormatTime = format_local) -> dict[str, str]:
    """Say why no service starts each of these runs; empty for one that may, and nothing for one that is not queued."""
    waits = home.store().queue.list_waits(run_ids) if run_ids else []
    return {wait.entry.run_id: text for wait, text in describe_waits(home, waits, format_time)}


def has_wait(home: Home, run_id: str) -> bool:
    """Whether the queue itself keeps a run from being started now; a limit of its agent does not."""
    return any(_describe_waits(home, home.store().queue.list_waits([run_id]), wall_ms(), format_local))


def describe_waits(
    home: Home, waits: Sequence[QueueWait], format_time: FormatTime = format_local
) -> list[tuple[QueueWait, str]]:
    """Return each with the reason; empty if the run may start."""
    now = wall_ms()
    found = list(zip(waits, _describe_waits(home, waits, now, format_time), strict=True))
    open_ids = [wait.entry.run_id for wait, why in found if not why]
    resets = home.store().wakeups.find_resets(open_ids, now)
    others = {run_id: f"limit until {format_time(reset, now)}" for run_id, reset in resets.items()}
    others |= _find_without_budget(home, open_ids, now)
    others |= _find_busy(home, open_ids)
    others |= _find_held(home, open_ids)
    failures = call_hook("start_failures", home) if open_ids else []
    others |= {run_id: f"cannot start: {why}" for one in failures for run_id, why in one.items()}
    return [(wait, why or others.get(wait.entry.run_id, "")) for wait, why in found]


def _find_without_budget(home: Home, run_ids: Sequence[str], now: int) -> dict[str, str]:
    """The runs that wait for the day's budget, each with a description."""
    if not run_ids or not home.config.get_float("max_usd_per_day"):
        return {}
    from jackline.app.wakeups import waits_for_day_budget

    runs = (home.store().runs.get(run_id) for run_id in run_ids)
    waiting = (run for run in runs if run is not None and waits_for_day_budget(home, run, now))
    return {run.id: "the day's budget is spent" for run in waiting}


def _find_held(home: Home, run_ids: Sequence[str]) -> dict[str, str]:
    """The runs that wait until a person confirms a change of their own files, each with a description."""
    if not run_ids:
        return {}
    from jackline.app.own_files import read_unconfirmed

    return dict.fromkeys(run_ids, "your own files changed: `jackline trust`") if read_unconfirmed(home) else {}


def _find_busy(home: Home, run_ids: Sequence[str]) -> dict[str, str]:
    """The runs in whose worktree another run works, each with a description."""
    if not run_ids:
        return {}
    from jackline.engine.workspace_guard import list_busy_worktrees

    busy = list_busy_worktrees(home.store(), home.path)
    found = {}
    for run in (home.store().runs.get(run_id) for run_id in run_ids if busy):
        holder = "" if run is None or run.spec.share_workspace else busy.get(find_run_worktree(run.spec), "")
        if run is not None and holder not in {"", run.id}:
            found[run.id] = f"{holder} works in the same folder"
    return found


def _describe_waits(home: Home, waits: Sequence[QueueWait], now: int, format_time: FormatTime) -> list[str]:
    startable: set[str] = set()
    if any(wait.entry.batch_slots for wait in waits):
        startable = {entry.run_id for entry in home.store().queue.list_startable(now, _MOST)}
    return [_describe_wait(wait, now, format_time, is_startable=wait.entry.run_id in startable) for wait in waits]


def _describe_wait(wait: QueueWait, now: int, format_time: FormatTime, *, is_startable: bool) -> str:
    entry = wait.entry
    if entry.held_at is not None:
        return HELD
    for run_id, state in wait.earlier:
        if state in _ENDED:
            return f"after {run_id}, {_ENDED[RunState(state)]}"
    if wait.earlier:
        return f"after {join_some([run_id for run_id, _ in wait.earlier], _MOST_RUNS)}"
    if entry.not_before > now:
        return f"not before {format_time(entry.not_before, now)}"
    return f"batch {entry.batch} is full" if entry.batch_slots and not is_startable else ""


def wait_to_json(wait: QueueWait, text: str) -> dict[str, Any]:
    """Convert what the queue knows about a run."""
    entry = wait.entry
    return {
        "priority": entry.priority,
        "not_before": format_iso(entry.not_before or None),
        "held_at": format_iso(entry.held_at),
        "after": [run_id for run_id, _ in wait.earlier],
        "batch": entry.batch,
        "batch_slots": entry.batch_slots,
        "added_at": format_iso(entry.added_at),
        "waits": text,
    }


def print_queue(home: Home, out: Output, limit: int) -> int:
    """Print the runs that have not started, in the order in which they do, each with the reason why it waits."""
    found = [] if home.is_new else describe_waits(home, home.store().queue.list_waits(limit=limit + 1))
    rows = [(home.store().runs.find_matching(wait.entry.run_id, None)[0], wait, why) for wait, why in found[:limit]]
    if out.json:
        out.print_json_lines({**row_to_json(home, row), "queue": wait_to_json(wait, why)} for row, wait, why in rows)
        return 0
    if not rows:
        out.print_note("no queued runs; queue one: jackline enqueue PROMPT --agent NAME")
        return 0
    if out.stdout.is_terminal:
        now = wall_ms()
        out.print_table(_COLUMNS, [_format_line(row, wait, why, now) for row, wait, why in rows])
    else:
        out.print_table((), [_format_cells(row, wait, why) for row, wait, why in rows])
    if all(why == HELD for _, _, why in rows):
        out.print_note(f"all are held: {out.format_command('hold', '--release', 'RUN')}")
    elif not home.has_service():
        out.print_note(f"no service is running here: nothing starts them until {out.format_command('serve')}")
    if len(found) > limit:
        out.print_note(f"more: {out.format_command('list', '--queue', '--limit', str(10 * limit))}")
    return 0


def _format_line(row: RunSummary, wait: QueueWait, why: str, now: int) -> list[str]:
    path = shorten_path(row.path, os.environ.get("HOME", ""), _PATH_COLUMNS)
    prompt = " ".join(row.prompt.split()) or row.task
    priority = str(wait.entry.priority or "")
    return [path, f"#{row.number}", why or READY, priority, row.agent, prompt, format_age(wait.entry.added_at, now)]


def _format_cells(row: RunSummary, wait: QueueWait, why: str) -> list[str]:
    added_at = str(format_iso(wait.entry.added_at))
    cells = [row.id, str(row.number), why or READY, str(wait.entry.priority), row.agent, row.task, row.path, added_at]
    return [*cells, wait.entry.batch, row.prompt]
