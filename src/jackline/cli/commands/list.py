"""`jackline list`: lists runs, newest first. It must not import the engine or the exports: it has to start fast."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.cli.output import parse_columns
from jackline.cli.parser import parse_count
from jackline.cli.run_json import row_to_json
from jackline.clock import wall_ms
from jackline.domain.ids import repository_id
from jackline.domain.states import ACTIVE, RunState
from jackline.errors import UsageError
from jackline.formatting import format_count, format_iso, format_local, format_usd, parse_time
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.store.models import RunSummary

LOST = "lost"  # not a stored state: running, without a process that works on it
_MAX_LOSSES = 3
_COLUMNS = parse_columns("RUN #> STATE* AGENT TASK CREATED TOKENS> COST> PROMPT~")
_ALL_COLUMNS = parse_columns("RUN #> STATE* AGENT TASK REPOSITORY CREATED TOKENS> COST> PROMPT~")


def configure(parser: CommandParser) -> None:
    states = parser.add_mutually_exclusive_group()
    names = [*(str(one) for one in RunState), LOST]
    states.add_argument(
        "--state", action="append", choices=names, help="only runs in this state; may be repeated (lost: also running)"
    )
    states.add_argument("--active", action="store_true", help="only runs that have not ended")
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
    found = _list_runs(args, home)
    rows, more = found[: args.limit], len(found) > args.limit
    lost = home.find_lost([row.id for row in rows if row.state == RunState.RUNNING])
    if out.json:
        out.print_json_lines(row_to_json(home, row, is_lost=row.id in lost) for row in rows)
        return 0
    if not rows:
        out.print_note(_explain_empty_list(args, out))
        return 0
    now = wall_ms()
    shown = [row._replace(state=LOST, phase=None) if row.id in lost else row for row in rows]
    cells = [_format_cells(row, now, out, with_repository=args.all_repos) for row in shown]
    out.print_table(_ALL_COLUMNS if args.all_repos else _COLUMNS, cells)
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
        repository=None if is_global else repository_id(paths.find_repository(args.repo or os.getcwd())),
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


def _format_cells(row: RunSummary, now: int, out: Output, *, with_repository: bool) -> list[str]:
    why = row.reason or row.failure if row.state in {"waiting", "failed"} else row.phase
    created = format_local(row.created_at, now) if out.stdout.is_terminal else str(format_iso(row.created_at))
    return [
        row.id,
        str(row.number),
        f"{row.state}: {why}" if why else row.state,
        row.agent,
        row.task,
        *([row.path] if with_repository else []),
        created,
        format_count(row.tokens),
        format_usd(row.usd_micros) if row.usd_micros else "-",
        row.prompt,
    ]


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
