"""What becomes of a fire: its run, an earlier run that has not ended, a condition, a mistake, a dead service."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline.app import config
from jackline.app.config import Config, load_config
from jackline.app.home import Home
from jackline.app.own_files import confirm_changes, find_unconfirmed, watch_own_files
from jackline.cli.stored_args import open_workspace_home
from jackline.domain.states import RunState
from jackline.engine import command_runner
from jackline.engine.command_runner import CommandResult, run_command
from jackline.features.notify.channel_pass import run_passes
from jackline.features.notify.ping import list_ping_passes
from jackline.features.schedules import schedule_store
from jackline.features.schedules.fire_reports import list_unreported_fires
from jackline.features.schedules.firing import ScheduleRunner, create_run
from jackline.features.schedules.schedule_model import Fire, Schedule, ScheduleDefinition
from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.formatting import DAY_MS, HOUR_MS, MINUTE_MS
from tests.cli.test_ping import PingServer
from tests.support.stores import by_hand

START = 1_767_225_600_000  # the first of January 2026
FIRST = START + 3 * HOUR_MS
SCRIPT = '{"version": 1, "steps": [{"say": "hello"}]}'


class Night:
    """A home with a schedule at three in the morning, and a clock that a test sets."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home, self.folder, self.now = home, folder, START
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        (folder / "script.json").write_text(SCRIPT)
        self.schedules = ScheduleStore(home.store(create=True))

    def add(self, **changes: Any) -> None:
        definition = ScheduleDefinition(
            cron="0 3 * * *",
            zone="UTC",
            workspace=str(self.workspace),
            run={"prompt": "do it", "agent": "scripted", "script": str(self.folder / "script.json")},
        )
        definition = definition._replace(**changes)
        self.schedules.put(Schedule("nightly", definition, self.now, None, self.now, self.now))

    def look(self, now: int, owner: str = "service-1") -> list[str]:
        """One look of a service at this time; the states of the fires, oldest first."""
        self.now = now
        runner = ScheduleRunner(self.home, owner, lambda: self.now)
        runner.record_due()
        runner.start_runs()
        runner.settle_open()
        return [fire.state for fire in self.fires]

    @property
    def fires(self) -> list[Fire]:
        return self.schedules.list_fires("nightly", 100)[::-1]

    @property
    def notices(self) -> list[tuple[str, str]]:
        found = [one for one in self.home.store().notices.list_newest() if one.subject == "schedule:nightly"]
        return [(one.kind, one.body) for one in reversed(found)]

    def end_run(self, run_id: str) -> None:
        self.home.store().runs.request_cancel(run_id, self.now, f"notice-{run_id}")


