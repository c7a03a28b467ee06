"""A whole night with the real Claude Code: a limit, a reboot, a question answered from a phone, one push, one bill."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.fake_model.script import Reply
from tests.agents.test_accounts import CREDENTIALS, LIMIT, define
from tests.agents.test_claude_door import Door, SetStage, set_stage
from tests.support.ntfy_server import NtfyServer

__all__ = ["set_stage"]

RUN = "night"
NOTICES, ANSWERS = "jl-notices-0123456789abcdef", "jl-answers-0123456789abcdef"
LATER_S = 6 * 3600  # when the limit has been reset
BUDGET_USD = 2.0
TOKENS = 20_000
WAIT_S = 150.0
# The machine after a reboot: another boot id, hours later.
REBOOTED = f"""
import sys
from jackline import clock
clock.boot_id = lambda: "another boot"
clock.wall_ms = lambda read=clock.wall_ms: read() + {LATER_S * 1000}
from jackline.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
RECEIVED = '#!/bin/sh\ncat >> "{log}"\n'  # a line for each reference that a push changed


class Night:
    """The server of the phone, with a clock that a reboot moves."""

    def __init__(self) -> None:
        self.later_s = 0
        self.ntfy = NtfyServer(lambda: time.time() + self.later_s)


@pytest.fixture
def night() -> Iterator[Night]:
    night = Night()
    with night.ntfy:
        yield night


def set_up(stage: Door, ntfy: NtfyServer) -> None:
    """An account with a log-in, a phone that may approve, and a remote that counts pushes."""
    (folder,) = define(stage, "CLAUDE_CONFIG_DIR", "work").values()
    credentials = folder / ".credentials.json"
    credentials.write_text(json.dumps(CREDENTIALS))
    credentials.chmod(0o600)
    with open(Path(stage.environment["HOME"]) / ".config" / "jackline" / "config.toml", "a") as config:
        config.write(
            f'[channels.phone]\ntype = "ntfy"\nurl = "{ntfy.url}"\ntopic = "{NOTICES}"\n'
            f'replies = "all"\nreply_topic = "{ANSWERS}"\n'
        )
    stage.git("init", "--quiet", "--bare", str(stage.folder / "remote.git"))
    hook = stage.folder / "remote.git" / "hooks" / "post-receive"
    hook.write_text(RECEIVED.format(log=stage.folder / "received"))
    hook.chmod(0o755)
    stage.git("remote", "add", "origin", str(stage.folder / "remote.git"))


def find_processes(stage: Door) -> set[int]:
    """The processes of the home."""
    wanted = f"JACKLINE_HOME={stage.home}".encode()
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ = Path("/proc", name, "environ").read_bytes().split(b"\0")
            state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if wanted in environ and state != "Z":
            found.add(int(name))
    return found


def test_a_limit_a_reboot_and_an_answer_from_the_phone_end_in_one_push(set_stage: SetStage, night: Night) -> None:
    commit = "echo grown > tree.txt && git add tree.txt && git commit --quiet --message 'Grow a tree'"
    stage = set_stage(
        Reply(shell=commit, tokens_input=TOKENS),
        LIMIT,
        Reply(shell="git push origin HEAD:refs/heads/tree", tokens_input=TOKENS),
        Reply(say="pushed", tokens_input=TOKENS),
    )
    ntfy = night.ntfy
    set_up(stage, ntfy)
    first = stage.start("serve", "--json")
    words = ("--agent", "claude@work", "--run-id", RUN, "--max-usd", str(BUDGET_USD))
    queued = stage.type("enqueue", "grow a tree and push it", *words)
    assert queued.code == 0, queued
    ntfy.wait_for_message(NOTICES, "limit", WAIT_S)
    parked = stage.show(RUN)
    assert (parked["state"], parked["reason"]) == ("waiting", "limit")
    assert parked["wake_at"] is not None

    # The machine dies, and starts again hours later.
    for pid in find_processes(stage):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    assert not find_processes(stage)
    night.later_s = LATER_S
    second = stage.start("serve", "--json", program=("-c", REBOOTED))

    question = ntfy.wait_for_message(NOTICES, "approval", WAIT_S)
    assert "git push" in question["message"]
    assert find_processes(stage) == {second.pid}  # nothing else is alive while the person sleeps
    ntfy.press(question, "Allow")
    ntfy.wait_for_message(NOTICES, "succeeded", WAIT_S)
    second.send_signal(signal.SIGTERM)
    ended = stage.end_of(second)
    assert ended.code == 0, ended

    shown = stage.show(RUN)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 3)
    assert (stage.folder / "received").read_text().splitlines() == [
        f"{'0' * 40} {stage.git('rev-parse', 'HEAD')} refs/heads/tree"
    ]
    assert 0 < shown["cost_usd"] <= BUDGET_USD
    assert len(stage.git("log", "--format=%s", "--grep", "Grow a tree").splitlines()) == 1
    titles = [message["title"] for message in ntfy.list_messages(NOTICES)]
    for event in ("limit", "approval", "answer accepted", "succeeded"):
        assert sum(event in title for title in titles) == 1, (event, titles)
    assert sum("claude@work/adhoc" in title for title in titles) == 3, titles
    assert stage.type("verify", RUN).code == 0
    assert not find_processes(stage)
