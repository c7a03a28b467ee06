"""When a schedule is due: time zones, clock changes, missed times, and bad expressions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.ids import is_chosen
from jackline.errors import UsageError
from jackline.features.schedules import schedule_model as model
from jackline.features.schedules.schedule_model import (
    ALL,
    MOST_RECORDED,
    ON_TIME_MS,
    ONCE,
    SKIP,
    DuePlan,
    ScheduleDefinition,
    build_run_id,
    check_expression,
    find_next_due,
    iterate_due,
    list_newest_due,
    parse_catch_up,
    plan_due,
)
from jackline.formatting import DAY_MS, HOUR_MS, MINUTE_MS
from jackline.named import load_stored, stored_changes

BERLIN, NEW_YORK, SYDNEY = "Europe/Berlin", "America/New_York", "Australia/Sydney"
START = round(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
NIGHTLY = ScheduleDefinition(cron="0 3 * * *", zone="UTC", workspace="/w", run={})


def at(zone: str, text: str, fold: int = 0) -> int:
    """A local time as milliseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def list_local(cron: str, zone: str, day: str, hours: int = 24) -> list[str]:
    """The due times of a day, as the clock on the wall shows them, with the offset."""
    first = at(zone, day)
    times = list_newest_due(cron, zone, first - 1, first + hours * HOUR_MS - 1, 10_000)
    return [datetime.fromtimestamp(one / 1000, ZoneInfo(zone)).strftime("%H:%M%z") for one in times]


@pytest.mark.parametrize(
    ("cron", "zone", "day", "expected"),
    [
        # clocks go from 02:00 to 03:00
        ("30 2 * * *", BERLIN, "2026-03-29", ["03:00+0200"]),
        ("30 2 * * *", NEW_YORK, "2026-03-08", ["03:00-0400"]),
        ("0 3 * * *", BERLIN, "2026-03-29", ["03:00+0200"]),
        ("0 2,3 * * *", BERLIN, "2026-03-29", ["03:00+0200"]),
        ("*/30 2 * * *", BERLIN, "2026-03-29", []),
        ("0 */2 * * *", BERLIN, "2026-03-29", ["00:00+0100", *(f"{hour:02}:00+0200" for hour in range(4, 24, 2))]),
        # and from 03:00 to 02:00, or from 02:00 to 01:00
        ("30 2 * * *", BERLIN, "2026-10-25", ["02:30+0200"]),
        ("30 1 * * *", NEW_YORK, "2026-11-01", ["01:30-0400"]),
        ("30 2 * * *", SYDNEY, "2026-04-05", ["02:30+1100"]),
        ("*/30 2 * * *", BERLIN, "2026-10-25", ["02:00+0200", "02:30+0200", "02:00+0100", "02:30+0100"]),
        # or from 02:45 to 03:45, or from 00:00 to 01:00
        ("50 2 * * *", "Pacific/Chatham", "2026-09-27", ["03:45+1345"]),
        ("0 0 * * *", "Asia/Beirut", "2026-03-29", ["01:00+0300"]),
        # other days
        ("@hourly", "UTC", "2026-05-05", [f"{hour:02}:00+0000" for hour in range(24)]),
        ("@DAILY", BERLIN, "2026-05-05", ["00:00+0200"]),
        ("30 9 * * MON-FRI", BERLIN, "2026-05-05", ["09:30+0200"]),
        ("30 9 * * MON-FRI", BERLIN, "2026-05-09", []),
        ("0 12 L * *", "UTC", "2026-02-28", ["12:00+0000"]),
        ("15 0 0 1 1 *", "UTC", "2026-01-01", ["00:00+0000"]),
    ],
)  # fmt: skip
def test_due_times_of_a_day(cron: str, zone: str, day: str, expected: list[str]) -> None:
    hours = {
        "2026-03-29": 23,
        "2026-09-27": 23,
        "2026-03-08": 23,
        "2026-10-25": 25,
        "2026-11-01": 25,
        "2026-04-05": 25,
    }.get(day, 24)
    assert list_local(cron, zone, day, hours) == expected


