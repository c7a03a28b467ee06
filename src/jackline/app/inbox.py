"""Everything in a home that needs a person, as records: calls to decide about, questions, budgets, lost runs, logins.

It reads only. Features add their entries through the hook `inbox_entries`. The dashboard and `jackline inbox` show it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from jackline.domain.call_gate import needs_person
from jackline.domain.notices import SETTINGS_CHANGED
from jackline.domain.states import Failure, Phase, RunState, WaitReason
from jackline.formatting import format_line
from jackline.named import NamedTuple, stored_as
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.records import Call, Run
    from jackline.domain.review_records import Finding
    from jackline.store.models import RunSummary
    from jackline.store.store import Store

DOUBT_ANSWERS = ("happened", "did-not", "retry", "skip")
ASK_ANSWERS = ("allow", "deny")
INTERRUPTED_ANSWERS = ("skip",)

APPROVAL, IN_DOUBT, INTERRUPTED, QUESTION = "approval", "in_doubt", "interrupted", "question"
BUDGET, LOST, LOG_IN, STOPPED, ANSWERED = "budget", "lost", "log_in", "stopped", "answered"
CANNOT_START, REVIEW, SETTINGS = "cannot_start", "review", "settings"
KINDS = {
    APPROVAL: "a call needs your approval",
    IN_DOUBT: "a call may have happened",
    INTERRUPTED: "a call was interrupted, and the agent has not repeated it",
    QUESTION: "an agent asks",
    BUDGET: "a budget is spent",
    LOST: "a run lost its process",
    LOG_IN: "an agent is not logged in",
    STOPPED: "a run waits for a person",
    ANSWERED: "a run is ready, and no process continues it",
    CANNOT_START: "a service cannot start a run",
    REVIEW: "reviewers block a run",
    SETTINGS: "your own files changed while a run was active",
}
BLOCKING = frozenset({APPROVAL, IN_DOUBT, QUESTION})  # a run with one of these waits on
_CALL_KINDS = {DOUBT_ANSWERS: IN_DOUBT, ASK_ANSWERS: APPROVAL, INTERRUPTED_ANSWERS: INTERRUPTED}
_PERSON_NEEDED = frozenset({WaitReason.APPROVAL, WaitReason.IN_DOUBT, WaitReason.HUMAN})
_FINDING_CHARS = 300
_MOST_FAILED = 500  # newest failed runs, among which those that wait for a login are looked for


@stored_as("kind since_at text commands run number repository agent task detail call item answers agree")
class InboxEntry(NamedTuple):
    """One thing that needs a person."""

    kind: str  # a key of KINDS
    since: int  # from when on it waits
    text: str  # the whole command, edit or question, or why the run waits
    commands: tuple[tuple[str, ...], ...]  # the words after `jackline`, one command for each possible answer
    run_id: str = ""
    number: int = 0
    repository: str = ""  # its path
    agent: str = ""
    task: str = ""
    detail: str = ""
    call_id: str = ""
    item_id: str = ""  # of the work item that asks
    answers: tuple[str, ...] = ()
    agree: str = ""  # the flags that approve such calls in advance


def list_entries(home: Home) -> list[InboxEntry]:
    """Everything that needs a person, in all repositories of the home; what waits longest comes first."""
    if home.is_new:
        return []
    from jackline.extensions import call_hook

    runs = home.list_active()
    parts = (
        _list_waiting(home, runs),
        _list_lost(home, runs),
        _list_log_ins(home),
        _list_settings(home),
        *call_hook("inbox_entries", home),
    )
    entries = list(chain.from_iterable(parts))
    asking = {entry.run_id for entry in entries if entry.kind == QUESTION}
    entries = [entry for entry in entries if entry.kind != STOPPED or entry.run_id not in asking]
    return sorted(entries, key=lambda entry: (entry.since, entry.run_id, entry.call_id))


def list_agent_questions(home: Home, run: Run) -> list[InboxEntry]:
    """The open questions of a run's agent."""
    from jackline.extensions import call_hook

    entries: chain[InboxEntry] = chain.from_iterable(call_hook("inbox_entries", home))
    return [entry for entry in entries if entry.kind == QUESTION and entry.run_id == run.id]


def find_open_questions(store: Store, run: Run, newest: int | None = None) -> list[tuple[Call, tuple[str, ...]]]:
    """The calls that need an answer, among the `newest`, each with its valid answers; equal questions are one."""
    if run.status.reason is WaitReason.HUMAN:
        return [(call, INTERRUPTED_ANSWERS) for call in store.calls.list_forced(run.id, newest)]
    doubts = [call for call in store.calls.list_open(run.id, newest) if needs_person(call, strict=run.spec.strict)]
    asked = {call.key: call for call in reversed(store.calls.list_asked(run.id, newest))}
    approvals = [(call, ASK_ANSWERS) for call in asked.values()]
    return [*((call, DOUBT_ANSWERS) for call in doubts), *reversed(approvals)]


