"""Turns that only read, with the real CLIs: their own read-only mode holds, in a new session and in a resumed one."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jackline.agents.registry import load_adapter
from jackline.domain.adapter import TurnRequest
from jackline.domain.states import Role
from jackline.engine.launch import write_files
from jackline.engine.settings import new_session_id
from jackline.fake_model.pointing import point
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from tests.real_agents import binary

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 300  # of one turn of the slowest CLI, on a busy machine
SHELL = "echo x > by-shell; echo x > {other}/by-shell"
# What a model tries; by the names of each CLI's own tools, whether it offers them in this mode or not.
_NODE = ("run_shell_command", {"command": SHELL, "description": "write"}), ("write_file", "file_path")
_BUN = ("bash", {"command": SHELL, "description": "write"}), ("write", "filePath")
TRIED: dict[str, Any] = {
    "codex": (("exec_command", {"cmd": SHELL}), None),
    "gemini": _NODE,
    "qwen": _NODE,
    "opencode": _BUN,
    "kilo": _BUN,
}
# What a user passes on to the CLI, which would let it do more.
LOOSENING = {
    "codex": ("--sandbox", "danger-full-access"),
    "gemini": ("--approval-mode", "yolo"),
    "qwen": ("--yolo",),
    "opencode": ("--agent", "build"),
    "kilo": ("--agent", "debug"),
}
SLOW = ("gemini", "qwen", "opencode", "kilo")


def fill(fields: Mapping[str, str], other: Path) -> dict[str, str]:
    return {name: value.format(other=other) for name, value in fields.items()}


def list_tries(agent: str, workspace: Path, other: Path) -> list[Reply]:
    (shell, fields), writes = TRIED[agent]
    replies = [Reply(call={"tool": shell, "input": fill(fields, other)})]
    tool, path = writes or ("", "")
    inputs = [{path: str(folder / "by-tool"), "content": "x"} for folder in (workspace, other) if tool]
    return [*replies, *(Reply(call={"tool": tool, "input": one}) for one in inputs)]


def list_files(*folders: Path) -> list[str]:
    return sorted(str(path) for folder in folders for path in folder.iterdir() if path.name != ".git")


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("agent", ["codex", *(pytest.param(name, marks=pytest.mark.full) for name in SLOW)])
def test_a_read_only_turn_changes_nothing(agent: str, tmp_path: Path) -> None:
    program, adapter = binary(agent), load_adapter(agent)
    workspace, other, user, folder = (tmp_path / name for name in ("workspace", "other", "user", "run"))
    for path in (workspace, other, user, folder):
        path.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=workspace, check=True)
    (workspace / "a.txt").write_text("hello\n")
    tries = list_tries(agent, workspace, other)
    with ExitStack() as stack:
        model = stack.enter_context(FakeModel(Script((*tries, Reply(say="one"), *tries, Reply(say="two")))))
        pointed = point(agent, model.address, str(user))
        write_files(pointed.files)
        session = new_session_id() if adapter.declaration.chooses_session else None
        for answer in ("one", "two"):
            request = TurnRequest(
                run_id="r",
                attempt=1,
                turn=1,
                role=Role.REVIEW,
                prompt="look at it",
                workspace=str(workspace),
                folder=str(folder),
                gate="",
                token="",
                session=session,
                resume=answer == "two",
                binary=program,
                arguments=LOOSENING[agent],
                environ=pointed.env,
            )
            launch = adapter.launch(request)
            write_files(launch.files)
            done = subprocess.run(
                launch.argv,
                cwd=workspace,
                env={"PATH": os.environ["PATH"], **pointed.env, **launch.env},
                input=launch.stdin,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
            events = [event for line in done.stdout.splitlines() for event in adapter.parse(line)]
            texts = "".join(event.text for event in events if event.kind == "message")
            assert (done.returncode, texts) == (0, answer), done
            session = next((event.text for event in events if event.kind == "session"), session)
            assert list_files(workspace, other) == [str(workspace / "a.txt")]
        assert len(model.asked) >= 2 * (len(tries) + 1)  # it was really tried
