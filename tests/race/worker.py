"""A program of the race tests: one of several processes that fight for the same database. Speaks JSON on stdout.

hammer DATABASE NAME PAIRS   make durable calls in a run of its own, on and on
claim DATABASE NAME RUN      say "ready", wait for a line on stdin, try to claim the run
fill DATABASE NAME CASE EACH add hypotheses, events and items, and do whatever items there are
drain DATABASE NAME          do whatever items there are
killed DATABASE COUNT        so many children, the n-th killed before its n-th statement: do an item of kind `kn`
reserve DATABASE NAME LIMIT  claim a run of its own, say "ready", wait for a line, reserve of the day's budget
enqueue DATABASE NAME KEY    say "ready", wait for a line, create a run with this dedupe key
serve DATABASE NAME          say "ready", wait for a line, work on what the queue lets start until all runs have ended
hold DATABASE                open a write transaction, say "holding", wait for a line on stdin
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.records import RunStatus
from jackline.domain.spec import Spec
from jackline.domain.states import Failure, RunState
from jackline.errors import Busy, DayBudgetSpent, NotStartable, Refused
from jackline.features.cases.case_model import CaseEntry, EntryKind
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem
from jackline.store.models import NewRun, QueueOptions, RunChange, RunQuery, Settlement
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.stores import AT, HERE, LEASE_MS, MAIL, intent, owner


def hammer(database: str, name: str, pairs: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    store.runs.create(NewRun(f"run-{name}", HERE, Spec("hammer", HERE), name), AT)
    lease, _ = store.leases.claim(f"run-{name}", owner(name), LEASE_MS, AT)
    slowest = 0.0
    for number in range(int(pairs)):
        begun = time.perf_counter()
        call = f"{name}-{number}"
        store.ledger.admit(lease, intent(call, MAIL, key=call, target=call), decide_call, (1, 1), AT)
        store.ledger.settle(lease, Settlement(call, "succeed", AT, "sent", 0, call))
        slowest = max(slowest, time.perf_counter() - begun)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.succeeded"),), RunStatus(state=RunState.SUCCEEDED)))
    store.close()
    say({"slowest": slowest})


def claim(database: str, name: str, run_id: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    try:
        lease, _ = store.leases.claim(run_id, owner(name), LEASE_MS, AT)
        say({"token": lease.token})
    except Busy:
        say({"token": None})
    store.close()


def reserve(database: str, name: str, limit: str) -> None:
    store = open_store(database, create=False)
    store.runs.create(NewRun(f"run-{name}", HERE, Spec("spend", HERE), name), AT)
    lease, _ = store.leases.claim(f"run-{name}", owner(name), LEASE_MS, AT)
    say("ready")
    sys.stdin.readline()
    try:
        say({"reserved": store.spending.reserve(lease, int(limit), 600_000, AT)})
    except DayBudgetSpent:
        say({"reserved": 0})
    store.close()


def enqueue(database: str, name: str, key: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    new = NewRun(f"run-{name}", HERE, Spec("once", HERE), name)
    run, is_new = store.runs.create(new, AT, QueueOptions(dedupe=key))
    store.close()
    say({"run": run.id, "new": is_new})


def serve(database: str, name: str) -> None:
    """Work as a service does; a run whose id begins with `bad` fails."""
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    claimed, most, cancelled = [], 0, []
    numbers = itertools.count()
    while store.runs.list_page(RunQuery(states=("queued", "running"), limit=1)):
        for entry in store.queue.list_startable(AT):
            try:
                lease, _ = store.leases.claim(
                    entry.run_id, owner(name), LEASE_MS, AT, seen=RunStatus(), from_queue=True
                )
            except (Busy, NotStartable, Refused):
                continue
            claimed.append(entry.run_id)
            most = max(most, store.queue.count_batch_places("batch"))
            state = RunState.FAILED if entry.run_id.startswith("bad") else RunState.SUCCEEDED
            failure = Failure.AGENT_ERROR if state is RunState.FAILED else None
            status = RunStatus(state=state, failure=failure)
            store.leases.write_change(lease, RunChange(AT, (Fact(f"run.{state}"),), status))
        cancelled += [run.id for run in store.queue.cancel_unreachable(AT, lambda: f"notice-{name}-{next(numbers)}")]
    store.close()
    say({"claimed": claimed, "most": most, "cancelled": cancelled})


def hold(database: str) -> None:
    store = open_store(database, create=False)

    def wait(statements: object) -> None:
        say("holding")
        sys.stdin.readline()

    store.driver.write(wait)
    store.close()


def fill(database: str, name: str, case_id: str, each: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    hypotheses, events, items = [], [], []
    for number in range(int(each)):
        text = f"{name}-{number}"
        entry = CaseEntry(case_id, EntryKind.HYPOTHESIS, 0, AT, AT, text, "open")
        hypotheses.append((CaseNotebook(store).add_entry(case_id, entry, AT, name).number, text))
        events.append(store.journal.append(Fact("test.happened", {"what": text}), AT, name).seq)
        items.append(WorkQueue(store).enqueue(NewItem(text, "k", priority=number % 3), AT, name)[0].id)
    claimed = drained(store, name)
    store.close()
    say({"hypotheses": hypotheses, "events": events, "items": items, "claimed": claimed})


def drain(database: str, name: str) -> None:
    store = open_store(database, create=False)
    say("ready")
    sys.stdin.readline()
    claimed = drained(store, name)
    store.close()
    say({"claimed": claimed})


class Doomed:
    """A connection whose process is killed before the n-th statement: kill -9, no word to anybody."""

    def __init__(self, real: Any, at: int) -> None:
        self._real, self._left = real, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, *words: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._real.execute(*words)


def killed(database: str, count: str) -> None:
    said = []
    for at in range(1, int(count) + 1):
        child = os.fork()
        if child == 0:
            _do_doomed(database, f"k{at}", at)
            os._exit(0)
        said.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    say(said)


def _do_doomed(database: str, kind: str, at: int) -> None:
    store = open_store(database, create=False)
    driver: Any = store.driver
    driver._connection = Doomed(driver._connection, at)
    item = WorkQueue(store).claim_next((kind,), kind, 0, AT)  # a lease that is over at once, for whoever comes next
    assert item is not None
    WorkQueue(store).resolve(Hold(item.id, kind, item.token), "succeed", AT)


def drained(store: Store, name: str) -> list[str]:
    claimed = []
    while item := WorkQueue(store).claim_next((), name, LEASE_MS * 100, AT):
        WorkQueue(store).resolve(Hold(item.id, name, item.token), "succeed", AT)
        claimed.append(item.id)
    return claimed


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


PROGRAMS: dict[str, Callable[..., None]] = {
    "hammer": hammer,
    "claim": claim,
    "enqueue": enqueue,
    "serve": serve,
    "hold": hold,
    "reserve": reserve,
    "fill": fill,
    "drain": drain,
    "killed": killed,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
