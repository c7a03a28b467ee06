"""The real Claude Code forgets: its context is compacted, and the run's case is given back to the model."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.fake_model.script import Reply
from tests.agents.stage import RUN
from tests.agents.test_claude_door import Door, SetStage, set_stage

__all__ = ["set_stage"]

FULL = 990_000  # tokens: more than any window of it leaves free
HYPOTHESIS = "the cache of periwinkle is never filled"
OPEN_CASE = f"jackline case start 'why is it slow?' --skip-intake && jackline case hypothesis add '{HYPOTHESIS}'"
GIVEN_BACK = "SessionStart hook additional context:"
SUMMARY = Reply(say="<summary>we looked at something</summary>", times=2)  # it asks a second time for what is so short


def compacted(stage: Door) -> list[dict[str, Any]]:
    return [row["data"] for row in stage.events() if row["kind"] == "agent.compacted"]


def is_summary(text: str) -> bool:
    return "Your task is to create a detailed summary" in text or "Do NOT call any tools" in text


def test_after_a_compaction_the_model_reads_the_open_hypothesis_again(set_stage: SetStage) -> None:
    stage = set_stage(Reply(shell=OPEN_CASE, tokens_input=FULL), SUMMARY, Reply(say="I go on"))
    ended = stage.run("find out why", "--max-usd", "0")
    assert ended.code == 0, ended
    (fact,) = compacted(stage)
    assert (fact["trigger"], fact["tokens_before"] >= FULL) == ("auto", True)
    texts = [asked.text for asked in stage.model.asked if asked.tools]
    instructions, last = texts[1], texts[-1]
    assert is_summary(instructions)
    assert "prints it again after the summary" in instructions, "the output of PreCompact reaches the summarizer"
    assert not is_summary(last)
    assert "we looked at something" in last, "the conversation itself is gone"
    assert OPEN_CASE not in last
    after = last.partition(GIVEN_BACK)[2]
    assert HYPOTHESIS in after
    assert "why is it slow?" in after
    case = stage.type("case", "list", "--json").json
    assert (case["run"], case["id"] in after) == (RUN, True)


@pytest.mark.full
def test_a_session_that_goes_on_in_a_new_process_is_given_the_case_too(set_stage: SetStage) -> None:
    learn = "jackline case learning add --kind doc-gap --summary cold --repo-action docs --path docs/cache.md"
    keep = "mkdir -p docs && echo cold >docs/cache.md && git add docs/cache.md"
    stage = set_stage(
        Reply(shell=f"{OPEN_CASE} && {learn}"), Reply(say="done"), Reply(shell=keep), Reply(say="now it is")
    )
    assert stage.run("find out why", "--max-iterations", "1").code == 16
    assert stage.type("resume", RUN, "--max-iterations", "2").code == 0
    text = stage.model.wait(3)[2].text
    assert "L001 cold: docs/cache.md is not tracked by git" in text, "why it did not end well"
    assert HYPOTHESIS in text.partition(GIVEN_BACK)[2]


@pytest.mark.full
def test_without_a_case_a_compaction_says_nothing(set_stage: SetStage) -> None:
    stage = set_stage(Reply(shell="echo one", tokens_input=FULL), SUMMARY, Reply(say="I go on"))
    assert stage.run("look around", "--max-usd", "0").code == 0
    assert len(compacted(stage)) == 1
    assert GIVEN_BACK not in stage.model.asked[-1].text


@pytest.mark.full
def test_a_reminder_that_fails_does_not_disturb_the_session(set_stage: SetStage) -> None:
    """A home whose settings cannot be read: the hook ends with an error, and the compaction and the run go on."""
    stage = set_stage(Reply(shell=f"{OPEN_CASE} && wreck", tokens_input=FULL), SUMMARY, Reply(say="I go on"))
    settings = stage.user / ".config" / "jackline" / "config.toml"
    stage.program("wreck", f"#!/bin/sh\nmkdir -p {settings.parent} && echo nonsense = 1 >{settings}\n")
    ended = stage.run("find out why", "--max-usd", "0")
    assert ended.json["state"] == "succeeded", ended
    assert settings.exists()
    assert "we looked at something" in stage.model.asked[-1].text, "it was compacted all the same"
    assert GIVEN_BACK not in stage.model.asked[-1].text


@pytest.mark.full
def test_a_call_that_waited_for_a_person_goes_on_with_the_case_given_back(set_stage: SetStage) -> None:
    """Such a session is resumed without a prompt; what the hook adds must not be taken for one."""
    stage = set_stage(Reply(shell=OPEN_CASE), Reply(shell="deliver ada hello"), Reply(say="it was sent"))
    assert stage.run("send a mail", *stage.policy("ask")).code == 14
    (call,) = (call["id"] for call in stage.show()["calls"] if call["decision"] == "ask")
    assert stage.type("answer", RUN, call, "allow", "--resume").code == 0
    assert stage.outbox == ["ada hello"]
    text = stage.model.wait(3)[-1].text
    assert "delivered to ada" in text
    assert HYPOTHESIS in text.partition(GIVEN_BACK)[2]
