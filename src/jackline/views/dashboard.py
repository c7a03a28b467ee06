"""What the dashboard shows, read from the store: each part one look into an index, so that its size does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.dashboard import (
    COUNTED,
    FOR_PEOPLE,
    LIVE,
    PARKED,
    SHOWN,
    Dashboard,
    KindCount,
    Question,
    Waiting,
)
from jackline.domain.gate import is_a_persons
from jackline.domain.saying import DAY_MS, day
from jackline.domain.states import RunState, WaitReason, WorkStatus
from jackline.store.state_contract import TimelineQuery

if TYPE_CHECKING:
    from jackline.domain.records import Call, Run
    from jackline.domain.reporting import RunLine
    from jackline.store.contract import Store

_MOST = SHOWN + 1  # one more tells that there are more
_EVENTS = 15
_DAYS = 7
_DOUBT = ("may have happened: look, then type", ("happened", "did-not", "retry", "skip"))
_ASKED = ("wants your word", ("allow", "deny"))
_CUT_OFF = ("was cut off, and the agent does not make it again: go on, or first type", ("skip",))


def read(store: Store, now: int, words: tuple[str, ...] = ()) -> Dashboard:
    """Everything as it stands; `words` end every command to type."""
    return Dashboard(
        at=now,
        words=words,
        waiting=_waiting(store),
        items_waiting=store.items_in(WorkStatus.WAITING_HUMAN, _MOST),
        running=store.runs_in(RunState.RUNNING, _MOST),
        failed=store.runs_failed(now - now % DAY_MS - DAY_MS, _MOST),
        queued=store.runs_in(RunState.QUEUED, _MOST),
        queued_count=store.count_runs(RunState.QUEUED, COUNTED),
        parked=[run for reason in PARKED for run in store.runs_waiting(reason, _MOST)][:_MOST],
        kinds=_kinds(store),
        spending=store.spending(day(now - (_DAYS - 1) * DAY_MS), day(now)),
        today=day(now),
        in_flight=store.items_in(WorkStatus.IN_FLIGHT, _MOST),
        dead=store.items_dead(_MOST),
        events=store.timeline(TimelineQuery(limit=_EVENTS)),
        learnings=store.newest_learnings(SHOWN),
    )


def _kinds(store: Store) -> list[KindCount]:
    return [
        KindCount(kind, status, count) for status in LIVE for kind, count in store.kinds_in(status, COUNTED, 2 * SHOWN)
    ]


def _waiting(store: Store) -> list[Waiting]:
    found = [line for reason in FOR_PEOPLE for line in store.runs_waiting(reason, _MOST)][:_MOST]
    return [Waiting(line, _questions(store, line)) for line in found]


def _questions(store: Store, line: RunLine) -> tuple[Question, ...]:
    if line.reason == WaitReason.HUMAN:
        return tuple(_question(call, _CUT_OFF) for call in store.forced(line.id)[:_MOST])
    run = store.run(line.id)
    asked = {call.key: call for call in reversed(store.asked(line.id))}  # the same question is answered once
    doubts = [] if run is None else _doubts(store, run)
    questions = [*(_question(call, _DOUBT) for call in doubts), *(_question(call, _ASKED) for call in asked.values())]
    return tuple(questions[:_MOST])


def _doubts(store: Store, run: Run) -> list[Call]:
    return [call for call in store.open_calls(run.id) if is_a_persons(call, strict=run.spec.strict)]


def _question(call: Call, said: tuple[str, tuple[str, ...]]) -> Question:
    return Question(call.id, call.tool, call.target, *said)
