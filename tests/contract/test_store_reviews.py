"""Verdicts and findings: written with the end of a turn, redacted, covered by digests; people dismiss findings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.domain.amendment import Amendment
from jackline.domain.events import Fact
from jackline.domain.records import RunStatus, SessionUse
from jackline.domain.review import build_review_facts
from jackline.domain.review_records import Finding, Iteration, Verdict
from jackline.domain.states import Failure, Phase, RunState, WaitReason
from jackline.errors import Busy, Fenced, NotFound, Refused
from jackline.store.models import RunChange, RunQuery
from jackline.store.store import Store
from tests.support.stores import AT, begun, by_hand, claimed, made

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def verdict(turn: int = 2, **more: Any) -> Verdict:
    values: dict[str, Any] = {
        "run_id": "run-1", "turn": turn, "iteration": 1, "review_round": 1, "seat": 0, "agent": "codex",
        "tree": "t" * 40, "outcome": "fail", "resolved": 0, "summary": "almost", "at": AT,
    }  # fmt: skip
    return Verdict(**{**values, **more})


def finding(number: int = 1, **more: Any) -> Finding:
    values: dict[str, Any] = {
        "run_id": "run-1", "number": number, "review_round": 1, "seat": 0, "agent": "codex", "severity": "blocking",
        "file": "a.py", "line": 3, "text": f"problem {number}",
    }  # fmt: skip
    return Finding(**{**values, **more})


def write_review(store: Store, *findings: Finding, **more: Any) -> None:
    """A review that blocks: the run waits for a person."""
    status = RunStatus(
        RunState.WAITING, WaitReason.HUMAN, goal=Phase.REVIEWING, review_round=1, tree="t" * 40, detail="blocked"
    )
    facts = (*build_review_facts(verdict(), findings), Fact("run.waiting", {"reason": "human"}))
    change = RunChange(AT, facts, status, verdict=verdict(**more), findings=findings)
    store.leases.write_change(begun(store), change)


def problems(store: Store) -> tuple[str, ...]:
    return store.verify.verify_run("run-1").problems


def test_a_review_is_stored_with_its_events(store: Store) -> None:
    write_review(store, finding(1), finding(2, severity="nit", file="", line=0))
    assert store.reviews.list_verdicts("run-1") == [verdict()]
    assert store.reviews.list_findings("run-1") == [finding(1), finding(2, severity="nit", file="", line=0)]
    assert [*store.reviews.list_verdicts("other"), *store.reviews.list_findings("other")] == []
    kinds = [event.kind for event in store.records.list_events("run-1")]
    assert kinds[-4:] == ["review.verdict", "finding.added", "finding.added", "run.waiting"]
    assert problems(store) == ()


def test_a_finding_is_settled_in_a_later_round(store: Store) -> None:
    write_review(store, finding(1))
    settled = finding(1, state="resolved", settled_round=2)
    later = verdict(5, review_round=2, resolved=1, outcome="pass")
    change = RunChange(AT, build_review_facts(later, [settled]), verdict=later, findings=(settled,))
    store.leases.write_change(claimed(store), change)
    assert store.reviews.list_findings("run-1") == [settled]
    assert [one.turn for one in store.reviews.list_verdicts("run-1")] == [2, 5]
    assert problems(store) == ()


def test_only_the_lease_writes_a_review(store: Store) -> None:
    lease = begun(store)
    with pytest.raises(Fenced):
        store.leases.write_change(lease._replace(token=9), RunChange(AT, verdict=verdict(), findings=(finding(),)))
    assert [*store.reviews.list_verdicts("run-1"), *store.reviews.list_findings("run-1")] == []


def test_free_text_of_reviewers_and_people_is_redacted(store: Store) -> None:
    write_review(store, finding(1, text=f"remove {TOKEN}\0", file=f"{TOKEN}.py"), summary=f"see {TOKEN}")
    store.reviews.dismiss("run-1", ["F1"], f"{TOKEN} is a sample", AT)
    (found,), (said,) = store.reviews.list_findings("run-1"), store.reviews.list_verdicts("run-1")
    assert found.text.startswith("remove ")
    assert found.reason.endswith(" is a sample")
    assert TOKEN not in found.text + found.file + found.reason + said.summary
    assert not any(TOKEN in event.data for event in store.records.list_events("run-1"))
    assert problems(store) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE findings SET severity = 'nit'", "finding 1 was altered"),
        ("UPDATE findings SET state = 'dismissed'", "finding 1 was altered"),
        ("DELETE FROM findings", "finding 1 is missing"),
        ("UPDATE verdicts SET outcome = 'pass'", "verdict 2 was altered"),
        ("UPDATE verdicts SET tree = ''", "verdict 2 was altered"),
        ("DELETE FROM verdicts", "verdict 2 is missing"),
        ("UPDATE verdicts SET turn = 7", "verdict 7 exists, and no event records it"),
    ],
)
def test_an_altered_review_is_found(store: Store, change: str, words: str) -> None:
    write_review(store, finding(1))
    by_hand(store, change)
    assert any(words in problem for problem in problems(store))


def test_iterations_are_covered(store: Store) -> None:
    over = Iteration(run_id="run-1", number=1, tree="t", failure="proof", digest="d", detail=f"red {TOKEN}", at=AT)
    store.leases.write_change(begun(store), RunChange(AT, iteration=over))
    (stored,) = store.reviews.list_iterations("run-1")
    assert stored == store.reviews.get_last_iteration("run-1")
    assert TOKEN not in stored.detail
    by_hand(store, "UPDATE iterations SET tree = 'x'")
    assert any("iteration 1 was altered" in problem for problem in problems(store))


# a person


def test_a_person_dismisses_findings(store: Store) -> None:
    write_review(store, finding(1), finding(2), finding(3))
    dismissed, run = store.reviews.dismiss("run-1", ["F2", "f1", "F1", "f2"], "as agreed", AT + 5)
    assert [(one.id, one.state, one.reason, one.settled_round) for one in dismissed] == [
        ("F2", "dismissed", "as agreed", 1),
        ("F1", "dismissed", "as agreed", 1),
    ]
    assert [one.state for one in store.reviews.list_findings("run-1")] == ["dismissed", "dismissed", "open"]
    assert (run.status.state, run.status.reason) == (RunState.WAITING, WaitReason.HUMAN)
    events = [event for event in store.records.list_events("run-1") if event.kind == "finding.dismissed"]
    assert [(event.actor, json.loads(event.data)["finding"]) for event in events] == [
        ("person", "F2"),
        ("person", "F1"),
    ]
    assert problems(store) == ()
    by_hand(store, "UPDATE findings SET reason = 'never said'")
    assert any("finding 1 was altered" in problem for problem in problems(store))


def end_last_iteration(store: Store) -> None:
    """A review that ends the last iteration, and so the run."""
    status = RunStatus(RunState.FAILED, goal=Phase.WORKING, failure=Failure.REVIEW, iteration=3, review_round=1)
    over = Iteration(run_id="run-1", number=3, tree="t", failure="review", digest="d", detail="x", at=AT)
    found = finding(1), finding(2)
    change = RunChange(AT, (Fact("run.failed"),), status, verdict=verdict(), findings=found, iteration=over)
    made(store, spec={"review": ("codex",)})
    store.leases.write_change(claimed(store), change)


def test_the_review_that_ended_the_last_iteration_passes_once_nothing_blocks(store: Store) -> None:
    end_last_iteration(store)
    _, run = store.reviews.dismiss("run-1", ["F1"], "wrong", AT)
    assert run.status.goal is Phase.WORKING
    _, run = store.reviews.dismiss("run-1", ["F2"], "wrong", AT)
    assert (run.status.goal, run.status.state) == (Phase.REVIEWING, RunState.FAILED)


def test_a_message_that_the_agent_has_not_read_is_work_whatever_is_dismissed(store: Store) -> None:
    end_last_iteration(store)
    store.amendments.amend("run-1", Amendment(message="write docs, too"), AT)
    _, run = store.reviews.dismiss("run-1", ["F1", "F2"], "wrong", AT)
    assert run.status.goal is Phase.WORKING


def test_all_findings_are_dismissed_or_none(store: Store) -> None:
    write_review(store, finding(1), finding(2, state="resolved", settled_round=1))
    before = store.runs.get("run-1")
    with pytest.raises(Refused, match="F2 is resolved already"):
        store.reviews.dismiss("run-1", ["F1", "F2"], "x", AT)
    with pytest.raises(NotFound, match="no finding matches 'F9'"):
        store.reviews.dismiss("run-1", ["F1", "F9"], "x", AT)
    assert store.runs.get("run-1") == before
    assert store.reviews.list_findings("run-1")[0].state == "open"


def test_a_run_that_is_worked_on_or_over_keeps_its_findings(store: Store) -> None:
    write_review(store, finding(1))
    lease = claimed(store)
    with pytest.raises(Busy):
        store.reviews.dismiss("run-1", ["F1"], "x", AT)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.succeeded"),), RunStatus(RunState.SUCCEEDED)))
    with pytest.raises(Refused, match="succeeded"):
        store.reviews.dismiss("run-1", ["F1"], "x", AT)
    with pytest.raises(NotFound):
        store.reviews.dismiss("nothing", ["F1"], "x", AT)


# sessions


def test_the_sessions_of_reviewers_are_found_and_are_not_the_workers(store: Store) -> None:
    made(store, "other")
    lease = begun(store)
    uses = [
        SessionUse("claude", "worker"),
        SessionUse("claude", "first", "review", 0, 1),
        SessionUse("claude", "second", "review", 0, 2),
        SessionUse("claude", "shared", "review", 1, 2),
    ]
    for use in uses:
        store.leases.write_change(lease, RunChange(AT, session=use))
    store.leases.write_change(lease, RunChange(AT, session=SessionUse("codex", "shared")))
    assert store.records.get_sessions("run-1") == {"claude": "worker", "codex": "shared"}
    for session in ("worker", "first", "second", "shared"):
        assert [row.id for row in store.runs.list_page(RunQuery(session=session))] == ["run-1"]
        assert store.runs.list_page(RunQuery(session=session, states=(RunState.QUEUED,))) == []
    assert store.runs.list_page(RunQuery(session="unknown")) == []
