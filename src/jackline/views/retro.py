"""Reads the data of a week from the store, in pages; the cost depends on the week, not on the size of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jackline.domain.retro.report import LOOK_BACK_MS, Read

if TYPE_CHECKING:
    from jackline.domain.reporting import RunLine
    from jackline.domain.retro.lines import Move
    from jackline.domain.retro.week import Week
    from jackline.store.contract import Store

_CREATED = "run.created"


def read(store: Store, week: Week) -> Read:
    """Read the data of a week."""
    runs = list(store.runs_finished(week.start, week.until))
    alive = list(store.runs_alive(week.until))
    moves = list(store.run_moves(week.start, week.until))
    before = _read_before(store, week, moves, alive)
    touched = dict.fromkeys([*(move.run_id for move in moves), *(run.id for run in runs), *before])
    return Read(
        runs,
        alive,
        [*moves, *_read_following(store, alive, [*before.values(), *moves])],
        before,
        {run_id: store.turn_lines(run_id) for run_id in touched},
        {run_id: store.check_lines(run_id) for run_id in touched},
        store.spending(week.days[0], week.days[-1]),
        list(store.learnings_between(week.start - LOOK_BACK_MS, week.until)),
    )


def _read_before(store: Store, week: Week, moves: Iterable[Move], alive: Iterable[RunLine]) -> dict[str, Move]:
    """The state of runs when the week began."""
    first: dict[str, Move] = {}
    for move in moves:
        known = first.get(move.run_id, move)
        first[move.run_id] = min(known, move, key=lambda one: one.seq)
    found = {run_id: store.last_move(run_id, move.seq) for run_id, move in first.items() if move.seq > 1}
    for run in alive:
        if run.id not in first and run.created_at < week.start:
            found[run.id] = store.last_move(run.id, until=week.start)
    return {run_id: move for run_id, move in found.items() if move is not None and move.at < week.until}


def _read_following(store: Store, alive: Iterable[RunLine], moves: Iterable[Move]) -> Iterator[Move]:
    """The next change of runs that were only created in the week: it identifies imported runs."""
    last: dict[str, Move] = {}
    for move in moves:
        last[move.run_id] = max(last.get(move.run_id, move), move, key=lambda one: one.seq)
    for run in alive:
        known = last.get(run.id)
        if known is not None and known.kind == _CREATED and run.finished_at is not None:
            following = store.next_move(run.id, known.seq)
            if following is not None:
                yield following
