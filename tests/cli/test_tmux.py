"""`run --tmux` and `attach --tmux`, with the real tmux: the run's process works in a session of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.place import SAY, SECONDS, Place, is_one_line
from tests.cli.test_attach import start_held
from tests.cli.test_terminal import Terminal

SECRET = "the-secret-of-this-shell"


def call_tmux(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    environ = place.environment(LANG="C.UTF-8")
    return subprocess.run(["tmux", "-f", "/dev/null", *words], env=environ, capture_output=True, text=True, check=False)


def list_sessions(place: Place) -> set[str]:
    return set(call_tmux(place, "list-sessions", "-F", "#{session_name}").stdout.split())


def wait_for_state(place: Place, state: str) -> dict[str, object]:
    until = time.monotonic() + SECONDS
    while (found := place.type("show", "r", "--json").json)["state"] != state:
        assert time.monotonic() < until, found
        time.sleep(0.1)
    return found


@pytest.fixture
def tmux_place(place: Place) -> Iterator[Place]:
    """A place with its own tmux server, which another shell has started, with another environment."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is missing")
    folder = tempfile.mkdtemp(prefix="jl")  # a short path: the socket's is limited
    place.environ.update(TMUX_TMPDIR=folder, LANG="C.UTF-8")
    assert call_tmux(place, "new-session", "-d", "-s", "other", "sleep 600").returncode == 0
    yield place
    call_tmux(place, "kill-server")
    shutil.rmtree(folder)


def test_a_run_in_a_session_ends_with_it(tmux_place: Place) -> None:
    place = tmux_place
    place.environ["OF_THIS_SHELL"] = SECRET
    start_held(place, "--tmux=mine", "--json")
    started = place.end_of(place.started[-1])
    assert (started.code, started.json["tmux_session"]) == (0, "mine"), started
    assert SECRET not in call_tmux(place, "show-environment", "-g").stdout
    assert SECRET not in call_tmux(place, "show-environment", "-t", "=mine").stdout
    if sys.platform == "linux":
        pane = call_tmux(place, "list-panes", "-s", "-t", "=mine", "-F", "#{pane_pid}").stdout.strip()
        assert f"OF_THIS_SHELL={SECRET}\0" in Path(f"/proc/{pane}/environ").read_text()
        assert SECRET not in Path(f"/proc/{pane}/cmdline").read_text()
    place.let_go("go")
    wait_for_state(place, "succeeded")
    until = time.monotonic() + SECONDS
    while list_sessions(place) != {"other"}:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert json.loads((place.home / "runs" / "r" / "manifest.json").read_text())["tmux_session"] == "mine"
    assert not (place.home / "runs" / "r" / "tmux.fifo").exists()
    ended = place.type("attach", "--tmux", "r")
    assert (ended.code, is_one_line(ended), "has ended" in ended.err) == (2, True, True)


@pytest.mark.parametrize("name", ["x#(touch ran)", "x#[y", "x##y", "x#S"])
def test_the_name_of_a_folder_is_no_format_of_tmux(tmux_place: Place, name: str) -> None:
    place = tmux_place
    folder = place.folder / name
    folder.mkdir()
    start_held(place, "--tmux=mine", "--workspace", str(folder))
    path = call_tmux(place, "list-panes", "-s", "-t", "=mine", "-F", "#{pane_start_path}").stdout.strip()
    place.let_go("go")
    wait_for_state(place, "succeeded")
    assert path == str(folder)
    assert list(place.folder.rglob("ran")) == []


def test_killing_the_session_parks_the_run(tmux_place: Place) -> None:
    place = tmux_place
    start_held(place, "--tmux")
    (session,) = list_sessions(place) - {"other"}
    assert session == "jackline-r"
    assert place.type("attach", "--tmux", "r").err.startswith("jackline: --tmux needs a terminal: ")
    assert call_tmux(place, "kill-session", "-t", "=jackline-r").returncode == 0
    parked = wait_for_state(place, "waiting")
    assert parked["reason"] == "paused"
    place.let_go("go")
    assert place.type("resume", "r").code == 0


def test_at_a_terminal_the_session_is_shown_and_left(tmux_place: Place) -> None:
    place = tmux_place
    script = place.script({"say": "listening"}, {"hang": True})
    terminal = Terminal(place, "run", "--script", script, "--run-id", "r", "--tmux")
    terminal.until("started in the tmux session jackline-r")
    terminal.until("listening")
    os.write(terminal.ours, b"\x02d")  # detach
    assert "detached from run r (#1), which is running; again: jackline attach --tmux r" in terminal.end()
    assert terminal.process.returncode == 0
    again = Terminal(place, "attach", "--tmux", "r")
    again.until("listening")
    assert place.type("cancel", "r").code == 0
    seen = again.end()
    assert again.process.returncode == 17
    assert "run r (#1) cancelled" in seen.replace("\x1b[36m", "").replace("\x1b[0m", "")


def test_mistakes_create_no_run(tmux_place: Place) -> None:
    place = tmux_place
    script = place.script(SAY)
    taken = place.type("run", "x", "--script", script, "--tmux=other")
    assert (taken.code, is_one_line(taken), "'other' exists" in taken.err) == (2, True, True)
    prompt = place.type("run", "--script", script, "--tmux", "mend the bug")
    assert (prompt.code, is_one_line(prompt)) == (2, True)
    assert "put the prompt before --tmux" in prompt.err
    both = place.type("run", "x", "--script", script, "--tmux", "--detach")
    assert (both.code, is_one_line(both)) == (2, True)
    bare = place.folder / "bin"
    bare.mkdir()
    (bare / "git").symlink_to(shutil.which("git") or "")
    missing = place.type("run", "x", "--script", script, "--tmux", environ={"PATH": str(bare)})
    assert (missing.code, is_one_line(missing), "--detach" in missing.err) == (2, True, True)
    assert place.type("list", "--json").out == ""
    assert place.play(SAY, words=("--run-id", "plain")).code == 0
    plain = place.type("attach", "--tmux", "plain")
    assert (plain.code, is_one_line(plain)) == (2, True)
