"""The state of a run in words, and the exact commands for the next steps. It changes nothing."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.app.inbox import ASK_ANSWERS, DOUBT_ANSWERS, INTERRUPTED_ANSWERS
from jackline.cli import review_text
from jackline.cli.run_json import run_to_json
from jackline.domain.amendment import build_resume_words
from jackline.domain.call_text import describe_effect
from jackline.domain.run_totals import completion, compute_run_cost, describe_lost_sessions, find_last_message
from jackline.domain.states import Decision, Failure, RunState, WaitReason
from jackline.formatting import (
    format_count,
    format_elapsed,
    format_local,
    format_usd,
    make_printable,
    pluralize,
    shorten_text,
)
from jackline.named import stored_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run, Turn
    from jackline.domain.spec import WorktreeSpec

_QUESTIONS = {
    DOUBT_ANSWERS: "may have happened: look, then answer with one of",
    ASK_ANSWERS: "needs approval: answer with one of",
    INTERRUPTED_ANSWERS: "was interrupted, and the agent has not repeated it: continue, or first answer",
}
_NEEDS_ANSWER = frozenset({WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.HUMAN})
_RESUMABLE_NOW = frozenset({WaitReason.DEPENDENCY, WaitReason.PAUSED, WaitReason.RETRY, WaitReason.CI})
_MAX_CALLS = 10
_MAX_LINE = 300  # characters of a call in a pipe


def print_outcome(home: Home, run: Run, out: Output, code: int, *, shown: str = "") -> int:
    """Print how `run` or `resume` ended, as a short summary or as one JSON object, and return the exit code.

    `shown` are the words of the agent that a terminal shows last: a message that ends with them is not printed twice.
    """
    if out.json:
        tally = home.store().calls.tally(run.id)
        out.print_json({**run_to_json(home, run), "exit_code": code, "completion": stored_dict(tally)})
        return code
    turns = home.store().records.list_turns(run.id)
    message = find_last_message(turns)
    was_shown = message.strip().endswith(shown.strip()) if shown.strip() else not message.strip()
    is_shown = out.stdout.is_terminal and out.stderr.is_terminal and was_shown
    if not (out.quiet or is_shown):
        print_message(message, out)
    out.print_line(f"run {run.id} (#{run.number}) {format_state(run, out)}")
    if run.status.detail:
        out.print_line(f"  {make_printable(run.status.detail)}")
    if url := find_pull_request_url(home, run):
        out.print_line(f"  pull request: {url}")
    out.print_line(f"  {_format_spending(run, turns)}")
    out.print_line(f"  {completion(home.store().calls.tally(run.id))}")
    for text in describe_lost_sessions(turns):
        out.print_line(f"  {make_printable(text)}")
    details = f"details: {out.format_command('show', run.id)}"
    for text in (f"folder: {home.folder(run.id)}", *list_next_steps(home, run, out), details):
        out.print_line(f"  {text}")
    return code


def find_pull_request_url(home: Home, run: Run) -> str:
    """The address of the run's pull request; empty if it has none."""
    request = home.store().pull_requests.get(run.id) if run.spec.pr else None
    return make_printable(request.url) if request else ""


def print_message(message: str, out: Output) -> None:
    """Print words of an agent, indented: they cannot imitate a line of jackline's own."""
    from jackline.cli.live_view import indent_words

    columns = out.terminal_width() - 1 if out.stdout.is_terminal else None
    for line in indent_words(message, columns):
        out.print_line(line)


def format_state(run: Run, out: Output, loss: str = "") -> str:
    """Return the state of a run with its reason, failure, proof or phase, in its color; `loss` says why it is lost."""
    status = run.status
    if loss:
        return out.colorize(f"lost: {loss}", "yellow")
    match status.state:
        case RunState.WAITING:
            text = f"waiting: {status.reason}"
        case RunState.SUCCEEDED:
            text = f"succeeded, {status.proof}"
        case RunState.FAILED if status.failure is Failure.UNGATED:  # a call went past the gate; its work may be fine
            return out.colorize(f"stopped: {status.failure}", "yellow")
        case RunState.FAILED:
            text = f"failed: {status.failure}"
        case RunState.RUNNING:
            text = f"running: {status.phase}"
        case _:
            text = str(status.state)
    return out.colorize(text, {"succeeded": "green", "failed": "red", "waiting": "yellow"}.get(status.state, "cyan"))


