"""The result of a run in one record: the contents of metadata.json and summary.txt.

`build_summary` is pure; `load_summary` reads the store. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jackline import extensions
from jackline.domain.amendment import build_resume_words
from jackline.domain.changes import UNCHANGED, Changes
from jackline.domain.records import Attempt, Run, Turn
from jackline.domain.review import find_open, locate_finding
from jackline.domain.review_records import Finding, Verdict
from jackline.domain.run_totals import (
    NO_CALLS,
    Tally,
    completion,
    compute_run_cost,
    describe_lost_sessions,
    find_last_message,
)
from jackline.domain.states import RunState, WaitReason, exit_code
from jackline.exports import record_json
from jackline.formatting import format_command, format_line, format_rfc3339, make_readable, to_datetime, to_usd
from jackline.named import NamedTuple, stored_as, stored_dict

if TYPE_CHECKING:
    from jackline.store.store import Store

_RESUMABLE = frozenset({RunState.WAITING, RunState.FAILED, RunState.QUEUED})
_ACTIVE = frozenset({RunState.QUEUED, RunState.RUNNING})
_ERROR_WAITS = frozenset({WaitReason.LIMIT, WaitReason.BUDGET})  # the predecessor ended these waits as errors


@stored_as(
    "run_id agent task start_time end_time elapsed_seconds exit_code token_count last_message commits files_changed "
    "insertions deletions requires_commit dry_run classified_error number state reason wake_time phase detail proof "
    "proof_command workspace created_time worked_seconds cost_usd attempts turns iterations calls effects receipts "
    "tools failed replayed abandoned denied asked in_doubt steps lost_sessions open_cases imported next_command "
    "cost_estimated review open_findings"
)
class Summary(NamedTuple):
    """The predecessor's metadata in its order, then jackline's own."""

    run_id: str
    agent: str
    task: str
    start_time: datetime | None
    end_time: datetime | None
    elapsed_seconds: float
    exit_code: int | None  # None while the run is queued or running
    token_count: int
    last_message: str
    commits: tuple[str, ...]
    files_changed: int
    insertions: int
    deletions: int
    requires_commit: bool
    dry_run: bool
    classified_error: str | None
    number: int
    state: str
    reason: str | None
    wake_time: datetime | None
    phase: str | None
    detail: str
    proof: str
    proof_command: str
    workspace: str
    created_time: datetime
    worked_seconds: float
    cost_usd: float | None  # None if an agent reports no cost
    attempts: int
    turns: int
    iterations: int
    calls: int
    effects: int
    receipts: int
    tools: int
    failed: int
    replayed: int
    abandoned: int
    denied: int
    asked: int
    in_doubt: int
    steps: int
    lost_sessions: tuple[str, ...]
    open_cases: tuple[str, ...]  # ids
    imported: str | None  # the predecessor it was imported from
    next_command: str = ""  # the command that continues the run; empty if it is running or cannot continue
    cost_estimated: bool = False  # a part of the cost was estimated from tokens and prices
    review: tuple[str, ...] = ()  # one line for each verdict of the last round
    open_findings: tuple[str, ...] = ()  # one line each, the blocking ones first

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, the contents of metadata.json."""
        return record_json.dump_record(self)


def load_summary(store: Store, run: Run) -> Summary:
    """Build the summary of a run from the store."""
    run = store.wakeups.adjust_wake_time(run) if run.status.wake_at else run
    return build_summary(
        run,
        turns=store.records.list_turns(run.id),
        attempts=store.records.list_attempts(run.id),
        tally=store.calls.tally(run.id),
        changes=store.records.get_changes(run.id),
        verdicts=store.reviews.list_verdicts(run.id),
        findings=store.reviews.list_findings(run.id),
        open_cases=[case for found in extensions.call_hook("open_cases", store, run.id) for case in found],
    )


def build_summary(
    run: Run,
    *,
    turns: Sequence[Turn] = (),
    attempts: Sequence[Attempt] = (),
    tally: Tally = NO_CALLS,
    changes: Changes = UNCHANGED,
    open_cases: Sequence[str] = (),
    verdicts: Sequence[Verdict] = (),
    findings: Sequence[Finding] = (),
) -> Summary:
    """Build the summary from a run and its records."""
    status, spec = run.status, run.spec
    return Summary(
        run_id=run.id,
        agent=run.agent,
        task=spec.task,
        start_time=to_datetime(run.started_at),
        end_time=to_datetime(run.finished_at),
        elapsed_seconds=_elapsed_seconds(run),
        exit_code=None if status.state in _ACTIVE else exit_code(status.state, status.reason, status.failure),
        token_count=status.spent.tokens,
        last_message=find_last_message(turns),
        commits=changes.commits,
        files_changed=changes.files_changed,
        insertions=changes.insertions,
        deletions=changes.deletions,
        requires_commit=spec.requires_commit,
        dry_run=False,  # a dry run stores nothing
        classified_error=_classify_error(run),
        number=run.number,
        state=status.state.value,
        reason=status.reason.value if status.reason else None,
        wake_time=to_datetime(status.wake_at),
        phase=status.phase.value if status.phase else None,
        detail=status.detail,
        proof=status.proof.value,
        proof_command=spec.proof,
        workspace=spec.workspace,
        created_time=to_datetime(run.created_at),
        worked_seconds=status.spent.wall_ms / 1000,
        cost_usd=to_usd(compute_run_cost(run, turns)),
        cost_estimated=status.spent.usd_estimated > 0,
        attempts=len(attempts),
        turns=len(turns),
        iterations=status.iteration,
        **stored_dict(tally),
        lost_sessions=tuple(describe_lost_sessions(turns)),
        imported=spec.imported or None,
        open_cases=tuple(open_cases),
        review=tuple(_describe_last_round(verdicts)),
        open_findings=tuple(
            f"{one.id} {one.severity}, {locate_finding(one)}: {format_line(one.text)}" for one in find_open(findings)
        ),
        next_command=format_command("jackline", *build_resume_words(run))
        if status.state in _RESUMABLE and not spec.imported
        else "",
    )


