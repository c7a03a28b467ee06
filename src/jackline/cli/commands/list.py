"""`jackline list`: runs, newest first. It must stay light: no engine, no views."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.cli.output import columns
from jackline.cli.parser import whole_number
from jackline.cli.record import row_record
from jackline.clock import wall_ms
from jackline.domain.repository import repository_id
from jackline.domain.states import ACTIVE, RunState
from jackline.errors import UsageError
from jackline.formatting import format_count, format_iso, format_local, format_usd, parse_time
from jackline.store.contract import RunQuery

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.store.contract import RunRow

_COLUMNS = columns("RUN #> STATE* AGENT TASK CREATED TOKENS> COST> PROMPT~")
_ALL_COLUMNS = columns("RUN #> STATE* AGENT TASK REPOSITORY CREATED TOKENS> COST> PROMPT~")


def configure(parser: Parser) -> None:
    states = parser.add_mutually_exclusive_group()
    names = [str(one) for one in RunState]
    states.add_argument("--state", action="append", choices=names, help="may be repeated")
    states.add_argument("--active", action="store_true", help="only what has not ended")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--repo", metavar="PATH", help="of this repository (default: the one around here)")
    where.add_argument("--all-repos", action="store_true", help="runs of every repository")
    parser.add_argument("--agent", dest="of_agent", metavar="NAME")  # not the setting of that name
    parser.add_argument("--task", metavar="NAME")
    parser.add_argument("--since", metavar="WHEN", help="45s, 30m, 2h, 3d, 1w, or a date such as 2026-11-01")
    parser.add_argument("--session", metavar="ID", help="what an agent's session belongs to, wherever it is")
    parser.add_argument("--limit", metavar="N", type=whole_number, default=50)
    parser.add_argument("--after", metavar="RUN", help="the next page: what is older than this run")


def execute(args: Namespace, home: Home, out: Output) -> int:
    found = home.list_runs(_query(args, home))
    rows, more = found[: args.limit], len(found) > args.limit
    if out.json:
        out.json_lines(row_record(home, row) for row in rows)
        return 0
    if not rows:
        out.note(_nothing(args, out))
        return 0
    _table(rows, out, with_repository=args.all_repos)
    if more:
        out.note(f"more: {next_page(out, rows[-1].id)}")
    return 0


def _query(args: Namespace, home: Home) -> RunQuery:
    last = home.find(args.after) if args.after else None
    return RunQuery(
        states=tuple(sorted(ACTIVE)) if args.active else tuple(args.state or ()),
        agent=args.of_agent,
        task=args.task,
        repository=_repository(args),
        session=args.session,
        since=parse_since(args.since) if args.since else None,
        before=(last.created_at, last.id) if last else None,
        limit=args.limit + 1,  # one more than shown tells whether there is a next page
    )


def _repository(args: Namespace) -> str | None:
    if args.all_repos or (args.session and not args.repo):
        return None
    return repository_id(places.repository_of(args.repo or os.getcwd()))


def parse_since(text: str) -> int:
    """Parse the value of `--since`."""
    try:
        return parse_time(text, wall_ms())
    except ValueError as error:
        raise UsageError(f"--since {error}") from None


def _table(rows: list[RunRow], out: Output, *, with_repository: bool) -> None:
    now = wall_ms()
    titles = _ALL_COLUMNS if with_repository else _COLUMNS
    out.table(titles, [_cells(row, now, out, with_repository=with_repository) for row in rows])


def _cells(row: RunRow, now: int, out: Output, *, with_repository: bool) -> list[str]:
    why = row.reason or row.failure if row.state in {"waiting", "failed"} else row.phase
    created = format_local(row.created_at, now) if out.out.terminal else str(format_iso(row.created_at))
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


def _nothing(args: Namespace, out: Output) -> str:
    narrowed = any((args.state, args.active, args.of_agent, args.task, args.since, args.session, args.after))
    if narrowed:
        return "no run fits"
    here = "" if args.all_repos else f" here (everywhere: {out.command('list', '--all-repos')})"
    return f"no runs{here}; start one: jackline run PROMPT --agent NAME, or see one: jackline demo"


def next_page(out: Output, last: str) -> str:
    """The same command again, one page further."""
    from shlex import join

    kept, skip = [], False
    for word in out.typed:
        if not skip and word != "--after" and not word.startswith("--after="):
            kept.append(word)
        skip = word == "--after"
    after = (f"--after={last}",) if last.startswith("-") else ("--after", last)
    return join(("jackline", *kept, *after))
