"""The real Claude Code stops by itself when the run's budget in USD is spent."""

from __future__ import annotations

from jackline.fake_model.script import Reply
from tests.agents.stage import RUN
from tests.agents.test_claude_door import Door, SetStage, set_stage

__all__ = ["set_stage"]

BUDGET_SPENT = 15
TOKENS = 100_000  # 0.40 USD at the price that the pinned CLI knows


def budgets(stage: Door) -> list[float]:
    """What each process of the CLI was given."""
    found = []
    for line in (stage.folder / "words").read_text().splitlines():
        words = line.split()
        found += [float(words[words.index("--max-budget-usd") + 1])] if "--max-budget-usd" in words else []
    return found


def listen(stage: Door) -> None:
    """Write down the command line of every process of the CLI."""
    script = f'#!/bin/sh\necho "$@" >>"{stage.folder}/words"\nexec "{stage.binary}" "$@"\n'
    stage.binary = str(stage.program("claude", script))


def test_it_ends_before_the_next_request_and_the_run_waits_for_budget(set_stage: SetStage) -> None:
    stage = set_stage(Reply(shell="echo one", tokens_input=TOKENS), Reply(say="never asked for"))
    listen(stage)
    ended = stage.run("look around", "--max-usd", "0.1")
    assert ended.code == BUDGET_SPENT, ended
    assert (ended.json["state"], ended.json["reason"]) == ("waiting", "budget")
    assert budgets(stage)[-1] == 0.1
    assert [turn["failure"] for turn in stage.show()["turns"]] == ["budget"]
    assert len([one for one in stage.model.asked if one.tools]) == 1


def test_a_resume_is_given_what_is_left(set_stage: SetStage) -> None:
    stage = set_stage(Reply(shell="deliver ada hello", tokens_input=TOKENS), Reply(say="sent", tokens_input=100))
    listen(stage)
    assert stage.run("send a mail", "--max-usd", "1", *stage.policy("ask")).code == 14
    (call,) = stage.show()["calls"]
    assert stage.type("answer", RUN, call["id"], "allow").code == 0
    assert stage.type("resume", RUN).code == 0
    first, *_, last = budgets(stage)
    assert (first, round(last, 2)) == (1, 0.6)
