"""What a turn will be: its session, what it is told or copies, since when it remembers, what it must make again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from jackline.agents.claude.claude_adapter import ADAPTER as CLAUDE
from jackline.agents.gemini import ADAPTER as GEMINI
from jackline.agents.scripted.scripted_adapter import ADAPTER as SCRIPTED
from jackline.domain.adapter import Adapter
from jackline.domain.changes import Changes
from jackline.domain.limits import Spent
from jackline.domain.records import Call, Check, Lease, Message, Run, RunStatus, Turn
from jackline.domain.review_records import Finding, Iteration
from jackline.domain.run_inputs import StartTurn
from jackline.domain.spec import Spec
from jackline.domain.states import DEFERRED, CallClass, CallState, Decision, Replay, Role
from jackline.engine.turn_plan import LaunchContext, TurnPlan, plan_review, plan_turn
from jackline.features.cases.case_model import Case, CaseQuery, CaseStatus, Problem
from jackline.features.cases.case_queries import Cases
from jackline.features.work import run_questions
from jackline.store.store import Store
from tests.unit.test_replay import TASK, cut_off, wants

if TYPE_CHECKING:
    from jackline.engine.review_seat import ReviewSeat

AT = 1_700_000_000_000
CONTEXT = LaunchContext("/home/ada/runs/r/agent", "gate", "token", "/usr/bin/agent", {})


class Known:
    """What the store knows of the run."""

    def __init__(
        self,
        *turns: Turn,
        forced: tuple[Call, ...] = (),
        checks: tuple[Check, ...] = (),
        cases: tuple[str, ...] = (),
        over: Iteration | None = None,
        findings: tuple[Finding, ...] = (),
        messages: tuple[Message, ...] = (),
        **sessions: str,
    ) -> None:
        self._turns, self._forced, self._sessions = list(turns), list(forced), sessions
        self._checks, self.open_cases = list(checks), [_case(one) for one in cases]
        self.records: Known = self  # the parts of a store
        self.calls: Known = self
        self.blobs: Known = self
        self.amendments: Known = self
        self.reviews: Known = self
        self.driver = None
        self._over, self._findings, self._messages = over, list(findings), list(messages)

    def get_sessions(self, _run: str) -> dict[str, str]:
        return self._sessions

    def list_turns(self, _run: str) -> list[Turn]:
        return self._turns

    def get_last_iteration(self, _run: str) -> Iteration | None:
        return self._over

    def list_findings(self, _run: str) -> list[Finding]:
        return self._findings

    def list_all(self, _run: str) -> list[Call]:
        return self._forced

    def list_forced(self, _run: str) -> list[Call]:
        return self._forced

    def load_call(self, call: Call) -> Call:
        return call

    def list_receipts(self, _run: str) -> list[Any]:
        return []

    def get_changes(self, _run: str) -> Changes:
        return Changes()

    def list_messages(self, _run: str) -> list[Message]:
        return self._messages

    def list_checks(self, _run: str) -> list[Check]:
        return self._checks


def _case(name: str) -> Case:
    return Case(name, "repository", "/home/ada/project", "ada", "r", CaseStatus.OPEN, "why?", Problem(), AT, AT)


@pytest.fixture(autouse=True)
def _cases_of_the_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    def list_page(part: Cases, query: CaseQuery) -> list[Case]:
        assert (query.run_id, query.status) == ("r", "open")
        return cast("Known", part._store).open_cases

    monkeypatch.setattr(Cases, "list_page", list_page)
    monkeypatch.setattr(run_questions, "build_answers_section", lambda _store, _run_id: ("", []))


def planned(known: Known, number: int = 1, adapter: Adapter = CLAUDE, iteration: int = 0, **spec: Any) -> TurnPlan:
    whole = Spec("do it", "/home/ada/project", **{"agent": adapter.declaration.name, **spec})
    run = build_run(whole, iteration)
    order = StartTurn(number + 1, number, Role.WORK)
    return plan_turn(cast("Store", known), Lease("r", "me", 1), run, order, adapter, CONTEXT, AT)


def build_run(spec: Spec, iteration: int = 0) -> Run:
    life = RunStatus(iteration=iteration, review_round=1)
    return Run("r", 1, "repository", "r", None, spec, life, "me", 1, "", AT, AT)


def ended(number: int, session: str = "s1", agent: str = "claude", **more: Any) -> Turn:
    said = {"ended_at": AT, "stdout_bytes": 10, "exit_code": 0, **more}
    role = said.pop("role", Role.WORK)
    return Turn("r", number, number + 1, 1, role, agent, session, "do it", AT, **said)


def test_the_first_turn_is_told_the_task() -> None:
    first = planned(Known())
    assert (first.turn.prompt, first.request.resume, first.since) == ("do it", False, 1)
    assert first.turn.session


def test_a_resumed_session_is_told_the_facts_and_remembers_since_its_first_turn() -> None:
    known = Known(ended(1), ended(2), claude="s1")
    third = planned(known, 3)
    assert (third.turn.session, third.request.resume, third.since) == ("s1", True, 1)
    assert third.turn.prompt.startswith("Your work on this task was interrupted")
    assert "do it" not in third.turn.prompt


def test_a_fresh_session_after_a_lost_one_remembers_nothing() -> None:
    known = Known(ended(1), ended(2), claude="")
    third = planned(known, 3)
    assert (third.request.resume, third.since) == (False, 3)
    assert third.turn.session != "s1"
    assert third.turn.prompt.startswith("do it\n\nAn earlier turn worked on this task")


def test_the_turns_of_another_session_are_not_remembered() -> None:
    known = Known(ended(1, "s0"), ended(2), ended(3, agent="gemini"), claude="s1")
    assert planned(known, 4).since == 2


class Seat:
    """A reviewer's seat."""

    def build_prompt(self, *, knows_task: bool) -> str:
        return "again" if knows_task else "the whole task"


