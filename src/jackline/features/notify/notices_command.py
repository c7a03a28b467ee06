"""`jackline notices`: lists notices with their state on each channel; delivers and retries them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app.identity import refuse_inside_run
from jackline.cli.output import parse_columns
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import RUN_HELP, parse_count
from jackline.errors import UsageError
from jackline.features.notify.delivery_store import PENDING, STUCK, DeliveryStore
from jackline.formatting import format_iso, format_local, make_printable, parse_time, pluralize
from jackline.store.parts import PING_CHANNEL

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.notify.delivery_store import Delivery, ListedNotice

_COLUMNS = parse_columns("AT KIND NOTICE ABOUT CHANNELS TITLE~")
_DEFAULT_LIMIT = 20
_DEFAULT_SINCE = "12h"  # ntfy.sh keeps messages for this time
_ALL = "all"
INSIDE_RUN = ("*",)  # reading; the flags that send are refused below


def configure(parser: CommandParser) -> None:
    parser.add_argument("--run", metavar="RUN", help=f"only those of {RUN_HELP}")
    parser.add_argument(
        "--stuck",
        action="store_true",
        help="only those that a channel or a pinged server has not accepted yet",
    )
    parser.add_argument("--limit", metavar="N", type=parse_count, help=f"at most N (default {_DEFAULT_LIMIT})")
    parser.add_argument("--deliver", action="store_true", help="deliver what is due now, for three seconds at most")
    parser.add_argument(
        "--missing",
        action="store_true",
        help="compare the expected notices, the sent ones and those in the topics; exit 1 if they differ",
    )
    parser.add_argument("--since", metavar="TIME", help=f"with --missing: how far back (default {_DEFAULT_SINCE})")
    parser.add_argument(
        "--retry", metavar="NOTICE", help="retry a notice that was given up, or all; then deliver as with --deliver"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.deliver or args.retry or args.missing:  # they use the secrets of channels
        flag = "--missing" if args.missing else "--deliver" if args.deliver else "--retry"
        refuse_inside_run(home, f"notices {flag}")
        confirm_own_files(home, out)
    if args.retry == "":
        raise UsageError("--retry is empty: name a notice, or all; see `jackline notices --stuck`")
    if args.since is not None and not args.missing:
        raise UsageError("--since is for --missing")
    if args.missing:
        return _print_missing(home, args.since or _DEFAULT_SINCE, out)
    if args.retry:
        _retry(DeliveryStore(home.store()), args.retry, out)
    if args.deliver or args.retry:
        return _deliver(home, out)
    return _list(args, home, out)


def _list(args: Namespace, home: Home, out: Output) -> int:
    run_id = home.find_id(args.run) if args.run else ""
    listed: list[ListedNotice] = []
    now = clock.wall_ms()
    if not home.is_new:
        deliveries = DeliveryStore(home.store())
        list_them = deliveries.list_stuck if args.stuck else deliveries.list_notices
        listed = list_them(now, run_id, args.limit or _DEFAULT_LIMIT)
    if out.json:
        out.print_json_lines(_to_json(one) for one in listed)
        return 0
    out.print_table(_COLUMNS, [_format_row(one, now) for one in listed])
    if not listed:
        out.print_note("no notice is stuck" if args.stuck else "no notices yet")
    for one in listed:
        for delivery in (one for one in one.deliveries if one.is_stuck(now)):
            out.print_note(f"{one.notice.id} {_format_problem(delivery, now)}")
    if not home.config.channels:
        out.print_note("no channel is configured: notices stay here; see docs/notices.md")
    return 0


def _retry(deliveries: DeliveryStore, text: str, out: Output) -> None:
    found = "" if text == _ALL else deliveries.find_notice_id(text)
    count = deliveries.retry(found, clock.wall_ms())
    if not count and found:
        raise UsageError(f"notice {found} has nothing left to send")
    if not out.json:
        out.print_line(f"{count} due again")


def _deliver(home: Home, out: Output) -> int:
    from jackline.features.notify.after_work import PING_FAILED, deliver_in_child
    from jackline.features.notify.channel_pass import DeliveryReport

    if not home.config.channels and not home.is_new:
        DeliveryStore(home.store()).skip_removed((), clock.wall_ms())
    if not home.config.channels and (home.is_new or not home.store().notices.has_open_ping()):
        raise UsageError("no channel is configured; see docs/notices.md")
    has_service = home.has_service()
    if has_service:
        home.wake_services()
        out.print_note("a service is running: it delivers them")
    report = DeliveryReport() if has_service else deliver_in_child(home)
    home.warnings += report.problems
    if out.json:
        counts = {"sent": report.sent, "postponed": report.postponed, "stuck": report.stuck}
        out.print_json({**counts, "down": report.down, "service": has_service})
    elif not has_service:
        out.print_line(f"{pluralize(report.sent, 'message')} sent")
        for channel in report.down:
            problem = PING_FAILED if channel == PING_CHANNEL else f"channel {channel} does not work now"
            out.print_note(f"jackline: {problem}; see `jackline notices --stuck`")
    return 1 if report.down else 0


def _print_missing(home: Home, text: str, out: Output) -> int:
    from jackline.features.notify.missing_reports import list_missing

    now = clock.wall_ms()
    try:
        since = parse_time(text, now)
    except ValueError as error:
        raise UsageError(f"--since: {error}") from None
    missing = [] if home.is_new else list_missing(home, since, now)
    if out.json:
        out.print_json_lines(one._asdict() for one in missing)
    else:
        for one in missing:
            out.print_line(make_printable(f"{one.kind} {one.subject}: {one.text}"))
        if not missing:
            out.print_note("nothing is missing")
    return 1 if missing else 0


def _format_row(one: ListedNotice, now: int) -> list[str]:
    notice = one.notice
    channels = ", ".join(f"{delivery.channel} {_format_state(delivery)}" for delivery in one.deliveries)
    return [
        format_local(notice.created_at, now),
        notice.kind,
        notice.id,
        make_printable(notice.subject.removeprefix("run:")),
        channels or "-",
        make_printable(notice.title),
    ]


def _format_state(delivery: Delivery) -> str:
    if delivery.state == PENDING:
        return f"pending ({pluralize(delivery.attempts, 'attempt')})" if delivery.attempts else "pending"
    return delivery.state


def _format_problem(delivery: Delivery, now: int) -> str:
    error = make_printable(delivery.error)
    if delivery.state == STUCK:
        return f"{delivery.channel}: given up after {pluralize(delivery.attempts, 'attempt')}: {error}"
    due = f"next attempt {format_local(delivery.next_at, now)}" if delivery.next_at > now else "due again"
    return f"{delivery.channel}: {due}: {error}"


def _to_json(one: ListedNotice) -> dict[str, Any]:
    notice = one.notice
    return {
        "id": notice.id,
        "at": format_iso(notice.created_at),
        "kind": notice.kind,
        "subject": notice.subject,
        "title": notice.title,
        "body": notice.body,
        "delivered_at": format_iso(one.delivered_at),
        "channels": [
            {
                "channel": delivery.channel,
                "state": delivery.state,
                "attempts": delivery.attempts,
                "next_at": format_iso(delivery.next_at) if delivery.state == PENDING else None,
                "sent_at": format_iso(delivery.sent_at),
                "error": delivery.error,
            }
            for delivery in one.deliveries
        ],
    }
