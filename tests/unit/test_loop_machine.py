"""The loop in the run machine: iterations, first and void proofs, plans, review rounds, publication."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.domain.limits import Limits, Spent
from jackline.domain.machine_state import MachineState, StepResult
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import RunStatus
from jackline.domain.review_records import Finding, Verdict
from jackline.domain.run_inputs import (
    CLOSED,
    OPEN,
    REACHED,
    RED,
    CheckEnded,
    Claimed,
    LookAtPullRequest,
    MachineInput,
    PendingCheck,
    Publish,
    Published,
    PullRequestSeen,
    Recovered,
    RunCheck,
    StartTurn,
    StopReason,
    StopWanted,
    TurnEnded,
)
from jackline.domain.run_machine import step
from jackline.domain.spec import ANY_PASS, Spec
from jackline.domain.states import Failure, Phase, Proof, Role, RunState, WaitReason, exit_code

AT = 1_000_000
SPEC = Spec("fix it", "/w", proof="make test", limits=Limits(iterations=4))
REVIEWED = SPEC._replace(review=("codex",))
PAIR = SPEC._replace(review=("codex", "gemini"))
PUBLISHED = SPEC._replace(pr="ready", until="green")


def drive(state: MachineState, *events: MachineInput) -> StepResult:
    result = StepResult(state)
    for event in events:
        result = step(result.state, event)
    return result


def begin(spec: Spec = SPEC, **life: Any) -> MachineState:
    state = MachineState("run", spec, RunStatus(attempt=1, **life))
    return drive(state, Claimed(AT), Recovered(AT)).state


def done(**more: Any) -> TurnEnded:
    return TurnEnded(AT, Outcome(), Usage(), **more)


def green(tree: str = "t1") -> CheckEnded:
    return CheckEnded(AT, 0, tree=tree)


def red(tree: str = "t1", code: int = 1) -> CheckEnded:
    return CheckEnded(AT, code, f"proof failed (exit {code}): make test", tree=tree)


def finding(number: int, state: str = "open", seat: int = 0, severity: str = "blocking") -> Finding:
    return Finding("run", number, 1, seat, "codex", severity, "a.py", 3, "wrong", state)


def verdict(review_round: int, outcome: str = "fail", resolved: int = 0, seat: int = 0) -> Verdict:
    return Verdict("run", 10 + review_round, 1, review_round, seat, "codex", "t1", outcome, resolved, "", AT)


def reviewed(round_: int, *findings: Finding, outcome: str = "fail", resolved: int = 0, seat: int = 0) -> TurnEnded:
    said = verdict(round_, outcome, resolved, seat)
    return done(verdict=said, findings=findings)


def status(result: StepResult) -> RunStatus:
    return result.state.status


# --- iterations


def test_a_red_proof_begins_the_next_iteration_and_stores_what_was_wrong() -> None:
    result = drive(begin(), done(), red())
    assert result.commands == (StartTurn(4, 2, Role.WORK),)
    assert (status(result).iteration, status(result).spent.iterations) == (2, 2)
    assert result.iteration is not None
    assert (result.iteration.number, result.iteration.failure, result.iteration.tree) == (1, "proof", "t1")
    assert [fact.kind for fact in result.facts] == ["iteration.ended", "turn.started"]
    ended = drive(result.state, done(), green("t2"))
    assert (status(ended).state, status(ended).proof, status(ended).tree) == (RunState.SUCCEEDED, Proof.PROVED, "t2")


def test_the_same_tree_with_the_same_failure_stops_the_run() -> None:
    again = drive(begin(), done(), red(), done(), red())
    assert (status(again).state, status(again).failure) == (RunState.FAILED, Failure.NO_PROGRESS)
    assert exit_code(status(again).state, None, status(again).failure) == 16
    assert "iterations 1 and 2 ended with the same files" in status(again).detail
    for other in (red("t2"), red("t1", code=2)):
        assert status(drive(begin(), done(), red(), done(), other)).state is RunState.RUNNING


def test_a_crash_between_two_iterations_does_not_hide_that_nothing_moves() -> None:
    before = drive(begin(), done(), red())
    again = MachineState("run", SPEC, before.state.status)
    resumed = drive(again, Claimed(AT), Recovered(AT, last_iteration=before.iteration))
    assert status(resumed).iteration == 2, "the iteration goes on"
    assert status(drive(resumed.state, done(), red())).failure is Failure.NO_PROGRESS


def test_without_a_tree_only_equal_output_shows_that_nothing_moved() -> None:
    def fails(digest: str) -> CheckEnded:
        return CheckEnded(AT, 1, "failed", digest=digest)

    assert status(drive(begin(), done(), fails("a"), done(), fails("b"))).state is RunState.RUNNING
    assert status(drive(begin(), done(), fails("a"), done(), fails("a"))).failure is Failure.NO_PROGRESS


def test_spent_iterations_fail_the_run_and_more_of_them_continue_it() -> None:
    rounds = [event for number in range(4) for event in (done(), red(f"t{number}"))]
    failed = drive(begin(), *rounds)
    assert (status(failed).state, status(failed).failure, status(failed).iteration) == (
        RunState.FAILED, Failure.PROOF, 4,
    )  # fmt: skip
    assert "limit reached: 4 of 4 iterations; `jackline resume run --max-iterations N`" in status(failed).detail
    again = failed.state._replace(spec=SPEC._replace(limits=Limits(iterations=5)))
    resumed = drive(again, Claimed(AT), Recovered(AT, last_iteration=failed.iteration))
    assert (status(resumed).iteration, status(resumed).state) == (5, RunState.RUNNING)


def test_another_budget_parks_the_run_between_two_iterations() -> None:
    spec = SPEC._replace(limits=Limits(usd_micros=5))
    result = drive(begin(spec), TurnEnded(AT, Outcome(), Usage(usd_micros=9)), red())
    assert (status(result).state, status(result).reason) == (RunState.WAITING, WaitReason.BUDGET)
    assert result.iteration is not None


# --- the first proof, void proofs, plans, the done signal


def test_a_proof_that_has_to_fail_first_is_made_before_any_work() -> None:
    spec = SPEC._replace(proof_must_fail_first=True)
    first = drive(MachineState("run", spec, RunStatus(attempt=1)), Claimed(AT), Recovered(AT))
    assert first.commands == (RunCheck(2, "make test"),)
    assert isinstance(drive(first.state, red()).commands[0], StartTurn)
    for code in (126, 127):
        missing = status(drive(first.state, red(code=code)))
        assert (missing.failure, f"cannot be run before the work (exit {code})" in missing.detail) == (
            Failure.PROOF,
            True,
        )
    passed = drive(first.state, green())
    assert (status(passed).state, status(passed).failure) == (RunState.FAILED, Failure.PROOF)
    assert "passes before any work" in status(passed).detail
    assert status(passed).proof is Proof.UNVERIFIED


@pytest.mark.parametrize("code", [0, 1])
def test_a_void_proof_is_made_once_more_and_never_proves_anything(code: int) -> None:
    void = CheckEnded(AT, code, tree="t1", changed=("a.py",))
    again = drive(begin(), done(), void)
    assert again.commands == (RunCheck(4, "make test"),)
    assert status(drive(again.state, green())).proof is Proof.PROVED
    twice = drive(again.state, void)
    assert (status(twice).state, status(twice).proof, status(twice).iteration) == (
        RunState.RUNNING, Proof.UNVERIFIED, 2,
    )  # fmt: skip
    assert twice.iteration is not None
    assert twice.iteration.detail == "files changed while the proof ran: a.py; let git ignore what it writes"


def test_files_that_changed_pass_all_checks_again_before_the_proof() -> None:
    """Such as the commit of the host: what a proof has changed would never be committed."""
    commit = PendingCheck("commit", "git commit", Failure.PROOF)
    order = RunCheck(5, "git commit", "commit")
    before = drive(begin(PUBLISHED), done(checks=(commit,)), CheckEnded(AT, 0))
    assert before.commands == (RunCheck(4, "make test"),)
    void = drive(before.state, CheckEnded(AT, 0, tree="t1", changed=("lock",)))
    assert void.commands == (order,)
    assert drive(void.state, CheckEnded(AT, 0)).commands == (RunCheck(6, "make test"),)
    resumed = drive(MachineState("run", PUBLISHED, status(void)), Claimed(AT), Recovered(AT, checks=(commit,)))
    assert resumed.commands == (RunCheck(7, "git commit", "commit"),)
    assert drive(before.state, green(), Published(AT, is_stale=True)).commands == (order._replace(step=6),)
    judged = drive(begin(REVIEWED), done(checks=(commit,)), CheckEnded(AT, 0), green(), reviewed(1)._replace(tree="t2"))
    assert judged.commands == (order._replace(step=6),)


@pytest.mark.parametrize("now", ["t2", "unreadable"])
def test_a_review_of_files_that_changed_meanwhile_is_no_pass(now: str) -> None:
    proved = drive(begin(REVIEWED), done(), green("t1"))
    passed = reviewed(1, outcome="pass")._replace(tree="t1")
    assert status(drive(proved.state, passed)).state is RunState.SUCCEEDED
    again = drive(proved.state, passed._replace(tree=now))
    assert again.facts[0].kind == "check.dropped"
    assert isinstance(again.commands[0], RunCheck)
    assert (status(again).proof, status(again).tree) == (Proof.UNVERIFIED, "")
    reviewing = drive(again.state, green("t2"))
    assert isinstance(reviewing.commands[0], StartTurn)
    assert status(reviewing).state is RunState.RUNNING


def test_files_that_change_during_each_review_do_not_keep_a_run_for_ever() -> None:
    result = drive(begin(REVIEWED), done(), green("t0"))
    for number in (1, 2):
        result = drive(result.state, reviewed(number, outcome="pass")._replace(tree=f"t{number}"), green(f"t{number}"))
        assert isinstance(result.commands[0], StartTurn)
    ended = drive(result.state, reviewed(3, outcome="pass")._replace(tree="t3"))
    assert (status(ended).state, status(ended).reason) == (RunState.WAITING, WaitReason.HUMAN)
    assert "the files changed during the review, and there was no pass in 3 review rounds" in status(ended).detail
    assert (status(ended).goal, status(ended).proof) == (Phase.PROVING, Proof.UNVERIFIED)
    continued = status(ended)._replace(rounds_from=3)  # by a person
    again = drive(MachineState("run", REVIEWED, continued), Claimed(AT), Recovered(AT), green("t3"))
    assert isinstance(again.commands[0], StartTurn)
    assert (again.commands[0].role, again.commands[0].review_round) == (Role.REVIEW, 4)


def test_no_review_starts_with_a_spent_budget() -> None:
    spec = PAIR._replace(limits=Limits(usd_micros=5))
    worked = drive(begin(spec), done()._replace(usage=Usage(usd_micros=5)))
    assert isinstance(worked.commands[0], RunCheck), "finished work is proved"
    unclear = done(verdict_problem="no verdict")._replace(usage=Usage(usd_micros=5))
    first = reviewed(1, outcome="pass")._replace(usage=Usage(usd_micros=5))
    proved = drive(begin(spec), done(), green())
    for parked in (drive(worked.state, green()), drive(proved.state, first), drive(proved.state, unclear)):
        assert (status(parked).reason, status(parked).goal) == (WaitReason.BUDGET, Phase.REVIEWING)
        assert status(parked).proof is Proof.PROVED
    more = spec._replace(limits=Limits(usd_micros=9))
    resumed = drive(MachineState("run", more, status(parked)), Claimed(AT), Recovered(AT, tree="t1"))
    assert isinstance(resumed.commands[0], StartTurn)
    assert resumed.commands[0].role is Role.REVIEW


def test_without_a_proof_the_reviewed_files_have_to_be_those_at_the_end() -> None:
    reviewing = drive(begin(REVIEWED._replace(proof="")), done())
    again = drive(reviewing.state, reviewed(1, outcome="pass")._replace(tree="t2"))
    assert (status(again).state, again.facts[0].kind) == (RunState.RUNNING, "check.dropped")


def test_a_plan_is_a_turn_of_its_own_before_the_work() -> None:
    spec = SPEC._replace(plan=True)
    first = drive(MachineState("run", spec, RunStatus(attempt=1)), Claimed(AT), Recovered(AT))
    assert first.commands == (StartTurn(2, 1, Role.PLAN),)
    assert (status(first).phase, status(first).goal, status(first).iteration) == (Phase.PLANNING, Phase.PLANNING, 1)
    crashed = drive(MachineState("run", spec, status(first)), Claimed(AT), Recovered(AT))
    assert crashed.commands[0] == StartTurn(4, 2, Role.PLAN)
    work = drive(first.state, done())
    assert work.commands == (StartTurn(3, 2, Role.WORK),)
    assert (status(work).goal, status(work).iteration) == (Phase.WORKING, 1)


def test_without_its_done_signal_a_turn_is_not_the_end() -> None:
    spec = SPEC._replace(done_signal="DONE")
    again = drive(begin(spec), done(is_done=False, tree="t1"))
    assert (status(again).iteration, again.commands[0]) == (2, StartTurn(3, 2, Role.WORK))
    assert isinstance(drive(again.state, done()).commands[0], RunCheck)
    assert status(drive(again.state, done(is_done=False, tree="t1"))).failure is Failure.NO_PROGRESS
    assert status(drive(again.state, done(is_done=False, tree="t2"))).state is RunState.RUNNING


@pytest.mark.parametrize(("is_done", "command"), [(True, RunCheck), (False, StartTurn)])
def test_an_answered_doubt_does_not_replace_the_done_signal(is_done: bool, command: type) -> None:
    ended = done(is_done=is_done, tree="" if is_done else "t1", open_calls=1)
    parked = drive(begin(SPEC._replace(done_signal="DONE")), ended, Recovered(AT, ("c1",)))
    assert status(parked).reason is WaitReason.IN_DOUBT
    again = drive(MachineState("run", parked.state.spec, status(parked)), Claimed(AT), Recovered(AT))
    assert isinstance(again.commands[0], command)


# --- reviews


def test_the_proved_tree_is_reviewed_and_a_pass_is_the_end() -> None:
    review = drive(begin(REVIEWED), done(), green())
    assert review.commands == (StartTurn(4, 2, Role.REVIEW, "codex", 0, 1),)
    assert (status(review).goal, status(review).phase, status(review).review_round) == (
        Phase.REVIEWING, Phase.REVIEWING, 1,
    )  # fmt: skip
    passed = drive(review.state, reviewed(1, outcome="pass"))
    assert (status(passed).state, status(passed).proof, status(passed).tree) == (RunState.SUCCEEDED, Proof.PROVED, "t1")


def test_blocking_findings_are_the_next_iteration_and_a_new_round() -> None:
    blocked = drive(begin(REVIEWED), done(), green(), reviewed(1, finding(1), finding(2)))
    assert blocked.commands == (StartTurn(5, 3, Role.WORK),)
    assert blocked.iteration is not None
    assert (blocked.iteration.failure, blocked.iteration.digest) == ("review", "F1 F2")
    again = drive(blocked.state, done(), green("t2"))
    assert again.commands == (StartTurn(7, 4, Role.REVIEW, "codex", 0, 2),)
    ended = drive(again.state, reviewed(2, finding(1, "resolved"), finding(2, "resolved"), outcome="pass", resolved=2))
    assert status(ended).state is RunState.SUCCEEDED


def test_a_fail_without_a_blocking_finding_is_a_pass() -> None:
    assert status(drive(begin(REVIEWED), done(), green(), reviewed(1, finding(1, severity="nit")))).state is (
        RunState.SUCCEEDED
    )


def test_every_seat_is_heard_unless_one_pass_is_enough() -> None:
    second = drive(begin(PAIR), done(), green(), reviewed(1, outcome="pass"))
    assert second.commands == (StartTurn(5, 3, Role.REVIEW, "gemini", 1, 1),)
    assert status(drive(second.state, reviewed(1, finding(1, seat=1), seat=1))).iteration == 2
    assert status(drive(second.state, reviewed(1, outcome="pass", seat=1))).state is RunState.SUCCEEDED
    any_of = PAIR._replace(review_mode=ANY_PASS)
    assert status(drive(begin(any_of), done(), green(), reviewed(1, outcome="pass"))).state is RunState.SUCCEEDED


def test_after_three_rounds_or_two_without_a_resolved_finding_a_person_decides() -> None:
    spec = REVIEWED._replace(limits=Limits(iterations=20))
    two = drive(begin(spec), done(), green("a"), reviewed(1, finding(1)), done(), green("b"), reviewed(2, finding(1)))
    assert (status(two).state, status(two).reason) == (RunState.WAITING, WaitReason.HUMAN)
    assert "F1 (a.py:3)" in status(two).detail
    assert "nothing was resolved in two review rounds: see `jackline findings run`" in status(two).detail
    nits = drive(
        begin(spec),
        *(done(), green("a"), reviewed(1, finding(1))),
        *(done(), green("b"), reviewed(2, finding(1, "resolved"), finding(2), resolved=1)),
        *(done(), green("c"), reviewed(3, finding(1, "resolved"), finding(2, "resolved"), finding(3), resolved=1)),
    )
    assert (status(nits).state, status(nits).reason) == (RunState.WAITING, WaitReason.HUMAN)
    assert "3 review rounds" in status(nits).detail


def test_a_person_continues_with_new_rounds_or_drops_the_finding() -> None:
    spec = REVIEWED._replace(limits=Limits(iterations=20))
    stalled = drive(begin(spec), done(), green(), reviewed(1, finding(1)), done(), green(), reviewed(2, finding(1)))
    stored = status(stalled)._replace(rounds_from=2)  # as a claim by a person leaves it
    known = Recovered(AT, verdicts=(verdict(1), verdict(2)), last_iteration=stalled.state.last_iteration, tree="t1")
    more = drive(MachineState("run", spec, stored), Claimed(AT), known._replace(findings=(finding(1),)))
    assert (status(more).state, status(more).goal) == (RunState.RUNNING, Phase.WORKING)
    dropped = drive(MachineState("run", spec, stored), Claimed(AT), known._replace(findings=(finding(1, "dismissed"),)))
    assert (status(dropped).state, status(dropped).proof) == (RunState.SUCCEEDED, Proof.PROVED)


def test_a_tree_that_changed_while_a_person_decided_is_proved_again() -> None:
    review = drive(begin(REVIEWED), done(), green())
    resumed = drive(MachineState("run", REVIEWED, status(review)), Claimed(AT), Recovered(AT, tree="other"))
    assert isinstance(resumed.commands[0], RunCheck)
    assert [fact.kind for fact in resumed.facts] == ["recovery.ended", "check.dropped", "check.started"]
    assert (status(resumed).proof, status(resumed).tree) == (Proof.UNVERIFIED, "")


def test_a_crash_in_a_round_keeps_the_verdicts_of_the_other_seats() -> None:
    second = drive(begin(PAIR), done(), green(), reviewed(1, outcome="pass"))
    known = Recovered(AT, verdicts=(verdict(1, "pass"),), tree="t1")
    resumed = drive(MachineState("run", PAIR, status(second)), Claimed(AT), known)
    assert resumed.commands == (StartTurn(7, 4, Role.REVIEW, "gemini", 1, 1),)


def test_a_malformed_verdict_is_asked_for_once_more_and_then_a_person_decides() -> None:
    review = drive(begin(REVIEWED), done(), green())
    asked = drive(review.state, done(verdict_problem="There is no verdict."))
    assert asked.commands == (StartTurn(5, 3, Role.REVIEW, "codex", 0, 1, "There is no verdict."),)
    assert status(drive(asked.state, reviewed(1, outcome="pass"))).state is RunState.SUCCEEDED
    twice = drive(asked.state, done(verdict_problem="There is no verdict."))
    assert (status(twice).state, status(twice).reason) == (RunState.WAITING, WaitReason.HUMAN)
    assert "codex gave no clear verdict" in status(twice).detail
    assert "jackline findings run --accept REASON" in status(twice).detail


def test_a_person_accepts_what_no_reviewer_judges_clearly() -> None:
    review = drive(begin(REVIEWED), done(), green())
    unclear = done(verdict_problem="There is no verdict.")
    waiting = status(drive(review.state, unclear, unclear))
    parked = MachineState("run", REVIEWED, waiting)
    accepted = drive(parked, Claimed(AT), Recovered(AT, tree="t1", accepted_round=1, resting={"codex": AT + 9}))
    assert status(accepted).state is RunState.SUCCEEDED
    earlier = drive(parked, Claimed(AT), Recovered(AT, tree="t1"))
    assert isinstance(earlier.commands[0], StartTurn)
    other = drive(parked, Claimed(AT), Recovered(AT, tree="t2", accepted_round=1))
    assert isinstance(other.commands[0], RunCheck)
    assert isinstance(drive(other.state, green("t2")).commands[0], StartTurn)  # another tree is reviewed


def test_a_limit_of_a_reviewer_is_waited_for_and_never_handed_to_the_worker() -> None:
    spec = REVIEWED._replace(fallback=("gemini",))
    review = drive(begin(spec), done(), green())
    limited = drive(review.state, TurnEnded(AT, Outcome(failure=Failure.LIMIT, resets_at=AT + 99), Usage()))
    assert (status(limited).reason, status(limited).wake_at, status(limited).goal) == (
        WaitReason.LIMIT, AT + 99, Phase.REVIEWING,
    )  # fmt: skip
    assert status(limited).agent == ""
    known = Recovered(AT, resting={"codex": AT + 99}, limit_resets={"codex": AT + 99}, tree="t1")
    again = drive(MachineState("run", spec, status(limited)), Claimed(AT), known)
    assert (status(again).reason, status(again).wake_at) == (WaitReason.LIMIT, AT + 99)


def test_a_reviewer_that_cannot_be_used_fails_the_run_and_a_resume_reviews_again() -> None:
    review = drive(begin(REVIEWED), done(), green())
    failed = drive(review.state, TurnEnded(AT, Outcome(failure=Failure.UNAVAILABLE, detail="gone"), Usage()))
    assert (status(failed).state, status(failed).failure) == (RunState.FAILED, Failure.UNAVAILABLE)
    assert status(failed).detail == "reviewer codex: gone"
    slow = drive(review.state, StopWanted(AT, StopReason.WALL, "too slow"), done())
    assert status(slow).detail == "reviewer codex: too slow"
    resumed = drive(MachineState("run", REVIEWED, status(failed)), Claimed(AT), Recovered(AT, tree="t1"))
    assert isinstance(resumed.commands[0], StartTurn)
    assert resumed.commands[0].role is Role.REVIEW


def test_a_review_without_a_proof_is_bound_to_the_tree_that_the_reviewer_saw() -> None:
    spec = REVIEWED._replace(proof="")
    passed = drive(begin(spec), done(), reviewed(1, outcome="pass"))
    assert (status(passed).state, status(passed).proof, status(passed).tree) == (
        RunState.SUCCEEDED, Proof.UNVERIFIED, "t1",
    )  # fmt: skip


def test_a_cancel_during_a_review_ends_the_run() -> None:
    review = drive(begin(REVIEWED), done(), green())
    ended = drive(review.state, StopWanted(AT, StopReason.CANCEL), reviewed(1, outcome="pass"))
    assert status(ended).state is RunState.CANCELLED


# --- publication


def test_proved_work_is_published_and_then_looked_at() -> None:
    published = drive(begin(PUBLISHED), done(), green())
    assert published.commands == (Publish(4),)
    assert (status(published).goal, status(published).phase) == (Phase.PUBLISHING, Phase.PUBLISHING)
    look = drive(published.state, Published(AT))
    assert look.commands == (LookAtPullRequest(5),)
    waits = drive(look.state, PullRequestSeen(AT, OPEN, "2 checks are pending", wake_at=AT + 60_000))
    assert (status(waits).reason, status(waits).wake_at) == (WaitReason.CI, AT + 60_000)
    assert exit_code(RunState.WAITING, WaitReason.CI, None) == 19
    woken = drive(MachineState("run", PUBLISHED, status(waits)), Claimed(AT), Recovered(AT))
    assert isinstance(woken.commands[0], Publish)
    assert status(drive(look.state, PullRequestSeen(AT, REACHED))).state is RunState.SUCCEEDED
    closed = drive(look.state, PullRequestSeen(AT, CLOSED, "it was closed"))
    assert (status(closed).state, status(closed).failure) == (RunState.FAILED, Failure.PULL_REQUEST)
    repair = drive(look.state, PullRequestSeen(AT, RED, "lint failed", digest="lint"))
    assert (status(repair).iteration, repair.commands[0].__class__) == (2, StartTurn)


def test_a_resume_after_checks_that_stay_red_looks_before_it_starts_a_turn() -> None:
    fails = PullRequestSeen(AT, RED, "lint failed", digest="lint")
    both = (done(), green(), Published(AT), fails)
    failed = drive(begin(PUBLISHED), *both, *both)
    assert status(failed).failure is Failure.NO_PROGRESS
    state = MachineState("run", PUBLISHED, status(failed))
    resumed = drive(state, Claimed(AT), Recovered(AT, last_iteration=failed.iteration))
    assert isinstance(resumed.commands[0], Publish)
    looked = drive(resumed.state, Published(AT))
    assert status(drive(looked.state, PullRequestSeen(AT, REACHED))).state is RunState.SUCCEEDED
    again = drive(looked.state, fails)
    assert (status(again).iteration, again.commands[0].__class__) == (3, StartTurn)


def test_without_anything_to_wait_for_a_published_run_is_done() -> None:
    spec = PUBLISHED._replace(until="")
    assert status(drive(begin(spec), done(), green(), Published(AT))).state is RunState.SUCCEEDED


def test_a_publication_that_fails_is_retried_waits_or_is_proved_again() -> None:
    before = drive(begin(PUBLISHED), done(), green()).state
    network = drive(before, Published(AT, Failure.CONNECTIVITY, "no route"))
    assert (status(network).reason, status(network).retries) == (WaitReason.RETRY, 1)
    denied = drive(before, Published(AT, Failure.PULL_REQUEST, "a rule denies git push"))
    assert status(denied).failure is Failure.PULL_REQUEST
    assert status(drive(before, Published(AT, doubts=("c1",), detail="c1"))).reason is WaitReason.IN_DOUBT
    assert isinstance(drive(before, Published(AT, is_stale=True)).commands[0], RunCheck)
    spent = before._replace(spec=PUBLISHED._replace(limits=Limits(steps=1)))
    assert status(drive(spent, Published(AT, is_stale=True))).reason is WaitReason.BUDGET


def test_work_that_is_not_committed_is_the_next_iteration_until_nothing_moves() -> None:
    lacks = Published(AT, Failure.PULL_REQUEST, "not published: commit a.txt", uncommitted="c1")
    repair = drive(begin(PUBLISHED), done(), green(), lacks)
    assert (status(repair).iteration, repair.commands[0].__class__) == (2, StartTurn)
    assert repair.iteration is not None
    assert repair.iteration.detail == "not published: commit a.txt"
    other = drive(repair.state, done(), green(), lacks._replace(uncommitted="c2"))
    assert status(other).iteration == 3
    same = drive(repair.state, done(), green(), lacks)
    assert status(same).failure is Failure.NO_PROGRESS


def test_a_worktree_that_cannot_be_used_ends_the_run_before_an_agent_starts() -> None:
    state = MachineState("run", SPEC, RunStatus(attempt=1))
    failed = drive(state, Claimed(AT), Recovered(AT, unprepared="npm ci failed"))
    assert (status(failed).state, status(failed).failure, status(failed).turn) == (RunState.FAILED, Failure.WORKTREE, 0)
    assert status(failed).spent == Spent(steps=1)
