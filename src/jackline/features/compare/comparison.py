"""What is compared of runs, read from the store; it changes nothing and prints nothing."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from jackline.domain.changes import Changes
from jackline.domain.records import Run
from jackline.domain.review_records import Verdict
from jackline.domain.run_totals import compute_run_cost
from jackline.domain.states import Proof, RunState
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.home import Home

_OPEN = "open"


class ComparedRun(NamedTuple):
    """One run, with what its records add up to."""

    run: Run
    loss: str  # why its process is gone; empty if it is not lost
    prompt_group: int  # runs with the same prompt have the same number, from 1
    verdicts: tuple[Verdict, ...]  # the newest of each seat
    open_findings: Mapping[str, int]  # by severity
    changes: Changes  # without commits: the files that the proved tree changed
    cost_micros: int | None  # None: the agent reports no cost


def load_comparison(home: Home, runs: Sequence[Run]) -> list[ComparedRun]:
    """Read what is compared of each run, in the same order."""
    prompts = list(dict.fromkeys(run.spec.prompt for run in runs))
    lost = home.find_lost([run.id for run in runs if run.status.state is RunState.RUNNING])
    return [_load_run(home, run, lost.get(run.id, ""), prompts.index(run.spec.prompt) + 1) for run in runs]


def _load_run(home: Home, run: Run, loss: str, prompt_group: int) -> ComparedRun:
    store = home.store()
    newest = {verdict.seat: verdict for verdict in store.reviews.list_verdicts(run.id)}
    found = Counter(one.severity for one in store.reviews.list_findings(run.id) if one.state == _OPEN)
    return ComparedRun(
        run=run,
        loss=loss,
        prompt_group=prompt_group,
        verdicts=tuple(newest[seat] for seat in sorted(newest)),
        open_findings=dict(found),
        changes=_load_changes(home, run),
        cost_micros=compute_run_cost(run, store.records.list_turns(run.id)),
    )


def _load_changes(home: Home, run: Run) -> Changes:
    """What the run committed; if it left its work uncommitted, what the proved tree changed since the start."""
    changes = home.store().records.get_changes(run.id)
    if changes.commits or run.status.proof is not Proof.PROVED or not run.status.tree:
        return changes
    from jackline.engine.git import Git
    from jackline.engine.work_trees import WorkTrees

    folder = home.folder(run.id)
    counted = WorkTrees(Git(workspace=folder, env=os.environ), folder).count_changes(run.status.tree)
    if counted is None:
        return changes
    return changes._replace(files_changed=counted.files, insertions=counted.insertions, deletions=counted.deletions)
