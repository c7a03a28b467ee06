"""How a real CLI's work is ended: nothing that it started outlives it, and nothing is done twice afterwards."""

from __future__ import annotations

import signal

import pytest

from jackline.fake_model.script import Reply
from tests.agents import cells
from tests.agents.conftest import Play
from tests.agents.stage import RUN, Stage, is_alive, wait_until

pytestmark = pytest.mark.full
AT_ONCE = ("--retries", "2", "--retry-seconds", "0.1")
# A shell call with a side effect that counts, a process in a session of its own, and no end. Its first command makes it
# one that nobody can class: what is known to stay in the workspace would have to be made again.
STUCK = (
    "python3 -c pass; echo once >> counter; "
    "setsid sh -c 'echo $$ > detached.pid; exec sleep 600' & echo $$ > shell.pid; sleep 600"
)


def begun(stage: Stage) -> list[int]:
    """The shell and its detached child, as soon as both are there."""
    pids = [int(stage.wait_for_file(name)) for name in ("shell.pid", "detached.pid")]
    assert all(map(is_alive, pids))
    return pids


def all_gone(stage: Stage, pids: list[int]) -> None:
    assert [pid for pid in pids if is_alive(pid)] == []
    assert stage.processes_left() == []
    assert (stage.repository / "counter").read_text() == "once\n"


def test_timeout(agent: str, play: Play) -> None:
    # Some shell tools give control back to the model after a while: it must not end the turn then.
    stage = play(Reply(shell=STUCK), otherwise=Reply(hang="before"))
    process = stage.start_run("get stuck", "--timeout-seconds", str(cells.TURN_SECONDS[agent]), "--grace-seconds", "2")
    pids = begun(stage)
    ended = stage.end_of(process)
    assert (ended.code, ended.json["failure"]) == (11, "timeout")
    all_gone(stage, pids)


def kill_the_cli(stage: Stage, *, seen: bool = False) -> None:
    """SIGKILL inside the shell call, then to the end of the run that goes on by itself."""
    process = stage.start_run("get stuck", *AT_ONCE)
    pids = begun(stage)
    if seen:  # some CLIs tell of a call only a moment after it began
        wait_until(lambda: bool(stage.show()["calls"]), "the call was never told")
    stage.kill_agent()
    ended = stage.end_of(process)
    assert ended.code == 0, ended
    all_gone(stage, pids)


def test_sigkill_of_the_cli(agent: str, play: Play) -> None:
    """What it had started is ended before it goes on in the same session; the call is not made again by us."""
    stage = play(Reply(shell=STUCK), Reply(say="I looked, and went on"))
    kill_the_cli(stage)
    shown = stage.show()
    assert [turn["failure"] for turn in shown["turns"]] == ["crashed", None]
    assert [turn["session"] for turn in shown["turns"]] == [shown["sessions"][agent]] * 2
    assert "Your work on this task was interrupted" in stage.model.wait(2)[-1].text


def test_cut_off_call_is_named(play: Play) -> None:
    """A model that is told nothing, or only “interrupted”, would do it again."""
    stage = play(Reply(shell=STUCK), Reply(say="I looked, and went on"))
    kill_the_cli(stage, seen=True)
    told = stage.model.wait(2)[-1].text.partition("Interrupted, outcome unknown; check before you repeat:")[2]
    assert "echo once >> counter" in told
    assert [call["state"] for call in stage.show()["calls"]] == ["in_doubt"]


def test_sigkill_of_the_supervisor(play: Play) -> None:
    """The warden ends the CLI and its shell; whoever resumes goes on in the session."""
    stage = play(Reply(shell=STUCK), Reply(say="I looked, and went on"))
    process = stage.start_run("get stuck")
    pids = begun(stage)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not stage.processes_left(), "the warden ended nothing")
    all_gone(stage, pids)
    resumed = stage.type("resume", RUN, "--json")
    assert resumed.code == 0, resumed
    assert "Your work on this task was interrupted" in stage.model.wait(2)[-1].text
    all_gone(stage, pids)
