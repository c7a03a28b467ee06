"""Thousands of seeded lives of a run, each with crashes at random writes: every effect exactly once, nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from typing import TYPE_CHECKING

import pytest

from jackline.domain.agent_fallback import MOST_WINDOWS
from jackline.domain.events import broken_at
from jackline.domain.review import find_blocking
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

SEEDS = 250
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


def live(store: Store, clock: Clocked, seed: int, *, case: bool = False, limit_chance: float = 0.04) -> int:
    """One run from its creation to its end, with crashes, limits, interrupts, a service, and answers by a person.

    Returns how often a person was asked because of too many limits.
    """
    rng = random.Random(seed)
    outside = Outside(rng, remembers=rng.random() < 0.6, crashes_left=rng.randrange(7), limit_chance=limit_chance)
    clock.outside = outside
    effects, probe = rng.randrange(1, 4), rng.random() < 0.6
    run_id = f"seed-{seed}"
    store.runs.create(NewRun(run_id, "/sim", spec_for(effects, case=case), "digest"), outside.now)
    last_step, limits, asked = 0, 0, 0
    for _ in range(MOST_ATTEMPTS):
        before = store.runs.get(run_id)
        assert before is not None
        assert before.status.step >= last_step, "steps went backwards"
        last_step = before.status.step
        check_no_double(outside)
        if before.status.state is RunState.SUCCEEDED:
            check_end(store, before, outside, effects)
            return asked
        by_service = wakes_by_itself(before)
        limits = limits if by_service else 0
        asked += before.status.reason is WaitReason.HUMAN and "limits since a person" in before.status.detail
        outside.now = max(outside.now, before.status.wake_at or 0)
        answer_truthfully(store, before, outside)
        with contextlib.suppress(Crash):
            ended = attempt(store, run_id, outside, probe=probe, by_service=by_service)
            limits += ended.status.reason is WaitReason.LIMIT
        assert limits <= MOST_WINDOWS, "it waited for one limit after the other, and no person knows"
    pytest.fail("the run did not come to an end")


def wakes_by_itself(run: Run) -> bool:
    """Whether a service continues the run: it is lost, was answered, or waits for something that ends by itself."""
    status = run.status
    if status.state is RunState.WAITING:
        return status.wake_at is not None
    return status.state is RunState.RUNNING or (status.state is RunState.QUEUED and status.attempt > 0)


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


def over_seeds(count: int, one: Callable[[int], object]) -> None:
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


def test_a_service_wakes_every_run_until_its_end_and_asks_a_person_after_five_limits(
    clocked: tuple[Store, Clocked],
) -> None:
    store, clock = clocked
    asked = 0

    def one(seed: int) -> None:
        nonlocal asked
        asked += live(store, clock, seed + 2_000_000, limit_chance=0.6)

    over_seeds(SEEDS // 10, one)
    assert asked or "JACKLINE_SEED" in os.environ, "no run met so many limits: this test sees nothing"


def live_in_the_loop(store: Store, clock: Clocked, seed: int) -> None:
    """One run with two reviewers, from its plan to its end, with crashes in every phase; a person decides for it."""
    rng = random.Random(seed)
    outside = Outside(rng, crashes_left=rng.randrange(9), limit_chance=0.01, stubborn=rng.choice((0.1, 0.5, 0.9)))
    clock.outside = outside
    run_id, effects = f"loop-{seed}", rng.randrange(1, 3)
    store.runs.create(NewRun(run_id, "/sim", spec_for(effects, review=("r1", "r2")), "digest"), outside.now)
    iteration = 0
    for _ in range(MOST_ATTEMPTS):
        run = store.runs.get(run_id)
        assert run is not None
        assert run.status.iteration >= iteration, "iterations went backwards"
        iteration = run.status.iteration
        check_no_double(outside)
        check_rounds(store, run)
        if run.status.state is RunState.SUCCEEDED:
            check_end(store, run, outside, effects)
            check_reviewed(store, run)
            assert outside.committed == outside.tree, "it succeeded with work that the host has not committed"
            return
        if run.status.state is RunState.FAILED and run.status.failure != "crashed":  # then a person resumes it
            assert run.status.failure in {"proof", "review", "no_progress"}, run.status
            check_spent(store, run)
            return
        if run.status.reason is WaitReason.HUMAN:
            outside.stubborn = 0.0  # the person has talked to the reviewers
        by_service = wakes_by_itself(run)
        outside.now = max(outside.now, run.status.wake_at or 0)
        answer_truthfully(store, run, outside)
        with contextlib.suppress(Crash):
            attempt(store, run_id, outside, probe=True, by_service=by_service)
    pytest.fail("the run did not come to an end")


def check_rounds(store: Store, run: Run) -> None:
    """No seat speaks twice in a round, and no more rounds are made than a person allowed."""
    verdicts = store.reviews.list_verdicts(run.id)
    places = [(verdict.review_round, verdict.seat) for verdict in verdicts]
    assert len(set(places)) == len(places), f"a seat was heard twice in a round: {places}"
    assert run.status.review_round - run.status.rounds_from <= run.spec.review_rounds
    numbers = [finding.number for finding in store.reviews.list_findings(run.id)]
    assert numbers == list(range(1, len(numbers) + 1))


def check_reviewed(store: Store, run: Run) -> None:
    """The last proof and every verdict of the last round are about the same tree, and nothing blocks."""
    last = [one for one in store.reviews.list_verdicts(run.id) if one.review_round == run.status.review_round]
    assert {one.seat for one in last} == {0, 1}
    assert {one.tree for one in last} == {run.status.tree} == {store.records.list_checks(run.id)[-1].tree}
    assert not find_blocking(store.reviews.list_findings(run.id))
    check_spent(store, run)


def check_spent(store: Store, run: Run) -> None:
    assert run.status.spent.iterations == run.status.iteration
    over = [one.number for one in store.reviews.list_iterations(run.id)]
    assert over == list(range(1, len(over) + 1))
    assert len(over) in {run.status.iteration, run.status.iteration - 1}


def test_no_crash_lets_unreviewed_or_unproved_work_succeed(clocked: tuple[Store, Clocked]) -> None:
    store, clock = clocked
    over_seeds(SEEDS // 3, lambda seed: live_in_the_loop(store, clock, seed))


@pytest.mark.full
def test_no_crash_lets_unreviewed_or_unproved_work_succeed_for_many_more_seeds(clocked: tuple[Store, Clocked]) -> None:
    store, clock = clocked
    over_seeds(SEEDS_FULL // 3, lambda seed: live_in_the_loop(store, clock, seed + 1_000_000))


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
