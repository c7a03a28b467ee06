"""The steps of the loop: work, checks, review, publication, and what begins the next iteration. Pure.

The run machine decides about turns that fail, stops and recovery; nothing here calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.limits import find_exhausted_limit
from jackline.domain.machine_state import (
    StepResult,
    count_step,
    fail_run,
    finish_run,
    park_run,
    prepend_fact,
    retry_or_fail,
)
from jackline.domain.review import RoundResult, decide_round, describe_blocking, find_blocking, is_stalled
from jackline.domain.review_records import Iteration
from jackline.domain.run_inputs import (
    BLOCKED,
    CLOSED,
    OPEN,
    PROOF,
    REACHED,
    CheckEnded,
    LookAtPullRequest,
    Publish,
    Published,
    PullRequestSeen,
    RunCheck,
    StartTurn,
)
from jackline.domain.states import Failure, Phase, Proof, Role, WaitReason
from jackline.formatting import pluralize

if TYPE_CHECKING:
    from jackline.domain.machine_state import MachineState

_GOALS = {Role.PLAN: Phase.PLANNING, Role.WORK: Phase.WORKING}
_NOT_RUN = frozenset({126, 127})  # exit codes of a shell that cannot start a program, or does not find it
_OTHER_PROOF = "start another run with another proof or without --proof-must-fail-first"
_MOST_NAMED = 5  # files in a message


def proceed(state: MachineState, at: int) -> StepResult:
    """Continue towards the goal: the next turn, host check, review or publication."""
    match state.status.goal:
        case Phase.PROVING:
            return _run_next_check(state, at)
        case Phase.REVIEWING:
            return _review(state, at)
        case Phase.PUBLISHING:
            status = count_step(state.status._replace(phase=Phase.PUBLISHING))
            fact = Fact("publishing.started", {"step": status.step})
            return StepResult(state=state._replace(status=status), commands=(Publish(status.step),), facts=(fact,))
        case _:
            return _work(state)


def _work(state: MachineState) -> StepResult:
    """Start the next turn of the agent that works, in a new iteration if the last one is over."""
    spec, status, last = state.spec, state.status, state.last_iteration
    if spec.proof_must_fail_first and not status.turn and not state.has_failed_first:
        return _run_check(state, PROOF, spec.proof)
    is_over = last is not None and last.number == status.iteration
    # The current iteration was counted when it began: a crash in the last one must not end it.
    limits = spec.limits if is_over or not status.iteration else spec.limits._replace(iterations=None)
    spent = _park_if_spent(state)
    if spent is not None:
        return spent
    used = find_exhausted_limit(limits, status.spent)
    if used is not None and is_over and last is not None:
        more = f"`jackline resume {state.run_id} --max-iterations N` continues it"
        return fail_run(state, Failure(last.failure), f"{last.detail}; limit reached: {used}; {more}")
    if used is not None:
        return park_run(state, WaitReason.BUDGET, f"limit reached: {used}")
    if is_over or not status.iteration:
        status = status._replace(iteration=status.iteration + 1, spent=status.spent.plus(iterations=1))
    role = Role.PLAN if status.goal is Phase.PLANNING or (spec.plan and not status.turn) else Role.WORK
    # The turn changes the tree, so an earlier proof no longer applies.
    status = status._replace(goal=_GOALS[role], proof=Proof.UNVERIFIED, tree="")
    return _start_turn(state._replace(status=status), role)


def _park_if_spent(state: MachineState) -> StepResult | None:
    """Let the run wait if a budget is spent, whatever its iterations."""
    spent = find_exhausted_limit(state.spec.limits._replace(iterations=None), state.status.spent)
    return None if spent is None else park_run(state, WaitReason.BUDGET, f"budget spent: {spent}")


def _start_turn(state: MachineState, role: Role) -> StepResult:
    phase = Phase.REVIEWING if role is Role.REVIEW else state.status.goal
    status = count_step(state.status._replace(phase=phase, turn=state.status.turn + 1))
    is_review = role is Role.REVIEW
    order = StartTurn(
        step=status.step,
        turn=status.turn,
        role=role,
        agent=state.next_agent if is_review else "",
        seat=state.seat if is_review else 0,
        review_round=status.review_round if is_review else 0,
        asks_again=state.verdict_problem if is_review and state.has_asked_again else "",
    )
    data = {"turn": status.turn, "role": role, "iteration": status.iteration}
    if is_review:
        data |= {"round": status.review_round, "seat": order.seat, "agent": order.agent}
    return StepResult(
        state=state._replace(status=status, stopping=None, stop_detail="", outcome=None),
        commands=(order,),
        facts=(Fact("turn.started", data),),
    )


def _run_next_check(state: MachineState, at: int) -> StepResult:
    """Make the next host check. The proof is last: the others are quick, and a failed one changes the tree again."""
    if state.checks_left:
        check = state.checks_left[0]
        return _run_check(state, check.name, check.command)
    return _run_check(state, PROOF, state.spec.proof) if state.spec.proof else _start_review(state, at)


def _run_check(state: MachineState, name: str, command: str) -> StepResult:
    status = count_step(state.status._replace(phase=Phase.PROVING))
    fact = Fact("check.started", {"command": command, **({} if name == PROOF else {"check": name})})
    return StepResult(
        state=state._replace(status=status),
        commands=(RunCheck(step=status.step, command=command, name=name),),
        facts=(fact,),
    )


def on_host_step_ended(state: MachineState, event: CheckEnded | Published | PullRequestSeen) -> StepResult:
    """The host has ended a check, a publication or a look at the pull request."""
    match event:
        case CheckEnded():
            return _on_check_ended(state, event)
        case Published():
            return _on_published(state, event)
        case PullRequestSeen():
            return _on_pull_request(state, event)


def _on_check_ended(state: MachineState, event: CheckEnded) -> StepResult:
    if not state.status.turn:
        return _on_first_proof(state, event)
    ended, status = state.checks_left[:1], state.status
    if event.changed and event.exit_code is not None:
        return _on_void_proof(state, event)
    if event.exit_code == 0 and ended:
        return _run_next_check(state._replace(checks_passed=state.checks_passed + 1), event.at)
    if event.exit_code == 0:
        proved = status._replace(proof=Proof.PROVED, tree=event.tree)
        return _start_review(state._replace(status=proved, has_void_proof=False), event.at)
    failure = event.failure or (ended[0].failure if ended else Failure.PROOF)
    if event.exit_code is None:  # one that was killed has found nothing: a resume makes the checks again
        return fail_run(state, failure, event.detail)
    status = status._replace(proof=status.proof if ended else Proof.REFUTED, tree=event.tree)
    # Without a tree only equal output shows that nothing has changed.
    digest = str(event.exit_code) if event.tree else f"{event.exit_code} {event.digest}"
    return end_iteration(state._replace(status=status), failure, event.detail, digest, event.at)


def _on_first_proof(state: MachineState, event: CheckEnded) -> StepResult:
    """The proof was made before any work: it has to fail, or it does not show that the work was done."""
    if event.exit_code == 0:
        why = "the proof passes before any work, so it proves nothing"
        return fail_run(state, Failure.PROOF, f"{why}: {_OTHER_PROOF}: {state.spec.proof}")
    if event.exit_code is None:
        return fail_run(state, Failure.PROOF, event.detail)
    if event.exit_code in _NOT_RUN:
        why = f"the proof cannot be run before the work (exit {event.exit_code}), which shows nothing about the work"
        return fail_run(state, Failure.PROOF, f"{why}: install what it needs, or {_OTHER_PROOF}: {state.spec.proof}")
    return proceed(state._replace(has_failed_first=True), event.at)


def _on_void_proof(state: MachineState, event: CheckEnded) -> StepResult:
    """Files changed while the proof ran, so it says nothing about either tree: make it once more.

    The checks before it come first again: the host commits what the proof has changed.
    """
    files = ", ".join(event.changed[:_MOST_NAMED]) + (" and others" if len(event.changed) > _MOST_NAMED else "")
    detail = f"files changed while the proof ran: {files}; let git ignore what it writes"
    fact = Fact("check.void", {"files": list(event.changed)})
    if not state.has_void_proof:
        return prepend_fact(fact, _run_next_check(state._replace(has_void_proof=True, checks_passed=0), event.at))
    state = state._replace(status=state.status._replace(proof=Proof.UNVERIFIED, tree=event.tree))
    return prepend_fact(fact, end_iteration(state, Failure.PROOF, detail, files, event.at))


def _start_review(state: MachineState, at: int) -> StepResult:
    """Let the reviewers judge the proved work; without reviewers, publish it."""
    if not state.spec.review:
        return _publish(state, at)
    status = state.status._replace(goal=Phase.REVIEWING, review_round=state.status.review_round + 1, retries=0)
    return proceed(state._replace(status=status, verdict_problem=""), at)


def _review(state: MachineState, at: int) -> StepResult:
    """Start the next review of the round, or decide about the round."""
    spec, status = state.spec, state.status
    result = decide_round(state.round_verdicts, state.findings, spec.review_mode, len(spec.review))
    if result is RoundResult.PASSED or state.is_accepted:
        return _publish(state, at)
    if result is None:
        return _park_if_spent(state) or _start_turn(state, Role.REVIEW)
    detail = describe_blocking(state.findings)
    if is_stalled(state.verdicts, status.review_round, status.rounds_from, spec.review_rounds):
        rounds = status.review_round - status.rounds_from
        stalled = "nothing was resolved in two review rounds"
        why = f"not resolved after {pluralize(rounds, 'review round')}" if rounds >= spec.review_rounds else stalled
        return park_run(state, WaitReason.HUMAN, f"{detail}; {why}: see `jackline findings {state.run_id}`")
    digest = " ".join(finding.id for finding in find_blocking(state.findings))
    return end_iteration(state, Failure.REVIEW, detail, digest, at)


def on_reviewed(state: MachineState, at: int) -> StepResult:
    """A reviewer has answered: take the verdict, or ask once more for one."""
    if state.has_tree_changed:
        return prepend_fact(Fact("check.dropped", {"tree": state.status.tree}), _on_dropped_review(state, at))
    if not state.verdict_problem:
        return proceed(state._replace(status=state.status._replace(retries=0), has_asked_again=False), at)
    if state.has_asked_again:
        reviewer = state.next_agent
        detail = f"{reviewer} gave no clear verdict in two attempts: {state.verdict_problem}"
        accept = f"`jackline findings {state.run_id} --accept REASON` accepts the work"
        again = f"`jackline resume {state.run_id}` lets it review again"
        return park_run(state, WaitReason.HUMAN, f"{detail} {again}, {accept}")
    return _park_if_spent(state) or _start_turn(state._replace(has_asked_again=True), Role.REVIEW)


def _on_dropped_review(state: MachineState, at: int) -> StepResult:
    """The files changed during the review: prove and review them again, unless that does not end."""
    rounds = state.status.review_round - state.status.rounds_from
    if rounds < state.spec.review_rounds:
        return proceed(drop_proof(state), at)
    why = f"the files changed during the review, and there was no pass in {pluralize(rounds, 'review round')}"
    return park_run(
        drop_proof(state), WaitReason.HUMAN, f"{why}: see that nothing else writes in {state.spec.workspace}"
    )


def drop_proof(state: MachineState) -> MachineState:
    """The workspace has changed since it was proved or reviewed: start again with the checks."""
    status = state.status._replace(goal=Phase.PROVING, proof=Proof.UNVERIFIED, tree="")
    return state._replace(status=status, checks_passed=0, verdict_problem="", has_tree_changed=False)


def _publish(state: MachineState, at: int) -> StepResult:
    """The work is proved and reviewed: publish it if the run has to, else the run is done."""
    if not state.spec.pr:
        return finish_run(state, "succeed")
    status = state.status._replace(goal=Phase.PUBLISHING, retries=0)
    return proceed(state._replace(status=status), at)


def _on_published(state: MachineState, event: Published) -> StepResult:
    if event.is_stale:
        return _park_if_spent(drop_proof(state)) or proceed(drop_proof(state), event.at)
    if event.doubts:
        return park_run(state, WaitReason.IN_DOUBT, event.detail)
    if event.waits is not None:
        return park_run(state, event.waits, event.detail)
    if event.uncommitted:  # the agent can repair that
        return end_iteration(state, Failure.PULL_REQUEST, event.detail, event.uncommitted, event.at)
    if event.failure is not None:
        return retry_or_fail(state, event.failure, event.detail, event.at)
    if not state.spec.until:
        return finish_run(state, "succeed")
    status = count_step(state.status._replace(phase=Phase.PUBLISHING, retries=0))
    return StepResult(
        state=state._replace(status=status),
        commands=(LookAtPullRequest(status.step),),
        facts=(Fact("pull_request.asked", {"until": state.spec.until}),),
    )


def _on_pull_request(state: MachineState, event: PullRequestSeen) -> StepResult:
    fact = Fact("pull_request.seen", {"state": event.state, "detail": event.detail})
    if event.state == REACHED:
        return prepend_fact(fact, finish_run(state, "succeed"))
    if event.state == OPEN:
        return prepend_fact(fact, park_run(state, WaitReason.CI, event.detail, event.wake_at))
    if event.state == BLOCKED:
        return prepend_fact(fact, park_run(state, WaitReason.HUMAN, event.detail))
    if event.state == CLOSED:
        return prepend_fact(fact, fail_run(state, Failure.PULL_REQUEST, event.detail))
    result = end_iteration(state, Failure.PULL_REQUEST, event.detail, event.digest, event.at)
    if result.state.status.failure is Failure.NO_PROGRESS:  # a resume looks first: it may be green by then
        result = result._replace(state=_keep_publishing(result.state))
    return prepend_fact(fact, result)


def _keep_publishing(state: MachineState) -> MachineState:
    return state._replace(status=state.status._replace(goal=Phase.PUBLISHING))


def end_iteration(state: MachineState, failure: Failure, detail: str, digest: str, at: int) -> StepResult:
    """The work is not done yet: begin the next iteration with what is wrong, unless nothing moves any more."""
    status, before = state.status, state.last_iteration
    over = Iteration(
        run_id=state.run_id,
        number=status.iteration,
        tree=status.tree,
        failure=str(failure),
        digest=digest,
        detail=detail,
        at=at,
    )
    is_next = before is not None and before.number == over.number - 1
    # After a resume a person wants another try, whatever the last one showed.
    is_same = is_next and state.has_worked and before is not None and before.result == over.result
    status = status._replace(goal=Phase.WORKING, retries=0)
    state = state._replace(
        status=status, last_iteration=over, verdict_problem="", has_asked_again=False, has_void_proof=False
    )
    if is_same:
        same = f"iterations {over.number - 1} and {over.number} ended with the same files and the same failure"
        result = fail_run(state, Failure.NO_PROGRESS, f"{same}: {detail}")
    else:
        result = proceed(state, at)
    fact = Fact("iteration.ended", {"iteration": over.number, "failure": failure, "detail": detail})
    return prepend_fact(fact, result)._replace(iteration=over)
