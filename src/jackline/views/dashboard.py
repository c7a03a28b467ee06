"""Reads the dashboard from the store: each part is one index lookup, so that the size of the store does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.dashboard import (
    COUNTED,
    FOR_PEOPLE,
    KINDS,
    LIVE,
    PARKED,
    SHOWN,
    Dashboard,
    KindCount,
    Question,
    Waiting,
)
from jackline.domain.states import RunState, WaitReason, WorkStatus
from jackline.formatting import DAY_MS, format_date

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Call, Run
    from jackline.domain.reporting import RunLine
    from jackline.store.contract import Store

_MOST = SHOWN + 1  # one more shows that there are more
_EVENTS = 15
_NEWEST = 200  # newest calls, which include those that a run waits for
_DAYS = 7
_DOUBT = ("may have happened: check, then answer with one of", ("happened", "did-not", "retry", "skip"))
_ASKED = ("needs approval: answer with one of", ("allow", "deny"))
_CUT_OFF = ("was interrupted, and the agent has not repeated it: resume, or first answer", ("skip",))


def collect_dashboard(store: Store, now: int) -> Dashboard:
    """Read every part of the dashboard."""
    failed = store.runs_failed(now - now % DAY_MS - DAY_MS, _MOST)
    return Dashboard(
        at=now,
        waiting=_read_waiting(store),
        items_waiting=store.items_in(WorkStatus.WAITING_HUMAN, _MOST),
        running=store.runs_in(RunState.RUNNING, _MOST),
        failed=failed,
        imported=_list_imported(store, failed),
        queued=store.runs_in(RunState.QUEUED, _MOST),
        queued_count=store.count_runs(RunState.QUEUED, COUNTED),
        parked=[run for reason in PARKED for run in store.runs_waiting(reason, _MOST)][:_MOST],
        kinds=[KindCount(kind, one, count) for one in LIVE for kind, count in store.kinds_in(one, COUNTED, KINDS + 1)],
        spending=store.spending(format_date(now - (_DAYS - 1) * DAY_MS), format_date(now)),
        today=format_date(now),
        in_flight=store.items_in(WorkStatus.IN_FLIGHT, _MOST),
        dead=store.items_dead(_MOST),
        events=store.newest_events(_EVENTS),
        learnings=store.newest_learnings(SHOWN),
    )


def _list_imported(store: Store, failed: Sequence[RunLine]) -> list[str]:
    """The ids of imported runs, which cannot be resumed."""
    runs = [store.run(line.id) for line in failed]
    return [run.id for run in runs if run is not None and run.spec.imported]


def _read_waiting(store: Store) -> list[Waiting]:
    found = [line for reason in FOR_PEOPLE for line in store.runs_waiting(reason, _MOST)][:_MOST]
    runs = [(line, store.run(line.id)) for line in found]
    return [_build_waiting(store, line, run) for line, run in runs if run is not None]


def _build_waiting(store: Store, line: RunLine, run: Run) -> Waiting:
    if line.reason == WaitReason.HUMAN:
        return Waiting(line, tuple(_read_interrupted(store, run)[:_MOST]))
    asked = _read_asked(store, run)
    return Waiting(line, tuple(asked[:_MOST]), older=not asked and run.life.spent.calls > _NEWEST)


def _read_interrupted(store: Store, run: Run) -> list[Question]:
    return [_build_question(call, _CUT_OFF) for call in store.forced(run.id, _NEWEST)]


def _read_asked(store: Store, run: Run) -> list[Question]:
    from jackline.domain.gate import is_a_persons

    doubts = [call for call in store.open_calls(run.id, _NEWEST) if is_a_persons(call, strict=run.spec.strict)]
    asked = {
        call.key: call for call in reversed(store.asked(run.id, _NEWEST))
    }  # one answer is enough for equal questions
    return [
        *(_build_question(call, _DOUBT) for call in doubts),
        *(_build_question(call, _ASKED) for call in asked.values()),
    ]


def _build_question(call: Call, words: tuple[str, tuple[str, ...]]) -> Question:
    return Question(call.id, call.tool, call.target, *words)