@pytest.mark.parametrize(
    ("last", "prompt"),
    [
        (ended(2, "s2", role=Role.REVIEW), "again"),
        (ended(2, "s2", role=Role.REVIEW, failure="agent_error"), "the whole task"),  # such as a session that is lost
    ],
)
def test_a_reviewer_is_asked_again_in_the_session_of_a_review_that_ended_well(last: Turn, prompt: str) -> None:
    store, run = cast("Store", Known(ended(1), last)), build_run(Spec("do it", "/home/ada/project", review=("claude",)))
    order = StartTurn(4, 3, Role.REVIEW, agent="claude", review_round=1, asks_again="no verdict")
    plan = plan_review(store, Lease("r", "me", 1), run, order, CLAUDE, CONTEXT, AT, cast("ReviewSeat", Seat()))
    assert (plan.turn.prompt, plan.request.resume, plan.turn.session == "s2") == (
        prompt, prompt == "again", prompt == "again",
    )  # fmt: skip


def test_who_takes_over_remembers_nothing_and_is_told_the_task() -> None:
    known = Known(ended(1), claude="s1")
    second = planned(known, 2, GEMINI, agent="claude", fallback=("gemini",))
    assert (second.since, second.request.resume) == (2, False)
    assert second.turn.prompt.startswith("do it\n\n")


def test_a_deferred_call_goes_on_without_a_word() -> None:
    assert planned(Known(ended(1, detail=DEFERRED), claude="s1"), 2).turn.prompt == ""


@pytest.mark.parametrize(
    ("turns", "session"),
    [
        ((ended(1, detail=DEFERRED, failure="crashed"),), "s1"),  # it did not come so far
        ((ended(1, detail=DEFERRED), ended(2)), "s1"),  # something was said since
        ((ended(1, detail=DEFERRED),), ""),  # the session is lost
        ((ended(1, "s0", detail=DEFERRED),), "s1"),  # it was another session
    ],
)
def test_else_a_turn_is_always_told_something(turns: tuple[Turn, ...], session: str) -> None:
    assert planned(Known(*turns, claude=session), len(turns) + 1).turn.prompt


def test_a_fork_copies_the_session_once_and_is_told_of_its_parent() -> None:
    fork: dict[str, Any] = {"fork_of": "parent-session", "preface": "This goes on from step 2 of run p."}
    first = planned(Known(), **fork)
    assert (first.request.fork_of, first.request.resume) == ("parent-session", False)
    assert first.turn.prompt == "do it\n\nThis goes on from step 2 of run p."
    again = planned(Known(ended(1, "copy"), claude="copy"), 2, **fork)
    assert (again.request.fork_of, again.turn.session) == ("", "copy")


