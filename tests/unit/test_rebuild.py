"""Many who want the same file written: nobody's change is lost, nobody waits for more than one writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.exports import rebuild
from jackline.files import NotWritten
from tests.support.helpers import wait_until

HOLDER = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return str(tmp_path / "file.lock")


class Slow:
    """A build that is under way until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.looks = 0

    def __call__(self) -> None:
        self.looks += 1
        self.begun.set()
        assert self.go_on.wait(60)


def test_who_comes_alone_builds(lock: str) -> None:
    built: list[int] = []
    assert rebuild.rebuild_once(lock, lambda: built.append(1))
    assert rebuild.rebuild_once(lock, lambda: built.append(2))
    assert built == [1, 2]
    assert os.stat(lock).st_mode & 0o777 == 0o600


def test_one_builds_one_waits_and_all_others_go_on(lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, seen, has_turn = Slow(), [], threading.Event()
    first = threading.Thread(target=rebuild.rebuild_once, args=(lock, slow))
    first.start()
    assert slow.begun.wait(10)
    awaited = rebuild._wait_for_lock

    def seen_waiting(lock: str, patience_s: float) -> int:
        has_turn.set()
        return awaited(lock, patience_s)

    monkeypatch.setattr(rebuild, "_wait_for_lock", seen_waiting)
    waiting = threading.Thread(target=rebuild.rebuild_once, args=(lock, lambda: seen.append("waited")))
    waiting.start()
    assert has_turn.wait(10)
    assert [rebuild.rebuild_once(lock, lambda: seen.append("too many")) for _ in range(5)] == [False] * 5
    assert seen == []
    slow.go_on.set()
    first.join()
    waiting.join()
    assert (slow.looks, seen) == (1, ["waited"])


def test_the_last_change_is_always_seen(lock: str) -> None:
    """Each adds to what is shown, then asks for it: when all are done, what was built last has everything."""
    changes, shown, adding = 0, -1, threading.Lock()

    def build() -> None:
        nonlocal shown
        shown = changes

    def write() -> None:
        nonlocal changes
        for _ in range(200):
            with adding:
                changes += 1
            rebuild.rebuild_once(lock, build, patience_s=60)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (changes, shown) == (1600, 1600)


def test_a_stopped_holder_is_waited_for_no_longer_than_patience(lock: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(rebuild.RebuildBlocked, match="file is being written by a process that makes no progress"):
            rebuild.rebuild_once(lock, lambda: pytest.fail("it is held"), patience_s=0.05)
        holder.kill()
    built: list[int] = []
    assert rebuild.rebuild_once(
        lock, lambda: built.append(1)
    )  # the killed one holds nothing, and the turn was given back
    assert built == [1]


def test_a_build_that_fails_lets_the_next_one_in(lock: str) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        rebuild.rebuild_once(lock, fail)
    built: list[int] = []
    rebuild.rebuild_now(lock, lambda: built.append(1))
    assert built == [1]


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="gone"):
        rebuild.rebuild_once(str(tmp_path / "gone" / "file.lock"), lambda: None)


def test_what_is_wanted_is_built_at_the_end_for_sure() -> None:
    built: list[int] = []
    with rebuild.delayed_rebuild(lambda: built.append(1), pause_s=3600) as board:
        for _ in range(100):
            board.request_build()
        assert built == []
    assert built == [1]


def test_what_nobody_wanted_is_not_built() -> None:
    built: list[int] = []
    with rebuild.delayed_rebuild(lambda: built.append(1)):
        pass
    assert built == []


def test_what_is_wanted_during_a_build_is_built_once_more() -> None:
    slow = Slow()
    with rebuild.delayed_rebuild(slow, pause_s=0) as board:
        board.request_build()
        assert slow.begun.wait(10)
        board.request_build()
        slow.go_on.set()
        wait_until(lambda: slow.looks >= 2)


class Wanted(threading.Event):
    """Before it is cleared for the first time, somebody closes: the pause is over, and the look has not begun."""

    def __init__(self, board: rebuild.DelayedRebuild) -> None:
        super().__init__()
        self.closing = threading.Thread(target=board.close, daemon=True)
        self.woken = threading.Event()

    def set(self) -> None:
        super().set()
        if threading.current_thread() is self.closing:
            self.woken.set()

    def clear(self) -> None:
        if not self.woken.is_set():
            self.closing.start()
            assert self.woken.wait(60)
        super().clear()


def test_an_end_in_the_middle_of_a_look_is_seen() -> None:
    built: list[int] = []
    board = rebuild.DelayedRebuild(lambda: built.append(1), pause_s=0)
    board._requested = wanted = Wanted(board)
    board.request_build()
    assert wanted.woken.wait(60)
    wanted.closing.join(10)
    assert not wanted.closing.is_alive()
    assert built


def stopped(lock: str, ago_s: float) -> subprocess.Popen[bytes]:
    """A process that took the lock so long ago, and was stopped then."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    holder.send_signal(signal.SIGSTOP)
    since = time.time() - ago_s
    os.utime(lock, (since, since))
    return holder


@pytest.fixture
def old_turn(lock: str) -> Iterator[None]:
    with stopped(f"{lock}.next", 3600) as holder:
        yield
        holder.kill()


def test_nothing_is_left_to_one_that_was_stopped_while_it_waited_its_turn(lock: str, old_turn: None) -> None:
    built: list[int] = []
    assert [rebuild.rebuild_once(lock, lambda: built.append(1)) for _ in range(3)] == [True] * 3
    assert built == [1] * 3


def test_one_that_has_had_the_lock_for_long_is_not_waited_for_with_patience(
    lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "_STALE_WAIT_S", 0.0)
    with stopped(lock, 7200) as holder:
        with pytest.raises(rebuild.RebuildBlocked):  # which would otherwise be in an hour
            rebuild.rebuild_once(lock, lambda: pytest.fail("it is held"), patience_s=3600)
        holder.kill()


def test_a_lock_knows_since_when_it_is_held(lock: str) -> None:
    assert rebuild.rebuild_once(lock, lambda: None)
    os.utime(lock, (0, 0))
    assert rebuild.rebuild_once(lock, lambda: None)
    assert time.time() - os.stat(lock).st_mtime < 3600


def test_where_changes_are_seldom_the_pause_comes_after_the_first() -> None:
    built = threading.Semaphore(0)
    with rebuild.delayed_rebuild(built.release, pause_s=3600, at_once=True) as board:
        board.request_build()
        assert built.acquire(timeout=10)
        board.request_build()
        assert not built.acquire(blocking=False)
    assert built.acquire(blocking=False)
