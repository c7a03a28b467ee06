"""Refuses case commands with effects inside a run: an agent must not bypass the gate with `case command run`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import CaseRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.case.place import Here
    from jackline.app.home import Home
    from jackline.domain.records import Run

_SHELL = "Bash"  # the tool name that policies use for shell commands
_SHOWN = 80
_HINT = "run it with your own tool, so that the gate sees it, then use `jackline case command add`"


def refuse_effects(home: Home, at: Here, commands: Sequence[str], folder: str) -> None:
    """CaseRefused if the run's policy classifies a command as an effect, or does not allow it."""
    run = _find_run(home, at)
    if run is None:
        return
    from jackline.domain import judging, permission
    from jackline.domain.states import CallClass, Decision

    where = judging.Where(run.spec.workspace, folder)
    for command in commands:
        judged = judging.judge(run.spec.rules, _SHELL, {"command": command}, where)
        rule = permission.permitted(judged.rule, run.spec.allowed)
        if rule.call_class is CallClass.EFFECT or rule.decision is not Decision.ALLOW:
            why = f"{rule.call_class}, rule {rule.name}"
            raise CaseRefused(f"inside run {run.id} `{command[:_SHOWN]}` cannot be run from here ({why}): {_HINT}")


def _find_run(home: Home, at: Here) -> Run | None:
    """The run whose mark this process has; without a mark, the run that it names."""
    from jackline.engine import marks

    mark = os.environ.get(marks.NAME)
    if mark and not home.is_new:
        secret = home.store().secret
        for row in home.list_active():
            if marks.mark_of(secret, row.id)[marks.NAME] == mark:
                return home.store().run(row.id)
    return home.store().run(at.run_id) if at.run_id else None
