"""`jackline bridge`: reads the messages between the agents of a run, and sends one as the person."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.cli.parser import NEWEST_HELP
from jackline.cli.run_choice import find_run
from jackline.clock import wall_ms
from jackline.domain.states import TERMINAL
from jackline.errors import StoreError, UsageError
from jackline.features.bridge.bridge_access import build_record
from jackline.features.bridge.bridge_message import CHAT, KINDS, PERSON, SIGNALS, WORKER, NewMessage
from jackline.features.bridge.bridge_store import BridgeStore
from jackline.formatting import format_iso, format_local, make_printable, make_readable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run
    from jackline.features.bridge.bridge_message import BridgeMessage

_POLL_SECONDS = 0.5
INSIDE_RUN = ("*",)  # only to read: an agent sends with its tools, in its own name


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help=NEWEST_HELP)
    parser.add_argument("--send", metavar="TEXT", help="send this message; - reads standard input")
    parser.add_argument(
        "--to", metavar="NAME", help=f"the recipient (default {WORKER}); `jackline bridge` lists the names"
    )
    parser.add_argument("--kind", choices=KINDS, help=f"the kind of the message (default {CHAT})")
    parser.add_argument("--signal", choices=SIGNALS, help="with --kind signal; it does not replace a proof or verdict")
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing messages until the run has ended")


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.send is None and (args.to or args.kind or args.signal):
        raise UsageError("--to, --kind and --signal need --send TEXT")
    if args.send is not None and args.follow:
        raise UsageError("--send and --follow do not go together: send first, then follow")
    if args.send is not None:
        home.refuse_inside_run("bridge --send")
    run = find_run(home, args.run)
    if args.send is not None:
        return _send(args, home, run, out)
    _print_messages(args, home, run, out)
    return 0


def _send(args: Namespace, home: Home, run: Run, out: Output) -> int:
    from jackline.cli.payload_arg import read_payload
    from jackline.features.bridge.bridge_access import send_message

    content = read_payload(args.send) if args.send == "-" else args.send
    new = NewMessage(recipient=args.to or WORKER, content=content, kind=args.kind or CHAT, signal=args.signal or "")
    message, _ = send_message(home, run.id, PERSON, new)
    if out.json:
        out.print_json(build_record(run, message))
    else:
        when = " with its next prompt" if message.recipient == WORKER else ""
        out.print_line(f"sent message #{message.number}: {message.recipient} gets it{when}")
    return 0


def _print_messages(args: Namespace, home: Home, run: Run, out: Output) -> None:
    import time

    from jackline.app.identity import is_inside_run

    bridge, seen, reads = BridgeStore(home.store()), 0, not is_inside_run(home)
    while True:
        now = home.store().runs.get(run.id) if args.follow else None
        follow = now is not None and now.status.state not in TERMINAL  # before reading: the last message is not missed
        while not out.stdout.is_closed and (messages := bridge.list_messages(run.id, seen)):
            seen = messages[-1].number
            for message in messages:
                _print_message(run, message, out)
            if reads and not out.stdout.is_closed:
                with suppress(StoreError):  # a home that cannot be written can be read anyway
                    bridge.mark_read(run.id, PERSON, seen, wall_ms())
        if not follow or out.stdout.is_closed:
            break
        time.sleep(_POLL_SECONDS)
    if not out.json and not args.follow:
        _print_names(bridge, run, seen, out)


def _print_message(run: Run, message: BridgeMessage, out: Output) -> None:
    if out.json:
        out.print_json(build_record(run, message))
        return
    at = format_local(message.at, wall_ms()) if out.stdout.is_terminal else format_iso(message.at)
    kind = f"{message.kind} {message.signal}".strip()
    out.print_line(out.colorize(f"#{message.number} {at} {message.sender} → {message.recipient} ({kind})", "bold"))
    for line in make_readable(message.content).strip().splitlines():
        out.print_line(f"    {make_printable(line.expandtabs(4))}")


def _print_names(bridge: BridgeStore, run: Run, count: int, out: Output) -> None:
    """Say on stderr to whom messages can be sent."""
    known = [
        f"{one.name} ({one.agent})" if one.agent else one.name
        for one in bridge.list_participants(run)
        if one.name != PERSON
    ]
    out.print_note(f"{pluralize(count, 'message')} in run {run.id}; participants: {', '.join(known)}")
    if run.status.state not in TERMINAL:
        command = out.format_command("bridge", run.id, "--send", "TEXT", "--to", "NAME")
        out.print_note(f"send one: {command}")