def test_a_copy_that_could_not_be_made_is_not_tried_again() -> None:
    fork: dict[str, Any] = {"fork_of": "parent-session", "preface": "This goes on from step 2 of run p."}
    second = planned(Known(ended(1, "copy", stdout_bytes=0), claude=""), 2, **fork)
    assert (second.request.fork_of, second.request.resume) == ("", False)
    assert "This goes on from step 2 of run p." in second.turn.prompt


def test_only_the_first_agent_of_a_fork_copies_a_session() -> None:
    spec: dict[str, Any] = {"agent": "claude", "fallback": ("gemini",), "fork_of": "parent-session"}
    assert planned(Known(ended(1)), 2, GEMINI, **spec).request.fork_of == ""


def test_what_was_cut_off_is_forced_on_who_can_be_held() -> None:
    known = Known(ended(1, agent="scripted"), forced=(cut_off("one", "k"),), scripted="s1")
    held = planned(known, 2, SCRIPTED)
    assert len(held.replay) == 1
    assert "Any other call is denied until they are made." in held.turn.prompt
    assert held.replay.mark_intent(wants("other")).waits_for


def test_who_cannot_be_held_is_only_told_and_what_it_makes_again_is_noted() -> None:
    known = Known(ended(1, agent="gemini"), forced=(cut_off("one", "k"),), gemini="s1")
    told = planned(known, 2, GEMINI)
    assert len(told.replay) == 0
    assert "Make each of them again now" in told.turn.prompt
    assert "refused" not in told.turn.prompt
    assert told.replay.mark_intent(wants("other")).waits_for == ""
    assert told.replay.mark_intent(wants("k")).replaces == "one"


def test_a_task_that_is_finished_is_not_taken_for_the_one_that_was_cut_off() -> None:
    kinds = (CallClass.LOCAL, Replay.RELAUNCH, Decision.ALLOW)
    done = Call("done", "r", 1, 1, 2, 1, "Task", *kinds, "task", "socket", "k1", "", "{}", CallState.DONE, 1)
    known = Known(ended(1, agent="scripted"), forced=(cut_off("two", "k2", TASK),), scripted="s1")
    known.list_all = lambda _run: [done]  # type: ignore[method-assign]
    replay = planned(known, 2, SCRIPTED).replay
    assert replay.mark_intent(wants("k1", TASK)).replaces is None
    assert replay.mark_intent(wants("k3", TASK)).replaces == "two"


def test_what_earlier_turns_of_the_session_were_charged_is_known() -> None:
    spent = Spent(tokens_input=7, usd_micros=3)
    known = Known(ended(1, "s0", spent=spent), ended(2, spent=spent), claude="s1")
    assert (planned(known, 3).before.tokens_input, planned(known, 3).before.usd_micros) == (7, 3)


# --- what the host found out since -----------------------------------------------------------------------


def check(step: int, code: int | None, command: str = "make test", output: str = "2 failed\n") -> Check:
    return Check("r", step, 1, command, AT, AT, code, output)


def test_who_goes_on_after_a_check_that_failed_is_told_which_and_what_it_said() -> None:
    told = planned(Known(ended(1), checks=(check(3, 0, "jackline …"), check(4, 1)), claude="s1"), 2).turn.prompt
    assert "the host ran `make test`, and it failed (exit code 1)" in told
    assert "    2 failed" in told.splitlines()


@pytest.mark.parametrize(
    "checks",
    [(), (check(3, 0),), (check(3, None),), (check(2, 1),)],
    ids=["none", "it passed", "it was killed", "it failed before the last turn, which heard of it"],
)
def test_else_no_check_is_spoken_of(checks: tuple[Check, ...]) -> None:
    assert "the host ran" not in planned(Known(ended(1), checks=checks, claude="s1"), 2).turn.prompt


RED = Iteration("r", 1, "t1", "proof", "1", "proof failed (exit 1): make test", AT)


def test_the_next_iteration_is_told_only_what_is_wrong() -> None:
    first = ended(1, iteration=1, exit_code=0)
    told = planned(Known(first, checks=(check(4, 1),), over=RED, claude="s1"), 2, iteration=2).turn.prompt
    assert told.startswith("The work is not done yet. Iteration 2 begins.")
    assert "the host ran `make test`, and it failed" in told
    assert "interrupted" not in told
    assert "do it" not in told


