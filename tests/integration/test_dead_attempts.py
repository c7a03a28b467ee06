"""Which attempts a host may call dead, and take over at once: only those whose lock lies here, and is free."""

from __future__ import annotations

import os
from pathlib import Path

from jackline import clock
from jackline.domain.records import Owner, Run
from jackline.engine import owner_lock
from jackline.engine.dead_attempts import find_dead_attempt
from jackline.engine.settings import EngineSettings
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, made

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
    run = held(store, clock.boot_id(), os.getpid())
    descriptor = owner_lock.acquire_lock(settings.build_folder(run.id), "worker-1")
    assert find_dead_attempt(store, run, settings) is None
    os.close(descriptor)
    assert find_dead_attempt(store, run, settings) == 1


def test_another_host_waits_for_the_lease(store: Store, tmp_path: Path) -> None:
    settings = EngineSettings(str(tmp_path), "elsewhere")
    run = held(store, clock.boot_id(), os.getpid())
    os.close(owner_lock.acquire_lock(settings.build_folder(run.id), "worker-1"))
    assert find_dead_attempt(store, run, settings) is None
