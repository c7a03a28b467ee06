"""`jackline work`: the agent's own queue. What is done with an item stands in `app.work`. It must stay light."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jackline.app import work
from jackline.cli.given import payload
from jackline.cli.parser import whole_number
from jackline.cli.work_shown import record, show_item, show_items
from jackline.domain.states import WorkStatus
from jackline.domain.work import LEASE_MS, MOST_ATTEMPTS
from jackline.errors import UsageError
from jackline.formatting import make_printable, parse_duration
from jackline.store.state_contract import ItemQuery

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.work import WorkItem

NEEDS_PROJECT = False
EXIT_NOTHING = 4  # no other command ends so: a loop tells an empty queue from trouble

_ACTIONS = {
    "enqueue": "put an item into the queue; the same id, kind and payload are the same item",
    "next": "claim the next item; exit 4 if there is none",
    "claim": "claim this very item",
    "renew": "keep an item that you hold for longer",
    "resolve": "end an item: done, failed or cancelled",
    "release": "give an item back to the queue; after its last attempt it has failed",
    "annotate": "put notes in place of the old ones",
    "get": "show one item",
    "list": "show items, newest first",
    "pending": "show what nobody has taken yet, newest first",
    "replay": "show what was left undone, oldest first: pending, or in flight and given up",
    "wait-human": "let an item wait for a person's answer",
    "answer": "answer an item that waits for a person; not from inside a run",
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
            "--owner", metavar="NAME", default="", help="who (default: JACKLINE_ACTOR, or the user)"
        )
    for name in _HELD:
        made[name].add_argument("--token", metavar="N", type=_token, help="of your claim: an older one is refused")
    for name in ("next", "claim", "renew"):
        made[name].add_argument(
            "--lease", metavar="TIME", default=f"{LEASE_MS // 60_000}m", help="how long it is yours"
        )
    for name in ("resolve", "release"):
        _add_notes(made[name])
    _add_notes(made["annotate"], required=True)
    made["resolve"].add_argument("--status", choices=tuple(work.RESOLUTIONS), default="done", help="(default done)")
    made["wait-human"].add_argument("--question", metavar="TEXT", required=True, help="what the person is asked")
    made["answer"].add_argument("--answer", metavar="TEXT", help="the same as the word behind the id")
    _add_listing(made)


def _add_id(parser: Parser, *, text: bool = False) -> None:
    if text:
        parser.add_argument("words", nargs="*", metavar="ID TEXT", help="the whole id, and the answer")
    else:
        parser.add_argument("word", nargs="?", metavar="ID", help="the whole id")
    parser.add_argument("--id", metavar="ID", help="the same as the word")


def _add_new(parser: Parser) -> None:
    parser.add_argument(
        "--id", metavar="ID", help="your own: enqueueing it again changes nothing (default: a fresh one)"
    )
    parser.add_argument("--kind", metavar="KIND", required=True)
    parser.add_argument("--payload", metavar="JSON", default="{}", help="- reads standard input, @FILE a file")
    parser.add_argument("--priority", metavar="N", type=_integer, default=0, help="the higher is claimed first (0)")
    parser.add_argument("--max-attempts", metavar="N", type=whole_number, default=MOST_ATTEMPTS, help="claims (5)")
    parser.add_argument("--question", metavar="TEXT", help="let it wait for a person from the beginning")
    _add_notes(parser)


def _add_notes(parser: Parser, *, required: bool = False) -> None:
    notes = parser.add_mutually_exclusive_group(required=required)
    notes.add_argument("--notes", metavar="TEXT")
    notes.add_argument("--notes-json", metavar="JSON", help="notes that have to be JSON")


def _add_listing(made: dict[str, Parser]) -> None:
    for name in ("next", "list", "pending"):
        made[name].add_argument("--kind", metavar="KIND", action="append", help="may be repeated")
    statuses = [str(one) for one in WorkStatus]
    made["list"].add_argument("--status", action="append", choices=statuses, help="may be repeated")
    made["list"].add_argument("--owner", metavar="NAME", help="who holds it, or held it last")
    for name in _PAGED:
        made[name].add_argument("--limit", metavar="N", type=whole_number, default=50, help="(default 50)")
    for name in ("list", "pending"):
        made[name].add_argument("--after", metavar="ID", help="the next page: what is older than this item")
    replay = made["replay"]
    replay.add_argument("--older-than", metavar="AGE", help="in flight and not touched for so long is given up, too")
    replay.add_argument("--requeue", action="store_true", help="put back into the queue what was given up")


def _integer(text: str) -> int:
    """An argparse type: a whole number, also below zero."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(_MOST_TOKEN)):
        message = f"'{text}' is not a whole number up to {_MOST_TOKEN}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _token(text: str) -> int:
    """An argparse type: a token, as a claim prints it."""
    number = _integer(text)
    if number < 1:
        message = f"'{text}' is no token: a claim prints one"
        raise argparse.ArgumentTypeError(message)
    return number


