"""`jackline enqueue`: puts runs into the queue, from which a service starts them. It starts none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.detach import print_queued
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import RUN_ID_HELP
from jackline.cli.queue_args import add_queue_arguments, build_wanted_runs
from jackline.cli.run_args import add_request_flags

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    add_request_flags(parser)
    parser.add_argument("--run-id", metavar="ID", help=RUN_ID_HELP)
    add_queue_arguments(parser)


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.queue import enqueue_all

    confirm_own_files(home, out)
    created = enqueue_all(home, build_wanted_runs(args, home))
    out.print_warnings(home.warnings)
    return print_queued(home, created, args, out)
