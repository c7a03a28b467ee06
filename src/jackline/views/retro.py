"""What the store knows of a week, in pages: it costs as much as happened in it, not as much as there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackline.domain.retro.report import LOOK_BACK_MS, Read
from jackline.domain.states import RunState

if TYPE_CHECKING:
    from jackline.domain.retro.lines import Move
    from jackline.domain.retro.week import Week
    from jackline.store.contract import Store

_MOST_ACTIVE = 1_000


def read(store: Store, week: Week) -> Read:
    """Everything that a report is made from."""
    runs = list(store.runs_finished(week.start, week.until))
    moves = list(store.run_moves(week.start, week.until))
    before = _before(store, week, moves)
    touched = dict.fromkeys([*(move.run_id for move in moves), *(run.id for run in runs), *before])
    return Read(
        runs,
        moves,
        before,
        {run_id: store.turn_lines(run_id) for run_id in touched},
        {run_id: store.check_lines(run_id) for run_id in touched},
        store.spending(week.days[0], week.days[-1]),
        list(store.learnings_between(week.start - LOOK_BACK_MS, week.until)),
    )


def _before(store: Store, week: Week, moves: Iterable[Move]) -> dict[str, Move]:
    """How runs stood when the week began: those that changed in it, and those that stand so to this day."""
    first: dict[str, Move] = {}
    for move in moves:
        known = first.get(move.run_id, move)
        first[move.run_id] = min(known, move, key=lambda one: one.seq)
    found = {run_id: store.last_move(run_id, move.seq) for run_id, move in first.items() if move.seq > 1}
    for state in (RunState.WAITING, RunState.RUNNING, RunState.QUEUED):
        for run in store.runs_in(state, _MOST_ACTIVE):
            if run.id not in first and run.created_at < week.start:
                found[run.id] = store.last_move(run.id)
    return {run_id: move for run_id, move in found.items() if move is not None and move.at < week.until}