@pytest.fixture
def night(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    home = Home(load_config(os.environ, str(tmp_path), {"home": str(tmp_path / "home"), "database": database}))
    monkeypatch.setenv("JACKLINE_DATABASE", database)
    home.create()
    with home:
        yield Night(home, tmp_path)


def test_the_database_and_the_env_file_of_the_command_line_apply_to_what_was_stored(
    database: str, tmp_path: Path
) -> None:
    keys = str(tmp_path / "keys.env")
    flags = {"home": str(tmp_path / "home"), "database": database, "env_file": keys}
    with Home(load_config(os.environ, str(tmp_path), flags)) as home:
        there = open_workspace_home(home, str(tmp_path), {"agent": "scripted"})
        assert there.database == home.database
        assert there.config.get_text("env_file") == keys
        assert there.config.get_text("agent") == "scripted"


def test_a_fire_puts_its_run_into_the_queue_once(night: Night) -> None:
    night.add()
    assert night.look(FIRST - 1) == []
    assert night.look(FIRST + 500) == ["started"]
    assert night.look(FIRST + 900, "service-2") == ["started"]
    run = night.home.store().runs.get("nightly-20260101T030000Z")
    assert run is not None
    assert (run.status.state, run.spec.prompt, run.spec.workspace) == (RunState.QUEUED, "do it", str(night.workspace))
    assert night.home.store().queue.get(run.id) is not None
    night.end_run(run.id)
    assert night.look(FIRST + HOUR_MS) == ["ended"]
    assert night.fires[0].reason == "cancelled"
    assert night.notices == []


def test_a_clock_that_is_set_back_fires_nothing_again(night: Night) -> None:
    night.add()
    night.look(FIRST)
    night.end_run("nightly-20260101T030000Z")
    assert night.look(FIRST - HOUR_MS) == ["ended"]
    assert night.look(FIRST) == ["ended"]
    assert night.look(FIRST + DAY_MS - 1) == ["ended"]
    assert night.look(FIRST + DAY_MS) == ["ended", "started"]


def test_a_due_time_is_recorded_by_one_of_two_services(night: Night) -> None:
    """The second one read the schedule before the first one had passed the time."""
    night.add(catch_up="skip")
    night.look(FIRST)
    by_hand(night.home.store(), "UPDATE schedules SET checked_until = checked_until - 60000")
    assert night.look(FIRST + 500, "service-2") == ["started"]
    by_hand(night.home.store(), "UPDATE schedules SET checked_until = checked_until - 60000")
    night.end_run("nightly-20260101T030000Z")
    assert night.look(FIRST + HOUR_MS) == ["ended"]
    assert len(by_hand(night.home.store(), "SELECT id FROM runs")) == 1


def test_a_taken_fire_is_left_alone(night: Night) -> None:
    night.add(only_if="true")
    night.now = FIRST
    ScheduleRunner(night.home, "service-1", lambda: FIRST).record_due()
    (fire,) = night.fires
    assert night.schedules.take(fire, "service-1", FIRST, 60_000)
    assert not night.schedules.take(fire, "service-2", FIRST + 1, 60_000)
    assert night.schedules.take(fire, "service-2", FIRST + 60_000, 60_000)
    # The claim of a clock that was set back by days does not hold for days.
    assert night.schedules.take(fire, "service-3", FIRST - 3 * DAY_MS, 60_000)


@pytest.mark.parametrize(
    ("changes", "states"),
    [
        ({"catch_up": "skip"}, ["missed"] * 3),
        ({"catch_up": "once"}, ["missed", "missed", "started"]),
        ({"catch_up": "all", "overlap": "queue"}, ["started", "claimed", "claimed"]),
        ({"catch_up": "all", "catch_up_most": 2, "overlap": "queue"}, ["missed", "started", "claimed"]),
    ],
)
def test_missed_times_are_recorded_and_caught_up(night: Night, changes: dict[str, Any], states: list[str]) -> None:
    night.add(**changes)
    assert night.look(FIRST + 2 * DAY_MS + HOUR_MS) == states
    missed = states.count("missed")
    assert [kind for kind, _ in night.notices] == (["schedule.missed"] if missed else [])
    if missed:
        assert night.notices[0][1].startswith(f"{missed} due times missed" if missed > 1 else "1 due time missed")


def test_a_thousand_missed_times_are_one_row_and_the_newest(night: Night) -> None:
    night.add(cron="*/5 * * * *", catch_up="skip")
    states = night.look(START + 30 * DAY_MS + 2 * MINUTE_MS)
    assert states == ["missed"] * 51
    assert night.fires[0].reason == "and all until 2026-01-30T19:55:00Z"
    assert night.fires[0].due_at == START + 5 * MINUTE_MS
    assert len(night.notices) == 1


def test_times_that_one_row_covers_do_not_fire_after_the_clock_was_set_back(night: Night) -> None:
    """They have no row of their own that would keep them from being recorded again."""
    night.add(cron="*/5 * * * *", catch_up="skip")
    before = night.look(START + 30 * DAY_MS + 2 * MINUTE_MS)
    night.schedules.record_due("nightly", START + DAY_MS)
    assert night.look(START + DAY_MS + 5 * MINUTE_MS) == before
    assert night.schedules.get("nightly").checked_until == START + 30 * DAY_MS + 2 * MINUTE_MS


def test_an_unfinished_run_skips_the_next_fire(night: Night) -> None:
    night.add()
    night.look(FIRST)
    assert night.look(FIRST + DAY_MS) == ["started", "skipped"]
    assert night.fires[1].reason == "run nightly-20260101T030000Z has not ended"
    night.end_run("nightly-20260101T030000Z")
    assert night.look(FIRST + 2 * DAY_MS) == ["ended", "skipped", "started"]


def test_an_unfinished_run_queues_the_next_fire(night: Night) -> None:
    night.add(overlap="queue")
    night.look(FIRST)
    assert night.look(FIRST + DAY_MS) == ["started", "claimed"]
    night.end_run("nightly-20260101T030000Z")
    assert night.look(FIRST + DAY_MS + MINUTE_MS) == ["ended", "started"]


@pytest.mark.parametrize(("overlap", "after"), [("queue", "claimed"), ("skip", "skipped"), ("cancel-old", "started")])
def test_two_services_fire_one_after_the_other(night: Night, overlap: str, after: str) -> None:
    """The second one looks when the first one has decided about its fire, and has not created the run yet."""
    night.add(overlap=overlap, catch_up="all", catch_up_most=2, only_if="true")
    now = FIRST + DAY_MS
    other = ScheduleRunner(night.home, "service-2", lambda: now)
    seen: list[list[str]] = []

    def create_slowly(home: Home, schedule: Schedule, fire: Fire) -> None:
        if not seen:
            assert other.start_runs() == 0
            assert not night.schedules.take(night.fires[1], "service-2", now, MINUTE_MS)  # such as for `run-now`
            seen.append([fire.state for fire in night.fires])
        create_run(home, schedule, fire)

    runner = ScheduleRunner(night.home, "service-1", lambda: now, create_slowly)
    runner.record_due()
    runner.start_runs()
    assert seen == [["claimed", "claimed"]]
    other.start_runs()
    assert [fire.state for fire in night.fires] == ["started", after]


def test_a_fire_waits_for_one_that_a_person_has_just_started(night: Night) -> None:
    night.add(overlap="queue")
    service = ScheduleRunner(night.home, "service-1", lambda: FIRST + 500)

    def create_slowly(home: Home, schedule: Schedule, fire: Fire) -> None:
        assert (service.record_due(), service.start_runs()) == (1, 0)
        create_run(home, schedule, fire)

    fire = ScheduleRunner(night.home, "command", lambda: FIRST + 100, create_slowly).start_one("nightly")
    assert fire.state == "started"
    service.start_runs()
    assert [fire.state for fire in night.fires] == ["claimed", "started"]


def test_a_person_gets_the_result_of_their_own_fire(night: Night) -> None:
    """A service may record the next due time before a condition is known, or the run exists."""
    night.add(overlap="queue")

    def create_slowly(home: Home, schedule: Schedule, fire: Fire) -> None:
        assert ScheduleRunner(night.home, "service-1", lambda: FIRST).record_due() == 1
        create_run(home, schedule, fire)

    fire = ScheduleRunner(night.home, "command", lambda: FIRST - 100, create_slowly).start_one("nightly")
    assert (fire.due_at, fire.state) == (FIRST - 100, "started")
    assert [fire.state for fire in night.fires] == ["started", "claimed"]


def test_a_condition_that_outlasts_its_claim_starts_nothing(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine slept, and another service has decided about the fire in the meantime."""
    night.add(only_if="true")
    exit_codes = [0, 1]

    def run_slowly(*words: Any, **more: Any) -> CommandResult:
        exit_code = exit_codes.pop(0)
        if exit_code == 0:
            ScheduleRunner(night.home, "service-2", lambda: FIRST + HOUR_MS).start_runs()
        return run_command(f"exit {exit_code}", **more)

    monkeypatch.setattr(command_runner, "run_command", run_slowly)
    runner = ScheduleRunner(night.home, "service-1", lambda: FIRST)
    runner.record_due()
    runner.start_runs()
    assert ([fire.state for fire in night.fires], exit_codes) == (["not_wanted"], [])
    assert by_hand(night.home.store(), "SELECT id FROM runs") == []


def test_a_schedule_whose_run_does_not_end_does_not_stop_the_others(night: Night) -> None:
    """A version before may have left any number of fires."""
    night.add(overlap="queue", expect_ms=HOUR_MS)
    night.look(FIRST)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) "
    columns = "schedule, due_at, state, run_id, reason, at, updated_at, owner, claimed_until"
    rows = f"SELECT 'nightly', {FIRST} + i, 'claimed', 'nightly-' || i, '', i, i, '', 0 FROM n"
    by_hand(night.home.store(), f"INSERT INTO schedule_fires ({columns}) {numbers}{rows}")
    hourly = night.schedules.get("nightly").definition._replace(cron="0 * * * *")
    night.schedules.put(Schedule("hourly", hourly, FIRST, None, FIRST, FIRST))
    night.now = FIRST + HOUR_MS
    runner = ScheduleRunner(night.home, "service-1", lambda: night.now)
    assert runner.record_due() == 1
    assert runner.start_runs() == 2
    assert [fire.state for fire in night.schedules.list_fires("hourly", 10)] == ["started"]
    night.now += HOUR_MS + 1
    runner.record_due()
    assert runner.settle_open() == 3  # `nightly` and the first that waits for it, and `hourly`
    assert "schedule:hourly" in {one.subject for one in night.home.store().notices.list_newest()}


def test_a_schedule_whose_zone_is_gone_does_not_stop_the_others(night: Night) -> None:
    """An update of the machine may remove old names of zones."""
    night.add()
    gone = night.schedules.get("nightly").definition._replace(zone="Old/Name")
    night.schedules.put(Schedule("broken", gone, START, None, START, START))
    for _ in range(2):
        assert night.look(FIRST) == ["started"]
    runner = ScheduleRunner(night.home, "service-1", lambda: night.now)
    assert (runner.has_work(), runner.find_pause() > 0) == (False, True)
    (notice,) = [one for one in night.home.store().notices.list_newest() if one.subject == "schedule:broken"]
    assert (notice.kind, "'Old/Name' is not a time zone" in notice.body) == ("schedule.failed", True)
    ((name, text),) = list_unreported_fires(night.home, START, FIRST)
    assert (name, "cannot fire" in text) == ("broken", True)


def test_only_so_many_fires_of_a_schedule_wait(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_store, "MOST_WAITING", 2)
    night.add(overlap="queue", catch_up_most=2)
    for day in range(4):
        night.look(FIRST + day * DAY_MS)
    assert [fire.state for fire in night.fires] == ["started", "claimed", "claimed", "skipped"]
    assert (night.fires[3].reason, night.fires[3].run_id) == ("2 fires wait already", "")


def test_an_unfinished_run_is_cancelled_for_the_next_fire(night: Night) -> None:
    night.add(overlap="cancel-old")
    night.look(FIRST)
    assert night.look(FIRST + DAY_MS) == ["ended", "started"]
    old = night.home.store().runs.get("nightly-20260101T030000Z")
    assert old is not None
    assert old.status.state is RunState.CANCELLED


@pytest.mark.parametrize(
    ("command", "state", "reason"),
    [
        ("test -d .", "started", ""),
        ("echo 3 failed; exit 5", "not_wanted", "exit 5: 3 failed"),
        ("echo why >&2; false", "not_wanted", "exit 1: why"),
        ("kill -9 $$", "not_wanted", "ended by signal 9"),
        ("no-such-program-at-all", "failed", "cannot be started"),
    ],
)
def test_a_condition(night: Night, command: str, state: str, reason: str) -> None:
    night.add(only_if=command)
    assert night.look(FIRST) == [state]
    assert reason in night.fires[0].reason
    assert [kind for kind, _ in night.notices] == (["schedule.failed"] if state == "failed" else [])


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"only_if": "exit 1"}, [""]),
        ({"only_if": "kill -9 $$"}, []),
        ({"only_if": "no-such-program"}, ["/fail"]),
        ({"workspace": "/no/such/folder"}, ["/fail"]),
    ],
)
def test_a_fire_without_a_run_pings_too(night: Night, changes: dict[str, Any], paths: list[str]) -> None:
    """Whoever waits for a ping would raise a false alarm, or learn of a mistake only when the time is over."""
    run = {"prompt": "do it", "agent": "scripted", "script": str(night.folder / "script.json")}
    server = PingServer()
    night.add(run={**run, "ping": server.url}, **changes)
    night.look(FIRST)
    until = time.monotonic() + 60
    run_passes(list_ping_passes(night.home, "test", until), until)
    server.close()
    assert server.paths == paths
    for _, _, body in server.seen:
        assert body.startswith(f"schedule nightly, due at 2026-01-01T03:00:00Z: {night.fires[0].state}\n")
    assert not night.home.store().notices.has_open_ping()


def test_a_condition_runs_in_the_workspace_and_in_its_own_task(night: Night) -> None:
    night.add(only_if="pwd > here")
    runner = ScheduleRunner(night.home, "service-1", lambda: FIRST)
    runner.record_due()
    assert runner.start_runs(conditional=False) == 0
    assert runner.start_runs(conditional=True) == 1
    assert (night.workspace / "here").read_text().strip() == str(night.workspace)


def test_a_schedule_whose_conditions_take_long_lets_the_others_have_their_turn(night: Night) -> None:
    for name in ("weekly", "nightly"):
        night.add(only_if=f"echo {name} >> order; false", catch_up="all")
        night.schedules.put(night.schedules.get("nightly")._replace(name=name))
    night.now = FIRST + DAY_MS
    runner = ScheduleRunner(night.home, "service-1", lambda: night.now)
    assert (runner.record_due(), runner.start_runs()) == (4, 4)
    assert (night.workspace / "order").read_text().split() == ["nightly", "weekly"] * 2


@pytest.mark.parametrize("start", ["", "env -i PATH=$PATH HOME=$HOME "])
def test_a_condition_may_not_decide_as_a_person(night: Night, start: str) -> None:
    hold = f"{sys.executable} -P -m jackline hold one --home {night.home.path} > said 2>&1"
    # The shell that starts it ends first, so that it has lost its parent.
    inner = f"(until [ -e gone ]; do sleep 0.05; done; {hold}; echo > done) &"
    night.add(only_if=f"mkfifo done; {start}sh -c '{inner}'; touch gone; cat done")
    assert night.look(FIRST) == ["started"]
    assert "refused inside a run" in (night.workspace / "said").read_text()


def test_a_change_of_the_settings_delays_a_fire_until_it_is_confirmed(night: Night, tmp_path: Path) -> None:
    night.add(only_if="touch looked")
    settings = tmp_path / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    with watch_own_files(night.home, "run-1"):
        settings.write_text("# of an agent\n")
    assert (night.look(FIRST), night.notices) == (["claimed"], [])
    assert ("jackline trust" in night.fires[0].reason, (night.workspace / "looked").exists()) == (True, False)
    change = find_unconfirmed(night.home)
    assert change is not None
    confirm_changes(night.home, change)
    assert night.look(FIRST + HOUR_MS) == ["started"]


def test_a_home_that_waits_for_a_person_leaves_a_fire_to_another_home_of_the_database(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night.add()
    settings = tmp_path / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    with watch_own_files(night.home, "run-1"):
        settings.write_text("# of an agent\n")
    woken: list[Home] = []
    monkeypatch.setattr(Home, "wake_services", lambda home: woken.append(home))  # noqa: PLW0108 - it binds the home
    assert night.look(FIRST) == ["claimed"]
    assert woken == [night.home]
    assert ScheduleRunner(night.home, "service-1", lambda: night.now).start_runs() == 0  # it does not take it again
    values = {**night.home.config.values, "home": str(tmp_path / "other")}
    with Home(night.home.config._replace(values=values)) as other:
        assert ScheduleRunner(other, "service-2", lambda: night.now).start_runs() == 1
    assert night.fires[0].state == "started"


def test_settings_that_an_agent_changes_for_a_moment_start_no_run(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night.add()
    settings = tmp_path / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("# mine\n")

    def load_at_the_wrong_moment(*args: Any, **more: Any) -> Config:
        settings.write_text("max_usd = 9999\n")
        loaded = load_config(*args, **more)
        settings.write_text("# mine\n")
        return loaded

    with watch_own_files(night.home, "run-1"):
        monkeypatch.setattr(config, "load_config", load_at_the_wrong_moment)
        assert night.look(FIRST) == ["failed"]
    assert "was changed while" in night.fires[0].reason


def test_a_request_that_cannot_be_built_is_a_notice(night: Night) -> None:
    night.add(run={"task": "no-such-task", "label": ["night,urgent", "docs"]})
    assert night.look(FIRST) == ["failed"]
    assert night.home.store().notices.list_newest()[0].labels == "night urgent docs"
    assert "no task is called 'no-such-task'" in night.fires[0].reason
    assert [kind for kind, _ in night.notices] == ["schedule.failed"]
    night.add()
    shutil.rmtree(night.workspace)
    assert night.look(FIRST + DAY_MS) == ["failed", "failed"]
    assert "is not a folder" in night.fires[1].reason
    assert night.look(FIRST + DAY_MS + MINUTE_MS) == ["failed", "failed"]
    assert len(night.notices) == 2


def test_the_same_mistake_is_a_notice_once_a_day(night: Night) -> None:
    night.add(run={"task": "no-such-task"}, cron="0,1,2,3 3 * * *")
    for minute in range(3):
        night.look(FIRST + minute * MINUTE_MS)
    assert [fire.state for fire in night.fires] == ["failed"] * 3
    assert len(night.notices) == 1
    night.add(run={"task": "another-task"}, cron="0,1,2,3 3 * * *")
    night.look(FIRST + 3 * MINUTE_MS)
    assert len(night.notices) == 2


def test_the_request_is_resolved_when_it_fires(night: Night) -> None:
    task = night.workspace / ".agents" / "tasks" / "look.md"
    task.parent.mkdir(parents=True)
    task.write_text("First words.\n")
    script = str(night.folder / "script.json")
    night.add(run={"task": "look", "agent": "scripted", "script": script, "max_calls": "7"})
    task.write_text("Second words.\n")
    assert night.look(FIRST) == ["started"]
    run = night.home.store().runs.get("nightly-20260101T030000Z")
    assert run is not None
    assert (run.spec.prompt, run.spec.task, run.spec.limits.calls) == ("Second words.", "look", 7)


def test_a_run_that_does_not_end_in_time_is_reported_once(night: Night) -> None:
    night.add(expect_ms=2 * HOUR_MS)
    night.look(FIRST)
    assert night.look(FIRST + 2 * HOUR_MS) == ["started"]
    assert night.look(FIRST + 2 * HOUR_MS + 1) == ["overdue"]
    assert night.look(FIRST + 3 * HOUR_MS) == ["overdue"]
    assert [kind for kind, _ in night.notices] == ["schedule.overdue"]
    assert "is queued: expected within 2h 00m" in night.notices[0][1]
    night.end_run("nightly-20260101T030000Z")
    assert night.look(FIRST + 4 * HOUR_MS) == ["ended"]


def test_a_fire_that_was_late_itself_is_reported_when_a_service_comes_back(night: Night) -> None:
    night.add(expect_ms=HOUR_MS)
    assert night.look(FIRST + 5 * HOUR_MS) == ["overdue"]
    assert [kind for kind, _ in night.notices] == ["schedule.overdue"]


def test_a_paused_schedule_misses_nothing(night: Night) -> None:
    night.add()
    night.schedules.pause("nightly", START)
    assert night.look(FIRST) == []
    night.schedules.resume("nightly", FIRST + HOUR_MS)
    assert night.look(FIRST + 2 * HOUR_MS) == []
    assert night.look(FIRST + DAY_MS) == ["started"]


def test_the_history_is_bounded(night: Night) -> None:
    night.add(cron="* * * * *", catch_up="skip")
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
    columns = "schedule, due_at, state, run_id, reason, at, updated_at, owner, claimed_until"
    rows = "SELECT 'nightly', i, 'missed', '', '', i, i, '', 0 FROM n"
    by_hand(night.home.store(), f"INSERT INTO schedule_fires ({columns}) {numbers}{rows}")
    night.look(START + MINUTE_MS)
    assert len(night.schedules.list_fires("nightly", 10_000)) == 2001


KILLED = """
import os, signal, sys
from jackline.app.home import open_home
from jackline.features.schedules import firing
def create(home, schedule, fire):
    if sys.argv[1] == "after":
        firing.create_run(home, schedule, fire)
    os.kill(os.getpid(), signal.SIGKILL)
with open_home() as home:
    runner = firing.ScheduleRunner(home, "killed", lambda: int(sys.argv[2]), create)
    runner.record_due()
    runner.start_runs()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_service_that_is_killed_around_the_creation_of_a_run(night: Night, when: str) -> None:
    night.add()
    environ = {**os.environ, "JACKLINE_HOME": night.home.path}
    killed = subprocess.run([sys.executable, "-c", KILLED, when, str(FIRST)], env=environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [fire.state for fire in night.fires] == ["claimed"]
    assert night.look(FIRST + 1000) == ["claimed"]  # it may still live
    assert night.look(FIRST + 2 * MINUTE_MS) == ["started"]
    assert len(by_hand(night.home.store(), "SELECT id FROM runs")) == 1
