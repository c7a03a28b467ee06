"""A simulated year of schedules: three services at once, clocks that jump, deaths between each two steps.

Every due time must be recorded once, and every fire must have created one run, whoever died where.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.features.schedules.firing import ScheduleRunner
from jackline.features.schedules.schedule_model import (
    ALL,
    ENDED,
    MISSED,
    ONCE,
    QUEUE,
    SKIP,
    SKIPPED,
    STARTED,
    Fire,
    Schedule,
    ScheduleDefinition,
    list_newest_due,
)
from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.formatting import DAY_MS, HOUR_MS, MINUTE_MS, format_iso
from tests.conftest import SAID, SLOW_BACKENDS
from tests.support.stores import new_run

SEED = int(os.environ.get("JACKLINE_SEED", "0"))
NEW_YEAR = 1_767_225_600_000  # 2026
CRONS = {
    "berlin-night": ("30 2 * * *", "Europe/Berlin", ALL),
    "berlin-quarters": ("0 */6 * * *", "Europe/Berlin", ONCE),
    "new-york-night": ("30 1 * * *", "America/New_York", ALL),
    "new-york-noon": ("0 12 * * MON-FRI", "America/New_York", SKIP),
    "sydney-night": ("15 2 * * *", "Australia/Sydney", ALL),
}


class Killed(BaseException):
    """The process died here."""


class Clock:
    """The clock on the wall, as all services of one host read it."""

    def __init__(self, start: int) -> None:
        self.now = self.latest = start

    def __call__(self) -> int:
        return self.now

    def move(self, by: int) -> None:
        self.now += by
        self.latest = max(self.now, self.latest)


class World:
    """What the services share: the database, the clock, and a list of what was created."""

    def __init__(self, clock: Clock, homes: list[Home], chance: random.Random) -> None:
        self.clock, self.homes, self.chance = clock, homes, chance
        self.created: Counter[str] = Counter()
        self.unfinished: set[str] = set()
        self.deaths = self.lives = 0
        self._lock = threading.Lock()

    def look(self, home: Home, dies_at: str) -> None:
        """One look of one service."""
        with self._lock:
            self.lives += 1
            owner = f"service-{self.lives}"
        runner = ScheduleRunner(home, owner, self.clock, self.build_creation(home, dies_at))
        try:
            runner.record_due()
            self.die_at("recorded", dies_at)
            runner.start_runs()
            runner.settle_open()
        except Killed:
            with self._lock:
                self.deaths += 1

    def die_at(self, place: str, dies_at: str) -> None:
        if place == dies_at:
            raise Killed

    def build_creation(self, home: Home, dies_at: str) -> Callable[[Home, Schedule, Fire], None]:
        def create(_home: Home, _schedule: Schedule, fire: Fire) -> None:
            self.die_at("taken", dies_at)
            _, is_new = home.store().runs.create(new_run(fire.run_id), self.clock())
            with self._lock:
                self.created[fire.run_id] += is_new
                self.unfinished.add(fire.run_id)
            self.die_at("created", dies_at)

        return create

    def step(self, *, may_die: bool = True) -> None:
        """Move the clock, then let every service look at the same time."""
        self.clock.move(self.choose_step() if may_die else 2 * MINUTE_MS)
        places = ("recorded", "taken", "created")
        risk = 0.2 if may_die else 0.0
        deaths = [self.chance.choice(places) if self.chance.random() < risk else "" for _ in self.homes]
        threads = [
            threading.Thread(target=self.look, args=(home, death))
            for home, death in zip(self.homes, deaths, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while self.unfinished:  # the engine's part: every run ends before the next step
            run_id = self.unfinished.pop()
            self.homes[0].store().runs.request_cancel(run_id, self.clock(), f"notice-{run_id}")

    def choose_step(self) -> int:
        roll = self.chance.random()
        if roll < 0.05:
            return -self.chance.randrange(2 * DAY_MS)
        if roll < 0.10:
            return self.chance.randrange(3 * DAY_MS)
        return self.chance.randrange(MINUTE_MS if roll < 0.2 else 12 * HOUR_MS)


@pytest.fixture
def homes(database: str, tmp_path: Path) -> Iterator[list[Home]]:
    """Three services of one home, each with its own connection."""
    found = [
        Home(load_config({}, str(tmp_path), {"home": str(tmp_path / "home"), "database": database})) for _ in "abc"
    ]
    yield found
    for home in found:
        home.close()


def simulate(homes: list[Home], start: int, end: int, seed: int) -> tuple[World, dict[str, int]]:
    clock = Clock(start)
    schedules = ScheduleStore(homes[0].store())
    for name, (cron, zone, policy) in CRONS.items():
        definition = ScheduleDefinition(
            cron=cron,
            zone=zone,
            workspace="/",
            run={},
            catch_up=policy,
            catch_up_most=999,
            overlap=QUEUE if policy == ALL else SKIP,
        )
        schedules.put(Schedule(name, definition, start, None, start, start))
    world = World(clock, homes, random.Random(seed))
    while clock.latest < end:
        world.step()
    clock.now = clock.latest
    for _ in range(20):  # nothing dies or jumps any more: what was begun is finished
        world.step(may_die=False)
    return world, check(world, schedules, start)


def check(world: World, schedules: ScheduleStore, start: int) -> dict[str, int]:
    """Each due time has one row; a row that started has one run; no other run exists."""
    states: Counter[str] = Counter()
    expected = set()
    for name, (cron, zone, policy) in CRONS.items():
        due = list_newest_due(cron, zone, start, world.clock.now, 10**6)
        fires = schedules.list_fires(name, 10**6)[::-1]
        assert [fire.due_at for fire in fires] == due, name
        allowed = {STARTED, ENDED} if policy == ALL else {STARTED, ENDED, MISSED, SKIPPED}
        assert {fire.state for fire in fires} <= allowed, name
        states.update(fire.state for fire in fires)
        expected |= {fire.run_id for fire in fires if fire.state in {STARTED, ENDED}}
    assert set(world.created) == expected
    assert set(world.created.values()) == {1}
    return dict(states)


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
@pytest.mark.parametrize("season", ["spring", pytest.param("autumn", marks=pytest.mark.full)])
def test_each_due_time_fires_once_in_the_months_when_clocks_change(
    homes: list[Home], season: str, record_property: Callable[[str, object], None]
) -> None:
    """Berlin, New York and Sydney all change their clocks within each of these five weeks."""
    start = NEW_YEAR + (62 if season == "spring" else 275) * DAY_MS
    world, states = simulate(homes, start, start + 36 * DAY_MS, SEED)
    assert world.deaths > 0
    record_property(SAID, f"{states} in {season} until {format_iso(world.clock.now)}, {world.deaths} deaths")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_each_due_time_of_a_year_fires_once(
    homes: list[Home], seed: int, record_property: Callable[[str, object], None]
) -> None:
    world, states = simulate(homes, NEW_YEAR, NEW_YEAR + 366 * DAY_MS, SEED + seed)
    record_property(SAID, f"{states} in a year, {world.lives} looks, {world.deaths} deaths")
