"""Thousands of seeded lives of a run, each with crashes at random writes: every effect exactly once, nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from typing import TYPE_CHECKING

import pytest

from jackline.domain.events import broken_at
from jackline.domain.states import CallState, RunState, WaitReason
from jackline.errors import Fenced
from jackline.features.cases.learning import REVIEW_COMMAND
from jackline.store.models import NewRun, RunChange
from jackline.store.open import open_store
from tests.simulation.runtime import Crash, Outside, attempt, spec_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from jackline.domain.records import Run
    from jackline.store.store import Store

SEEDS = 1_000
SEEDS_FULL = 12_000
MOST_ATTEMPTS = 200


class Clocked:
    """The store's lease clock follows the simulation's."""

    def __init__(self) -> None:
        self.outside: Outside | None = None

    def __call__(self) -> tuple[str, int]:
        return "boot", self.outside.now if self.outside else 0


@pytest.fixture
def clocked(tmp_path: Path) -> Iterator[tuple[Store, Clocked]]:
    """A store in memory where there is such a file system: no power fails here, and a sync costs a millisecond."""
    clock = Clocked()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(tmp_path)
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        store = open_store(os.path.join(folder, "state.sqlite"), create=True, lease_clock=clock)
        yield store, clock
        store.close()


def live(store: Store, clock: Clocked, seed: int, *, case: bool = False) -> None:
    """One run from its creation to its end, with crashes, limits, interrupts and answers by a person."""
    rng = random.Random(seed)
    outside = Outside(rng, remembers=rng.random() < 0.6, crashes_left=rng.randrange(7))
    clock.outside = outside
    effects, probe = rng.randrange(1, 4), rng.random() < 0.6
    run_id = f"seed-{seed}"
    store.runs.create(NewRun(run_id, "/sim", spec_for(effects, case=case), "digest"), outside.now)
    last_step = 0
    for _ in range(MOST_ATTEMPTS):
        before = store.runs.get(run_id)
        assert before is not None
        assert before.status.step >= last_step, "steps went backwards"
        last_step = before.status.step
        check_no_double(outside)
        if before.status.state is RunState.SUCCEEDED:
            check_end(store, before, outside, effects)
            return
        answer_truthfully(store, before, outside)
        with contextlib.suppress(Crash):
            attempt(store, run_id, outside, probe=probe)
    pytest.fail("the run did not come to an end")


def answer_truthfully(store: Store, run: Run, outside: Outside) -> None:
    """A person checks which effects happened, and answers accordingly."""
    if run.status.state is RunState.WAITING and run.status.reason is WaitReason.IN_DOUBT:
        for call in store.calls.list_open(run.id):
            if call.state is CallState.IN_DOUBT:
                verdict = "happened" if outside.sent.get(call.target) else outside.rng.choice(["did-not", "retry"])
                store.approvals.answer(run.id, call.id, verdict, outside.now)


def check_no_double(outside: Outside) -> None:
    assert all(count == 1 for count in outside.sent.values()), f"an effect happened twice: {outside.sent}"


def check_end(store: Store, run: Run, outside: Outside, effects: int) -> None:
    check_no_double(outside)
    assert len(outside.sent) == effects, f"an effect was lost: {outside.sent}"
    assert len(store.calls.list_receipts(run.id)) == effects
    assert run.status.proof == "proved"
    doubts = [call for call in store.calls.list_all(run.id) if call.state is CallState.IN_DOUBT]
    assert not doubts, f"the run succeeded with an effect in doubt: {doubts}"
    events = store.records.list_events(run.id, limit=100_000)
    assert broken_at(events) is None
    assert run.status.spent.steps == run.status.step


def over_seeds(count: int, one: Callable[[int], None]) -> None:
    """Run many seeds, or the one that JACKLINE_SEED names; a failure says how to see it again."""
    chosen = os.environ.get("JACKLINE_SEED")
    for seed in [int(chosen)] if chosen else range(count):
        try:
            one(seed)
        except BaseException as error:
            error.add_note(f"replay with JACKLINE_SEED={seed}")
            raise


def test_every_effect_happens_once_through_any_crash(clocked: tuple[Store, Clocked]) -> None:
    store, clock = clocked
    over_seeds(SEEDS, lambda seed: live(store, clock, seed))


def test_no_crash_lets_a_run_succeed_with_a_learning_that_came_to_nothing(clocked: tuple[Store, Clocked]) -> None:
    store, clock = clocked

    def one(seed: int) -> None:
        live(store, clock, seed, case=True)
        checks = [check for check in store.records.list_checks(f"seed-{seed}") if check.command == REVIEW_COMMAND]
        assert checks[-1].exit_code == 0
        assert any(check.exit_code for check in checks), "it was never unresolved: this test sees nothing"
        assert clock.outside is not None
        assert clock.outside.resolves

    over_seeds(SEEDS // 5, one)


@pytest.mark.full
def test_every_effect_happens_once_through_any_crash_for_many_more_seeds(clocked: tuple[Store, Clocked]) -> None:
    store, clock = clocked
    over_seeds(SEEDS_FULL, lambda seed: live(store, clock, seed + 1_000_000))


def test_a_zombie_cannot_write_after_a_takeover(clocked: tuple[Store, Clocked]) -> None:
    store, clock = clocked
    outside = Outside(random.Random(1), crashes_left=0)
    clock.outside = outside
    store.runs.create(NewRun("zombie", "/sim", spec_for(1), "digest"), outside.now)
    from jackline.domain.records import Owner

    old, _ = store.leases.claim("zombie", Owner("old", "host", "boot", 1), 1000, outside.now)
    outside.now += 1001
    store.leases.claim("zombie", Owner("new", "host", "boot", 2), 1000, outside.now)
    with pytest.raises(Fenced):
        store.leases.write_change(old, RunChange(outside.now))