def list_next_steps(home: Home, run: Run, out: Output) -> list[str]:
    """Return one line for each command that makes sense now."""
    status, resume = run.status, out.format_command("resume", run.id)
    read = f"output: {out.format_command('logs', run.id)}"
    match status.state:
        case RunState.RUNNING if home.explain_loss(run):
            return [f"continue: {resume}", f"cancel: {out.format_command('cancel', run.id)}"]
        case RunState.RUNNING:
            return [
                f"follow: {out.format_command('logs', '-f', run.id)}",
                f"cancel: {out.format_command('cancel', run.id)}",
            ]
        case RunState.QUEUED if entry := None if status.attempt else home.store().queue.get(run.id):
            release = [f"release: {out.format_command('hold', '--release', run.id)}"] if entry.held_at else []
            return [*release, f"start it here now: {resume}", f"cancel: {out.format_command('cancel', run.id)}"]
        case RunState.QUEUED:
            return [f"continue: {resume}"]
        case RunState.WAITING:
            return _list_waiting_steps(home, run, out, resume)
        case RunState.FAILED if run.spec.worktree.name and not _find_worktree_name(home, run):
            return ["its worktree was removed: start another run", read]
        case RunState.FAILED if not run.spec.imported:
            return [*_list_failed_steps(home, run, out, resume), read]
        case RunState.SUCCEEDED if (name := _find_worktree_name(home, run)) and not run.spec.pr:
            return [_suggest_worktree_step(home, run, name, out), read]
        case _:
            return [read]


def _find_worktree_name(home: Home, run: Run) -> str:
    """The name of the run's own worktree; empty if it has none, or it was removed."""
    found = home.store().worktrees.get(run.id) if run.spec.worktree.name else None
    return found.name if found is not None and found.removed_at is None else ""


def _suggest_worktree_step(home: Home, run: Run, name: str, out: Output) -> str:
    """Return what to do with the worktree of a run that succeeded."""
    look = f"look at it: {out.format_command('worktree', 'open', name)}"
    commits = home.store().records.get_changes(run.id).ids
    if not commits:
        return f"nothing is committed; {look}"
    if not _is_on_branch(run.spec.worktree, commits[-1]):
        return f"{run.spec.worktree.branch} does not have the commits that are in its worktree; {look}"
    return f"merge it: {out.format_command('worktree', 'merge', name)}"


def _is_on_branch(worktree: WorktreeSpec, commit: str) -> bool:
    """Whether the branch of a worktree has this commit and what is checked out; without the folder, nothing is."""
    from jackline.engine.git import Git, unbind_git_env

    if not os.path.isdir(worktree.path):
        return True
    git = Git(workspace=worktree.path, env=unbind_git_env(os.environ))
    words = ("rev-list", "--max-count=1", "HEAD", commit, "--not", f"refs/heads/{worktree.branch}")
    return git.run(*words) == ""


def _list_failed_steps(home: Home, run: Run, out: Output, resume: str) -> list[str]:
    match run.status.failure:
        case Failure.UNAVAILABLE:
            return ["what is missing: jackline agents", f"try again: {resume}"]
        case Failure.AUTHENTICATION:
            return [_describe_login(home, run.agent), f"then try again: {resume}"]
        case Failure.TIMEOUT | Failure.IDLE as failure:
            is_idle = failure is Failure.IDLE
            seconds = 2 * (run.spec.idle_timeout_ms if is_idle else run.spec.turn_timeout_ms) // 1000
            words = ("resume", run.id, "--idle-seconds" if is_idle else "--timeout-seconds", str(max(1, seconds)))
            return [f"try again: {resume}", f"with more time: {out.format_command(*words)}"]
        case Failure.UNGATED if names := _suggest_ungated_rules(home, run):
            allowed = out.format_command("resume", run.id, "--allow", ",".join(names))
            return [f"allow such calls and continue: {allowed}", f"continue without: {resume}"]
        case Failure.PROOF if (code := _find_first_proof(home, run)) is not None:
            other = "start another run with another proof, or without --proof-must-fail-first"
            return [other, *([f"or, if the proof can be run now: {resume}"] if code else [])]
        case _ if len(more := build_resume_words(run)) > len(("resume", run.id)):
            return [f"more iterations: {out.format_command(*more)}"]
        case _:
            return [f"try again: {resume}"]


def _find_first_proof(home: Home, run: Run) -> int | None:
    """The exit code of a proof that ended the run before any work; None if there is none, or it was killed."""
    checks = [] if run.status.turn else home.store().records.list_checks(run.id)
    return checks[-1].exit_code if checks else None


def _describe_login(home: Home, agent: str) -> str:
    from jackline.app.inbox import find_login

    return find_login(home, agent) or f"log in with {agent} itself, or set its key in the environment of jackline"


