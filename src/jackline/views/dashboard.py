"""What the dashboard shows, read from the store: each part one look into an index, so that its size does not matter."""

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

_MOST = SHOWN + 1  # one more tells that there are more
_EVENTS = 15
_NEWEST = 200  # calls among which those are that a run waits for: its ledger may be long, they stand at its end
_DAYS = 7
_DOUBT = ("may have happened: look, then answer with one of", ("happened", "did-not", "retry", "skip"))
_ASKED = ("needs approval: answer with one of", ("allow", "deny"))
_CUT_OFF = ("was interrupted, and the agent has not repeated it: go on, or first answer", ("skip",))


def collect_dashboard(store: Store, now: int) -> Dashboard:
    """Read every part of the dashboard."""
    failed = store.runs_failed(now - now % DAY_MS - DAY_MS, _MOST)
    return Dashboard(
        at=now,
        waiting=_waiting(store),
        items_waiting=store.items_in(WorkStatus.WAITING_HUMAN, _MOST),
        running=store.runs_in(RunState.RUNNING, _MOST),
        failed=failed,
        imported=_imported(store, failed),
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


def _imported(store: Store, failed: Sequence[RunLine]) -> list[str]:
    """Those that nothing can be done about."""
    runs = [store.run(line.id) for line in failed]
    return [run.id for run in runs if run is not None and run.spec.imported]


def _waiting(store: Store) -> list[Waiting]:
    found = [line for reason in FOR_PEOPLE for line in store.runs_waiting(reason, _MOST)][:_MOST]
    runs = [(line, store.run(line.id)) for line in found]
    return [_waits(store, line, run) for line, run in runs if run is not None]


def _waits(store: Store, line: RunLine, run: Run) -> Waiting:
    if line.reason == WaitReason.HUMAN:
        return Waiting(line, tuple(_cut_off(store, run)[:_MOST]))
    asked = _asked(store, run)
    return Waiting(line, tuple(asked[:_MOST]), older=not asked and run.life.spent.calls > _NEWEST)


def _cut_off(store: Store, run: Run) -> list[Question]:
    return [_question(call, _CUT_OFF) for call in store.forced(run.id, _NEWEST)]


def _asked(store: Store, run: Run) -> list[Question]:
    from jackline.domain.gate import is_a_persons

    doubts = [call for call in store.open_calls(run.id, _NEWEST) if is_a_persons(call, strict=run.spec.strict)]
    asked = {call.key: call for call in reversed(store.asked(run.id, _NEWEST))}  # the same question is answered once
    return [*(_question(call, _DOUBT) for call in doubts), *(_question(call, _ASKED) for call in asked.values())]


def _question(call: Call, said: tuple[str, tuple[str, ...]]) -> Question:
    return Question(call.id, call.tool, call.target, *said)