def format_headline(summary: Summary) -> str:
    """Return the state of the run in one line."""
    state = f"{summary.state}: {summary.reason}" if summary.reason else summary.state
    proof = f" ({summary.proof})" if summary.state == RunState.SUCCEEDED or summary.proof == "refuted" else ""
    return f"run {summary.run_id} (#{summary.number}) {state}{proof}"


def render_summary(summary: Summary) -> list[str]:
    """Return the lines of summary.txt: a headline, one line per fact, the last message."""
    facts = [(label, text) for label, text in _list_facts(summary) if text]
    width = max(len(label) for label, _ in facts) + 2
    text = [format_headline(summary), *(f"  {label:<{width}}{make_readable(text)}" for label, text in facts)]
    if summary.last_message:
        message = make_readable(summary.last_message).splitlines()
        text += ["", "last message", *(f"  {line}".rstrip() for line in message)]
    return [*text, "", f"next: {summary.next_command}"] if summary.next_command else text


def _list_facts(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("agent", summary.agent),
        ("task", summary.task),
        ("workspace", summary.workspace),
        ("created", _format_time(summary.created_time)),
        ("started", _format_time(summary.start_time)),
        ("ended", _format_time(summary.end_time)),
        ("elapsed", f"{summary.elapsed_seconds:.1f} s, working {summary.worked_seconds:.1f} s"),
        ("phase", summary.phase or ""),
        ("detail", " ".join(summary.detail.split())),
        ("wakes", _format_time(summary.wake_time)),
        ("exit code", "" if summary.exit_code is None else str(summary.exit_code)),
        ("error class", summary.classified_error or ""),
        ("proof", f"{summary.proof}{f' by: {summary.proof_command}' if summary.proof_command else ''}"),
        *(("review", line) for line in summary.review),
        *(("finding", line) for line in summary.open_findings),
        ("tokens", str(summary.token_count)),
        ("cost", format_cost(summary)),
        ("attempts", f"{summary.attempts}, turns {summary.turns}, iterations {summary.iterations}"),
        ("calls", f"{summary.calls}, effects {summary.effects}, receipts {summary.receipts}"),
        ("completion", format_completion(summary)),
        ("commits", f"{len(summary.commits)} ({'required' if summary.requires_commit else 'not required'})"),
        *(("", commit) for commit in summary.commits),
        ("changes", f"{summary.files_changed} files, +{summary.insertions} -{summary.deletions}"),
        *(("session", line) for line in summary.lost_sessions),
        ("imported", f"from {summary.imported}" if summary.imported else ""),
        *(("open case", f"{case} (`jackline case handoff --case {case}`)") for case in summary.open_cases),
        ("dry run", "yes" if summary.dry_run else "no"),
    ]


def _describe_last_round(verdicts: Sequence[Verdict]) -> Iterator[str]:
    last = max((verdict.review_round for verdict in verdicts), default=0)
    for one in verdicts:
        if one.review_round == last:
            summary = f": {format_line(one.summary)}" if one.summary else ""
            yield f"round {last}, {one.agent}: {one.outcome}{summary}"


def format_completion(summary: Summary) -> str:
    """Return the outcomes of the calls in one line."""
    return completion(Tally(*(getattr(summary, name) for name in Tally._fields)))


def format_cost(summary: Summary) -> str:
    """Return the cost; an unknown cost is not zero."""
    return "unknown" if summary.cost_usd is None else f"{'≈' * summary.cost_estimated}{summary.cost_usd:.4f} USD"


def _elapsed_seconds(run: Run) -> float:
    """Return the time from the first start to the end or the last update; exports use no clock."""
    if run.started_at is None:
        return 0.0
    until = run.updated_at if run.finished_at is None else run.finished_at
    return max(0, until - run.started_at) / 1000


def _classify_error(run: Run) -> str | None:
    status = run.status
    if status.failure is not None:
        return status.failure.value
    return status.reason.value if status.reason in _ERROR_WAITS else None


def _format_time(time: datetime | None) -> str:
    return format_rfc3339(time) if time else ""