def execute(args: Namespace, home: Home, out: Output) -> int:
    return _DO[args.action](args, home, out)


# one item


def _enqueue(args: Namespace, home: Home, out: Output) -> int:
    item, new = work.enqueue(
        home,
        args.id,
        args.kind,
        payload(args.payload),
        priority=args.priority,
        max_attempts=args.max_attempts,
        notes=_notes(args) or "",
        question=args.question,
    )
    if out.json:
        out.json_line({**record(item), "new": new})
        return 0
    out.line(item.id)
    if not new:
        out.note(f"jackline: it was there already, and is {item.status}")
    return 0


def _next(args: Namespace, home: Home, out: Output) -> int:
    item = work.next_item(home, args.kind or (), args.owner, _span(args.lease, "--lease"))
    if item is None:
        return out.fail("there is nothing to claim", EXIT_NOTHING)
    return show_item(item, out)


def _claim(args: Namespace, home: Home, out: Output) -> int:
    return show_item(work.claim(home, _id(args), args.owner, _span(args.lease, "--lease")), out)


def _renew(args: Namespace, home: Home, out: Output) -> int:
    item = work.renew(home, _id(args), args.owner, args.token, _span(args.lease, "--lease"))
    return _done(item, out, f"is {item.owner_agent}'s for {args.lease} from now")


def _resolve(args: Namespace, home: Home, out: Output) -> int:
    return _done(work.resolve(home, _id(args), args.status, args.owner, args.token, _notes(args)), out)


def _release(args: Namespace, home: Home, out: Output) -> int:
    item = work.release(home, _id(args), args.owner, args.token, _notes(args))
    return _done(item, out, "has used up its attempts: it has failed" if item.dead else "")


def _annotate(args: Namespace, home: Home, out: Output) -> int:
    return _done(work.annotate(home, _id(args), _notes(args) or ""), out, "has new notes")


def _get(args: Namespace, home: Home, out: Output) -> int:
    return show_item(work.get(home, _id(args)), out)


def _wait_human(args: Namespace, home: Home, out: Output) -> int:
    from jackline.domain.work import answer_command

    item = work.wait_human(home, _id(args), args.question, args.owner, args.token)
    return _done(item, out, f"waits for a person: {out.command(*answer_command(item.id))}")


def _answer(args: Namespace, home: Home, out: Output) -> int:
    given = [*([] if args.id is None else [args.id]), *args.words, *([] if args.answer is None else [args.answer])]
    if len(given) != 2:  # noqa: PLR2004 - an id and an answer
        raise UsageError("say which item and what the answer is: jackline work answer ID TEXT")
    return _done(work.answer(home, given[0], given[1]), out, "is answered, and in the queue again")


def _done(item: WorkItem, out: Output, said: str = "") -> int:
    if out.json:
        out.json_line(record(item))
    else:
        out.line(make_printable(f"{item.id} {said or f'is {item.status}'}"))
    return 0


# many


def _list(args: Namespace, home: Home, out: Output) -> int:
    return _page(args, home, out, ItemQuery(tuple(args.status or ()), tuple(args.kind or ()), args.owner))


def _pending(args: Namespace, home: Home, out: Output) -> int:
    return _page(args, home, out, ItemQuery((str(WorkStatus.PENDING),), tuple(args.kind or ())))


def _page(args: Namespace, home: Home, out: Output, query: ItemQuery) -> int:
    if args.after is not None:
        last = work.get(home, args.after)
        query = query._replace(before=(last.created_at, last.id))
    # One more than shown tells whether there is a next page.
    return show_items(work.list_items(home, query._replace(limit=args.limit + 1)), args.limit, out, after=True)


def _replay(args: Namespace, home: Home, out: Output) -> int:
    age = None if args.older_than is None else _span(args.older_than, "--older-than")
    if args.requeue:  # no more than are shown: each of them is changed
        return show_items(work.replay(home, age, args.limit, requeue=True), args.limit, out)
    return show_items(work.replay(home, age, args.limit + 1), args.limit, out)


_DO: dict[str, Callable[[Namespace, Home, Output], int]] = {
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


def _id(args: Namespace) -> str:
    given = [one for one in (args.id, args.word) if one is not None]
    if len(given) != 1:
        raise UsageError(f"say which item, and only one: jackline work {args.action} ID")
    return str(given[0])


def _notes(args: Namespace) -> str | None:
    if args.notes_json is not None:
        return work.notes_of(args.notes_json)
    return str(args.notes) if args.notes is not None else None


def _span(text: str, flag: str) -> int:
    found = parse_duration(text)
    if found is None:
        raise UsageError(f"{flag} '{text}' is not a valid time; use 45s, 15m, 2h or 3d")
    return found
