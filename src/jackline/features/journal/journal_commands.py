"""`jackline events`: append to the journal and read the timeline of all events. It must import nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.text_files import shorten_name
from jackline.cli.event_text import describe_event, load_event_data
from jackline.cli.parser import RUN_HELP, parse_count
from jackline.cli.payload_arg import read_payload
from jackline.clock import wall_ms
from jackline.errors import NoItem, UsageError
from jackline.features.journal import journal_events
from jackline.features.journal.journal_events import EventId, find_owner, parse_event_id
from jackline.features.work import work_item
from jackline.features.work.item_queries import WorkItems
from jackline.formatting import format_iso, format_local, make_printable, parse_time
from jackline.named import stored_dict
from jackline.store.models import TimelineQuery

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.events import Event

_ACTIONS = {
    "append": "append an event to the journal or to a work item",
    "tail": "show the newest events, oldest first",
    "since": "show the events after a time or an event, oldest first",
    "search": "show the newest events that contain a text, newest first",
}
_POLL_SECONDS = 0.5
_WHEN = "45s, 30m, 2h, 3d, 1w, or a date such as 2026-11-01"
INSIDE_RUN = ("append", "tail", "since", "search")


def configure(parser: CommandParser) -> None:
    append, tail, since, search = parser.add_actions(_ACTIONS).values()
    append.add_argument("type", metavar="TYPE", help="words separated by dots, such as build.finished")
    append.add_argument("--payload", metavar="JSON", help="an object; - reads standard input, @FILE a file")
    append.add_argument("--actor", metavar="NAME", help="the actor (default: JACKLINE_ACTOR, or the user)")
    append.add_argument("--work-item", metavar="ID", help="append to this work item")
    tail.add_argument("-f", "--follow", action="store_true", help="keep printing new events until interrupted")
    tail.add_argument(
        "-n",
        "--limit",
        metavar="N",
        type=lambda text: 0 if text == "0" else parse_count(text),
        default=20,
        help="how many events (default 20)",
    )
    since.add_argument("when", metavar="WHEN", help=f"{_WHEN}, or an event such as journal:#12")
    search.add_argument("text", metavar="TEXT", help="the text; the case of ASCII letters does not matter")
    search.add_argument("--since", metavar="WHEN", help=_WHEN)
    for one in (since, search):
        one.add_argument("--limit", metavar="N", type=parse_count, default=1000 if one is since else 50)
    for one in (tail, since, search):
        _add_filters(one)


def _add_filters(parser: CommandParser) -> None:
    parser.add_argument("--kind", metavar="PREFIX", default="", help="only types with this prefix")
    parser.add_argument("--actor", metavar="NAME", default="")
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--stream", metavar="NAME", help="one stream: journal:, work:ID, case:ID or a run id")
    whose.add_argument(
        "--run", metavar="RUN", help=f"all events of a run, including messages and calls of its agent: {RUN_HELP}"
    )
    whose.add_argument("--work-item", metavar="ID")
    whose.add_argument("--case", metavar="ID", help="a case id or a unique prefix")


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "append":
            return _append(args, home, out)
        case "tail":
            return _tail(args, home, out)
        case "since":
            return _since(args, home, out)
        case _:
            return _search(args, home, out)


# writing


def _append(args: Namespace, home: Home, out: Output) -> int:
    data = journal_events.parse_payload(read_payload(args.payload)) if args.payload is not None else {}
    event = journal_events.append_event(home, args.type, data, args.actor or "", args.work_item)
    if out.json:
        out.print_json(build_event_record(event))
    else:
        out.print_line(str(EventId(event.stream, event.seq)))
    return 0


# reading


def _tail(args: Namespace, home: Home, out: Output) -> int:
    query = _build_query(args, home, out)._replace(limit=args.limit)
    if args.follow:
        return _follow(args, home, query, out)
    return _show(journal_events.read_timeline(home, query)[::-1], out)


def _since(args: Namespace, home: Home, out: Output) -> int:
    query = _build_query(args, home, out)._replace(newest_first=False, limit=args.limit + 1)
    if parse_event_id(args.when):
        event = journal_events.find_event(home, args.when)
        if query.stream and event.stream != query.stream:
            raise UsageError(
                f"event {args.when} does not belong to {query.stream}: use an event of that stream, or a time"
            )
        query = query._replace(after=journal_events.get_cursor(event))
    else:
        wrong = (
            f"'{shorten_name(args.when)}' is not a valid time or event; use {_WHEN}, or an event such as journal:#12"
        )
        query = query._replace(since=_parse_moment(args.when, wrong))
    found = journal_events.read_timeline(home, query)
    _show(found[: args.limit], out)
    if len(found) > args.limit:
        from shlex import join

        last, typed = found[args.limit - 1], list(out.typed)
        typed[typed.index(args.when)] = str(EventId(last.stream, last.seq))
        out.print_note(f"more: {join(('jackline', *typed))}")
    return 0


def _search(args: Namespace, home: Home, out: Output) -> int:
    wrong = f"--since '{shorten_name(args.since or '')}' is not a valid time; use {_WHEN}"
    since = None if args.since is None else _parse_moment(args.since, wrong)
    query = _build_query(args, home, out)._replace(text=args.text, since=since, limit=args.limit)
    if not args.text:
        raise UsageError("the text to search for is empty")
    return _show(journal_events.read_timeline(home, query), out)


def _build_query(args: Namespace, home: Home, out: Output) -> TimelineQuery:
    stream = _find_stream(args, home, out)
    return TimelineQuery(kind=args.kind, actor=args.actor, stream=stream, whole=bool(stream))


def _find_stream(args: Namespace, home: Home, out: Output) -> str:
    if args.run is not None:
        run = home.find(args.run)
        if home.is_archived(run):
            out.print_note(f"events of run {run.id} were archived: see `jackline db archive --help`")
        return run.id
    if args.work_item is not None:
        if home.is_new or WorkItems(home.store()).get(args.work_item) is None:
            raise NoItem(shorten_name(args.work_item))
        return work_item.get_item_stream(args.work_item)
    if args.case is not None:
        from jackline.features.cases import case_model, location

        return case_model.get_case_stream(location.find_case(home, args.case).id)
    if args.stream == "":
        raise UsageError("the stream is empty: use journal:, work:ID, case:ID or a run id")
    return args.stream or ""


def _parse_moment(text: str, wrong: str) -> int:
    try:
        return parse_time(text, wall_ms())
    except ValueError:
        raise UsageError(wrong) from None


# following


def _follow(args: Namespace, home: Home, query: TimelineQuery, out: Output) -> int:
    from jackline.cli.signals import raise_on_signals

    with raise_on_signals():
        for events in journal_events.follow_timeline(home, query, args.limit):
            if events:
                _show(events, out)
            else:
                _wait(out)
            if out.stdout.is_closed:
                break
    return 0


def _wait(out: Output) -> None:
    """Wait a moment; notice a reader that has closed its end before the next event."""
    import select
    import sys

    look = select.poll()
    if sys.stdout is not None:
        look.register(sys.stdout, 0)
    if look.poll(_POLL_SECONDS * 1000):
        out.stdout.is_closed = True


# showing


def _show(events: list[Event], out: Output) -> int:
    if out.json:
        out.print_json_lines(build_event_record(event) for event in events)
    elif events:
        now, is_terminal = wall_ms(), out.stdout.is_terminal
        lines = []
        for event in events:
            moment = format_local(event.at, now) if is_terminal else str(format_iso(event.at))
            name, kind, actor = map(make_printable, (str(EventId(event.stream, event.seq)), event.kind, event.actor))
            text = describe_event(event).removeprefix(event.kind).lstrip()
            lines.append(f"{moment}\t{name}\t{kind}\t{actor}\t{text}")
        out.print_line("\n".join(lines))
    return 0


def build_event_record(event: Event) -> dict[str, object]:
    """An event as JSON values."""
    return {
        "id": str(EventId(event.stream, event.seq)),
        "ts": format_iso(event.at),
        "at": event.at,
        "type": event.kind,
        "actor": event.actor,
        "stream": event.stream,
        "seq": event.seq,
        **stored_dict(find_owner(event.stream)),
        "payload": load_event_data(event),
        "hash": event.hash,
    }
