"""`jackline mcp`: serve cases, work items, events and runs over MCP. Standard output carries only the protocol."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from jackline.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.bridge.bridge_message import BridgeReader
    from jackline.features.mcp.state_server import StateServer

TOKEN = "JACKLINE_MCP_TOKEN"  # noqa: S105 - the name of the variable
_PORT = 7345
_MOST_PORT = 65535
_WAITING = (
    "jackline: waiting for an MCP client on stdin; agents start this command themselves, "
    "for example after `claude mcp add jackline -- jackline mcp`. Press Ctrl-C to stop."
)
INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("--http", action="store_true", help="serve HTTP on 127.0.0.1 instead of stdin and stdout")
    parser.add_argument("--port", type=_parse_port, metavar="P", help=f"the port; 0: any free port (default {_PORT})")
    parser.add_argument("--run", metavar="RUN", help="join the bridge of this run: only its messages and its status")
    parser.add_argument("--as", dest="member", metavar="NAME", help="the name under which to join the run")


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.port is not None and not args.http:
        raise UsageError("--port needs --http")
    member = _join(args, home)
    with home.update_in_background(seldom=True):
        from jackline.features.mcp.transports import get_url, listen, serve_http, serve_stdio

        if not args.http:
            if sys.stdin is None:
                out.print_note("stdin is closed, so there is no MCP client")
                return 0
            if sys.stdin.isatty():
                out.print_note(_WAITING)
            serve_stdio(_build_server(home, member))
            return 0
        with listen(_PORT if args.port is None else args.port) as listening:
            server = _build_server(home, member)
            token = os.environ.get(TOKEN) or os.urandom(24).hex()
            out.stderr.write(f"jackline: listening at {get_url(listening)}\n")
            if not os.environ.get(TOKEN):
                out.stderr.write(f"jackline: token {token}\n")
            serve_http(server, listening, token)
    return 0


def _join(args: Namespace, home: Home) -> BridgeReader | None:
    """Join the run that was named; None if none was."""
    if args.run is None and args.member is None:
        return None
    if args.run is None or args.member is None:
        raise UsageError("--run RUN and --as NAME belong together: use both to join a run, or none")
    from jackline.features.bridge.bridge_access import join_run

    home.refuse_inside_run("mcp --run")
    return join_run(home, home.find(args.run).id, args.member)


def _build_server(home: Home, member: BridgeReader | None) -> StateServer:
    import gc

    gc.disable()  # the SDK creates hundreds of thousands of objects that stay; collecting costs 0.1 s
    from jackline.features.mcp.context import ToolContext
    from jackline.features.mcp.state_server import build_server

    server = build_server(ToolContext(home, os.environ, member))
    gc.freeze()
    gc.enable()
    return server


def _parse_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _MOST_PORT:
        message = f"'{text}' is not a port from 0 to {_MOST_PORT}"
        raise argparse.ArgumentTypeError(message)
    return int(text)
