"""`jackline list`: lists runs, newest first. It must not import the engine or the exports: it has to start fast."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.cli.output import STATE_MARKS, parse_columns
from jackline.cli.parser import parse_count
from jackline.cli.run_json import row_to_json
from jackline.clock import wall_ms
from jackline.domain.ids import repository_id
from jackline.domain.states import ACTIVE, Failure, RunState
from jackline.errors import UsageError
from jackline.formatting import (
    format_age,
    format_cost,
    format_count,
    format_iso,
    format_local,
    format_usd,
    make_printable,
    parse_time,
    shorten_path,
)
from jackline.store.models import RunQuery
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.store.models import RunSummary

LOST = "lost"  # not a stored state: running, without a process that works on it
_MAX_LOSSES = 3
_COLUMNS = parse_columns("#> STATE* AGENT PROMPT~ CREATED COST>")
_ALL_COLUMNS = parse_columns("REPOSITORY #> STATE* AGENT PROMPT~ CREATED COST>")
_PATH_COLUMNS = 24
INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    states = parser.add_mutually_exclusive_group()
    names = [*(str(one) for one in RunState), LOST]
    states.add_argument(
        "--state", action="append", choices=names, help="only runs in this state; may be repeated (lost: also running)"
    )
    states.add_argument("--active", action="store_true", help="only runs that have not ended")
    states.add_argument(
        "--queue", action="store_true", help="runs that a service starts, of every repository, in their order"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--repo", metavar="PATH", help="runs of this repository (default: the current one)")
    where.add_argument("--all-repos", action="store_true", help="runs of every repository")
    parser.add_argument("--agent", dest="of_agent", metavar="NAME", help="runs of this agent")  # not the setting
    parser.add_argument("--task", metavar="NAME", help="runs of this task")
    parser.add_argument(
        "--since", metavar="WHEN", help="runs created since: 45s, 30m, 2h, 3d, 1w, or a date such as 2026-11-01"
    )
    parser.add_argument("--session", metavar="ID", help="the run of this agent session, in any repository")
    parser.add_argument("--limit", metavar="N", type=parse_count, default=50, help="show at most N runs (default 50)")
    parser.add_argument("--after", metavar="RUN", help="the next page: runs older than this one")


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.queue:
        from jackline.cli.queue_text import print_queue

        if any((args.repo, args.of_agent, args.task, args.since, args.session, args.after)):
            raise UsageError("--queue lists every queued run: only --limit goes with it")
        return print_queue(home, out, args.limit)
    found = _list_runs(args, home)
    rows, more = found[: args.limit], len(found) > args.limit
    lost = home.find_lost([row.id for row in rows if row.state == RunState.RUNNING])
    if out.json:
        out.print_json_lines(row_to_json(home, row, is_lost=row.id in lost) for row in rows)
        return 0
    if not rows:
        out.print_note(_explain_empty_list(args, out))
        return 0
    shown = [row._replace(state=LOST, phase=None) if row.id in lost else row for row in rows]
    shown = _add_queue_waits(home, shown)
    if out.stdout.is_terminal:
        now = wall_ms()
        shown = _add_worktrees(home, shown)
        lines = [_format_line(row, now, with_repository=args.all_repos) for row in shown]
        out.print_table(_ALL_COLUMNS if args.all_repos else _COLUMNS, lines, titled=False)
    else:
        out.print_table((), [_format_cells(row, with_repository=args.all_repos) for row in shown])
    _print_losses(lost, args, out)
    if more:
        out.print_note(f"more: {format_next_page(out, rows[-1].id)}")
    return 0


def _list_runs(args: Namespace, home: Home) -> list[RunSummary]:
    query = _build_query(args, home)
    if LOST not in query.states:
        return home.list_runs(query)
    from jackline.app.lost_runs import list_lost

    others = tuple(state for state in query.states if state != LOST)
    known = home.list_runs(query._replace(states=others)) if others else []
    found = {row.id: row for row in (*known, *list_lost(home, query))}
    return sorted(found.values(), key=lambda row: (row.created_at, row.id), reverse=True)[: query.limit]


def _add_queue_waits(home: Home, rows: list[RunSummary]) -> list[RunSummary]:
    """Say in each row of a queued run why it has not started."""
    queued = [row.id for row in rows if row.state == RunState.QUEUED and not row.attempt]
    if not queued:
        return rows
    from jackline.cli.queue_text import explain_waits

    waits = explain_waits(home, queued)
    return [row._replace(phase=waits.get(row.id) or row.phase) for row in rows]


def _add_worktrees(home: Home, rows: list[RunSummary]) -> list[RunSummary]:
    """Name the worktree of each run that has one."""
    names = {one.run_id: one.name for one in home.store().worktrees.list_present()}
    return [row._replace(prompt=f"[{names[row.id]}] {row.prompt}") if row.id in names else row for row in rows]


def _print_losses(lost: Mapping[str, str], args: Namespace, out: Output) -> None:
    if not lost:
        return
    from jackline.cli.status_text import format_loss

    for run_id, loss in list(lost.items())[:_MAX_LOSSES]:
        out.print_note(format_loss(run_id, loss, out))
    if len(lost) > 1:
        where = ("--all-repos",) if args.all_repos else ()
        out.print_note(f"all {len(lost)} lost runs: {out.format_command('resume', '--lost', *where)}")


def _build_query(args: Namespace, home: Home) -> RunQuery:
    last = home.find(args.after) if args.after else None
    is_global = args.all_repos or (args.session and not args.repo)
    return RunQuery(
        states=tuple(sorted(ACTIVE)) if args.active else tuple(args.state or ()),
        agent=args.of_agent,
        task=args.task,
        repository=None if is_global else repository_id(find_repository(args.repo or os.getcwd())),
        session=args.session,
        since=parse_since(args.since) if args.since else None,
        before=(last.created_at, last.id) if last else None,
        limit=args.limit + 1,  # one more than shown: is there a next page?
    )


def parse_since(text: str) -> int:
    """Parse the value of `--since`."""
    try:
        return parse_time(text, wall_ms())
    except ValueError as error:
        raise UsageError(f"--since {error}") from None


def _format_line(row: RunSummary, now: int, *, with_repository: bool) -> list[str]:
    """Return what a person looks for; the id and the figures are in `show`."""
    place = [shorten_path(row.path, os.environ.get("HOME", ""), _PATH_COLUMNS)] if with_repository else []
    prompt = " ".join(make_printable(row.prompt).split()) or row.task
    cost = format_usd(row.usd_micros, row.usd_estimated) if row.usd_micros else ""
    # The work of such a run is not what failed: a call was made without the approval that it needed.
    shown = row._replace(state="stopped") if row.failure == Failure.UNGATED else row
    state = f"{STATE_MARKS.get(shown.state, '·')} {_describe_state(shown)}"
    if row.wake_at and row.state == RunState.WAITING:
        state += f" {format_local(row.wake_at, now)}"
    return [*place, f"#{row.number}", state, row.agent, prompt, format_age(row.created_at, now), cost]


def _format_cells(row: RunSummary, *, with_repository: bool) -> list[str]:
    """Return all of a row, for programs that read lines."""
    return [
        row.id,
        str(row.number),
        _describe_state(row),
        row.agent,
        row.task,
        *([row.path] if with_repository else []),
        str(format_iso(row.created_at)),
        format_count(row.tokens),
        format_cost(row.usd_micros, row.usd_estimated),
        row.prompt,
    ]


def _describe_state(row: RunSummary) -> str:
    why = row.reason or row.failure if row.state in {"waiting", "failed", "stopped"} else row.phase
    return f"{row.state}: {why}" if why else row.state


def _explain_empty_list(args: Namespace, out: Output) -> str:
    if any((args.state, args.active, args.of_agent, args.task, args.since, args.session, args.after)):
        return "no matching runs"
    here = "" if args.all_repos else f" in this repository (all: {out.format_command('list', '--all-repos')})"
    return f"no runs{here}; start one: jackline run PROMPT --agent NAME, or try: jackline demo"


def format_next_page(out: Output, last: str) -> str:
    """Return the current command with the next page's --after."""
    from shlex import join

    kept, skip = [], False
    for word in out.typed:
        if not skip and word != "--after" and not word.startswith("--after="):
            kept.append(word)
        skip = word == "--after"
    after = (f"--after={last}",) if last.startswith("-") else ("--after", last)
    return join(("jackline", *kept, *after))