def _suggest_ungated_rules(home: Home, run: Run) -> list[str]:
    """Return what to allow: the approvals that calls of the last attempt needed and did not wait for."""
    from jackline.engine.observed_calls import DOOR
    from jackline.policy.agreements import apply_agreements, list_rule_names, load_parts, suggest_agreements
    from jackline.policy.rule_lookup import find_rule

    calls = [call for call in home.store().calls.list_all(run.id) if call.attempt == run.status.attempt]
    observed = [call for call in calls if call.door == DOOR]
    if run.spec.policy_version > 1:
        return suggest_agreements(part for call in observed for part in load_parts(call.external))
    rules = [find_rule(run.spec.rules, call.rule) for call in observed]
    asked = [rule.name for rule in rules if apply_agreements(rule, (), run.spec.allowed, 1).decision is Decision.ASK]
    return list(dict.fromkeys(name for rule in asked for name in list_rule_names(rule)))


def format_loss(run_id: str, loss: str, out: Output) -> str:
    """Return the line about a lost run, with the command that continues it."""
    return f"run {run_id} is lost: {loss}; continue: {out.format_command('resume', run_id)}"


def find_open_questions(home: Home, run: Run) -> list[tuple[Call, tuple[str, ...]]]:
    """Return the calls that need an answer, each with its valid answers; the same question is listed once."""
    return inbox.find_open_questions(home.store(), run)


def _list_waiting_steps(home: Home, run: Run, out: Output, resume: str) -> list[str]:
    reason = run.status.reason
    if reason in _NEEDS_ANSWER:
        answers = [*list_answers(home, run, out), *review_text.list_review_steps(home, run, out)]
        return [*answers, f"{'then continue' if answers else 'continue'}: {resume}"]
    if reason is WaitReason.BUDGET and run.status.wake_at is None:
        return [f"continue with a higher limit: {out.format_command(*build_resume_words(run))}"]
    if not run.status.wake_at or reason in _RESUMABLE_NOW:
        return [f"continue: {resume}"]
    wake_at = home.store().wakeups.adjust_wake_time(run).status.wake_at
    shown = format_local(wake_at, round(time.time() * 1000))
    if home.has_service():
        return [f"the service continues it at {shown}"]
    return [f"continue (not before {shown}): {resume}"]


def list_answers(home: Home, run: Run, out: Output) -> list[str]:
    """Return the open questions of a run, each with the commands that answer it."""
    calls = find_open_questions(home, run)
    lines = [line for call, answers in calls[:_MAX_CALLS] for line in _format_call(run, call, answers, out)]
    if len(calls) > _MAX_CALLS:
        lines.append(f"and {len(calls) - _MAX_CALLS} more: {out.format_command('show', run.id)}")
    return [*lines, *(f"answer: {out.format_command(*words)}" for words in _list_answer_commands(home, run))]


def _list_answer_commands(home: Home, run: Run) -> list[tuple[str, ...]]:
    """Return the command that answers each question of the run's agent."""
    if run.status.reason is not WaitReason.HUMAN:
        return []
    asked = inbox.list_agent_questions(home, run)
    return [("answer", run.id, "YOUR ANSWER")] if len(asked) == 1 else [entry.commands[0] for entry in asked]


def _format_call(run: Run, call: Call, answers: tuple[str, ...], out: Output) -> list[str]:
    """Return the question and one complete command per answer; each can be pasted into a shell."""
    room = out.terminal_width() if out.stdout.is_terminal else _MAX_LINE
    what = shorten_text(describe_effect(call, run.spec.workspace), room)
    commands = [f"  {out.format_command('answer', run.id, call.id, answer)}" for answer in answers]
    whole = [f"  whole call: {out.format_command('show', run.id, '--call', call.id)}"] if what.endswith("…") else []
    agree = _describe_agreement(call) if answers == ASK_ANSWERS else ""
    return [what, *whole, f"  call {call.id} {_QUESTIONS[answers]}", *commands, *([f"  {agree}"] if agree else [])]


def _describe_agreement(call: Call) -> str:
    """Return how a person approves such calls for good."""
    from jackline.policy.agreements import format_agreements, load_parts

    flags = format_agreements(load_parts(call.external))
    return make_printable(f"rule {call.rule}; to agree for good: {flags}") if flags else ""


def _format_spending(run: Run, turns: Sequence[Turn]) -> str:
    status, spent = run.status, run.status.spent
    cost = compute_run_cost(run, turns)
    parts = (
        format_elapsed(spent.wall_ms),
        pluralize(status.attempt, "attempt"),
        pluralize(status.turn, "turn"),
        pluralize(spent.calls, "call"),
        f"{format_count(spent.tokens)} tokens",
        format_usd(cost, spent.usd_estimated) if cost is not None else "cost unknown",
    )
    return ", ".join(parts)
