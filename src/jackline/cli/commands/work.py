"""`jackline work`: the queue of work items. `app.work` does the work. It must import nothing heavy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jackline.app import work
from jackline.cli.given import payload
from jackline.cli.parser import whole_number
from jackline.cli.work_shown import record, show_item, show_items
from jackline.domain.states import WorkStatus
from jackline.domain.work import LEASE_MS, MOST_ATTEMPTS, ItemQuery
from jackline.errors import UsageError
from jackline.formatting import make_printable, parse_duration

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.work import WorkItem

NEEDS_PROJECT = False
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


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made = {
        name: actions.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in _ACTIONS.items()
    }
    _add_new(made["enqueue"])
    for name in _OF_ONE:
        _add_id(made[name], text=name == "answer")
    for name in ("next", "claim", *_HELD):
        made[name].add_argument(
            "--owner", metavar="NAME", default="", help="the holder (default: JACKLINE_ACTOR, or the user)"
        )
    for name in _HELD:
        made[name].add_argument(
            "--token", metavar="N", type=_parse_token, help="the token of your claim; an older token is refused"
        )
    for name in ("next", "claim", "renew"):
        made[name].add_argument(
            "--lease", metavar="TIME", default=f"{LEASE_MS // 60_000}m", help="how long the claim lasts"
        )
    for name in ("resolve", "release"):
        _add_notes(made[name])
    _add_notes(made["annotate"], required=True)
    made["resolve"].add_argument("--status", choices=tuple(work.RESOLUTIONS), default="done", help="(default done)")
    made["wait-human"].add_argument("--question", metavar="TEXT", required=True, help="what the person is asked")
    made["answer"].add_argument("--answer", metavar="TEXT", help="the same as the second argument")
    _add_listing(made)


def _add_id(parser: Parser, *, text: bool = False) -> None:
    if text:
        parser.add_argument("words", nargs="*", metavar="ID TEXT", help="the whole id, and the answer")
    else:
        parser.add_argument("word", nargs="?", metavar="ID", help="the whole id")
    parser.add_argument("--id", metavar="ID", help="the same as the argument")


def _add_new(parser: Parser) -> None:
    parser.add_argument("--id", metavar="ID", help="your id; enqueueing it again changes nothing (default: a new id)")
    parser.add_argument("--kind", metavar="KIND", required=True)
    parser.add_argument("--payload", metavar="JSON", default="{}", help="- reads standard input, @FILE a file")
    parser.add_argument(
        "--priority", metavar="N", type=_parse_integer, default=0, help="higher values are claimed first (default 0)"
    )
    parser.add_argument(
        "--max-attempts", metavar="N", type=whole_number, default=MOST_ATTEMPTS, help="how many claims (default 5)"
    )
    parser.add_argument("--question", metavar="TEXT", help="let it wait for a person from the beginning")
    _add_notes(parser)


def _add_notes(parser: Parser, *, required: bool = False) -> None:
    notes = parser.add_mutually_exclusive_group(required=required)
    notes.add_argument("--notes", metavar="TEXT")
    notes.add_argument("--notes-json", metavar="JSON", help="notes that must be valid JSON")


def _add_listing(made: dict[str, Parser]) -> None:
    for name in ("next", "list", "pending"):
        made[name].add_argument("--kind", metavar="KIND", action="append", help="may be repeated")
    statuses = [str(one) for one in WorkStatus]
    made["list"].add_argument("--status", action="append", choices=statuses, help="may be repeated")
    made["list"].add_argument("--owner", metavar="NAME", help="the current or last holder")
    for name in _PAGED:
        made[name].add_argument("--limit", metavar="N", type=whole_number, default=50, help="(default 50)")
    for name in ("list", "pending"):
        made[name].add_argument("--after", metavar="ID", help="show the page after this item")
    replay = made["replay"]
    replay.add_argument("--older-than", metavar="AGE", help="also items in flight that were not updated for so long")
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
    item, new = work.enqueue(
        home,
        args.id,
        args.kind,
        payload(args.payload),
        priority=args.priority,
        max_attempts=args.max_attempts,
        notes=_get_notes(args) or "",
        question=args.question,
    )
    if out.json:
        out.json_line({**record(item), "new": new})
        return 0
    out.line(item.id)
    if not new:
        out.note(f"jackline: the item already exists and is {item.status}")
    return 0


def _next(args: Namespace, home: Home, out: Output) -> int:
    item = work.next_item(home, args.kind or (), args.owner, _parse_span(args.lease, "--lease"))
    if item is None:
        return out.fail("nothing to claim", EXIT_NOTHING)
    return show_item(item, out)


def _claim(args: Namespace, home: Home, out: Output) -> int:
    return show_item(work.claim(home, _get_id(args), args.owner, _parse_span(args.lease, "--lease")), out)


def _renew(args: Namespace, home: Home, out: Output) -> int:
    item = work.renew(home, _get_id(args), args.owner, args.token, _parse_span(args.lease, "--lease"))
    return _print_change(item, out, f"is claimed by {item.owner_agent} for another {args.lease}")


def _resolve(args: Namespace, home: Home, out: Output) -> int:
    return _print_change(work.resolve(home, _get_id(args), args.status, args.owner, args.token, _get_notes(args)), out)


def _release(args: Namespace, home: Home, out: Output) -> int:
    item = work.release(home, _get_id(args), args.owner, args.token, _get_notes(args))
    return _print_change(item, out, "has no attempts left and has failed" if item.dead else "")


def _annotate(args: Namespace, home: Home, out: Output) -> int:
    return _print_change(work.annotate(home, _get_id(args), _get_notes(args) or ""), out, "has new notes")


def _get(args: Namespace, home: Home, out: Output) -> int:
    return show_item(work.get(home, _get_id(args)), out)


def _wait_human(args: Namespace, home: Home, out: Output) -> int:
    from jackline.domain.work import answer_command

    item = work.wait_human(home, _get_id(args), args.question, args.owner, args.token)
    return _print_change(item, out, f"waits for a person: {out.command(*answer_command(item.id))}")


def _answer(args: Namespace, home: Home, out: Output) -> int:
    given = [*([] if args.id is None else [args.id]), *args.words, *([] if args.answer is None else [args.answer])]
    if len(given) != 2:  # noqa: PLR2004 - an id and an answer
        raise UsageError("give an item and an answer: jackline work answer ID TEXT")
    return _print_change(work.answer(home, given[0], given[1]), out, "is answered and back in the queue")


def _print_change(item: WorkItem, out: Output, text: str = "") -> int:
    if out.json:
        out.json_line(record(item))
    else:
        out.line(make_printable(f"{item.id} {text or f'is {item.status}'}"))
    return 0


# many


def _list(args: Namespace, home: Home, out: Output) -> int:
    return _show_page(args, home, out, ItemQuery(tuple(args.status or ()), tuple(args.kind or ()), args.owner))


def _pending(args: Namespace, home: Home, out: Output) -> int:
    return _show_page(args, home, out, ItemQuery((str(WorkStatus.PENDING),), tuple(args.kind or ())))


def _show_page(args: Namespace, home: Home, out: Output, query: ItemQuery) -> int:
    if args.after is not None:
        last = work.get(home, args.after)
        query = query._replace(before=(last.created_at, last.id))
    # One more than shown tells whether there is a next page.
    return show_items(work.list_items(home, query._replace(limit=args.limit + 1)), args.limit, out, after=True)


def _replay(args: Namespace, home: Home, out: Output) -> int:
    age = None if args.older_than is None else _parse_span(args.older_than, "--older-than")
    if args.requeue:  # change only the items that are shown
        return show_items(work.replay(home, age, args.limit, requeue=True), args.limit, out)
    return show_items(work.replay(home, age, args.limit + 1), args.limit, out)


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
    "pending": _pending,
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
        return work.notes_of(args.notes_json)
    return str(args.notes) if args.notes is not None else None


def _parse_span(text: str, flag: str) -> int:
    found = parse_duration(text)
    if found is None:
        raise UsageError(f"{flag} '{text}' is not a valid time; use 45s, 15m, 2h or 3d")
    return found
