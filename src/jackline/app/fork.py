"""Forks a run: a new run starts from a checkpoint of another one and knows its earlier calls.

Effects of the parent up to the checkpoint are never repeated; later ones need approval.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import agents, preflight
from jackline.app.identity import refuse_inside_run
from jackline.app.own_files import refuse_unconfirmed
from jackline.app.text_files import shorten_name
from jackline.digests import hash_text
from jackline.domain import ids
from jackline.domain.call_gate import APPROVALS
from jackline.domain.events import canonical
from jackline.domain.resume_prompt import build_resume_prompt
from jackline.domain.states import RunState
from jackline.engine.settings import new_id
from jackline.errors import Refused, UsageError
from jackline.store.models import NewRun
from jackline.worktrees import find_repository, find_settings_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.domain.records import Checkpoint, Run

_STEPS_SHOWN = 20


def fork_run(home: Home, parent: Run, *, step: int | None = None, prompt: str = "", run_id: str = "") -> Run:
    """Create the new run, ready to be worked on."""
    refuse_inside_run(home, "fork")
    refuse_unconfirmed(home)
    if parent.spec.imported:
        raise Refused(f"run {parent.id} was imported from {parent.spec.imported}: it has no frozen policy to fork")
    if parent.spec.unknown:
        names = ", ".join(parent.spec.unknown)
        raise Refused(f"run {parent.id} was created by a newer jackline and has settings unknown to this one: {names}")
    if parent.status.state is RunState.RUNNING:
        raise Refused(f"run {parent.id} is running in the same workspace: cancel it, or fork it when it has ended")
    if run_id and not ids.is_chosen(run_id):
        raise UsageError(f"'{shorten_name(run_id)}' cannot be a run's id: use letters, digits, '.', '_' and '-'")
    known = home.store().records.list_checkpoints(parent.id)
    chosen = _choose_checkpoint(parent, known, step)
    # A checkpoint is written when its step starts, and again when the run ends or waits in it. The fork inherits the
    # effects up to the last step that did not only start.
    began = json.loads(chosen.status).get("state") == RunState.RUNNING
    last, is_last = chosen.step - 1 if began else chosen.step, chosen is known[-1]
    spec = parent.spec._replace(
        prompt=prompt or parent.spec.prompt,
        session="",
        preface=_build_preface(home, parent, last, is_last=is_last),
        fork_of=_find_session(home, parent) if is_last else "",
    )
    fork_id = run_id or new_id()
    if spec.worktree.name:
        from jackline.app.worktree_request import fork_worktree

        spec = fork_worktree(home, parent, spec, fork_id, chosen=bool(run_id))
    # Only the arguments: the parent's facts may differ when the same fork is requested again.
    request = hash_text(canonical([parent.id, step, prompt]))
    new = NewRun(
        id=fork_id,
        repository=find_repository(spec.worktree.source or spec.workspace),
        spec=spec,
        request=request,
        parent=parent.id,
        forked_at=last,
    )
    if not os.path.isdir(find_settings_folder(spec)):
        raise Refused(f"{find_settings_folder(spec)}, where run {parent.id} worked, is gone")
    run, _ = home.store(create=True).runs.create(new, clock.wall_ms())
    home.warnings += preflight.describe_redactions(spec, run.spec)
    home.notify_change()
    return run


def _choose_checkpoint(parent: Run, known: Sequence[Checkpoint], step: int | None) -> Checkpoint:
    if not known:
        raise Refused(f"run {parent.id} has no checkpoint yet: start another run")
    if step is None:
        return known[-1]
    found = [one for one in known if one.step == step]
    if not found:
        steps = sorted({one.step for one in known})[-_STEPS_SHOWN:]
        raise UsageError(f"run {parent.id} has no checkpoint at step {step}: choose from {', '.join(map(str, steps))}")
    return found[-1]


def _build_preface(home: Home, parent: Run, last: int, *, is_last: bool) -> str:
    """Facts of the parent up to the checkpoint, for the agent of the fork."""
    store = home.store()
    # An approval of the parent does not count for the fork, which asks again.
    calls = [call for call in store.calls.list_all(parent.id) if call.step <= last and call.answer not in APPROVALS]
    call_ids = {call.id for call in calls}
    receipts = [receipt for receipt in store.calls.list_receipts(parent.id) if receipt.call_id in call_ids]
    commits = store.records.get_changes(parent.id).commits if is_last else ()
    head = f"This run continues from step {last} of run {parent.id}. The host recorded the following facts; trust them."
    facts = build_resume_prompt(calls, receipts, commits, head=head)
    return "\n\n".join(part for part in (parent.spec.preface, facts) if part)


def _find_session(home: Home, parent: Run) -> str:
    """The session to copy, if the agent can copy one and it is on this host."""
    adapter = agents.load_adapter(home.config, parent.spec.agent)
    attempts = home.store().records.list_attempts(parent.id)
    is_here = bool(attempts) and attempts[-1].host == clock.host_name()
    known = home.store().records.get_sessions(parent.id).get(parent.spec.agent, "")
    return known if adapter.declaration.forks and is_here else ""
