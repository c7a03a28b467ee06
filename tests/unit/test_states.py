"""The words, the two tables and the exit codes: closed sets, and 0 for success alone."""

from __future__ import annotations

import json
from itertools import product

import pytest

from jackline.domain.limits import Limits, RetryPolicy
from jackline.domain.spec import Spec
from jackline.domain.states import ACTIVE, TERMINAL, CallClass, CallState, Failure, RunState, WaitReason, exit_code
from jackline.domain.transitions import (
    CALL,
    RUN,
    TransitionRefused,
    call_sources,
    next_call,
    next_run,
    run_sources,
)
from jackline.policy.rules import Rule

EXIT_CODES = {0, 1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 130}


@pytest.mark.parametrize("state", RunState)
def test_exit_codes_are_total_and_0_is_success_alone(state: RunState) -> None:
    for reason, failure in product([None, *WaitReason], [None, *Failure]):
        code = exit_code(state, reason, failure)
        assert code in EXIT_CODES
        assert (code == 0) == (state is RunState.SUCCEEDED)


@pytest.mark.parametrize(
    ("state", "reason", "failure", "code"),
    [
        (RunState.SUCCEEDED, None, None, 0),
        (RunState.FAILED, None, Failure.AGENT_ERROR, 1),
        (RunState.FAILED, None, Failure.LIMIT, 10),
        (RunState.WAITING, WaitReason.LIMIT, None, 10),
        (RunState.FAILED, None, Failure.TIMEOUT, 11),
        (RunState.FAILED, None, Failure.IDLE, 11),
        (RunState.FAILED, None, Failure.CONNECTIVITY, 12),
        (RunState.FAILED, None, Failure.UNAVAILABLE, 13),
        (RunState.WAITING, WaitReason.HUMAN, None, 14),
        (RunState.WAITING, WaitReason.APPROVAL, None, 14),
        (RunState.WAITING, WaitReason.IN_DOUBT, Failure.CRASHED, 14),
        (RunState.WAITING, WaitReason.BUDGET, None, 15),
        (RunState.FAILED, None, Failure.PROOF, 16),
        (RunState.CANCELLED, None, Failure.TIMEOUT, 17),
        (RunState.FAILED, None, Failure.UNGATED, 18),
        (RunState.WAITING, WaitReason.PAUSED, None, 130),
        (RunState.QUEUED, None, None, 1),
    ],
)
def test_exit_codes_of_the_design(
    state: RunState, reason: WaitReason | None, failure: Failure | None, code: int
) -> None:
    assert exit_code(state, reason, failure) == code


def test_every_state_is_either_active_or_terminal() -> None:
    assert set(RunState) == ACTIVE | TERMINAL
    assert not ACTIVE & TERMINAL


def test_nothing_reopens_succeeded_or_cancelled() -> None:
    assert {state for state, _ in RUN} == ACTIVE | {RunState.FAILED}
    assert [change for state, change in RUN if state is RunState.FAILED] == ["claim"]


@pytest.mark.parametrize("state", RunState)
@pytest.mark.parametrize("change", ["claim", "succeed", "fail", "park", "wake", "cancel", "", "explode"])
def test_a_run_changes_only_by_the_table(state: RunState, change: str) -> None:
    if (state, change) in RUN:
        assert next_run(state, change) is RUN[state, change]
        assert state in run_sources(change)
    else:
        assert state not in run_sources(change)
        with pytest.raises(TransitionRefused, match=f"{state} does not allow '{change}'"):
            next_run(state, change)


@pytest.mark.parametrize("state", CallState)
@pytest.mark.parametrize("change", sorted({change for _, change in CALL}) + ["explode"])  # noqa: RUF005
def test_a_call_changes_only_by_the_table(state: CallState, change: str) -> None:
    if (state, change) in CALL:
        assert next_call(state, change) is CALL[state, change]
        assert state in call_sources(change)
    else:
        assert state not in call_sources(change)
        with pytest.raises(TransitionRefused):
            next_call(state, change)


def test_a_doubt_is_settled_but_never_made_undone() -> None:
    """Whatever is done, failed, denied, void or abandoned stays so."""
    assert {state for state, _ in CALL} == {CallState.PREPARED, CallState.IN_DOUBT}
    assert set(CALL.values()) == set(CallState) - {CallState.PREPARED}


def test_every_state_can_be_reached() -> None:
    assert set(RUN.values()) == set(RunState)


def test_a_spec_survives_the_store_and_words_of_tomorrow() -> None:
    spec = Spec(
        prompt="fix it",
        workspace="/w",
        limits=Limits(iterations=3, usd_micros=None),
        retry=RetryPolicy(most=1),
        rules=(Rule("mail", "mail", CallClass.EFFECT, key=("to",), nothing_happened=(3,), most=1),),
        options={"model": "small"},
    )
    stored = json.loads(json.dumps(spec.to_dict()))
    assert Spec.from_dict(stored) == spec
    for inner in (stored, stored["limits"], stored["retry"], stored["rules"][0]):
        inner["word_of_tomorrow"] = 1
    read = Spec.from_dict(stored)
    assert read.unknown == (
        "word_of_tomorrow", "rules.mail.word_of_tomorrow", "limits.word_of_tomorrow", "retry.word_of_tomorrow",
    )  # fmt: skip
    assert read._replace(unknown=()) == spec


def test_a_spec_of_yesterday_gets_the_defaults() -> None:
    assert Spec.from_dict({"prompt": "p", "workspace": "/w"}) == Spec("p", "/w")


def test_what_a_request_digest_covers_leaves_defaults_out() -> None:
    assert Spec("p", "/w").changes() == {"prompt": "p", "workspace": "/w"}
    rule = Rule("mail", "mail", CallClass.EFFECT)
    changed = Spec("p", "/w", limits=Limits(steps=3), rules=(rule,), strict=True).changes()
    assert changed["limits"] == {"steps": 3}
    assert changed["rules"] == [{"name": "mail", "tool": "mail", "call_class": "effect"}]
    assert changed["strict"] is True
