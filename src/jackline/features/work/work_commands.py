"""`jackline work`: the queue of work items. `features.work.work_queue` does the work. It must import nothing heavy."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from jackline.cli.output import parse_columns
from jackline.cli.parser import parse_count
from jackline.cli.payload_arg import read_payload
from jackline.clock import wall_ms
from jackline.domain.states import WorkStatus
from jackline.errors import UsageError
from jackline.features.work import work_queue
from jackline.features.work.work_item import LEASE_MS, MOST_ATTEMPTS, ItemQuery
from jackline.formatting import format_iso, format_local, make_printable, parse_duration

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.work.work_item import WorkItem

_COLUMNS = parse_columns("ID KIND STATUS* PRIORITY> TRIES> OWNER CREATED SAYS~")
NEEDS_PROJECT = False
INSIDE_RUN = (
    "enqueue", "next", "claim", "renew", "resolve", "release", "annotate", "get", "list", "pending", "replay",
    "wait-human",
)  # fmt: skip
EXIT_NOTHING = 4  # used by no other command: a loop can tell an empty queue from a failure

_ACTIONS = {
    "enqueue": "enqueue an item; the same id, kind and payload again changes nothing",
    "next": "claim the next item; exit 4 if there is none",
    "claim": "claim one item",
    "renew": "extend the lease of an item that you hold",
    "resolve": "end an item: done, failed or cancelled",
    "release": "return an item to the queue; after its last attempt it fails",
    "annotate": "replace the notes of an item",
    "get": "show one item",
    "list": "list items, newest first",
    "pending": "list pending items, newest first",
    "replay": "list unfinished items, oldest first: pending, or in flight and abandoned",
    "wait-human": "let an item wait for a person's answer",
    "answer": "answer an item that waits for a person; refused inside a run",
}
_OF_ONE = ("claim", "renew", "resolve", "release", "annotate", "get", "wait-human", "answer")
_HELD = ("renew", "resolve", "release", "wait-human")
_PAGED = ("list", "pending", "replay")
_MOST_TOKEN = 10**9


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    _add_new(actions["enqueue"])
    for name in _OF_ONE:
        if name == "answer":
            actions[name].add_argument("words", nargs="*", metavar="ID TEXT", help="the whole id, and the answer")
        else:
            actions[name].add_argument("word", nargs="?", metavar="ID", help="the whole id")
        actions[name].add_argument("--id", metavar="ID", help="the same as the argument")
    for name in ("next", "claim", *_HELD):
        actions[name].add_argument(
            "--owner", metavar="NAME", default="", help="the holder (default: JACKLINE_ACTOR, or the user)"
        )
    for name in _HELD:
        actions[name].add_argument(
            "--token", metavar="N", type=_parse_token, help="the token of your claim; an older token is refused"
        )
    for name in ("next", "claim", "renew"):
        actions[name].add_argument(
            "--lease", metavar="TIME", default=f"{LEASE_MS // 60_000}m", help="how long the claim lasts"
        )
    for name in ("resolve", "release"):
        _add_notes(actions[name])
    _add_notes(actions["annotate"], required=True)
    actions["resolve"].add_argument(
        "--status", choices=tuple(work_queue.RESOLUTIONS), default="done", help="(default done)"
    )
    actions["wait-human"].add_argument("--question", metavar="TEXT", required=True, help="what the person is asked")
    actions["answer"].add_argument("--answer", metavar="TEXT", help="the same as the second argument")
    _add_listing(actions)


def _add_new(parser: CommandParser) -> None:
    parser.add_argument("--id", metavar="ID", help="your id; enqueueing it again changes nothing (default: a new id)")
    parser.add_argument("--kind", metavar="KIND", required=True)
    parser.add_argument("--payload", metavar="JSON", default="{}", help="- reads standard input, @FILE a file")
    parser.add_argument(
        "--priority", metavar="N", type=_parse_integer, default=0, help="higher values are claimed first (default 0)"
    )
    parser.add_argument(
        "--max-attempts", metavar="N", type=parse_count, default=MOST_ATTEMPTS, help="how many claims (default 5)"
    )
    parser.add_argument("--question", metavar="TEXT", help="let it wait for a person from the beginning")
    _add_notes(parser)


def _add_notes(parser: CommandParser, *, required: bool = False) -> None:
    notes = parser.add_mutually_exclusive_group(required=required)
    notes.add_argument("--notes", metavar="TEXT")
    notes.add_argument("--notes-json", metavar="JSON", help="notes that must be valid JSON")


def _add_listing(actions: dict[str, CommandParser]) -> None:
    for name in ("next", "list", "pending"):
        actions[name].add_argument("--kind", metavar="KIND", action="append", help="may be repeated")
    statuses = [str(one) for one in WorkStatus]
    actions["list"].add_argument("--status", action="append", choices=statuses, help="may be repeated")
    actions["list"].add_argument("--owner", metavar="NAME", help="the current or last holder")
    for name in _PAGED:
        actions[name].add_argument("--limit", metavar="N", type=parse_count, default=50, help="(default 50)")
    for name in ("list", "pending"):
        actions[name].add_argument("--after", metavar="ID", help="show the page after this item")
    actions["pending"].set_defaults(status=[str(WorkStatus.PENDING)], owner=None)
    replay = actions["replay"]
    replay.add_argument(
        "--older-than", metavar="AGE", help="also items in flight that have not been updated for this long"
    )
    replay.add_argument("--requeue", action="store_true", help="return abandoned items to the queue")


def _parse_integer(text: str) -> int:
    """An argparse type: an integer, also negative."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(_MOST_TOKEN)):
        message = f"'{text}' is not a whole number up to {_MOST_TOKEN}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _parse_token(text: str) -> int:
    """An argparse type: a token that a claim printed."""
    number = _parse_integer(text)
    if number < 1:
        message = f"'{text}' is not a token; a claim prints it"
        raise argparse.ArgumentTypeError(message)
    return number


