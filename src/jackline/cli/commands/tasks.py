"""`jackline tasks`: lists, shows and creates run templates. It starts no run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app import tasks
from jackline.cli.output import parse_columns
from jackline.formatting import make_printable
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.tasks import ListedTask
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.task import Task

_ACTIONS = {
    "list": "list the tasks of this project, your own, and the built-in ones",
    "show": "show a task",
    "new": "create a task in this project",
}
INSIDE_RUN = ("list", "show")


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    actions["show"].add_argument("name", metavar="TASK")
    actions["new"].add_argument("name", metavar="NAME")
    actions["new"].add_argument("--description", metavar="TEXT", default="", help="its purpose, in one line")


def execute(args: Namespace, home: Home, out: Output) -> int:
    del home  # tasks are files, not records
    match args.action:
        case "list":
            return _list_tasks(out)
        case "show":
            return _show_task(tasks.find_task(args.name, os.getcwd(), os.environ), out)
        case _:
            return _create_task(args, out)


def _list_tasks(out: Output) -> int:
    found = tasks.list_tasks(os.getcwd(), os.environ)
    if out.json:
        out.print_json_lines(_listed_to_json(one) for one in found)
        return 0
    rows = []
    for one in found:
        commit = "required" if one.task and one.task.requires_commit else "-"
        description = one.task.description if one.task else f"cannot be used: {one.problem}"
        rows.append([one.name, one.origin, commit, description])
    out.print_table(parse_columns("TASK FROM COMMIT DESCRIPTION~"), rows)
    return 0


def _listed_to_json(listed: ListedTask) -> dict[str, Any]:
    """Convert a row of the list; a task that cannot be used has the same keys."""
    values = {"name": listed.name, "path": listed.path, "origin": listed.origin, "problem": listed.problem or None}
    if listed.task is None:
        return {**values, "description": "", "requires_commit": None}
    return {**values, "description": listed.task.description, "requires_commit": listed.task.requires_commit}


def _show_task(task: Task, out: Output) -> int:
    if out.json:
        record = {name: value for name, value in stored_dict(task).items() if name != "source"}
        tables = {"settings": dict(task.settings), "variables": dict(task.variables), "needs": list(task.needs)}
        out.print_json({**record, "path": task.source, **tables})
        return 0
    requirements = {"a commit": task.requires_commit, "a clean tree": task.requires_clean}
    facts = {
        "task": task.name,
        "file": task.source,
        "about": task.description,
        "agents": ", ".join(one for one in (task.agent, *task.fallback) if one),
        "model": " ".join(one for one in (task.model, task.effort) if one),
        "mode": task.mode,
        "proof": task.proof,
        "requires": ", ".join(name for name, is_required in requirements.items() if is_required),
        "settings": ", ".join(f"{name} {value}" for name, value in task.settings.items()),
        "variables": ", ".join((*(f"{name}={value}" for name, value in task.variables.items()), *task.needs)),
    }
    for name, text in facts.items():
        if text:
            out.print_line(f"{name:<10} {make_printable(text)}")
    out.print_line()
    for line in task.prompt.splitlines():
        out.print_line(make_printable(line))
    return 0


def _create_task(args: Namespace, out: Output) -> int:
    path = tasks.create_task(args.name, args.description, os.getcwd())
    if out.json:
        out.print_json({"path": path})
    else:
        out.print_line(path)
    return 0