def list_run_entries(home: Home, run: Run, repository: str = "") -> list[InboxEntry]:
    """What a run that waits needs from a person."""
    from jackline.domain.call_text import find_call_folder, format_call
    from jackline.policy.agreements import format_agreements, load_parts

    base = InboxEntry(
        kind=STOPPED,
        since=run.updated_at,
        text=run.status.detail,
        commands=(("resume", run.id),),
        run_id=run.id,
        number=run.number,
        repository=repository or run.spec.workspace,
        agent=run.agent,
        task=run.spec.task,
        detail=run.status.detail,
    )
    if run.status.reason is WaitReason.BUDGET:
        from jackline.domain.amendment import build_resume_words

        return [base._replace(kind=BUDGET, commands=(build_resume_words(run),))]
    entries = _build_review_entries(home.store(), run, base)
    for call, answers in find_open_questions(home.store(), run):
        whole = home.store().blobs.load_call(call)
        entries.append(
            base._replace(
                kind=_CALL_KINDS[answers],
                since=call.finished_at or call.prepared_at,
                text=format_call(call.tool, whole.input, workspace=run.spec.workspace, folder=find_call_folder(call)),
                detail=call.reason,
                call_id=call.id,
                answers=answers,
                agree=format_agreements(load_parts(call.external)) if answers == ASK_ANSWERS else "",
                commands=tuple(("answer", run.id, call.id, answer) for answer in answers),
            )
        )
    return entries or [base]


def find_blocking_reviews(store: Store, run: Run) -> list[Finding]:
    """The open blocking findings of a run that waits because of them."""
    status = run.status
    if status.reason is not WaitReason.HUMAN or status.goal is not Phase.REVIEWING or not run.spec.review:
        return []
    from jackline.domain.review import find_blocking

    return find_blocking(store.reviews.list_findings(run.id))


def _build_review_entries(store: Store, run: Run, base: InboxEntry) -> list[InboxEntry]:
    findings = find_blocking_reviews(store, run)
    if not findings:
        return []
    from jackline.domain.review import locate_finding

    lines = [f"{one.id} {locate_finding(one)}: {format_line(one.text, _FINDING_CHARS)}" for one in findings]
    dismiss = ("findings", run.id, "--dismiss", *(one.id for one in findings), "--reason", "WHY")
    commands = (("findings", run.id), dismiss, ("resume", run.id))
    return [base._replace(kind=REVIEW, text="\n".join([run.status.detail, *lines]), detail="", commands=commands)]


def _list_waiting(home: Home, runs: list[RunSummary]) -> Iterator[InboxEntry]:
    from jackline.engine.owner_lock import has_waiter

    for row in runs:
        waits = row.state == RunState.WAITING and row.reason in {*_PERSON_NEEDED, WaitReason.BUDGET}
        if waits and (run := home.store().runs.get(row.id)) is not None:
            yield from list_run_entries(home, run, row.path)
        elif row.state == RunState.QUEUED and row.attempt and not has_waiter(home.folder(row.id)):
            yield _build_entry(row, ANSWERED, "it was answered, and no process has continued it")


def _list_lost(home: Home, runs: list[RunSummary]) -> Iterator[InboxEntry]:
    lost = home.find_lost([row.id for row in runs if row.state == RunState.RUNNING])
    for row in runs:
        if row.id in lost:
            yield _build_entry(row, LOST, lost[row.id])


def _list_log_ins(home: Home) -> Iterator[InboxEntry]:
    """Agents whose last turn could not log in, with the runs that failed for it."""
    refused = {one.agent: one for one in home.store().records.list_health() if one.failure == Failure.AUTHENTICATION}
    if not refused:
        return
    failed = home.list_runs(RunQuery(states=(str(RunState.FAILED),), limit=_MOST_FAILED))
    waiting = [row for row in failed if row.failure == Failure.AUTHENTICATION and row.agent in refused]
    for row in waiting:
        yield _build_entry(row, LOG_IN, refused[row.agent].detail)._replace(detail=find_login(home, row.agent))
    for health in refused.values():
        if not any(row.agent == health.agent for row in waiting):
            yield _build_agent_entry(home, health)


def _list_settings(home: Home) -> Iterator[InboxEntry]:
    """The user's own files that have to be confirmed before a run starts."""
    from jackline.app.own_files import read_unconfirmed
    from jackline.clock import wall_ms

    if change := read_unconfirmed(home):
        notices = home.store().notices.list_newest()
        since = next((one.created_at for one in notices if one.kind == SETTINGS_CHANGED), wall_ms())
        text = f"no run starts until you confirm this: {change}"
        yield InboxEntry(kind=SETTINGS, since=since, text=text, commands=(("trust",),))


def _build_agent_entry(home: Home, health: AgentHealth) -> InboxEntry:
    return InboxEntry(
        kind=LOG_IN,
        since=health.at,
        text=health.detail,
        commands=(("agents",),),
        agent=health.agent,
        detail=find_login(home, health.agent),
    )


def find_login(home: Home, agent: str) -> str:
    """How a person logs in; empty if that is not known."""
    from jackline.app.accounts import format_login
    from jackline.app.agents import load_adapter
    from jackline.app.environment import read_agent_environ
    from jackline.errors import AgentUnavailable, UsageError

    try:
        declaration = load_adapter(home.config, agent).declaration
        login = format_login(declaration, read_agent_environ(home.config, declaration))
    except AgentUnavailable as error:  # its account has a file or a variable that cannot be read
        return str(error)
    except UsageError:  # described in settings that are gone
        return ""
    return f"log in: {login}" if login else ""


def _build_entry(row: RunSummary, kind: str, text: str) -> InboxEntry:
    return InboxEntry(
        kind=kind,
        since=row.updated_at,
        text=text,
        commands=(("resume", row.id),),
        run_id=row.id,
        number=row.number,
        repository=row.path,
        agent=row.agent,
        task=row.task,
        detail=text,
    )