def execute(args: Namespace, home: Home, out: Output) -> int:
    return _COMMANDS[args.action](args, home, out)


# one item


def _enqueue(args: Namespace, home: Home, out: Output) -> int:
    item, new = work_queue.enqueue_item(
        home,
        args.id,
        args.kind,
        read_payload(args.payload),
        priority=args.priority,
        max_attempts=args.max_attempts,
        notes=_get_notes(args) or "",
        question=args.question,
    )
    if out.json:
        out.print_json({**build_item_record(item), "new": new})
        return 0
    out.print_line(item.id)
    if not new:
        out.print_note(f"jackline: the item already exists and is {item.status}")
    return 0


def _next(args: Namespace, home: Home, out: Output) -> int:
    item = work_queue.claim_next(home, args.kind or (), args.owner, _parse_span(args.lease, "--lease"))
    if item is None:
        return out.print_error("nothing to claim", EXIT_NOTHING)
    return show_item(item, out)


def _claim(args: Namespace, home: Home, out: Output) -> int:
    return show_item(work_queue.claim_item(home, _get_id(args), args.owner, _parse_span(args.lease, "--lease")), out)


def _renew(args: Namespace, home: Home, out: Output) -> int:
    item = work_queue.renew_item(home, _get_id(args), args.owner, args.token, _parse_span(args.lease, "--lease"))
    return _print_change(item, out, f"is claimed by {item.owner_agent} for another {args.lease}")


def _resolve(args: Namespace, home: Home, out: Output) -> int:
    return _print_change(
        work_queue.resolve_item(home, _get_id(args), args.status, args.owner, args.token, _get_notes(args)), out
    )


def _release(args: Namespace, home: Home, out: Output) -> int:
    item = work_queue.release_item(home, _get_id(args), args.owner, args.token, _get_notes(args))
    return _print_change(item, out, "has no attempts left and has failed" if item.dead else "")


def _annotate(args: Namespace, home: Home, out: Output) -> int:
    return _print_change(work_queue.annotate_item(home, _get_id(args), _get_notes(args) or ""), out, "has new notes")


def _get(args: Namespace, home: Home, out: Output) -> int:
    return show_item(work_queue.get_item(home, _get_id(args)), out)


