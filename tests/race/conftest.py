"""What the race tests share: programs that are started together and waited for, a store on PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackline.store.open import open_store
from jackline.store.store import Store

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
Start = Callable[..., "Program"]


class Program:
    """One process of `tests.race.worker`."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.race.worker", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the program ended without a word"
        return json.loads(line)

    def send_order(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def start() -> Iterator[Start]:
    programs: list[Program] = []

    def begin(*arguments: str) -> Program:
        programs.append(Program(*arguments))
        return programs[-1]

    yield begin
    for program in programs:
        program.end()


@pytest.fixture
def postgres_store(postgres_database: str) -> Iterator[Store]:
    """An empty one, whose connection can be reached from behind."""
    store = open_store(postgres_database, create=False)
    assert isinstance(store, Store)
    yield store
    store.close()
