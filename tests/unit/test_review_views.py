"""What the files and the live view of a run say about its reviews, its done signal and its iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jackline.cli.event_text import describe_event, is_notable
from jackline.cli.live_view import CallLine, LiveView, Note
from jackline.domain.records import Check, RunStatus, Turn
from jackline.domain.review import build_review_facts
from jackline.domain.review_records import Finding, Verdict
from jackline.domain.run_totals import describe_lost_sessions, find_last_message
from jackline.domain.states import Phase, RunState
from jackline.exports.manifest import build_manifest
from jackline.exports.summary import build_summary, render_summary
from jackline.exports.transcript import TranscriptEntry, build_entries
from tests.support.view_records import AT, SPEC, events, run, turn

FOUND = Finding(
    run_id="run-1",
    number=1,
    review_round=2,
    seat=0,
    agent="codex",
    severity="blocking",
    file="a.py",
    line=3,
    text="bad",
)
SAID = Verdict(
    run_id="run-1", turn=3, iteration=1, review_round=2, seat=0, agent="codex", tree="t", outcome="fail", resolved=0,
    summary="not yet", at=AT,
)  # fmt: skip
VERDICT_EVENTS = [(fact.kind, fact.data) for fact in build_review_facts(SAID, [FOUND])]


@pytest.mark.parametrize(
    ("review", "mode"),
    [
        ((), "none"),
        (("codex",), "codex"),
        (("claude", "codex"), "claudex"),
        (("codex", "claude"), "claudex"),
        (("claude", "claude"), "claude,claude"),
        (("gemini", "codex", "claude"), "gemini,codex,claude"),
    ],
)
def test_the_review_mode_of_the_manifest(review: tuple[str, ...], mode: str) -> None:
    found = build_manifest(run(spec=SPEC._replace(review=review)), "/r", {})
    assert found.review_mode == mode
    assert found.is_single_agent == (mode == "none")
    assert found.metadata.get("review_requires") == ("all" if review else None)


def test_done_signal_iteration_and_state_of_the_manifest() -> None:
    status = RunStatus(RunState.RUNNING, phase=Phase.REVIEWING, iteration=3, review_round=2, tree="t")
    found = build_manifest(
        run(status, spec=SPEC._replace(done_signal="READY", review=("codex",))), "/r", {"codex": "w"}
    )
    assert (found.state, found.current_iteration, found.done_signal) == ("reviewing", 3, "READY")
    assert found.codex_session_id == "w"
    assert (found.metadata["review_round"], found.metadata["tree"]) == (2, "t")
    assert build_manifest(run(), "/r", {}).done_signal == "DONE"


def entries(*facts: tuple[str, Mapping[str, Any]], turns: list[Turn], **spec: Any) -> list[TranscriptEntry]:
    check = Check("run-1", 2, 1, "make", AT + 1, AT + 2, exit_code=0)
    own = run(spec=SPEC._replace(**spec))
    return list(build_entries(own, {one.number: one for one in turns}, [check], events(*facts)))


def signals(found: list[TranscriptEntry]) -> list[tuple[str, str]]:
    return [(entry.agent, entry.signal) for entry in found if entry.type == "signal"]


WORKED: list[tuple[str, Mapping[str, Any]]] = [
    ("turn.started", {"turn": 1, "role": "work", "iteration": 1}),
    ("turn.launched", {"turn": 1}),
    ("agent.end", {}),
]
REVIEWED: list[tuple[str, Mapping[str, Any]]] = [
    ("turn.started", {"turn": 2, "role": "review", "iteration": 1}),
    ("turn.launched", {"turn": 2}),
    ("agent.end", {}),
]


def test_verdicts_are_signals_after_the_result_of_their_turn() -> None:
    reviewer = turn(2, role="review", agent="codex", last_message="{}")
    facts: list[tuple[str, Mapping[str, Any]]] = [
        *WORKED,
        ("check.started", {}),
        ("check.launched", {"step": 2}),
        *REVIEWED,
        *VERDICT_EVENTS,
    ]
    found = entries(*facts, ("iteration.ended", {"failure": "review"}), turns=[turn(), reviewer], review=("codex",))
    assert signals(found) == [("claude", "DONE"), ("host", "PASS"), ("codex", "FAIL")]
    last = next(place for place, entry in enumerate(found) if entry.signal == "FAIL")
    assert (found[last - 1].type, found[last - 1].agent) == ("result", "codex")
    assert found[last].content == "not yet"
    assert found[last + 1].metadata["finding"] == "F1"
    assert found[0].metadata["review_mode"] == "codex"
    assert [entry.state for entry in found if entry.type == "state"] == ["working", "reviewing"]


@pytest.mark.parametrize(("message", "expected"), [("all\nREADY", [("claude", "READY")]), ("READY soon", [])])
def test_the_done_signal_is_in_the_transcript_only_if_the_agent_gave_it(
    message: str, expected: list[tuple[str, str]]
) -> None:
    found = entries(*WORKED, ("run.succeeded", {}), turns=[turn(last_message=message)], done_signal="READY")
    assert signals(found) == expected
    assert found[0].metadata["done_signal"] == "READY"


@pytest.mark.parametrize(
    ("after", "signal"),
    [
        (("iteration.ended", {"failure": "proof"}), ["FAIL"]),
        (("check.void", {"files": ["a"]}), []),
        (("publishing.started", {}), ["PASS"]),
        (("turn.started", {"role": "review"}), ["PASS"]),
        (("turn.started", {"role": "work"}), []),
    ],
)
def test_the_result_of_the_proof_in_an_iteration(after: tuple[str, Mapping[str, Any]], signal: list[str]) -> None:
    found = entries(("check.started", {}), ("check.launched", {"step": 2}), after, turns=[])
    assert [one for _, one in signals(found)] == signal


def test_the_last_message_is_the_workers() -> None:
    turns = [turn(1), turn(2, role="review", agent="codex", last_message='{"verdict": "pass"}')]
    assert find_last_message(turns) == "said in turn 1"


def test_a_reviewer_of_the_same_agent_has_not_lost_the_session_of_the_worker() -> None:
    turns = [turn(1, failure="agent_error"), turn(2, role="review", session="s-2")]
    assert describe_lost_sessions(turns) == []


def test_the_summary_has_the_last_round_and_the_open_findings() -> None:
    earlier = SAID._replace(review_round=1, turn=2, summary="older")
    nit = FOUND._replace(number=2, severity="nit", file="", line=0, text="name\nit \x1b[1m")
    settled = FOUND._replace(number=3, state="resolved")
    summary = build_summary(run(), verdicts=[earlier, SAID], findings=[nit, settled, FOUND])
    assert summary.review == ("round 2, codex: fail: not yet",)
    assert summary.open_findings[0] == "F1 blocking, a.py:3: bad"
    text = "\n".join(render_summary(summary))
    assert "review" in text
    assert "F2 nit, no file: name it \ufffd[1m" in text
    assert "review" not in "\n".join(render_summary(build_summary(run())))


def test_the_live_view_shows_who_reviews_and_what_was_found() -> None:
    view = LiveView(run())
    review = {"turn": 2, "role": "review", "round": 2, "agent": "codex"}
    shown = []
    for event in events(("check.started", {"command": "make"}), ("turn.started", review), *VERDICT_EVENTS):
        shown += view.take_event(event, event.at)
    assert isinstance(shown[0], CallLine)
    assert (shown[0].title, shown[0].style) == ("proof: make", "ok")
    assert [item.text for item in shown[1:] if isinstance(item, Note)] == [
        "turn 2 started: codex reviews (round 2)",
        "verdict of codex: fail (round 2) not yet",
        "F1 blocking, a.py:3: bad",
    ]


@pytest.mark.parametrize(
    ("event", "style"),
    [
        (("iteration.ended", {"iteration": 1, "failure": "proof", "detail": "exit 1"}), "failed"),
        (("check.void", {"files": ["a.py"]}), "open"),
        (("publishing.started", {}), "ok"),
        (("run.failed", {"failure": "no_commit", "detail": "exit 128"}), "failed"),
    ],
)
def test_the_live_view_shows_what_became_of_the_proof(event: tuple[str, Mapping[str, Any]], style: str) -> None:
    view = LiveView(run())
    shown = [item for one in events(("check.started", {"command": "make"}), event) for item in view.take_event(one, 1)]
    assert isinstance(shown[0], CallLine)
    assert shown[0].style == style


def test_every_event_of_a_review_has_words() -> None:
    settled = ("finding.resolved", {"finding": "F1"})
    raised = ("finding.raised", {"finding": "F1", "severity": "blocking"})
    dropped = ("finding.dismissed", {"finding": "F1", "reason": "on purpose"})
    plan, changed = ("turn.started", {"turn": 1, "role": "plan"}), ("check.dropped", {"tree": "t"})
    texts = [describe_event(event) for event in events(settled, raised, dropped, plan, changed)]
    assert texts == [
        "F1 is resolved",
        "F1 is blocking now",
        "F1 was dismissed: on purpose",
        "turn 1 started: plan",
        "the files have changed since the review began: they are proved and reviewed again",
    ]
    assert all(is_notable(event) for event in events(*VERDICT_EVENTS, settled, raised, changed))
