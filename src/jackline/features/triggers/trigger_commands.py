"""`jackline trigger`: adds, lists, shows, pauses and removes triggers. A service watches them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.run_args import add_request_flags
from jackline.cli.stored_args import collect_run_arguments, load_run_arguments, mask_stored, open_workspace_home
from jackline.errors import Conflict, UsageError
from jackline.features.triggers.trigger_model import (
    COMMENTS,
    ENDED_STATES,
    ISSUES,
    ON_GITHUB,
    RUN_END,
    WORK,
    Trigger,
    TriggerDefinition,
    TriggerFinding,
    check_definition,
    describe_definition,
    describe_state,
    dump_definition,
)
from jackline.features.triggers.trigger_store import TriggerStore
from jackline.formatting import format_iso, format_utc, make_printable
from jackline.named import stored_dict
from jackline.policy.profiles import CI

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ("list", "show", "history")
_ACTIONS = {
    "add": "start a run for each labelled issue, review comment, work item or ended run",
    "list": "list all triggers",
    "show": "show what a trigger watches and starts",
    "pause": "pause a trigger",
    "resume": "resume a trigger",
    "remove": "delete a trigger; its past deliveries are not started again",
    "history": "list what a trigger found, newest first",
}


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for name in ("show", "pause", "resume", "remove", "history"):
        actions[name].add_argument("name", metavar="NAME", help="the name of the trigger")
    add = actions["add"]
    add.add_argument("name", metavar="NAME", help="a name for the trigger")
    watched = add.add_mutually_exclusive_group(required=True)
    watched.add_argument("--issues", metavar="OWNER/REPO", help="open issues on GitHub with the label of --with-label")
    watched.add_argument("--comments", metavar="OWNER/REPO", help="new review comments on open pull requests on GitHub")
    watched.add_argument("--work", metavar="KIND", help="pending work items of a kind")
    watched.add_argument("--run-end", action="store_true", help="the end of another run")
    add.add_argument("--with-label", metavar="LABEL", default="", help="the label of issues")
    add.add_argument(
        "--author", metavar="LOGIN", action="append", default=[], help="also count this person's issues and comments"
    )
    add.add_argument("--of-task", metavar="TASK", default="", help="with --run-end: only runs of this task")
    add.add_argument(
        "--on",
        metavar="STATE",
        action="append",
        choices=ENDED_STATES,
        help="with --run-end: only runs that ended in this state (default: succeeded or failed)",
    )
    add.add_argument("--replace", action="store_true", help="replace a trigger of this name")
    add_request_flags(add)
    add.takes_flags_between = True
    parser.takes_arguments = True


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "add":
            return _add(args, home, out)
        case "list":
            return _print_list([] if home.is_new else TriggerStore(home.store()).list_all(), out)
        case "history":
            return _print_history(args, home, out)
        case "show":
            return _print_one(TriggerStore(home.store()).get(args.name), out)
    store = TriggerStore(home.store())
    if args.action == "remove":
        store.remove(args.name, clock.wall_ms())
    else:
        store.set_paused(args.name, clock.wall_ms(), paused=args.action == "pause")
    home.wake_services()
    if out.json:
        out.print_json({"name": args.name, "state": f"{args.action}d"})
    else:
        out.print_line(f"trigger {args.name}: {args.action}d")
    return 0


def _add(args: Namespace, home: Home, out: Output) -> int:
    confirm_own_files(home, out)
    home.refuse_broken_project()
    definition = _build_definition(args)
    check_definition(args.name, definition)
    _try_request(home, definition)
    at = clock.wall_ms()
    trigger = Trigger(
        name=args.name,
        definition=definition,
        cursor="",
        next_at=0,
        failures=0,
        paused_at=None,
        created_at=at,
        updated_at=at,
    )
    try:
        TriggerStore(home.store(create=True)).add(trigger, replace=args.replace)
    except Conflict:
        raise UsageError(f"trigger {args.name} exists; replace it with --replace, or choose another name") from None
    home.wake_services()
    code = _print_one(trigger, out)
    if not home.has_service():
        out.print_note(f"no service is running here: nothing is watched until {out.format_command('serve')}")
    return code


def _build_definition(args: Namespace) -> TriggerDefinition:
    kinds = {ISSUES: args.issues, COMMENTS: args.comments, WORK: args.work, RUN_END: args.run_end}
    kind = next(name for name, value in kinds.items() if value is not None and value is not False)
    given = collect_run_arguments(args)
    if kind in ON_GITHUB and given.get("profile", CI) != CI:
        raise UsageError(f"--profile {given['profile']}: a run for an issue or a comment always has the profile {CI}")
    if (args.of_task or args.on) and kind != RUN_END:
        raise UsageError("--of-task and --on are for --run-end")
    if args.with_label and kind != ISSUES:
        raise UsageError("--with-label is for --issues; --label is a word for the notices of the runs")
    if args.author and kind not in ON_GITHUB:
        raise UsageError("--author is for --issues and --comments")
    return TriggerDefinition(
        kind=kind,
        workspace=os.path.realpath(args.workspace or os.getcwd()),
        run=given,
        repository=args.issues or args.comments or "",
        label=args.with_label,
        authors=tuple(args.author),
        item_kind=args.work or "",
        task=args.of_task,
        states=tuple(args.on or ENDED_STATES[:2]),
    )


def _try_request(home: Home, definition: TriggerDefinition) -> None:
    """Build a request as a delivery would, so that a mistake is found now; nothing is stored."""
    from jackline.app.request import build_spec
    from jackline.cli.run_args import build_request
    from jackline.features.triggers.trigger_task import fill_arguments

    texts = {"title": "a title", "body": "a text"} if definition.kind in ON_GITHUB else {}
    sample = TriggerFinding(
        delivery="0", variables=_SAMPLES[definition.kind], texts=texts, author="somebody", source="a test"
    )
    with open_workspace_home(home, definition.workspace, definition.run) as there:
        args = load_run_arguments(definition.run, definition.workspace, None)
        fill_arguments(args, definition.workspace, sample)
        build_spec(build_request(args, there), there)


_GITHUB_SAMPLE = {"repository": "owner/name", "number": "1", "url": "https://example.com/1", "branch": "b", "path": "p"}
_SAMPLES = {
    ISSUES: _GITHUB_SAMPLE,
    COMMENTS: {**_GITHUB_SAMPLE, "line": "1"},
    WORK: {"item": "one", "kind": "kind"},
    RUN_END: {"run": "one", "state": "succeeded", "ended_task": "adhoc"},
}


def _print_list(triggers: list[Trigger], out: Output) -> int:
    if out.json:
        out.print_json_lines(_to_json(one) for one in triggers)
        return 0
    for one in triggers:
        out.print_line(f"{one.name}\t{describe_state(one)}\t{make_printable(describe_definition(one.definition))}")
    if not triggers:
        out.print_note("no triggers; see `jackline trigger add --help`")
    return 0


def _print_one(trigger: Trigger, out: Output) -> int:
    if out.json:
        out.print_json(_to_json(trigger))
        return 0
    out.print_line(f"{trigger.name}\t{make_printable(describe_definition(trigger.definition))}")
    run = mask_stored(trigger.definition.run)
    facts = {"workspace": trigger.definition.workspace, "prompt": "", **run}
    for name, value in facts.items():
        if value not in ("", None, []):
            out.print_line(f"  {name}: {make_printable(str(value))}")
    out.print_line(f"  state: {describe_state(trigger)}")
    return 0


def _print_history(args: Namespace, home: Home, out: Output) -> int:
    store = TriggerStore(home.store())
    found = store.list_deliveries(args.name)
    if not found:
        store.get(args.name)  # a name that never existed is a mistake; a removed trigger keeps its history
    if out.json:
        out.print_json_lines({**stored_dict(one), "at": format_iso(one.at)} for one in found)
        return 0
    for one in found:
        run = f"\trun {one.run_id}" if one.run_id else ""
        out.print_line(
            f"{format_utc(one.at)}\t{make_printable(one.delivery)}\t{one.state}{run}\t{make_printable(one.reason)}"
        )
    if not found:
        out.print_note(f"trigger {make_printable(args.name)} has found nothing yet")
    return 0


def _to_json(trigger: Trigger) -> dict[str, object]:
    shown = trigger.definition._replace(run=mask_stored(trigger.definition.run))
    return {
        **stored_dict(trigger),
        "definition": dump_definition(shown),
        "problem": trigger.problem,
        "next_at": format_iso(trigger.next_at or None),
        "paused_at": format_iso(trigger.paused_at),
        "created_at": format_iso(trigger.created_at),
        "updated_at": format_iso(trigger.updated_at),
    }
