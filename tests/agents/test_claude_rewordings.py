"""Everything is killed after `send E1`, and the resumed model wants it sent in other words: the real Claude Code."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from jackline.fake_model.script import Reply
from tests.agents.stage import RUN, wait_until
from tests.agents.test_claude_door import SetStage, set_stage
from tests.support.rewordings import VARIANTS, WORDINGS, write_workspace

__all__ = ["set_stage"]

PLAIN = '[[rule]]\nname = "send"\ncommand = "send"\nclass = "effect"\ndecision = "allow"\n'
# What would end the shell of the tool, or wait for its input.
UNFIT = ("coproc send E1", "cat <(send E1)", "trap 'send E1' EXIT")


@pytest.mark.full
@pytest.mark.parametrize("more", ["", 'key = ["1"]\ntarget = "message:{1}"\n'])
@pytest.mark.parametrize("wordings", [WORDINGS, VARIANTS], ids=["samples", "variants"])
def test_no_wording_is_sent_twice_after_a_kill(
    set_stage: SetStage, tmp_path: Path, wordings: tuple[str, ...], more: str
) -> None:
    program = str(tmp_path / "repository" / "bin" / "send")
    later = [Reply(shell=one.replace("{S}", program)) for one in wordings if one not in UNFIT]
    stage = set_stage(Reply(shell="send E1"), Reply(hang="before"), *later, Reply(say="all done"))
    write_workspace(stage.repository)
    stage.program("send", f'#!/bin/sh\nexec "{program}" "$@"\n')
    (stage.folder / "policy.toml").write_text(PLAIN + more)
    process = stage.start_run("send E1", "--policy", str(stage.folder / "policy.toml"))
    stage.model.wait(2)  # the model has the result of the call, and does not answer
    stage.kill_agent()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not stage.processes_left(), "the warden ended nothing")
    outbox = stage.repository / "outbox"
    assert outbox.read_text() == "E1\n"
    ended = stage.type("resume", RUN, "--json", "--on-ask", "deny")
    assert outbox.read_text() == "E1\n", ended
    decisions = stage.calls("decision", "state")
    assert decisions[0] == ("allow", "done")
    assert {decision for decision, _ in decisions[1:]} <= {"stored", "deny"}
    assert len(decisions) == len(later) + 1, ended
    assert "do not repeat, in these or in other words:\n- send → " in stage.model.asked[2].text