def _wait_human(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.work.work_item import build_answer_command

    item = work_queue.wait_for_human(home, _get_id(args), args.question, args.owner, args.token)
    return _print_change(item, out, f"waits for a person: {out.format_command(*build_answer_command(item.id))}")


def _answer(args: Namespace, home: Home, out: Output) -> int:
    given = [*([] if args.id is None else [args.id]), *args.words, *([] if args.answer is None else [args.answer])]
    if len(given) != 2:  # noqa: PLR2004 - an id and an answer
        raise UsageError("give an item and an answer: jackline work answer ID TEXT")
    return _print_change(work_queue.answer_item(home, given[0], given[1]), out, "is answered and back in the queue")


def _print_change(item: WorkItem, out: Output, text: str = "") -> int:
    if out.json:
        out.print_json(build_item_record(item))
    else:
        out.print_line(make_printable(f"{item.id} {text or f'is {item.status}'}"))
    return 0


# many


def _list(args: Namespace, home: Home, out: Output) -> int:
    # One more than shown tells whether there is a next page.
    query = ItemQuery(
        statuses=tuple(args.status or ()), kinds=tuple(args.kind or ()), owner=args.owner, limit=args.limit + 1
    )
    if args.after is not None:
        last = work_queue.get_item(home, args.after)
        query = query._replace(before=(last.created_at, last.id))
    return show_items(work_queue.list_items(home, query), args.limit, out, after=True)


def _replay(args: Namespace, home: Home, out: Output) -> int:
    age = None if args.older_than is None else _parse_span(args.older_than, "--older-than")
    if args.requeue:  # change only the items that are shown
        return show_items(work_queue.list_unfinished(home, age, args.limit, requeue=True), args.limit, out)
    return show_items(work_queue.list_unfinished(home, age, args.limit + 1), args.limit, out)


_COMMANDS: dict[str, Callable[[Namespace, Home, Output], int]] = {
    "enqueue": _enqueue,
    "next": _next,
    "claim": _claim,
    "renew": _renew,
    "resolve": _resolve,
    "release": _release,
    "annotate": _annotate,
    "get": _get,
    "list": _list,
    "pending": _list,
    "replay": _replay,
    "wait-human": _wait_human,
    "answer": _answer,
}


# words


def _get_id(args: Namespace) -> str:
    given = [one for one in (args.id, args.word) if one is not None]
    if len(given) != 1:
        raise UsageError(f"give exactly one item: jackline work {args.action} ID")
    return str(given[0])


def _get_notes(args: Namespace) -> str | None:
    if args.notes_json is not None:
        return work_queue.parse_notes(args.notes_json)
    return str(args.notes) if args.notes is not None else None


def _parse_span(text: str, flag: str) -> int:
    found = parse_duration(text)
    if found is None:
        raise UsageError(f"{flag} '{text}' is not a valid time; use 45s, 15m, 2h or 3d")
    return found


# output


def build_item_record(item: WorkItem) -> dict[str, object]:
    """A work item as a JSON value, with the field names of the predecessor."""
    try:
        payload = json.loads(item.payload)
    except (ValueError, RecursionError):  # another program wrote it: show it as text
        payload = item.payload
    return {
        "id": item.id,
        "kind": item.kind,
        "payload": payload,
        "status": str(item.status),
        "owner_agent": item.owner_agent,
        "created_at": format_iso(item.created_at),
        "updated_at": format_iso(item.updated_at),
        "notes": item.notes,
        "priority": item.priority,
        "attempts": item.attempts,
        "max_attempts": item.max_attempts,
        "token": item.token,
        "question": item.question,
        "answer": item.answer,
        "dead": item.dead,
        "finished_at": format_iso(item.finished_at),
    }


def show_item(item: WorkItem, out: Output) -> int:
    """Print one item with all its fields."""
    if out.json:
        out.print_json(build_item_record(item))
        return 0
    shown = {
        "id": item.id,
        "kind": item.kind,
        "status": out.colorize_state(str(item.status)) + (" (dead: no attempts left)" if item.dead else ""),
        "owner": item.owner_agent or "",
        "token": str(item.token or ""),
        "tries": f"{item.attempts} of {item.max_attempts}",
        "priority": str(item.priority or ""),
        "created": format_local(item.created_at, wall_ms()),
        "updated": format_local(item.updated_at, wall_ms()),
        "payload": item.payload,
        "notes": item.notes,
        "question": item.question,
        "answer": item.answer,
    }
    for name, text in shown.items():
        if text:
            out.print_line(f"{name:<9} {text if name == 'status' else make_printable(text)}")
    return 0


def show_items(items: Sequence[WorkItem], limit: int, out: Output, *, after: bool = False) -> int:
    """Print one item per line, and a hint if there are more than the limit."""
    page = items[:limit]
    if out.json:
        out.print_json_lines(build_item_record(item) for item in page)
        return 0
    if not page:
        out.print_note("no matching work items")
        return 0
    now = wall_ms()
    rows = [
        [
            item.id,
            item.kind,
            f"{item.status}: dead" if item.dead else str(item.status),
            str(item.priority),
            f"{item.attempts}/{item.max_attempts}",
            item.owner_agent or "-",
            format_local(item.created_at, now) if out.stdout.is_terminal else str(format_iso(item.created_at)),
            item.question if item.status == "waiting_human" else item.notes or item.payload,
        ]
        for item in page
    ]
    out.print_table(_COLUMNS, rows)
    if len(items) > limit and after:
        from jackline.cli.commands.list import format_next_page

        out.print_note(f"more: {format_next_page(out, page[-1].id)}")
    elif len(items) > limit:
        out.print_note("there are more: use a larger --limit")
    return 0
