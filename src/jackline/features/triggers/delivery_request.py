"""Builds the request of a delivery from what its trigger stores and what it found, and puts the run into the queue."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.own_files import refuse_fresh_changes
from jackline.app.queue import enqueue
from jackline.cli.run_args import build_request
from jackline.cli.stored_args import load_run_arguments, open_workspace_home
from jackline.features.triggers.trigger_model import (
    ON_GITHUB,
    build_variables,
    describe_finding,
    fill_prompt_with_finding,
)
from jackline.policy.profiles import CI

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.features.triggers.trigger_model import Trigger, TriggerFinding


def create_run(home: Home, trigger: Trigger, finding: TriggerFinding, run_id: str) -> None:
    """Put the run of a finding into the queue, with the settings, task and files as they are now."""
    definition = trigger.definition
    given = {"profile": CI, **definition.run}
    if definition.kind in ON_GITHUB:  # nobody is asked to approve what a stranger's text led to
        given["profile"] = CI
    with open_workspace_home(home, definition.workspace, given) as there:
        args = load_run_arguments(given, definition.workspace, run_id)
        fill_arguments(args, definition.workspace, finding)
        refuse_fresh_changes(there, there.config.loaded_at)  # an agent may have changed them for a moment
        enqueue(there, build_request(args, there))


def fill_arguments(args: Namespace, workspace: str, finding: TriggerFinding) -> None:
    """Give what was found to the task's variables, or to the prompt; a shell never sees it."""
    if not args.task:
        args.prompt = fill_prompt_with_finding(args.prompt or "", finding)
        return
    from jackline.app import tasks

    task = tasks.find_task(args.task, os.path.realpath(workspace), os.environ)
    named = {word.partition("=")[0] for word in args.var}
    values = build_variables(finding)
    known = {name for name in (*task.variables, *task.needs) if name in values and name not in named}
    args.var = [*args.var, *(f"{name}={values[name]}" for name in sorted(known))]
    if not known & finding.texts.keys():
        args.prompt = "\n\n".join(part for part in (args.prompt or "", describe_finding(finding)) if part)
