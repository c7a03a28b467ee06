"""Which attempts a host may call dead, and take over at once: only those whose lock lies here, and is free; waiters."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from jackline.app.home import Home
from jackline.app.lost_runs import find_lost
from jackline.clock import boot_id
from jackline.domain.records import Attempt, Owner, Run
from jackline.engine import owner_lock
from jackline.engine.dead_attempts import find_dead_attempt, is_supervisor_gone
from jackline.engine.settings import EngineSettings
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, FakeClock, made

HOST = "twin"


def held(store: Store, boot: str, pid: int) -> Run:
    """A run that somebody on a host of this name works on."""
    run = made(store)
    return store.leases.claim(run.id, Owner("worker-1", HOST, boot, pid), LEASE_MS, AT + 1)[1]


def test_another_machine_of_the_same_name_is_not_dead_because_its_boot_is_another(store: Store, tmp_path: Path) -> None:
    run = held(store, "the boot of another machine", os.getpid())
    assert find_dead_attempt(store, run, EngineSettings(str(tmp_path), HOST)) is None


def test_after_a_reboot_the_lock_that_was_left_tells_it(store: Store, tmp_path: Path) -> None:
    settings = EngineSettings(str(tmp_path), HOST)
    run = held(store, "the boot before", os.getpid())
    os.close(owner_lock.acquire_lock(settings.build_folder(run.id), "worker-1"))  # by the death of all who held it
    assert find_dead_attempt(store, run, settings) == 1


def test_who_holds_its_lock_lives(store: Store, tmp_path: Path) -> None:
    settings = EngineSettings(str(tmp_path), HOST)
    run = held(store, boot_id(), os.getpid())
    descriptor = owner_lock.acquire_lock(settings.build_folder(run.id), "worker-1")
    assert find_dead_attempt(store, run, settings) is None
    os.close(descriptor)
    assert find_dead_attempt(store, run, settings) == 1


def test_another_host_waits_for_the_lease(store: Store, tmp_path: Path) -> None:
    settings = EngineSettings(str(tmp_path), "elsewhere")
    run = held(store, boot_id(), os.getpid())
    os.close(owner_lock.acquire_lock(settings.build_folder(run.id), "worker-1"))
    assert find_dead_attempt(store, run, settings) is None


def holder(store: Store, run: Run) -> Attempt:
    return store.records.list_holders([run.id])[0].attempt


def test_the_lease_of_each_run_is_read_at_once_by_the_clock_of_the_store(store: Store, clock: FakeClock) -> None:
    first, second = made(store, "first"), made(store, "second")
    made(store, "queued")
    store.leases.claim(first.id, Owner("worker-1", HOST, "boot", 7), LEASE_MS, AT + 1)
    clock.now += LEASE_MS
    store.leases.claim(second.id, Owner("worker-2", "other", "boot", 8), LEASE_MS, AT + 1)
    found = {one.attempt.run_id: one for one in store.records.list_holders(["first", "second", "queued", "none"])}
    assert {run: (one.attempt.host, one.attempt.pid, one.is_lease_over) for run, one in found.items()} == {
        "first": (HOST, 7, True),
        "second": ("other", 8, False),
    }
    assert len(store.records.list_holders(["first", *(f"none-{number}" for number in range(1000)), "second"])) == 2


def test_a_supervisor_is_gone_when_its_lock_is_free_or_only_its_warden_lives(store: Store, tmp_path: Path) -> None:
    folder = EngineSettings(str(tmp_path), HOST).build_folder("run-1")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # a zombie is dead, although its pid is still there
    run = held(store, boot_id(), ended.pid)
    descriptor = owner_lock.acquire_lock(folder, "worker-1")
    assert not is_supervisor_gone(holder(store, run), HOST, folder), "its pid may belong to another container"
    with_warden = holder(store, run)._replace(warden_pid=os.getpid())
    assert is_supervisor_gone(with_warden, HOST, folder)
    assert not is_supervisor_gone(with_warden._replace(pid=os.getpid()), HOST, folder)
    assert not is_supervisor_gone(with_warden._replace(boot="of a twin"), HOST, folder)
    assert not is_supervisor_gone(with_warden, HOST, str(tmp_path / "another home"))
    os.close(descriptor)
    assert is_supervisor_gone(holder(store, run), HOST, folder)
    assert not is_supervisor_gone(holder(store, run), "elsewhere", folder)
    ended.wait()


def test_waiters_are_seen_until_the_last_of_them_ends(tmp_path: Path) -> None:
    folder = str(tmp_path / "runs" / "r")
    assert not owner_lock.has_waiter(folder)
    with owner_lock.hold_waiter(folder):
        with owner_lock.hold_waiter(folder):
            assert owner_lock.has_waiter(folder)
        assert owner_lock.has_waiter(folder)
    assert not owner_lock.has_waiter(folder)


def test_a_killed_waiter_is_not_seen(tmp_path: Path) -> None:
    folder = str(tmp_path / "runs" / "r")
    program = f"from jackline.engine.owner_lock import hold_waiter\nwith hold_waiter({folder!r}): print(1); input()"
    with subprocess.Popen([sys.executable, "-uc", program], stdin=-1, stdout=-1) as waiter:
        assert waiter.stdout is not None
        waiter.stdout.readline()
        assert owner_lock.has_waiter(folder)
        waiter.kill()
        waiter.wait()
        assert not owner_lock.has_waiter(folder)


class _Home:
    """The part of a home that is asked for lost runs."""

    def __init__(self, store: Store, path: Path) -> None:
        self.store = lambda: store
        self.folder = EngineSettings(str(path), HOST).build_folder


def test_another_host_calls_a_run_lost_when_its_lease_is_over(
    store: Store, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = held(store, boot_id(), 7)
    home = cast("Home", _Home(store, tmp_path))
    os.close(owner_lock.acquire_lock(home.folder(run.id), "worker-1"))
    monkeypatch.setattr("jackline.clock.host_name", lambda: HOST)
    for is_alive, text in ((False, "is gone"), (True, "has left it")):  # a service on a full disk goes on
        monkeypatch.setattr("jackline.engine.dead_attempts.is_process_alive", lambda _pid, found=is_alive: found)
        assert text in find_lost(home, [run.id])[run.id], "its own host looks at the lock"
    monkeypatch.setattr("jackline.clock.host_name", lambda: "elsewhere")
    assert find_lost(home, [run.id]) == {}
    clock.now += LEASE_MS
    assert f"on {HOST}) no longer renews its lease" in find_lost(home, [run.id])[run.id]


def test_several_may_look_at_a_lock_at_once_and_need_no_right_to_write(tmp_path: Path) -> None:
    folder = str(tmp_path)
    os.close(owner_lock.acquire_lock(folder, "worker-1"))
    path = owner_lock.build_lock_path(folder, "worker-1")
    os.chmod(path, 0o400)
    with open(path) as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert owner_lock.is_owner_dead(folder, "worker-1")
