"""`jackline notify`: sends a message of your own over your channels, or tests them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.agents import split_names
from jackline.app.text_files import shorten_name
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.payload_arg import read_stdin
from jackline.domain import ids
from jackline.domain.records import SubjectNotice
from jackline.engine.settings import new_id
from jackline.errors import JacklineError, MessageNotNeeded, NotFound, UsageError
from jackline.features.notify.channel import PRIORITIES, ChannelMessage, find_priority
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.notify.senders import SendContext, find_terminal, send_message
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.notify.channel import Channel

_KIND = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
_LONGEST_TITLE, _LONGEST_TEXT, _LONGEST_KIND = 200, 20_000, 64
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.takes_flags_between = True
    parser.add_argument("title", metavar="TITLE", nargs="?", help="the title of the message")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="its text; - reads it from stdin")
    parser.add_argument("--kind", metavar="WORD", help="a kind for channels to select by (default: message)")
    parser.add_argument(
        "--label", metavar="NAMES", action="append", default=[], help="labels for channels to select by"
    )
    parser.add_argument("--priority", choices=PRIORITIES, help="how urgent it is (default: by its kind)")
    parser.add_argument(
        "--test", metavar="CHANNEL", nargs="?", const="", help="send a test message over one channel, or all, at once"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    confirm_own_files(home, out)
    channels, problems = load_channels(home.config)
    if args.test is not None:
        if args.title is not None:
            raise UsageError("--test sends its own text: omit the title, or write --test=CHANNEL")
        return _test_channels(home, _choose(channels, args.test, problems), problems, out)
    if not home.config.channels:
        raise UsageError("no channel is configured; see docs/notices.md")
    notice = _build_notice(args)
    home.store(create=True).notices.add(notice)
    from jackline.features.notify.after_work import deliver_after_work

    deliver_after_work(home)
    rows = DeliveryStore(home.store()).list_deliveries(notice.id)
    if out.json:
        out.print_json({"id": notice.id, "channels": {row.channel: row.state for row in rows}})
    else:
        states = ", ".join(f"{row.channel} {row.state}" for row in rows)
        out.print_line(f"notice {notice.id}: {states or 'a service delivers it'}")
    return 0


def _build_notice(args: Namespace) -> SubjectNotice:
    title = make_printable(args.title or "").strip()
    if not title:
        raise UsageError("no title given: `jackline notify TITLE [TEXT]`, or --test")
    text = read_stdin("the text") if args.text == "-" else args.text or ""
    if len(title) > _LONGEST_TITLE or len(text) > _LONGEST_TEXT:
        raise UsageError(f"a title has up to {_LONGEST_TITLE} characters, a text {_LONGEST_TEXT}")
    kind = "message" if args.kind is None else args.kind
    if not _KIND.fullmatch(kind) or len(kind) > _LONGEST_KIND:
        raise UsageError(f"'{shorten_name(kind)}' is not a kind: use dotted lowercase words, such as backup.done")
    labels = [label for names in args.label for label in split_names(names)]
    wrong = next((label for label in labels if not ids.is_chosen(label)), None)
    if wrong is not None:
        raise UsageError(f"'{shorten_name(wrong)}' cannot be a label: use letters, digits, '.', '_' and '-'")
    return SubjectNotice(
        id=new_id(),
        subject="home",
        kind=kind,
        title=title,
        body=text,
        created_at=clock.wall_ms(),
        labels=" ".join(labels),
        priority=args.priority or "",
    )


def _choose(channels: list[Channel], name: str, problems: list[str]) -> list[Channel]:
    chosen = [channel for channel in channels if name in {"", channel.name}]
    if not chosen and not problems:
        if name:
            raise NotFound(shorten_name(name), what="channel", hint="jackline config")
        raise UsageError("no channel is configured; see docs/notices.md")
    return chosen


def _test_channels(home: Home, channels: list[Channel], problems: list[str], out: Output) -> int:
    """Send over each channel now, past the outbox; 1 if one failed."""
    results = {}
    context = SendContext(environ=os.environ, folder=os.getcwd(), terminal=find_terminal())
    for channel in channels:
        message = ChannelMessage(
            id=new_id(),
            kind="test",
            title="jackline: a test",
            body=f"channel {channel.name} of {home.path} works",
            created_at=clock.wall_ms(),
            subject="home",
            priority=find_priority(channel, "test"),
            tags=("wave",),
        )
        try:
            send_message(channel, message, context._replace(timeout_s=channel.timeout_s))
            results[channel.name] = "sent"
        except MessageNotNeeded as error:
            results[channel.name] = f"skipped: {error}"
        except JacklineError as error:
            results[channel.name] = f"failed: {make_printable(str(error))}"
    code = 1 if problems or any(result.startswith("failed") for result in results.values()) else 0
    if out.json:
        out.print_json({"channels": results, "problems": problems})
        return code
    for name, result in results.items():
        out.print_line(f"{name}: {result}")
    for problem in problems:
        out.print_note(f"jackline: {make_printable(problem)}")
    return code
