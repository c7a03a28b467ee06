"""The arguments that put runs into the queue, and what is built from them. It creates nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import parse_count
from jackline.cli.run_args import build_request, require_text
from jackline.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from jackline.app.each_file import EachItem
    from jackline.app.home import Home
    from jackline.app.run_creation import WantedRun
    from jackline.cli.parser import CommandParser
    from jackline.store.models import QueueOptions

# The flags, by the names of their values.
_FLAGS = {
    "dedupe": "--dedupe",
    "priority": "--priority",
    "not_before": "--not-before",
    "after": "--after",
    "hold": "--hold",
    "each": "--each",
    "jobs": "-j",
    "batch": "--batch",
}
_NEEDS_SERVICE = ("not_before", "after", "hold", "each", "batch")


def add_queue_arguments(parser: CommandParser) -> None:
    """Add the arguments that say when a queued run starts."""
    group = parser.add_argument_group("queue")
    group.add_argument("--dedupe", metavar="KEY", help="create no second run until the run with this key has ended")
    group.add_argument("--priority", metavar="N", type=int, help="start before runs with a lower priority (default 0)")
    group.add_argument("--not-before", metavar="TIME", help="start after 30m or 2h, or at 2026-11-01T03:00")
    group.add_argument(
        "--after",
        "--depends-on",
        metavar="RUNS",
        action="append",
        default=[],
        help="start when these runs have succeeded; separated by commas. If one fails, this run is cancelled",
    )
    group.add_argument("--hold", action="store_true", help="do not start before `jackline hold --release RUN`")
    group.add_argument(
        "--each", metavar="FILE", help="create one run for each line or JSON object of a file; - reads stdin"
    )
    group.add_argument("--batch", metavar="NAME", help="the batch of the run, for -j (default with --each: a new one)")
    group.add_argument(
        "-j", "--jobs", metavar="N", type=parse_count, help="work on at most N runs of the batch at the same time"
    )


def refuse_queue_arguments(args: Namespace, *, detached: bool) -> None:
    """UsageError if one was given for a run that starts now, in this process, or --each for a plan of one run."""
    if args.each is not None and args.dry_run:
        raise UsageError("--dry-run shows one run: leave out --each, and give the prompt of one line")
    for name in () if detached else _list_given(args):
        raise UsageError(f"{_FLAGS[name]} is for a queued run: use `jackline enqueue`, or add --detach")


def refuse_service_arguments(args: Namespace) -> None:
    """UsageError if one was given that only a service can follow."""
    for name in _list_given(args):
        if name in _NEEDS_SERVICE:
            raise UsageError(
                f"{_FLAGS[name]} needs a running service: start `jackline serve`, or use `jackline enqueue` "
                "to leave the run for the next one"
            )


def _list_given(args: Namespace) -> Iterator[str]:
    unset = {"after": [], "hold": False}
    return (name for name in _FLAGS if getattr(args, name) != unset.get(name))


def build_wanted_runs(args: Namespace, home: Home) -> list[WantedRun]:
    """Build the runs that the arguments ask for; one, unless --each names several."""
    from jackline.app.run_creation import WantedRun

    options = _build_options(args, home)
    if args.each is None:
        return [WantedRun(request=build_request(args, home), queue=options)]
    from jackline.app.run_creation import refuse_problems

    wanted, problems = [], []
    for item in _read_items(args):
        label = f"{_name_source(args)}, line {item.number}"
        try:
            request = build_request(args, home, item)
        except UsageError as error:
            problems.append(f"{label}: {error}")
            continue
        run_id = f"{args.run_id}-{item.digest}" if args.run_id else ""
        dedupe = f"{args.dedupe}/{item.digest}" if args.dedupe else ""
        queue = options._replace(dedupe=dedupe)
        request = request._replace(run_id=run_id)
        if request.worktree_name:  # each run has a worktree of its own
            request = request._replace(worktree_name=f"{request.worktree_name}-{item.digest}")
        wanted.append(WantedRun(request=request, queue=queue, label=label))
    refuse_problems(problems)
    return wanted


def _build_options(args: Namespace, home: Home) -> QueueOptions:
    from jackline.clock import wall_ms
    from jackline.engine.settings import new_id
    from jackline.formatting import parse_time
    from jackline.store.models import QueueOptions

    for name in ("dedupe", "batch", "each"):
        require_text(getattr(args, name), _FLAGS[name])
    if args.jobs and args.each is None and args.batch is None:
        raise UsageError("-j limits a batch: add --each FILE or --batch NAME")
    try:
        not_before = parse_time(args.not_before, wall_ms(), ahead=True) if args.not_before is not None else 0
    except ValueError as error:
        raise UsageError(f"--not-before {error}") from None
    return QueueOptions(
        priority=args.priority or 0,
        not_before=max(0, not_before),
        dedupe=args.dedupe or "",
        depends_on=tuple(home.find_id(text.strip()) for texts in args.after for text in texts.split(",")),
        batch=args.batch or ((args.run_id or args.dedupe or new_id()) if args.each is not None else ""),
        batch_slots=args.jobs or 0,
        held=args.hold,
    )


def _read_items(args: Namespace) -> list[EachItem]:
    from jackline.app.each_file import parse_items
    from jackline.app.text_files import read_text
    from jackline.cli.payload_arg import read_stdin

    if args.prompt == "-":
        if args.each == "-":
            raise UsageError("the prompt and --each cannot both come from stdin: write one of them to a file")
        args.prompt = read_stdin("the prompt")  # once, not for each line
    text = read_stdin("the input of --each") if args.each == "-" else read_text(args.each)
    return parse_items(text, _name_source(args))


def _name_source(args: Namespace) -> str:
    from jackline.app.text_files import shorten_name

    return "stdin" if args.each == "-" else shorten_name(args.each)
