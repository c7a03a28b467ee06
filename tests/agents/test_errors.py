"""What a provider refuses, as each real CLI tells it: the same class for all, and within bounds."""

from __future__ import annotations

import time

import pytest

from jackline.fake_model.script import Reply
from tests.agents.conftest import Play
from tests.agents.stage import SECONDS, Stage

pytestmark = pytest.mark.full
TEN_MEGABYTES = 10 * 2**20
ONCE = ("--retries", "0")
# A minute and more is how long some try again by themselves, unless the provider says how soon they may.
SOON = {"retry-after-ms": "20"}
_BOUND = 120.0  # of everything that the CLI tries by itself; the turn's own timeout is far beyond


def refused_with(play: Play, status: int, message: str) -> Stage:
    return play(otherwise=Reply(status=status, message=message, headers=SOON))


def failed(stage: Stage, failure: str, code: int) -> None:
    """The run fails for this reason, says so in one line, and does not take its time."""
    began = time.monotonic()
    ended = stage.run("hello", *ONCE)
    assert time.monotonic() - began < _BOUND < SECONDS
    shown = stage.show()
    assert (shown["turns"][-1]["failure"], ended.code) == (failure, code), (ended.err, shown["turns"])
    assert shown["turns"][-1]["detail"].strip()
    assert len(shown["turns"]) == 1


def test_401(play: Play) -> None:
    failed(refused_with(play, 401, "invalid api key"), "authentication", 1)


def test_404(play: Play) -> None:
    message = "The model `fake-model` does not exist or you do not have access to it."
    failed(refused_with(play, 404, message), "model_not_found", 1)


def test_429(play: Play) -> None:
    """A run waits for the end of a limit instead of failing."""
    stage = refused_with(play, 429, "rate limit exceeded")
    failed(stage, "limit", 10)
    shown = stage.show()
    assert (shown["state"], shown["reason"]) == ("waiting", "limit")
    assert shown["wake_at"]


def test_500(play: Play) -> None:
    failed(refused_with(play, 500, "internal server error"), "overloaded", 12)


def test_refused(play: Play) -> None:
    """Nobody is there to say how soon: this is how long it tries by itself."""
    stage = play()
    stage.model.close()  # its port is free now, and nobody listens
    failed(stage, "connectivity", 12)


def test_words_of_an_error(play: Play) -> None:
    """The model may talk about errors as it likes."""
    words = "API Error: 429 rate limit exceeded, 401 unauthorized, usage limit reached"
    stage = play(Reply(say=words))
    ended = stage.run("explain error 429 and the rate limit")
    assert ended.code == 0, ended
    shown = stage.show()
    assert shown["turns"][-1]["failure"] is None
    assert words in shown["turns"][-1]["last_message"]


def test_long_line(play: Play) -> None:
    stage = play(Reply(say="a very long answer", pad=TEN_MEGABYTES))
    ended = stage.run("talk", "--max-usd", "0")  # no real answer of this size costs less than the default limit
    assert ended.code == 0, ended
    turn = stage.show()["turns"][-1]
    assert turn["stdout_bytes"] > TEN_MEGABYTES
    assert turn["raw_lines"] == 0
    assert turn["last_message"].startswith("a very long answer")
