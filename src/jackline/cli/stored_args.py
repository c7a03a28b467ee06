"""The flags that describe a run, as data that a schedule or a trigger stores, and the queued run that they become.

The request is built from them when the run is due: with the settings, tasks and files as they are then.
"""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from jackline.app.setting_keys import KEYS
from jackline.cli.output import open_output
from jackline.cli.parser import CommandParser
from jackline.cli.payload_arg import read_stdin
from jackline.cli.run_args import add_request_flags, build_request
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.app.home import Home

_PATHS = ("job", "policy", "script")
_NOT_STORED = ("home", "json", "no_color", "workspace")


def collect_run_arguments(args: Namespace) -> dict[str, Any]:
    """The arguments of a command line that describe a run and are not the defaults; files with absolute paths."""
    defaults = _parse_defaults()
    given = {name: value for name, value in vars(args).items() if name in defaults and value != defaults[name]}
    for name in _PATHS:
        if given.get(name):
            given[name] = os.path.abspath(given[name])
    if given.get("prompt") == "-":  # stdin is gone when the run is due
        given["prompt"] = read_stdin("the prompt")
    return given


def load_run_arguments(stored: Mapping[str, Any], workspace: str, run_id: str | None) -> Namespace:
    """The arguments that start a run from what was stored; UsageError if this version does not know one of them."""
    known = _parse_defaults()
    unknown = [name for name in stored if name not in known]
    if unknown:
        raise UsageError(f"it was stored with the unknown option '{unknown[0]}'; add it again with --replace")
    return Namespace(**{**known, **stored, "workspace": workspace, "run_id": run_id})


def mask_stored(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What was stored, without what must not be shown."""
    from jackline.cli.commands.config import mask_ping

    return {name: mask_ping(value) if name == "ping" else value for name, value in stored.items()}


def open_workspace_home(home: Home, workspace: str, stored: Mapping[str, Any]) -> Home:
    """The same home with the settings that apply in the workspace, and those that were stored."""
    if not os.path.isdir(workspace):
        raise UsageError(f"{workspace} is not a folder")
    return home.reopen_in(workspace, {key.name: stored[key.name] for key in KEYS if key.name in stored})


def enqueue_stored_run(
    home: Home,
    workspace: str,
    stored: Mapping[str, Any],
    run_id: str,
    change: Callable[[Namespace], None] = lambda _: None,
) -> None:
    """Put a run into the queue, with settings, task and files as they are now; `change` may add to its arguments."""
    from jackline.app.own_files import refuse_fresh_changes
    from jackline.app.queue import enqueue

    with open_workspace_home(home, workspace, stored) as there:
        args = load_run_arguments(stored, workspace, run_id)
        change(args)
        refuse_fresh_changes(there, there.config.loaded_at)  # an agent may have changed them for a moment
        enqueue(there, build_request(args, there))


def _parse_defaults() -> dict[str, Any]:
    parser = CommandParser(prog="jackline run", out=open_output(json=False, colour=False))
    add_request_flags(parser)
    found = {**vars(parser.parse_words([])), "arguments": []}
    return {name: value for name, value in found.items() if name not in _NOT_STORED}
