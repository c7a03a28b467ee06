"""The gate file: one writer at a time, between threads and processes, and never for ever."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jackline.errors import StoreReadOnly, StoreUnavailable
from jackline.store.sqlite_file import GateFile


def test_two_descriptors_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "gate")
    first, second = GateFile(path), GateFile(path)
    first.enter()
    entered = threading.Event()

    def wait() -> None:
        second.enter()
        entered.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not entered.wait(0.05)
    first.leave()
    assert entered.wait(60)
    waiter.join()
    first.close()
    second.close()


def test_whoever_waits_too_long_is_told_and_the_turn_is_passed_on(tmp_path: Path) -> None:
    path = str(tmp_path / "gate")
    frozen, impatient, third = GateFile(path), GateFile(path, patience=0.05), GateFile(path, patience=60)
    frozen.enter()
    with pytest.raises(StoreUnavailable, match=r"gate was held for 0.05 s by a process that may be stopped"):
        impatient.enter()
    frozen.leave()
    third.enter()
    third.leave()
    impatient.enter()
    impatient.leave()
    for gate in (frozen, impatient, third):
        gate.close()


def test_a_gate_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreReadOnly, match="gate: No such file or directory"):
        GateFile(str(tmp_path / "none" / "gate")).enter()


def test_the_gate_file_is_private_and_not_inherited(tmp_path: Path) -> None:
    gate = GateFile(str(tmp_path / "gate"))
    gate.enter()
    assert os.stat(gate.path).st_mode & 0o777 == 0o600
    assert gate._descriptor is not None
    assert not os.get_inheritable(gate._descriptor)
    gate.close()
