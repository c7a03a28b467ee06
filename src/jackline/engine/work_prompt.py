"""Builds the prompt of a turn that plans or works: the task, what is wrong with the work, or how to continue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.resume_prompt import (
    build_heading,
    build_interrupted_section,
    build_resume_prompt,
    build_turn_prompt,
    describe_messages,
    find_failed_check,
)
from jackline.domain.states import DEFERRED, Failure, Role
from jackline.engine.check import find_resume_sections
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Call, Check, Message, Run, Turn
    from jackline.domain.review_records import Iteration
    from jackline.store.store import Store


class WorkSession(NamedTuple):
    """The session that a turn continues, if it continues one, and what it is about."""

    agent: str
    role: Role
    session: str | None  # None: a fresh one
    turns: Sequence[Turn]  # of the run, without those of reviewers
    messages: Sequence[Message]  # of people, which the session does not have
    is_held: bool  # the gate can refuse a call that comes too early


def build_work_prompt(
    store: Store, run: Run, number: int, work: WorkSession, forced: Sequence[Call], interrupted: Sequence[Call]
) -> str:
    """The prompt of the next turn; empty where a call continues that was waiting for a person."""
    if not work.messages and _is_deferred(work):
        return ""
    task = _build_task(run, work.role)
    # An adopted session does not know the task, nor does one that was cut off before it printed.
    knows = work.session is not None and any(_is_of_session(one, work) and one.stdout_bytes for one in work.turns)
    if not any(turn.agent == work.agent for turn in work.turns) and (work.session is not None or number == 1):
        return build_turn_prompt(1, task, "", resumes=False, messages=work.messages)
    sections = find_resume_sections(store, run.id) if work.turns else []
    refused = find_failed_check(store.records.list_checks(run.id), list_read(work.turns)) if work.turns else None
    follow_up = _build_follow_up(store, run, work, refused, knows=knows)
    if knows and follow_up and _has_ended_well(work.turns) and not forced:
        head = "\n".join([*describe_messages(work.messages), follow_up]).strip()
        return build_resume_prompt((), (), head=head, refused=refused, sections=sections)
    packet = build_resume_prompt(
        store.calls.list_all(run.id),
        store.calls.list_receipts(run.id),
        store.records.get_changes(run.id).commits,
        forced,
        build_heading(work.messages, was_interrupted=knows or not _has_ended_well(work.turns)),
        held=work.is_held,
        refused=refused,
        sections=(build_interrupted_section(interrupted), *sections) if work.turns else (),
    )
    packet = f"{packet}\n\n{follow_up}" if follow_up else packet
    return build_turn_prompt(number, task, packet, resumes=knows, messages=work.messages)


def _build_task(run: Run, role: Role) -> str:
    parts = [part for part in (run.spec.prompt, run.spec.preface) if part]
    if role is not Role.PLAN:
        return "\n\n".join((*parts, *_list_instructions(run)))
    from jackline.domain.review_prompts import build_plan_prompt

    return build_plan_prompt("\n\n".join(parts))


def _list_instructions(run: Run) -> list[str]:
    """How the work has to end, whatever the task is."""
    commits, signal = bool(run.spec.pr) and not run.spec.commit_work, run.spec.done_signal
    if not commits and not signal:
        return []
    from jackline.domain.review_prompts import build_commit_instruction, build_done_instruction

    branch = run.spec.pr_branch or run.spec.worktree.branch
    return [
        *([build_commit_instruction(branch)] if commits else ()),
        *([build_done_instruction(signal)] if signal else ()),
    ]


def _build_follow_up(store: Store, run: Run, work: WorkSession, refused: Check | None, *, knows: bool) -> str:
    """What is next for the agent: to carry out its plan, or to repair what the last iteration left wrong."""
    last = next(reversed(list_read(work.turns)), None)
    if work.role is Role.PLAN or last is None:
        return ""
    parts = []
    if last.role == Role.PLAN:
        from jackline.domain.review_prompts import build_plan_execution

        parts.append(build_plan_execution("" if knows else last.last_message))
        parts += _list_instructions(run) if knows else ()
    over = store.reviews.get_last_iteration(run.id)
    if over is not None and over.number == run.status.iteration - 1 and not _knows_feedback(run, work):
        parts += _build_feedback(store, run, over._replace(detail="" if refused else over.detail), knows=knows)
    return "\n\n".join(parts)


def _build_feedback(store: Store, run: Run, over: Iteration, *, knows: bool) -> list[str]:
    from jackline.domain.review_prompts import build_done_reminder, build_review_feedback

    heading = f"The work is not done yet. Iteration {run.status.iteration} begins."
    match Failure(over.failure):
        case Failure.REVIEW:
            findings = store.reviews.list_findings(run.id)
            return [heading, build_review_feedback(findings, run.status.review_round, is_known=knows)]
        case Failure.UNFINISHED:
            return [heading, build_done_reminder(run.spec.done_signal)]
        case Failure.PULL_REQUEST:
            return [heading, *_build_pull_request_feedback(store, run, over)]
        case _:
            return [f"{heading} Reason: {over.detail}" if over.detail else heading]


def _build_pull_request_feedback(store: Store, run: Run, over: Iteration) -> list[str]:
    """What is new at the pull request: no turn of an earlier iteration has got it."""
    from jackline.domain.pull_request_text import build_feedback_section

    request, turns = store.pull_requests.get(run.id), store.records.list_turns(run.id)
    if request is None:
        return [f"Reason: {over.detail}"]
    earlier = {turn.number for turn in turns if turn.iteration < run.status.iteration}
    new = [one for one in store.pull_requests.list_feedback(run.id) if one.turn not in {0, *earlier}]
    if request.looked_at == over.at:  # else it was not a look that ended the iteration: the host found what is wrong
        return [build_feedback_section(request.url, new, over.detail)]
    return [f"Reason: {over.detail}", *([build_feedback_section(request.url, new, "")] if new else ())]


def _knows_feedback(run: Run, work: WorkSession) -> bool:
    current = (turn for turn in work.turns if turn.iteration == run.status.iteration)
    return any(_is_of_session(turn, work) for turn in list_read(list(current)))


def list_read(turns: Sequence[Turn]) -> list[Turn]:
    """The turns whose prompt the model has read; a CLI prints its first line before it sends the prompt."""
    return [turn for turn in turns if turn.last_message or turn.spent.tokens or turn.exit_code == 0]


def _has_ended_well(turns: Sequence[Turn]) -> bool:
    last = turns[-1] if turns else None
    return last is not None and last.ended_at is not None and last.failure is None and last.detail != DEFERRED


def _is_deferred(work: WorkSession) -> bool:
    """Whether the last turn ended because this session stopped before a call, to continue with it."""
    last = work.turns[-1] if work.turns else None
    return last is not None and _is_of_session(last, work) and (last.failure, last.detail) == (None, DEFERRED)


def _is_of_session(turn: Turn, work: WorkSession) -> bool:
    return work.session is not None and (turn.agent, turn.session) == (work.agent, work.session)
