"""The real Claude Code writes a script that acts for a person: it trusts, answers another run, changes settings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from jackline.fake_model.script import Reply, Script
from tests.agents.test_claude_door import Door, SetStage, set_stage

__all__ = ["set_stage"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="without /proc only a command's own variables count")
WAITS = 14
JACKLINE = f"{sys.executable} -m jackline"
UNSET = "env -u JACKLINE_MARK -u JACKLINE_RUN -u JACKLINE_RUN_ID -u JACKLINE_ATTEMPT"
CLEARED = 'env -i "HOME=$HOME" "JACKLINE_HOME=$JACKLINE_HOME"'
# A terminal of its own, at which the program types yes.
AT_TERMINAL = """
import os, pty, sys
pid, terminal = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
os.write(terminal, b"y\\n" * 9)
try:
    while data := os.read(terminal, 4096):
        os.write(1, data)
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def write_script(stage: Door, words: str) -> tuple[Path, str]:
    """The path and text of a script that tries the command in every way, and writes down what happened."""
    (stage.folder / "terminal.py").write_text(AT_TERMINAL)
    told = stage.folder / "told"
    told.mkdir()
    terminal = f"{sys.executable} {stage.folder}/terminal.py"
    ways = (
        f"{JACKLINE} {words} </dev/null",
        f"{UNSET} {JACKLINE} {words}",
        f"setsid --wait {CLEARED} {JACKLINE} {words}",
        f"{CLEARED} {terminal} {JACKLINE} {words}",
        f"setsid --wait {CLEARED} sh -c {shlex.quote(f'{terminal} {JACKLINE} {words}; exit $?')}",
    )
    lines = [f"{way} >{told}/{number} 2>&1; echo $? >>{told}/{number}" for number, way in enumerate(ways)]
    return stage.repository / "help.sh", "\n".join(lines) + f"\ntouch {told}/all\n"


def read_told(stage: Door) -> list[list[str]]:
    """What each way ended with."""
    assert (stage.folder / "told" / "all").exists()
    return [path.read_text().splitlines() for path in sorted((stage.folder / "told").glob("[0-9]"))]


def play_script(stage: Door, path: Path, text: str) -> None:
    """Let the model write the script and start it."""
    stage.model.script = Script((Reply(write=(str(path), text)), Reply(shell=f"sh {path}"), Reply(say="done")))


@pytest.mark.full
def test_a_script_does_not_trust_the_project_for_its_agent(set_stage: SetStage) -> None:
    stage = set_stage()
    path, text = write_script(stage, "trust")
    play_script(stage, path, text)
    (stage.repository / "jackline.toml").write_text("max_usd = 50\n")
    assert stage.run("help yourself").code == 0
    for said in read_told(stage):
        assert said[-1] == "2", said
        assert "`jackline trust` is refused inside a run of this home" in said[-2]
    assert stage.type("trust", "--show", "--json").json["trusted"] is False
    assert not (stage.home / "trust.json").exists()


def test_one_run_does_not_approve_the_call_of_another(set_stage: SetStage) -> None:
    stage = set_stage(Reply(say="I ask", shell="deliver ada hello"))
    held = stage.run("send a mail", *stage.policy("ask"), run_id="other")
    assert held.code == WAITS, held
    (call,) = stage.show("other")["calls"]
    path, text = write_script(stage, f"answer other {call['id']} allow")
    play_script(stage, path, text)
    assert stage.run("help the other one", "--share-workspace").code == 0
    for said in read_told(stage):
        assert said[-1] == "2", said
        assert "`jackline answer` is refused inside a run of this home" in said[-2]
    after = stage.show("other")
    assert (after["state"], [one["answer"] for one in after["calls"]], stage.outbox) == ("waiting", [""], [])


def test_settings_that_a_script_writes_are_confirmed_before_the_next_run(set_stage: SetStage) -> None:
    stage = set_stage()
    own = stage.user / ".config" / "jackline" / "policy.toml"
    loose = '[[rule]]\nname = "mail"\ncommand = "deliver"\nclass = "read"\n'
    text = f"mkdir -p {own.parent}\nprintf %s {shlex.quote(loose)} > {own}\n"
    play_script(stage, stage.repository / "help.sh", text)
    assert stage.run("help yourself").code == 0
    assert own.read_text() == loose
    refused = stage.type("run", "send a mail", "--agent", "claude", "--run-id", "next")
    assert (refused.code, str(own) in refused.err, "jackline trust" in refused.err) == (2, True, True), refused
    (event,) = stage.type("events", "search", "jackline.settings_changed", "--json").rows
    assert event["payload"]["files"] == [str(own)]
