"""`jackline schedule`: runs that start at the times of a cron expression. It imports cron only where it is needed."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.cli.output import parse_columns
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import parse_count
from jackline.cli.run_args import add_request_flags, build_request, require_text
from jackline.cli.stored_args import collect_run_arguments, load_run_arguments, mask_stored, open_workspace_home
from jackline.clock import wall_ms
from jackline.errors import UsageError
from jackline.features.schedules.schedule_model import (
    ALL,
    CLAIMED,
    ENDED,
    LONGEST_NAME,
    NOT_WANTED,
    ONCE,
    OVERDUE,
    OVERLAP,
    QUEUE,
    SKIP,
    STARTED,
    Schedule,
    ScheduleDefinition,
    check_expression,
    list_next_due,
    parse_catch_up,
)
from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.formatting import format_duration, format_iso, format_line, format_local, make_printable, parse_duration
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.schedules.schedule_model import Fire

INSIDE_RUN = ("list", "show", "history")
_ACTIONS = {
    "add": "store a run and the times at which it starts",
    "list": "list the schedules, with the next and the last fire of each",
    "show": "show one schedule",
    "pause": "pause a schedule",
    "resume": "resume a schedule; times missed while paused are not caught up",
    "remove": "remove a schedule; its runs and its history stay",
    "history": "list the fires of a schedule, newest first",
    "run-now": "run a schedule once, now",
}
_COLUMNS = parse_columns("NAME CRON ZONE NEXT LAST STATE* WHAT~")
_HISTORY_COLUMNS = parse_columns("DUE STATE* RUN REASON~")
_SHOWN_FIRES = 3
_ZONE_FILE = "/etc/localtime"


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for name, one in actions.items():
        if name != "list":
            one.add_argument("name", metavar="NAME", help="the name of the schedule")
    actions["history"].add_argument("--limit", metavar="N", type=parse_count, default=20, help="(default 20)")
    _configure_add(actions["add"])
    parser.takes_arguments = True


def _configure_add(add: CommandParser) -> None:
    add.add_argument("cron", metavar="CRON", help='when: "MINUTE HOUR DAY MONTH WEEKDAY", or a shortcut such as @daily')
    add.add_argument("--zone", metavar="ZONE", help="the time zone, such as Europe/Berlin (default: this machine's)")
    add.add_argument(
        "--catch-up",
        metavar="POLICY",
        default=ONCE,
        help="missed due times: skip them, start one run for all of them (once), or each (all, all:N) (default once)",
    )
    add.add_argument(
        "--overlap",
        choices=OVERLAP,
        help="if the run of an earlier fire has not ended: skip the fire, queue it, or cancel the run (default skip; "
        "with --catch-up all only queue)",
    )
    add.add_argument("--only-if", metavar="CMD", help="start only if this command succeeds in the workspace")
    add.add_argument("--expect", metavar="TIME", help="report a run that has not ended this long after its due time")
    add.add_argument("--replace", action="store_true", help="replace the schedule of this name; its history stays")
    add_request_flags(add)
    add.takes_flags_between = True


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "add":
            return _add(args, home, out)
        case "list":
            return _list(home, out)
        case "show":
            _print_one(ScheduleStore(home.store()), args.name, out)
            return 0
        case "history":
            return _print_history(args, home, out)
        case "run-now":
            return _run_now(args, home, out)
        case _:
            return _change(args, home, out)


# adding


def _add(args: Namespace, home: Home, out: Output) -> int:
    confirm_own_files(home, out)
    from jackline.app.request import build_spec
    from jackline.domain.ids import is_chosen

    if not is_chosen(args.name) or len(args.name) > LONGEST_NAME:
        rule = f"up to {LONGEST_NAME} letters, digits, '.', '_' and '-'"
        raise UsageError(f"'{make_printable(args.name[:60])}' cannot be the name of a schedule: use {rule}")
    now = wall_ms()
    definition = _build_definition(args, home, now)
    with open_workspace_home(home, definition.workspace, definition.run) as there:
        request = build_request(load_run_arguments(definition.run, definition.workspace, None), there)
        build_spec(request, there)  # a mistake is found now, not at night
        _print_warnings(there, out)
    schedules = ScheduleStore(home.store(create=True))
    known = schedules.find(args.name)
    if known is not None and not args.replace:
        raise UsageError(f"schedule {args.name} exists; replace it with --replace, or choose another name")
    if known is not None:
        _record_missed(schedules, args.name, now)
    schedules.put(
        Schedule(
            name=args.name,
            definition=definition,
            checked_until=now,
            paused_at=known.paused_at if known else None,
            created_at=known.created_at if known else now,
            updated_at=now,
        )
    )
    home.wake_services()
    home.notify_change()
    _print_one(schedules, args.name, out)
    if not home.has_service():
        serve, heartbeat = out.format_command("serve"), out.format_command("heartbeat")
        out.print_note(f"no service is running here: nothing fires until {serve}, or {heartbeat} from cron")
    return 0


def _build_definition(args: Namespace, home: Home, now: int) -> ScheduleDefinition:
    zone = args.zone if args.zone is not None else find_machine_zone(os.environ)
    cron = " ".join(args.cron.split())
    check_expression(cron, zone, now)
    catch_up, most = parse_catch_up(args.catch_up)
    if catch_up == ALL and args.overlap not in {None, QUEUE}:
        raise UsageError(f"--catch-up all starts runs one after the other: it needs --overlap {QUEUE}")
    given = collect_run_arguments(args)
    definition = ScheduleDefinition(
        cron=cron,
        zone=zone,
        workspace=os.path.realpath(args.workspace or os.getcwd()),
        run=given,
        catch_up=catch_up,
        catch_up_most=most,
        overlap=args.overlap or (QUEUE if catch_up == ALL else SKIP),
        only_if=require_text(args.only_if, "--only-if"),
        expect_ms=_parse_expectation(args.expect),
    )
    _refuse_secrets(definition, home)
    return definition


def _parse_expectation(text: str | None) -> int:
    if text is None:
        return 0
    found = parse_duration(text)
    if not found:
        raise UsageError(f"--expect {make_printable(text[:40])}: use a time such as 45m, 2h or 1d")
    return found


def _refuse_secrets(definition: ScheduleDefinition, home: Home) -> None:
    """A schedule is stored as it is: its secrets would be, too."""
    from jackline.app.request import refuse_unstorable

    redactor = home.make_redactor()
    for name, value in {**definition.run, "only_if": definition.only_if, "ping": ""}.items():
        for text in value if isinstance(value, list) else [str(value)]:
            flag = "the prompt" if name == "prompt" else f"--{name.replace('_', '-')}"
            refuse_unstorable(flag, text)
            if redactor.has_secret(text):
                raise UsageError(f"{flag} contains a secret, which would be stored: put it into the home's env_file")


def find_machine_zone(environ: Mapping[str, str]) -> str:
    """The name of this machine's time zone; UTC if it has none."""
    zone = environ.get("TZ", "").removeprefix(":")
    if not zone:
        zone = os.path.realpath(_ZONE_FILE).partition("/zoneinfo/")[2]
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(zone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


def _print_warnings(home: Home, out: Output) -> None:
    while home.warnings:
        out.print_note(f"jackline: {make_printable(home.warnings.pop(0))}")


# changing


def _record_missed(schedules: ScheduleStore, name: str, now: int) -> None:
    """Record what was due before a change; nothing if this machine no longer knows the schedule's time zone."""
    with suppress(UsageError):
        schedules.record_due(name, now)


def _change(args: Namespace, home: Home, out: Output) -> int:
    schedules = ScheduleStore(home.store())
    schedule = schedules.get(args.name)
    now = wall_ms()
    if args.action == "remove":
        schedules.remove(schedule.name)
    else:
        _record_missed(schedules, schedule.name, now)
        (schedules.pause if args.action == "pause" else schedules.resume)(schedule.name, now)
    home.wake_services()
    home.notify_change()
    if args.action == "remove":
        if out.json:
            out.print_json({"name": schedule.name, "removed": True})
        else:
            out.print_line(f"schedule {schedule.name}: removed")
        return 0
    _print_one(schedules, schedule.name, out)
    return 0


def _run_now(args: Namespace, home: Home, out: Output) -> int:
    from jackline.engine.settings import new_id
    from jackline.features.schedules.firing import ScheduleRunner

    ScheduleStore(home.store()).get(args.name)
    fire = ScheduleRunner(home, f"command-{new_id()}").start_one(args.name)
    is_started = fire.state in {STARTED, OVERDUE, ENDED}  # a service may be done with the run already
    _print_warnings(home, out)
    if out.json:
        out.print_json(build_fire_record(fire))
    elif fire.state == CLAIMED:
        out.print_note(f"jackline: {make_printable(fire.reason or 'waits for an earlier fire of this schedule')}")
    elif not is_started:
        why = make_printable(fire.reason) or fire.state
        failed = "the command of --only-if failed: " if fire.state == NOT_WANTED else ""
        out.print_note(f"jackline: no run was started: {failed}{why}")
    else:
        out.print_line(fire.run_id)
        if not home.has_service():
            resume, serve = out.format_command("resume", fire.run_id), out.format_command("serve")
            out.print_note(f"no service is running here: {resume} starts it, or {serve}")
    return 0 if is_started else 1


# reading


def _list(home: Home, out: Output) -> int:
    schedules = None if home.is_new else ScheduleStore(home.store())
    found = schedules.list_all() if schedules else []
    now = wall_ms()
    if schedules is None or not found:
        out.print_note("no schedules; see `jackline schedule add --help`")
    elif out.json:
        out.print_json_lines(build_schedule_record(schedules, one, now) for one in found)
    else:
        out.print_table(_COLUMNS, [_build_row(schedules, one, now) for one in found])
    return 0


def _build_row(schedules: ScheduleStore, schedule: Schedule, now: int) -> list[str]:
    definition = schedule.definition
    due = list_next_due(schedule, now, 1)
    last = schedules.list_fires(schedule.name, 1)
    state = describe_fire(schedules, last[0]) if last else "-"
    return [
        schedule.name,
        definition.cron,
        definition.zone,
        "paused" if schedule.paused_at is not None else format_local(due[0] if due else None, now),
        format_local(last[0].due_at if last else None, now),
        state,
        describe_run(definition),
    ]


def describe_run(definition: ScheduleDefinition) -> str:
    """What a schedule starts, in one line."""
    run = definition.run
    task = run.get("task") or run.get("job") or ""
    return format_line(" ".join(part for part in (task, run.get("prompt", "")) if part) or run.get("agent", "run"))


def describe_fire(schedules: ScheduleStore, fire: Fire) -> str:
    """The result of a fire: the state of its run, if it has one."""
    outcome = schedules.find_outcome(fire.run_id) if fire.run_id else None
    return outcome.state if outcome is not None and fire.state in {"started", "ended"} else fire.state


def _print_one(schedules: ScheduleStore, name: str, out: Output) -> None:
    schedule, now = schedules.get(name), wall_ms()
    if out.json:
        out.print_json(build_schedule_record(schedules, schedule, now))
        return
    definition = schedule.definition
    due = list_next_due(schedule, now, _SHOWN_FIRES)
    last = schedules.list_fires(name, 1)
    catch_up = f"all:{definition.catch_up_most}" if definition.catch_up == ALL else definition.catch_up
    facts = {
        "schedule": schedule.name,
        "cron": f"{definition.cron} ({definition.zone})",
        "next": ", ".join(format_local(one, now) for one in due) or ("paused" if schedule.paused_at else "never"),
        "last": f"{format_local(last[0].due_at, now)} {describe_fire(schedules, last[0])}" if last else "never",
        "runs": describe_run(definition),
        "workspace": definition.workspace,
        "catch-up": catch_up,
        "overlap": definition.overlap,
        "only if": definition.only_if,
        "expect": format_duration(definition.expect_ms) if definition.expect_ms else "",
    }
    for label, text in facts.items():
        if text:
            out.print_line(f"{label:<10} {make_printable(text)}")
    if schedule.paused_at is None and schedule.checked_until > now:
        out.print_note(
            f"jackline: the clock was set back: nothing fires before {format_local(schedule.checked_until, now)}; "
            f"`{out.format_command('schedule', 'resume', name)}` lets it fire from now on"
        )


def _print_history(args: Namespace, home: Home, out: Output) -> int:
    schedules = ScheduleStore(home.store())
    fires = schedules.list_fires(args.name, args.limit)
    if not fires:
        schedules.get(args.name)
    now = wall_ms()
    if out.json:
        out.print_json_lines(build_fire_record(fire) for fire in fires)
    elif fires:
        rows = [
            [format_local(one.due_at, now), describe_fire(schedules, one), one.run_id, format_line(one.reason)]
            for one in fires
        ]
        out.print_table(_HISTORY_COLUMNS, rows)
    else:
        out.print_note(f"schedule {make_printable(args.name)} has not fired yet")
    return 0


def build_schedule_record(schedules: ScheduleStore, schedule: Schedule, now: int) -> dict[str, object]:
    """A schedule as JSON values."""
    last = schedules.list_fires(schedule.name, 1)
    return {
        "name": schedule.name,
        **stored_dict(schedule.definition),
        "run": mask_stored(schedule.definition.run),
        "paused_at": format_iso(schedule.paused_at),
        "created_at": format_iso(schedule.created_at),
        "next_fires": [format_iso(due, "seconds") for due in list_next_due(schedule, now, _SHOWN_FIRES)],
        "last_fire": build_fire_record(last[0]) if last else None,
        "last_outcome": describe_fire(schedules, last[0]) if last else None,
    }


def build_fire_record(fire: Fire) -> dict[str, object]:
    """A fire as JSON values."""
    return {
        "schedule": fire.schedule,
        "due_at": format_iso(fire.due_at),
        "state": fire.state,
        "run_id": fire.run_id,
        "reason": fire.reason,
        "at": format_iso(fire.at),
    }
