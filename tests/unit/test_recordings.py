"""Every recording of a real CLI is judged as tests/agents/recorded/expected.toml says."""

from __future__ import annotations

import pytest

from jackline.domain.states import Failure
from tests.support.recordings import RECORDINGS, Recording, files

CLIS = {"claude", "codex", "gemini", "kilo", "opencode", "qwen"}
SEEN_OF_ALL = {
    None, Failure.AUTHENTICATION, Failure.MODEL_NOT_FOUND, Failure.LIMIT, Failure.OVERLOADED, Failure.CONNECTIVITY,
}  # fmt: skip
WORDS = "HTTP 429 rate limit exceeded, usage limit reached, 401 Unauthorized, overloaded"
ENDED_WELL = [one for one in RECORDINGS if one.failure is None]


def test_every_recording_has_an_expectation_and_every_expectation_a_recording() -> None:
    assert sorted((one.agent, one.name) for one in RECORDINGS) == files()


@pytest.mark.parametrize("agent", sorted(CLIS))
def test_of_each_cli_a_good_end_and_the_usual_refusals_were_recorded(agent: str) -> None:
    assert {one.failure for one in RECORDINGS if one.agent == agent} >= SEEN_OF_ALL


@pytest.mark.parametrize("recording", RECORDINGS, ids=str)
def test_it_is_judged_as_expected(recording: Recording) -> None:
    outcome = recording.judge()
    assert (outcome.failure, outcome.session_lost) == (recording.failure, recording.session_lost), outcome
    assert bool(outcome.resets_at) is recording.resets
    assert bool(outcome.detail) is (recording.failure is not None)


@pytest.mark.parametrize("recording", ENDED_WELL, ids=str)
def test_a_good_answer_stays_one_whatever_it_talks_about(recording: Recording) -> None:
    lines = recording.with_words(WORDS)
    assert WORDS in [one.text for one in recording.hear(lines) if one.kind == "message"]
    assert recording.judge(lines).failure is None
