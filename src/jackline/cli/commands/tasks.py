"""`jackline tasks`: which templates there are, what one says, and how to begin a new one. It starts no run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app import tasks
from jackline.cli.output import columns
from jackline.formatting import make_printable
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.tasks import Listed
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.task import Task

_ACTIONS = {
    "list": "the tasks of this project, yours, and those that come with jackline",
    "show": "what a task says",
    "new": "write a task to begin with into this project",
}


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made = {
        name: actions.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in _ACTIONS.items()
    }
    made["show"].add_argument("name", metavar="TASK")
    made["new"].add_argument("name", metavar="NAME")
    made["new"].add_argument("--description", metavar="TEXT", default="", help="what it is for, in one line")


def execute(args: Namespace, home: Home, out: Output) -> int:
    del home  # tasks are files: none is needed
    match args.action:
        case "list":
            return _list(out)
        case "show":
            return _show(tasks.find(args.name, os.getcwd(), os.environ), out)
        case _:
            return _new(args, out)


def _list(out: Output) -> int:
    found = tasks.every(os.getcwd(), os.environ)
    if out.json:
        out.json_lines(_entry(one) for one in found)
        return 0
    rows = [[one.name, one.origin, _commit(one.task), _described(one)] for one in found]
    out.table(columns("TASK FROM COMMIT DESCRIPTION~"), rows)
    return 0


def _described(listed: Listed) -> str:
    return listed.task.description if listed.task else f"cannot be used: {listed.problem}"


def _commit(task: Task | None) -> str:
    return "required" if task and task.requires_commit else "-"


def _entry(listed: Listed) -> dict[str, Any]:
    """A line of the list: the same names for one that cannot be used, so that a program need not ask first."""
    told = {"name": listed.name, "path": listed.path, "origin": listed.origin, "problem": listed.problem or None}
    if listed.task is None:
        return {**told, "description": "", "requires_commit": None}
    return {**told, "description": listed.task.description, "requires_commit": listed.task.requires_commit}


def _record(task: Task) -> dict[str, Any]:
    return {
        **{name: value for name, value in stored_dict(task).items() if name != "source"},
        "path": task.source,
        "settings": dict(task.settings),
        "variables": dict(task.variables),
        "needs": list(task.needs),
    }


def _show(task: Task, out: Output) -> int:
    if out.json:
        out.json_line(_record(task))
        return 0
    facts = {
        "task": task.name,
        "file": task.source,
        "about": task.description,
        "agents": ", ".join(one for one in (task.agent, *task.fallback) if one),
        "model": " ".join(one for one in (task.model, task.effort) if one),
        "mode": task.mode,
        "proof": task.proof,
        "requires": ", ".join(_requirements(task)),
        "settings": ", ".join(f"{name} {value}" for name, value in task.settings.items()),
        "variables": ", ".join((*(f"{name}={value}" for name, value in task.variables.items()), *task.needs)),
    }
    for name, text in facts.items():
        if text:
            out.line(f"{name:<10} {make_printable(text)}")
    out.line()
    for line in task.prompt.splitlines():
        out.line(make_printable(line))
    return 0


def _requirements(task: Task) -> list[str]:
    wanted = {"a commit": task.requires_commit, "a clean tree": task.requires_clean}
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _new(args: Namespace, out: Output) -> int:
    path = tasks.new(args.name, args.description, os.getcwd())
    if out.json:
        out.json_line({"path": path})
    else:
        out.line(path)
    return 0
