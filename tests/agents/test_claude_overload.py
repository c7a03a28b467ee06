"""A provider that breaks every stream off: the real Claude Code gives up, and the run is retried."""

from __future__ import annotations

from jackline.fake_model.script import Reply
from tests.agents.test_claude_door import SetStage, set_stage

__all__ = ["set_stage"]

CONNECTIVITY = 12


def test_an_endless_error_in_the_stream_is_overloaded_and_retried(set_stage: SetStage) -> None:
    broken = Reply(say="one two three", kind="overloaded_error", message="Overloaded", times=1_000)
    stage = set_stage(broken)
    ended = stage.run("look around", "--retries", "1", "--retry-seconds", "0.1")
    assert (ended.code, ended.json["failure"], ended.json["attempt"]) == (CONNECTIVITY, "overloaded", 2), ended
    assert any(one.stream for one in stage.model.asked)
