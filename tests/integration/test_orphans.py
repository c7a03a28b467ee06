"""Orphans of a dead attempt are found and ended, wherever they have moved; nobody else is."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jackline.engine import orphans
from jackline.engine.orphans import OrphansRemain
from tests.programs.processes import PROGRAMS, Grip

SOURCE = os.path.abspath(os.path.join(PROGRAMS, "..", "..", "src"))
PYTHON = [sys.executable, "-I", "-S"]
WAITER = "import os, signal; os.write(1, b'%d\\n' % os.getpid()); signal.pause()"


@pytest.fixture
def marker() -> dict[str, str]:
    return {"JACKLINE_TEST": secrets.token_hex(8), "JACKLINE_OTHER": "7"}


@contextmanager
def running(*argv: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a session of its own, and leave nothing of it behind."""
    process = subprocess.Popen([*PYTHON, *argv], env=env, stdout=subprocess.PIPE, start_new_session=True, bufsize=0)
    with process:
        yield process
        process.kill()


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def tree(process: subprocess.Popen[bytes]) -> dict[str, int]:
    pids: dict[str, int] = json.loads(first_line(process))
    return pids


def found(marker: dict[str, str]) -> set[int]:
    return {orphan.pid for orphan in orphans.find_orphans(marker)}


TREE = os.path.join(PROGRAMS, "tree.py")


def test_an_orphan_says_what_it_is(marker: dict[str, str]) -> None:
    with running("-c", WAITER, env=marker) as process:
        first_line(process)
        (orphan,) = orphans.find_orphans(marker)
        assert (orphan.pid, orphan.start_ticks) == (process.pid, orphans.read_start_ticks(process.pid))
        assert orphan.command.startswith(sys.executable)


def test_only_a_process_with_the_whole_marker_is_found(marker: dict[str, str]) -> None:
    half = {"JACKLINE_TEST": marker["JACKLINE_TEST"]}
    longer = {name: value + "0" for name, value in marker.items()}
    prefixed = {f"X{name}": value for name, value in marker.items()}
    with (
        running("-c", WAITER, env=marker) as right,
        running("-c", WAITER, env=half) as one,
        running("-c", WAITER, env=longer) as two,
        running("-c", WAITER, env=prefixed) as three,
    ):
        for process in (right, one, two, three):
            first_line(process)
        assert found(marker) == {right.pid}
        assert found(half) == {right.pid, one.pid}


def test_an_empty_marker_finds_nobody() -> None:
    with pytest.raises(ValueError, match="every process"):
        orphans.find_orphans({})
    assert orphans.kill_orphans({}) == 0


def test_nothing_to_end_is_fine(marker: dict[str, str]) -> None:
    assert orphans.kill_orphans(marker) == 0


def test_a_tree_is_ended_with_those_who_moved_away(marker: dict[str, str]) -> None:
    """The daemon left the session; the ghost has no parent and no environment, and is out of reach."""
    with running(TREE, "plain", env=marker) as process:
        pids = tree(process)
        with Grip(pids.values()) as grip:
            assert found(marker) == {pids["agent"], pids["child"], pids["daemon"]}
            assert orphans.kill_orphans(marker) == 3
            assert grip.deaths(0) == {pids["agent"], pids["child"], pids["daemon"]}
            assert found(marker) == set()


def test_a_child_without_the_marker_is_ended_with_its_parent(marker: dict[str, str]) -> None:
    code = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {WAITER!r}], env={{}})"
    with running("-c", code, env=marker) as process:
        child = int(first_line(process))
        assert found(marker) == {process.pid}
        with Grip([child, process.pid]) as grip:
            assert orphans.kill_orphans(marker) == 2
            assert grip.all_die(0)


