"""`jackline scaffold`: create an agent's instance. Existing files stay unchanged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import UsageError
from jackline.features.instances import scaffold
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.instances.scaffold import InstanceNames, InstancePart

NEEDS_PROJECT = False  # an instance belongs to no project
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    default = "the folder (default: HOST/agents/AGENT in the XDG config folder)"
    parser.add_argument("folder", metavar="DIR", nargs="?", help=default)
    parser.add_argument("--host", metavar="NAME", required=True, help="the program that will start the agent")
    # Not the settings of these names: an instance has no separate settings.
    parser.add_argument("--agent", dest="agent_name", metavar="NAME", required=True, help="the name of the agent")
    whole = "first check that every migration of this jackline exists and is not empty, else exit 3"
    parser.add_argument("--strict", dest="whole", action="store_true", help=whole)


def execute(args: Namespace, _home: Home, out: Output) -> int:
    names = scaffold.check_names(args.host, args.agent_name)
    result = scaffold.create_instance(_choose_folder(args, names), names, os.environ, strict=args.whole)
    for warning in result.warnings:
        out.print_note(f"jackline: {warning}")
    if out.json:
        out.print_json_lines(stored_dict(part) for part in result.parts)
        return 0
    for part in result.parts:
        out.print_line(_describe_part(part, names))
    return 0


def _choose_folder(args: Namespace, names: InstanceNames) -> str:
    """The folder from the argument or --home, which mean the same."""
    if args.folder == "":  # from an unset variable
        raise UsageError("DIR is empty: name a folder, or omit it for the default")
    named = [os.path.abspath(os.path.expanduser(one)) for one in (args.folder, args.home) if one]
    if len(set(named)) > 1:
        raise UsageError("DIR and --home name different folders: use one of them")
    return named[0] if named else os.path.abspath(scaffold.get_default_folder(os.environ, names))


def _describe_part(part: InstancePart, names: InstanceNames) -> str:
    verb = "wrote" if part.wrote else "left "
    if not part.name:
        return f"{verb} {part.path}: the instance of agent {names.agent} on host {names.host}"
    if not part.name.endswith(".sqlite"):
        return f"{verb} {part.name}"
    numbers = [one.partition("_")[0] for one in part.applied]
    between = "…".join(dict.fromkeys((numbers[0], numbers[-1]))) if numbers else ""
    return f"{part.name} {'created' if part.wrote else 'present'}" + (f" (applied {between})" if between else "")
