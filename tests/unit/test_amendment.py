"""The totals that are suggested when a budget is spent."""

from __future__ import annotations

import pytest

from jackline.domain.amendment import build_resume_words, suggest_totals
from jackline.domain.limits import Limits, Spent
from jackline.domain.records import Run, RunStatus
from jackline.domain.spec import Spec
from jackline.domain.states import Failure, Phase, RunState


def test_a_suggested_sum_is_in_whole_cents() -> None:
    limits, spent = Limits(usd_micros=100_000), Spent(usd_micros=401_234)
    assert suggest_totals(limits, spent) == [("max_usd", "0.81")]


def test_a_small_excess_doubles_the_limit() -> None:
    assert suggest_totals(Limits(usd_micros=1_000_000), Spent(usd_micros=1_050_000)) == [("max_usd", "2")]
    assert suggest_totals(Limits(calls=10), Spent(calls=11)) == [("max_calls", "20")]


def build(spec: Spec, status: RunStatus) -> Run:
    return Run("r", 1, "repository", "r", None, spec, status, None, 0, "", 0, 0)


@pytest.mark.parametrize("failure", [Failure.PROOF, Failure.REVIEW, Failure.UNFINISHED, Failure.NO_PROGRESS])
def test_used_iterations_are_doubled(failure: Failure) -> None:
    spec = Spec(prompt="p", workspace="/w", agent="claude", limits=Limits(iterations=3))
    status = RunStatus(RunState.FAILED, failure=failure, spent=Spent(iterations=3))
    assert build_resume_words(build(spec, status)) == ("resume", "r", "--max-iterations", "6")
    early = status._replace(spent=Spent(iterations=2))
    assert build_resume_words(build(spec, early)) == ("resume", "r")
    assert build_resume_words(build(spec, status._replace(failure=Failure.TIMEOUT))) == ("resume", "r")
    for goal in (Phase.PROVING, Phase.REVIEWING, Phase.PUBLISHING):  # such as a proof that was killed
        assert build_resume_words(build(spec, status._replace(goal=goal))) == ("resume", "r")