def test_the_findings_of_reviewers_are_told_once_and_a_fresh_session_gets_the_task_too() -> None:
    over, finding = RED._replace(failure="review"), Finding("r", 1, 1, 0, "codex", "blocking", "a.py", 3, "off by one")
    first, known = ended(1, iteration=1, exit_code=0), partial(Known, over=over, findings=(finding,))
    told = planned(known(first, claude="s1"), 2, iteration=2).turn.prompt
    assert "off by one" in told
    begun = ended(2, iteration=2, exit_code=1, failure="crashed", last_message="I look at it")
    again = planned(known(first, begun, claude="s1"), 3, iteration=2).turn.prompt
    assert "off by one" not in again, "the session has it"
    fresh = planned(known(first, begun, claude=""), 3, iteration=2).turn.prompt
    assert fresh.startswith("do it\n\nYour work on this task was interrupted")
    assert "off by one" in fresh


def test_who_was_killed_before_it_could_read_what_is_wrong_is_told_again() -> None:
    first = ended(1, iteration=1, exit_code=0)
    for printed in (0, 200):  # a CLI prints its first line before it sends the prompt
        unread = ended(2, iteration=2, stdout_bytes=printed, ended_at=None, exit_code=None)._replace(step=5)
        known = Known(first, unread, checks=(check(4, 1),), over=RED, claude="s1")
        told = planned(known, 3, iteration=2).turn.prompt
        assert "    2 failed" in told.splitlines()
        assert "Iteration 2 begins." in told


def test_a_message_of_a_person_is_told_again_to_who_was_killed_before_it_could_read_it() -> None:
    asked = Message("r", 1, "use tabs", AT, turn=2)
    killed: dict[str, Any] = {"ended_at": None, "exit_code": None}
    for printed in (0, 200):
        unread = Known(ended(1), ended(2, stdout_bytes=printed, **killed), messages=(asked,), claude="s1")
        assert "use tabs" in planned(unread, 3).turn.prompt
    for read in (ended(2), ended(2, last_message="I do", **killed), ended(2, spent=Spent(tokens_output=5), **killed)):
        known = Known(ended(1), read, messages=(asked,), claude="s1")
        assert "use tabs" not in planned(known, 3).turn.prompt
    called = Known(
        ended(1), ended(2, **killed), messages=(asked,), forced=(cut_off("one", "k")._replace(turn=2),), claude="s1"
    )
    assert "use tabs" not in planned(called, 3).turn.prompt


def test_a_plan_is_carried_out_in_its_own_session_or_told_to_another() -> None:
    plan = ended(1, iteration=1, exit_code=0, role=Role.PLAN, last_message="1. look 2. fix")
    told = planned(Known(plan, claude="s1"), 2, iteration=1, plan=True).turn.prompt
    assert told == "Carry out your plan now. If you find that it is wrong, change it and say so."
    fresh = planned(Known(plan, claude=""), 2, iteration=1, plan=True).turn.prompt
    assert fresh.startswith("do it")
    assert "1. look 2. fix" in fresh


def test_a_done_signal_is_asked_for_with_the_task_and_again_when_it_is_missing() -> None:
    assert planned(Known(), iteration=1, done_signal="DONE").turn.prompt.endswith("\nDONE")
    over = RED._replace(failure="unfinished")
    first = ended(1, iteration=1, exit_code=0)
    told = planned(Known(first, over=over, claude="s1"), 2, iteration=2, done_signal="DONE").turn.prompt
    assert "does not end with the line `DONE`" in told


def test_a_long_output_is_told_from_its_end() -> None:
    told = planned(
        Known(ended(1), checks=(check(3, 1, output="x" * 9000 + "\nthe reason"),), claude="s1"), 2
    ).turn.prompt
    assert told.count("x") < 5000
    assert "    the reason" in told


@pytest.mark.parametrize("session", ["s1", ""])
def test_an_open_case_is_named_to_whoever_goes_on(session: str) -> None:
    told = planned(Known(ended(1), cases=("20261116T050000Z-why",), claude=session), 2).turn.prompt
    assert "jackline case handoff" in told
    assert "- 20261116T050000Z-why" in told


def test_a_first_turn_looks_for_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known()
    monkeypatch.setattr(known, "list_checks", None)  # calling them would fail
    monkeypatch.setattr(Cases, "list_page", None)
    assert planned(known).turn.prompt == "do it"
