"""What may be run for a case inside a run: an agent's effects go through the gate, never around it by this way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import CaseRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.case.place import Here
    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.domain.rule import Rule

_SHELL = "Bash"  # what every policy has its rules about commands for
_SHOWN = 80


def refuse_effects(home: Home, at: Here, commands: Sequence[str], folder: str) -> None:
    """Refused if the run's own policy says that one of these is an effect, or would not simply allow it."""
    run = _run_of(home, at)
    if run is None:
        return
    from jackline.domain import judging, permission
    from jackline.domain.states import CallClass, Decision

    where = judging.Where(run.spec.workspace, folder)
    for command in commands:
        judged = judging.judge(run.spec.rules, _SHELL, {"command": command}, where)
        rule = permission.permitted(judged.rule, run.spec.allowed)
        if rule.call_class is CallClass.EFFECT or rule.decision is not Decision.ALLOW:
            raise CaseRefused(_told(run.id, command, rule))


def _run_of(home: Home, at: Here) -> Run | None:
    """The run that this process bears the mark of, whatever it says of itself; else the one that it names."""
    from jackline.engine import marks

    mark = os.environ.get(marks.NAME)
    if mark and not home.is_new:
        secret = home.store().secret
        for row in home.list_active():
            if marks.mark_of(secret, row.id)[marks.NAME] == mark:
                return home.store().run(row.id)
    return home.store().run(at.run_id) if at.run_id else None


def _told(run_id: str, command: str, rule: Rule) -> str:
    cure = "make it with your own tool, where the gate sees it, then `jackline case command add`"
    why = f"{rule.call_class}, rule {rule.name}"
    return f"inside run {run_id} `{command[:_SHOWN]}` is not run from here ({why}): {cure}"
