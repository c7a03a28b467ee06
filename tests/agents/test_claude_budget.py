"""The real Claude Code stops by itself when the run's budget in USD is spent."""

from __future__ import annotations

import pytest

from jackline.fake_model.script import Reply
from tests.agents.stage import RUN, wait_until
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


@pytest.mark.full
def test_a_resume_is_given_what_is_left(set_stage: SetStage) -> None:
    stage = set_stage(Reply(shell="deliver ada hello", tokens_input=TOKENS), Reply(say="sent", tokens_input=100))
    listen(stage)
    assert stage.run("send a mail", "--max-usd", "1", *stage.policy("ask")).code == 14
    (call,) = stage.show()["calls"]
    assert stage.type("answer", RUN, call["id"], "allow").code == 0
    assert stage.type("resume", RUN).code == 0
    first, *_, last = budgets(stage)
    assert (first, round(last, 2)) == (1, 0.6)


@pytest.mark.full
def test_the_cli_counts_a_resumed_session_from_zero(set_stage: SetStage) -> None:
    """Its second process spends 0.40 of the 0.60 that are left; the session has 0.80 by then."""
    stage = set_stage(Reply(shell="deliver ada hello", tokens_input=TOKENS), Reply(say="sent", tokens_input=TOKENS))
    assert stage.run("send a mail", "--max-usd", "1", *stage.policy("ask")).code == 14
    (call,) = stage.show()["calls"]
    assert stage.type("answer", RUN, call["id"], "allow").code == 0
    ended = stage.type("resume", RUN, "--json")
    assert (ended.code, round(ended.json["cost_usd"], 2), ended.json["cost_estimated"]) == (0, 0.8, False), ended


STEP = Reply(shell="true", tokens_input=12_500)  # 0.05 USD


def test_a_model_that_spends_in_small_steps_is_stopped_at_the_budget(set_stage: SetStage) -> None:
    stage = set_stage(STEP._replace(times=60))
    ended = stage.run("go on", "--max-usd", "1")
    assert (ended.code, ended.json["reason"]) == (BUDGET_SPENT, "budget"), ended
    assert 1 <= ended.json["cost_usd"] < 1.1


@pytest.mark.full
def test_jackline_stops_it_without_the_clis_own_flag(set_stage: SetStage) -> None:
    """By an estimate, which is a little higher than the cost."""
    stage = set_stage(STEP._replace(times=60))
    script = f"""#!/bin/bash
words=()
while [ $# -gt 0 ]; do
  case "$1" in --max-budget-usd) shift ;; *) words+=("$1") ;; esac
  shift
done
exec "{stage.binary}" "${{words[@]}}"
"""
    stage.binary = str(stage.program("claude", script))
    ended = stage.run("go on", "--max-usd", "1")
    assert (ended.code, ended.json["reason"]) == (BUDGET_SPENT, "budget"), ended
    assert ended.json["detail"].startswith("budget spent: $1.0"), ended
    assert 0.8 <= ended.json["cost_usd"] < 1.1
    assert len([one for one in stage.model.asked if one.tools]) <= 22


def test_a_turn_that_was_killed_is_not_free(set_stage: SetStage) -> None:
    stage = set_stage(Reply(shell="echo ready > ready; sleep 100", tokens_input=TOKENS), Reply(say="done"))
    running = stage.start_run("look around")
    stage.wait_for_file("ready")
    wait_until(lambda: any(one["kind"] == "agent.usage" for one in stage.events()), "the usage was never stored")
    running.kill()
    stage.end_of(running)
    stage.type("cancel", RUN)  # takes the run over, and charges what was used
    first = stage.show()["turns"][0]["spent"]
    assert first["usd_micros"] == first["usd_estimated"] > 400_000
    assert "≈$0.5" in stage.type("show", RUN).out
