"""What the output of an agent with hooks proves about the gate."""

from __future__ import annotations

from typing import cast

import pytest

from jackline.domain.outcome import AgentEvent
from jackline.domain.run_inputs import StopReason
from jackline.engine.call_ledger import CallLedger, CallResult
from jackline.engine.observed_calls import HookAudit


class Book:
    """Knows some calls by the agent's names, and remembers what it was told."""

    def __init__(self, **names: str) -> None:
        self._names = names
        self.open = set(names.values())
        self.reports: list[CallResult] = []
        self.not_runs: list[str] = []

    def find_call_id(self, name: str) -> str | None:
        return self._names.get(name)

    def settle_not_run(self, call_id: str, why: str) -> None:
        assert why
        self.not_runs.append(call_id)

    def finish_open(self, report: CallResult) -> None:
        if report.call_id in self.open:
            self.reports.append(report)


class Scene:
    def __init__(self, **names: str) -> None:
        self.book = Book(**names)
        self.stops: list[StopReason] = []
        self._witness = HookAudit(cast("CallLedger", self.book), lambda why, _detail: self.stops.append(why))

    def sees(self, kind: str, **data: object) -> None:
        self._witness.observe_event(AgentEvent(kind, data=data))


def test_a_result_of_a_call_that_asked_is_no_news() -> None:
    scene = Scene(t1="c1")
    scene.sees("call.started", call="t1", tool="Bash")
    scene.sees("call.finished", call="t1", ok=True, output="fine")
    assert (scene.stops, scene.book.reports, scene.book.not_runs) == ([], [], [])


@pytest.mark.parametrize("ok", [True, False])
def test_a_result_of_a_call_that_never_asked_stops_the_run(*, ok: bool) -> None:
    scene = Scene(t1="c1")
    scene.sees("call.finished", call="t2", ok=ok, output="fine")
    assert scene.stops == [StopReason.UNGATED]


def test_a_call_without_a_name_never_asked() -> None:
    scene = Scene()
    scene.sees("call.finished", ok=True)
    assert scene.stops == [StopReason.UNGATED]


def test_a_call_that_did_not_run_need_not_have_asked() -> None:
    scene = Scene()
    scene.sees("call.finished", call="t2", ok=False, ran=False)
    assert (scene.stops, scene.book.not_runs) == ([], [])


def test_a_call_that_could_not_ask_stops_the_run_before_it_ends_as_if_all_were_well() -> None:
    scene = Scene(t1="c1")
    scene.sees("call.finished", call="t1", ok=False, ran=False, unreached="HTTP 401")
    assert scene.stops == []
    scene.sees("call.finished", call="t2", ok=False, ran=False, unreached="HTTP 401")
    assert scene.stops == [StopReason.UNGATED]


def test_what_the_agent_held_back_itself_did_not_happen() -> None:
    scene = Scene(t1="c1")
    scene.sees("call.finished", call="t1", ok=False, ran=False)
    assert scene.book.not_runs == ["c1"]


def test_the_background_ends_where_the_output_says_so() -> None:
    scene = Scene(t1="c1")
    scene.sees("call.finished", call="t1", ok=True, background=True)
    assert scene.book.reports == []
    scene.sees("call.finished", call="t1", ok=False, exit_code=3, output="failed with exit code 3", task=True)
    assert scene.book.reports == [CallResult("c1", ok=False, exit_code=3, output="failed with exit code 3")]
    scene.sees("call.finished", call="t1", ok=True, task=True)
    assert len(scene.book.reports) == 1


def test_a_task_of_the_process_before_this_one_is_no_call_that_never_asked() -> None:
    scene = Scene()
    scene.sees("call.finished", call="t1", ok=False, task=True)
    assert (scene.stops, scene.book.reports) == ([], [])


def test_a_subagent_that_was_waited_for_is_told_of_by_its_call() -> None:
    scene = Scene(t1="c1")
    scene.sees("call.finished", call="t1", ok=True, task=True)
    assert scene.book.reports == []


def test_what_a_hook_has_told_already_is_not_told_again() -> None:
    scene = Scene(t1="c1")
    scene.sees("call.finished", call="t1", ok=True, background=True)
    scene.book.open.clear()
    scene.sees("call.finished", call="t1", ok=True, output="sub final", task=True)
    assert scene.book.reports == []


def test_the_end_before_a_call_that_waits_ends_the_work() -> None:
    scene = Scene()
    scene.sees("end", ok=True)
    assert scene.stops == []
    scene.sees("end", ok=True, deferred=True)
    assert scene.stops == [StopReason.APPROVAL]
