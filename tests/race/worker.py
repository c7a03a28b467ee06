"""A program of the race tests: one of several processes that fight for the same database. Speaks JSON on stdout.

hammer DATABASE NAME PAIRS   make durable calls in a run of its own, on and on
claim DATABASE NAME RUN      say "ready", wait for a line on stdin, try to claim the run
hold DATABASE                open a write transaction, say "holding", wait for a line on stdin
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from jackline.domain.gate import decide
from jackline.domain.records import Life, Spec
from jackline.domain.states import RunState
from jackline.errors import Busy
from jackline.store.contract import Change, NewRun, Settlement
from jackline.store.open import open_store
from tests.support.stores import AT, HERE, LEASE_MS, MAIL, intent, owner


def hammer(database: str, name: str, pairs: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    store.create_run(NewRun(f"run-{name}", HERE, Spec("hammer", HERE), name), AT)
    lease, _ = store.claim(f"run-{name}", owner(name), LEASE_MS, AT)
    slowest = 0.0
    for number in range(int(pairs)):
        begun = time.perf_counter()
        call = f"{name}-{number}"
        store.admit(lease, intent(call, MAIL, key=call, target=call), decide, (1, 1), AT)
        store.settle(lease, Settlement(call, "succeed", AT, "sent", 0, call))
        slowest = max(slowest, time.perf_counter() - begun)
    store.write(lease, Change(AT, life=Life(state=RunState.SUCCEEDED)))
    store.close()
    say({"slowest": slowest})


def claim(database: str, name: str, run_id: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    try:
        lease, _ = store.claim(run_id, owner(name), LEASE_MS, AT)
        say({"token": lease.token})
    except Busy:
        say({"token": None})
    store.close()


def hold(database: str) -> None:
    store = open_store(database, create=False)

    def wait(statements: object) -> None:
        say("holding")
        sys.stdin.readline()

    store._driver.write(wait)  # type: ignore[attr-defined]
    store.close()


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


PROGRAMS: dict[str, Callable[..., None]] = {"hammer": hammer, "claim": claim, "hold": hold}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
