"""What a provider refuses, with the real Claude Code: streams that break off are retried, a log-in is named."""

from __future__ import annotations

import pytest

from jackline.fake_model.script import Reply
from tests.agents.stage import RUN
from tests.agents.test_claude_door import SetStage, set_stage

__all__ = ["set_stage"]

CONNECTIVITY = 12


@pytest.mark.full
def test_an_endless_error_in_the_stream_is_overloaded_and_retried(set_stage: SetStage) -> None:
    broken = Reply(say="one two three", kind="overloaded_error", message="Overloaded", times=1_000)
    stage = set_stage(broken)
    ended = stage.run("look around", "--retries", "1", "--retry-seconds", "0.1")
    assert (ended.code, ended.json["failure"], ended.json["attempt"]) == (CONNECTIVITY, "overloaded", 2), ended
    assert any(one.stream for one in stage.model.asked)


@pytest.mark.full
def test_a_refused_key_names_the_command_that_logs_in(set_stage: SetStage) -> None:
    stage = set_stage(Reply(status=401, message="invalid x-api-key", times=1_000))
    ended = stage.type("run", "hello", "--agent", "claude", "--run-id", RUN, "--retries", "0")
    assert ended.code == 1, ended
    assert "failed: authentication" in ended.out
    assert "log in: run `claude auth login`" in ended.out