def test_an_orphan_without_the_marker_is_ended_with_the_leader_of_its_session(marker: dict[str, str]) -> None:
    code = f"""
import os, signal, sys
between = os.fork()
if between == 0:
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", {WAITER!r}], {{}})
    os._exit(0)
os.waitpid(between, 0)
signal.pause()
"""
    with running("-c", code, env=marker) as process:
        orphan = int(first_line(process))
        with Grip([orphan, process.pid]) as grip:
            assert orphans.kill_orphans(marker) == 2
            assert grip.all_die(0)


def test_a_recorded_process_is_ended_only_if_it_started_when_the_record_says(marker: dict[str, str]) -> None:
    with running("-c", WAITER, env={}) as process, Grip([process.pid]) as grip:
        first_line(process)
        ticks = orphans.read_start_ticks(process.pid)
        assert ticks is not None
        assert orphans.kill_orphans(marker, recorded=[(process.pid, ticks - 1)]) == 0
        assert grip.deaths(0) == set()
        assert orphans.kill_orphans(marker, recorded=[(process.pid, ticks)]) == 1
        assert grip.all_die(0)


def test_the_dead_have_no_start_time() -> None:
    with running("-c", "pass", env={}) as process, Grip([process.pid]) as grip:
        assert grip.all_die()
        assert orphans.read_start_ticks(process.pid) is None  # a zombie, for nobody has waited for it yet
    assert orphans.read_start_ticks(process.pid) is None


def test_we_and_those_above_us_are_spared(marker: dict[str, str]) -> None:
    """So is our neighbour, whom only the marked parent that we have in common could make one of them."""
    look = f"""
import sys
sys.path.insert(0, {SOURCE!r})
from jackline.engine import orphans
marker = {marker!r}
print(orphans.find_orphans(marker), orphans.kill_orphans(marker), flush=True)
"""
    above = f"""
import subprocess, sys
with subprocess.Popen([sys.executable, "-c", {WAITER!r}], env={{}}, stdout=subprocess.PIPE) as neighbour:
    neighbour.stdout.readline()
    subprocess.run([sys.executable, "-c", {look!r}], check=True)
    print(neighbour.poll(), flush=True)
    neighbour.kill()
"""
    with running("-c", above, env=marker) as process:
        assert first_line(process) == b"[] 0\n"
        assert first_line(process) == b"None\n"
        assert process.wait() == 0


def test_a_process_that_cannot_be_ended_is_named(marker: dict[str, str]) -> None:
    """No patience at all stands for a process that is stuck in the kernel."""
    with running(TREE, "plain", env=marker) as process:
        pids = tree(process)
        with Grip(pids.values()), pytest.raises(OrphansRemain, match="kill them by hand"):
            orphans.kill_orphans(marker, patience_ms=-1)


def test_a_fork_storm_is_ended(marker: dict[str, str]) -> None:
    with running(os.path.join(PROGRAMS, "storm.py"), env=marker) as process:
        assert first_line(process) == b"begun\n"
        assert orphans.kill_orphans(marker) >= 1
        assert process.stdout is not None
        assert process.stdout.read() == b""  # all of them held it
        assert found(marker) == set()


def test_when_everybody_is_killed_at_once_the_rest_is_found(tmp_path: Path) -> None:
    """Supervisor, warden and guard die together: nobody is left to end the agent's children."""
    marker = {"JACKLINE_TEST": secrets.token_hex(8)}
    words = ["3600000", marker["JACKLINE_TEST"], str(tmp_path / "lock"), "plain"]
    program = [os.path.join(PROGRAMS, "supervisor.py"), *words]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    with subprocess.Popen([sys.executable, *program], env=env, stdout=subprocess.PIPE) as supervisor:
        pids = tree(supervisor)
        doomed = {"warden", "guard", "agent"}
        with Grip(pids.values()) as grip, Grip(pids[name] for name in doomed) as dying:
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in (supervisor.pid, pids["warden"], pids["guard"]):
                    os.kill(pid, number)
            supervisor.wait()
            assert dying.all_die()
            left = {pids["child"], pids["daemon"]}
            assert found(marker) == left
            assert orphans.kill_orphans(marker) == 2
            assert left <= grip.deaths(0)