def list_transitions(zone: str) -> list[int]:
    hours = range(START, START + 366 * DAY_MS, HOUR_MS)
    offsets = [datetime.fromtimestamp(hour / 1000, ZoneInfo(zone)).utcoffset() for hour in hours]
    return [hours[index] for index in range(1, len(hours)) if offsets[index] != offsets[index - 1]]


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, SYDNEY, "America/Havana", "Africa/Casablanca"])
def test_the_next_due_time_does_not_depend_on_where_the_search_starts(zone: str) -> None:
    """A service looks from the time of its last look: around a change of the clocks that may be anywhere."""
    transitions = list_transitions(zone)
    assert transitions
    for cron in ("30 2 * * *", "15,45 0-3 * * *", "0 * * * *", "*/20 0 * * *", "0 0 * * *", "59 23 * * SUN"):
        for change in transitions:
            known = list_newest_due(cron, zone, change - 9 * DAY_MS, change + 9 * DAY_MS, 10_000)
            for start in range(change - 26 * HOUR_MS, change + 26 * HOUR_MS, 20 * MINUTE_MS):
                assert find_next_due(cron, zone, start) == known[bisect_right(known, start)], (cron, start)


@pytest.mark.parametrize("zone", [BERLIN, "Asia/Beirut", "Pacific/Chatham", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("cron", "minutes", "hours", "days"),
    [
        ("*/4 3 * * *", range(0, 60, 4), [3], range(7)),
        ("57 * * * *", [57], range(24), range(7)),
        ("*/20 0-3 * * SUN", range(0, 60, 20), range(4), [6]),
    ],
)
def test_the_wall_is_followed_wherever_and_whenever_the_clocks_are_moved(
    zone: str, cron: str, minutes: Sequence[int], hours: Sequence[int], days: Sequence[int]
) -> None:
    """Such as at a quarter to three, or by half an hour: each minute on the wall counts."""
    for change in list_transitions(zone):
        start, end = change - 50 * HOUR_MS, change + 50 * HOUR_MS
        walls = {one: datetime.fromtimestamp(one / 1000, ZoneInfo(zone)) for one in range(start, end, MINUTE_MS)}
        expected = [
            one
            for one, wall in walls.items()
            if wall.minute in minutes and wall.hour in hours and wall.weekday() in days
        ]
        found = iterate_due(cron, zone, start - 1)
        assert list(islice(found, len(expected))) == expected
        assert next(found) >= end


fields = st.tuples(
    st.sampled_from(["0", "*/7", "5,50", "30"]),
    st.sampled_from(["*", "2", "1-3", "*/5", "0,23"]),
    st.sampled_from(["*", "1", "L", "29-31"]),
    st.sampled_from(["*", "3", "OCT-NOV"]),
    st.sampled_from(["*", "SUN", "1#2", "5L"]),
).map(" ".join)


@given(fields, st.sampled_from([BERLIN, NEW_YORK, SYDNEY]), st.integers(0, 300 * DAY_MS), st.integers(0, 9 * DAY_MS))
def test_newest_due_times_are_the_end_of_all_due_times(cron: str, zone: str, offset: int, length: int) -> None:
    after = START + offset
    every = []
    for due in iterate_due(cron, zone, after):
        if due > after + length:
            break
        every.append(due)
    assert every == sorted(set(every))
    for least in (1, 3, 10_000):
        found = list_newest_due(cron, zone, after, after + length, least)
        assert found == every[len(every) - len(found) :]
        assert len(found) >= min(least, len(every))


policies = st.sampled_from([(SKIP, 10), (ONCE, 10), (ALL, 3), (ALL, 999)])


@given(policies, st.integers(0, 40 * DAY_MS), st.integers(-2 * DAY_MS, 4 * DAY_MS))
def test_a_plan_covers_every_due_time_once(policy: tuple[str, int], offset: int, passed: int) -> None:
    definition = NIGHTLY._replace(cron="*/50 * * * *", zone=BERLIN, catch_up=policy[0], catch_up_most=policy[1])
    checked = at(BERLIN, "2026-03-01") + offset
    plan = plan_due(definition, checked, checked + passed)
    if passed <= 0:
        assert plan == DuePlan()
        return
    every = list_newest_due(definition.cron, BERLIN, checked, checked + passed, 10_000)
    listed = [*plan.missed, *plan.fires]
    assert listed == every[len(every) - len(listed) :]
    if len(listed) < len(every):
        assert plan.missed_since == every[0]
        assert len(plan.missed) == MOST_RECORDED
    else:
        assert plan.missed_since is None
    wanted = min(policy[1], len(every)) if policy[0] == ALL else min(1, len(every))
    if policy[0] == SKIP and every and checked + passed - every[-1] > ON_TIME_MS:
        wanted = 0
    assert len(plan.fires) == wanted


def test_seconds_over_years_are_planned_at_once() -> None:
    every_second = NIGHTLY._replace(cron="* * * * * *", catch_up=SKIP)
    plan = plan_due(every_second, START, START + 10 * 366 * DAY_MS)
    assert plan.missed_since == START + 1000
    assert len(plan.missed) == MOST_RECORDED
    assert plan.fires == (START + 10 * 366 * DAY_MS,)


@pytest.mark.parametrize(
    ("cron", "says"),
    [
        ("", "wrong number of fields"),
        ("0 3 * *", "wrong number of fields"),
        ("* * * * * * *", "wrong number of fields"),
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * 8", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("5-1 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 3 * * MO", "bad day-of-week"),
        ("@nightly", "known are @hourly"),
        ("@reboot", "known are @hourly"),
        ("every night", "wrong number of fields"),
        ("\N{DIGIT ZERO}\N{ARABIC-INDIC DIGIT ONE} * * * *", "write five fields"),
        ("9" * 5_000 + " * * * *", "write five fields"),
        ("0 0 * * 1,\x1b[31m", "bad day-of-week"),
    ],
)
def test_bad_expressions_are_refused_with_an_example(cron: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_expression(cron, "UTC", START)
    assert says in str(refused.value)
    assert '"0 3 * * *"' in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe", "a\0b", "x" * 5000]
)
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="is not a time zone"):
        check_expression("0 3 * * *", zone, START)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("skip", (SKIP, 10)), ("once", (ONCE, 10)), ("all", (ALL, 10)), ("all:1", (ALL, 1)), ("all:999", (ALL, 999))],
)
def test_catch_up(text: str, expected: tuple[str, int]) -> None:
    assert parse_catch_up(text) == expected


@pytest.mark.parametrize("text", ["", "none", "all:0", "all:", "all:1000", "all:-1", "once:2", "skip:1", "all:٣"])
def test_bad_catch_up(text: str) -> None:
    with pytest.raises(UsageError, match="use skip, once, all"):
        parse_catch_up(text)


@given(st.integers(0, 4 * 10**12))
def test_run_ids_are_valid_and_differ(due_at: int) -> None:
    name = "n" * model.LONGEST_NAME
    run_id = build_run_id(name, due_at)
    assert is_chosen(run_id)
    assert run_id != build_run_id(name, due_at + 1)


def test_definitions_are_stored_without_defaults_and_read_again() -> None:
    assert stored_changes(NIGHTLY) == {"cron": "0 3 * * *", "zone": "UTC", "workspace": "/w", "run": {}}
    every = NIGHTLY._replace(catch_up=ALL, catch_up_most=3, overlap="queue", only_if="make", expect_ms=5)
    assert load_stored(ScheduleDefinition, stored_changes(every)) == every
