"""`jackline channel`: set up a phone with ntfy, list the channels, and take replies again after wrong codes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from jackline.cli.output import parse_columns
from jackline.clock import wall_ms
from jackline.errors import NotFound, UsageError
from jackline.features.replies.reply_code import ALL, MODES, OFF
from jackline.formatting import format_iso, format_local, make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

NEEDS_PROJECT = False
INSIDE_RUN = ("list",)
_ACTIONS = {
    "add": "add an ntfy channel with random topics to your config.toml",
    "list": "list the channels, and whether they accept replies",
    "reopen": "accept replies again from a channel that was closed after wrong codes",
}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_COLUMNS = parse_columns("NAME TYPE REPLIES CLOSED~")
_WARNING = (
    "Keep the topics secret: anyone who can read the notices topic sees what your agents do{and_answers}. This "
    "includes the operator of the server and, without a sandbox, an agent that runs as your user: it can read your "
    "settings."
)


def configure(parser: CommandParser) -> None:
    add, _, reopen = parser.add_actions(_ACTIONS).values()
    add.add_argument("name", metavar="NAME", help="a name for the channel, such as phone")
    add.add_argument("--server", metavar="URL", default="", help="your own ntfy server (default: https://ntfy.sh)")
    add.add_argument("--token-file", metavar="FILE", default="", help="a file with an access token of the server")
    add.add_argument(
        "--replies",
        choices=MODES,
        default=OFF,
        help="what the phone may answer: off: nothing (the default); deny: questions, and calls can be denied; all: "
        "calls can be approved, too",
    )
    add.add_argument(
        "--button-token-file",
        metavar="FILE",
        default="",
        help="a file with an access token that buttons use to write to the reply topic; readers of notices see it",
    )
    reopen.add_argument("name", metavar="NAME")
    parser.epilog = "Other types of channels: see docs/notices.md. Replies are read by `jackline serve`."


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "add":
            return _add(args, home, out)
        case "list":
            return _list(home, out)
        case _:
            return _reopen(args, home, out)


def _add(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.notify.ntfy import get_server
    from jackline.features.replies.channel_setup import NewChannel, add_channel

    new = NewChannel(
        name=args.name,
        replies=args.replies,
        server=args.server,
        token_file=args.token_file,
        button_token_file=args.button_token_file,
    )
    added = add_channel(home, new, os.environ)
    channel, server = added.channel, get_server(added.channel)
    topics = {"notices": channel.get_text("topic"), "replies": channel.get_text("reply_topic")}
    if out.json:
        out.print_json({"name": channel.name, "file": added.path, "server": server, "topics": topics})
        return 0
    out.print_line(f"added [channels.{channel.name}] to {make_printable(added.path)}")
    if added.was_readable:
        out.print_line("other users of this machine could read that file: its mode is 600 now")
    out.print_line(f"\nSubscribe in the ntfy app, on the server {make_printable(server)}:")
    for name, topic in topics.items():
        if topic:
            out.print_line(f"  {name}: {topic}")
    if server.startswith("http://") and urlsplit(server).hostname not in _LOOPBACK:
        out.print_line("\nThis address is not encrypted: anyone who sees the traffic can read and answer everything.")
    answers = {OFF: "", ALL: ", and can approve, deny and answer"}
    and_answers = answers.get(args.replies, ", and can deny calls and answer questions")
    out.print_line(f"\n{_WARNING.format(and_answers=and_answers)}")
    out.print_line(f"\nTest it with: {out.format_command('notify', '--test')}")
    if args.replies != OFF:
        out.print_line(f"Replies are read while this runs: {out.format_command('serve')}")
    return 0


def _list(home: Home, out: Output) -> int:
    from jackline.features.notify.channel_settings import load_channels
    from jackline.features.replies.reply_store import ReplyStore

    channels, problems = load_channels(home.config)
    replies = None if home.is_new else ReplyStore(home.store())
    closed = {
        channel.name: state.closed_at
        for channel in channels
        if replies is not None and (state := replies.get_channel(channel.name)) and state.closed_at
    }
    rows = [(channel, channel.get_text("replies", OFF), closed.get(channel.name)) for channel in channels]
    if out.json:
        records = (
            {"name": one.name, "type": one.type, "replies": mode, "closed_at": format_iso(at) if at else None}
            for one, mode, at in rows
        )
        out.print_json_lines(records)
    else:
        now = wall_ms()
        shown = [
            (one.name, one.type, mode, f"{format_local(at, now)}: jackline channel reopen {one.name}" if at else "")
            for one, mode, at in rows
        ]
        out.print_table(_COLUMNS, shown)
        if not (rows or problems):
            out.print_note("no channels; set up a phone: jackline channel add phone")
    for problem in problems:
        out.print_note(f"jackline: {make_printable(problem)}")
    return 0


def _reopen(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.replies.reply_store import ReplyStore

    if args.name not in home.config.channels:
        raise NotFound(args.name, what="channel", hint="jackline channel list")
    if home.is_new or not ReplyStore(home.store()).reopen(args.name, wall_ms()):
        raise UsageError(f"channel '{args.name}' is not closed")
    home.wake_services()
    out.print_line(f"replies from '{args.name}' are accepted again; those that arrived in the meantime are ignored")
    return 0
