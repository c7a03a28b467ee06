"""`jackline retro weekly`: what it reports and asks, and what it never overwrites."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator

import pytest

from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.records import RunStatus, Turn
from jackline.domain.states import Failure, Phase, RunState, WaitReason
from jackline.features.reports import retro_report
from jackline.store.models import RunChange
from jackline.store.open import migrate, open_store
from jackline.store.store import Store
from tests.cli.place import SAY, Place, is_one_line
from tests.support import predecessors as old
from tests.support.stores import LEASE_MS, new_run, owner

HOUR = 3_600_000
LAST = retro_report.get_last_full_week(
    round(time.time() * 1000)
)  # a test that is run at midnight before a Monday may see another
BEFORE = retro_report.get_week_before(LAST, 1)
RUNNING = RunStatus(state=RunState.RUNNING, phase=Phase.WORKING, attempt=1)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    database = str(place.home / "state.sqlite")
    migrate(database)
    opened = open_store(database, create=False)
    yield opened
    opened.close()


def failed(store: Store, run_id: str, at: int, failure: Failure = Failure.TIMEOUT, waited: int = 0) -> None:
    """A run that was claimed, may have waited for a person, worked for an hour, spent a dollar, and failed."""
    store.runs.create(new_run(run_id, spec={"agent": "claude", "task": "mend"}), at)
    lease, _ = store.leases.claim(run_id, owner(), LEASE_MS, at)
    if waited:
        waits = RUNNING._replace(state=RunState.WAITING, reason=WaitReason.APPROVAL, phase=None)
        store.leases.write_change(lease, RunChange(at, (Fact("run.waiting", {"reason": "approval"}),), status=waits))
        at += waited
        lease, _ = store.leases.claim(run_id, owner(), LEASE_MS, at)
    life = RUNNING._replace(state=RunState.FAILED, phase=None, failure=failure, spent=Spent(usd_micros=1_000_000))
    turn = Turn(run_id, 1, 1, lease.token, "work", "claude", None, "p", at, ended_at=at + HOUR, failure=failure)
    store.leases.write_change(
        lease, RunChange(at + HOUR, (Fact("run.failed", {"failure": failure}),), status=life, turn=turn)
    )


def filled(store: Store) -> None:
    failed(store, "older", BEFORE.start + HOUR)
    for place, failure in enumerate((Failure.LIMIT, Failure.LIMIT, Failure.LIMIT, Failure.TIMEOUT)):
        failed(store, f"run-{place}", LAST.start + place * 24 * HOUR, failure)
    failed(store, "asked", LAST.start + HOUR, Failure.PROOF, waited=10 * HOUR)


def test_a_week_is_reported_with_plots_and_proposals(place: Place, store: Store) -> None:
    filled(store)
    ended = place.type("retro", "weekly")
    path = place.home / "retros" / f"{LAST.name}.md"
    assert (ended.code, ended.out) == (0, f"{path}\n"), ended
    assert f"{LAST.name}: 5 runs ended" in ended.err
    text = path.read_text()
    assert "| `claude` | `mend` | 0 | 0 | 5 | 0 | 0% | $5.00 | 0 |" in text
    assert "| limit | 3 | 3 |" in text
    assert "| waiting | `approval` (people) | 1 | 10h 00m |" in text
    assert "| running | - | - | 5h 00m |" in text
    assert "## Cost: $5.00" in text
    assert f"    claude · mend  {'▓' * 40} 0 of 5\n" in text
    assert f"    running             {'█' * 20} 5h 00m\n" in text
    assert [one.name for one in path.parent.iterdir()] == [f"{LAST.name}.md"]
    assert {one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {0o600}


def test_the_week_is_chosen_and_in_the_json_output(place: Place, store: Store) -> None:
    filled(store)
    told = place.type("retro", "weekly", "--week", BEFORE.name, "--json").json
    assert (told["week"], told["ended"], told["over"], told["proposals"]) == (BEFORE.name, 1, True, [])
    assert told["failures"] == [{"failure": "timeout", "runs": 1, "turns": 1}]
    assert told["times"]["running"] == HOUR
    assert told["success"][0]["rate"] == 0


def test_proposals_are_asked_once_and_answered_by_the_shown_command(place: Place, store: Store) -> None:
    filled(store)
    first = place.type("retro", "weekly", "--json").json["proposals"]
    assert [one["id"].split(":")[2].split("-")[0] for one in first] == ["success", "limit", "failure", "people"]
    assert {(one["status"], one["is_new"]) for one in first} == {("waiting_human", True)}
    assert all(one["id"].startswith(f"retro:{LAST.name}:") for one in first)
    items = place.type("work", "list", "--kind", "retro.proposal", "--json").rows
    assert {one["id"] for one in items} == {one["id"] for one in first}
    assert "asks: `Runs waited 10h 00m for people" in (place.home / "dashboard.md").read_text()

    failed(store, "late", LAST.start + 5 * HOUR, Failure.LIMIT)  # a number changes; the questions are the same
    again = place.type("retro", "weekly", "--json").json["proposals"]
    assert [(one["id"], one["is_new"]) for one in again] == [(one["id"], False) for one in first]

    assert place.type(*shlex.split(first[0]["command"])[1:]).code == 0
    assert place.type("retro", "weekly").code == 0
    text = (place.home / "retros" / f"{LAST.name}.md").read_text()
    assert f"pending: `YOUR ANSWER` (item `{first[0]['id']}`)" in text


def test_an_id_that_somebody_else_took_does_not_stop_it(place: Place, store: Store) -> None:
    filled(store)
    first = place.type("retro", "weekly", "--week", BEFORE.name, "--json").json["proposals"]
    assert first == []
    taken = f"retro:{LAST.name}:people"
    assert place.type("work", "enqueue", "--id", taken, "--kind", "mine").code == 0
    ended = place.type("retro", "weekly", "--json")
    assert ended.code == 0, ended
    found = {one["id"]: (one["status"], one["is_new"]) for one in ended.json["proposals"]}
    assert len(found) == 4
    assert found[taken] == ("pending", False)


def test_what_is_still_open_from_the_week_before_is_not_asked_again(place: Place, store: Store) -> None:
    for number in range(3):
        failed(store, f"older-{number}", BEFORE.start)
        failed(store, f"run-{number}", LAST.start)
    old = place.type("retro", "weekly", "--week", BEFORE.name, "--json").json["proposals"]
    new = place.type("retro", "weekly", "--json").json["proposals"]
    assert [one["id"] for one in new] == [one["id"] for one in old]
    assert not any(one["is_new"] for one in new)
    for one in old:
        assert place.type("work", "resolve", one["id"], "--status", "cancelled").code == 0
    new = place.type("retro", "weekly", "--json").json["proposals"]
    assert [(one["id"].split(":")[1], one["is_new"]) for one in new] == [(LAST.name, True)] * len(old)


def test_a_run_that_waits_to_this_day_counts_in_each_week(place: Place, store: Store) -> None:
    store.runs.create(new_run("r"), BEFORE.start)
    lease, _ = store.leases.claim("r", owner(), LEASE_MS, BEFORE.start)
    waits = RUNNING._replace(state=RunState.WAITING, reason=WaitReason.HUMAN, phase=None)
    store.leases.write_change(
        lease, RunChange(BEFORE.start + HOUR, (Fact("run.waiting", {"reason": "human"}),), status=waits)
    )
    told = place.type("retro", "weekly", "--json").json
    assert told["times"]["waits"] == [{"reason": "human", "times": 0, "ms": LAST.until - LAST.start}]
    assert [one["id"] for one in told["proposals"]] == [f"retro:{LAST.name}:people"]


@pytest.mark.parametrize("waits_again", [False, True])
def test_a_wait_that_spans_the_week_and_ended_later_is_reported(place: Place, store: Store, waits_again: bool) -> None:
    store.runs.create(new_run("r"), BEFORE.start)
    lease, _ = store.leases.claim("r", owner(), LEASE_MS, BEFORE.start)
    waits = RUNNING._replace(state=RunState.WAITING, reason=WaitReason.HUMAN, phase=None)
    store.leases.write_change(
        lease, RunChange(BEFORE.start + HOUR, (Fact("run.waiting", {"reason": "human"}),), status=waits)
    )
    lease, _ = store.leases.claim("r", owner(), LEASE_MS, LAST.until + 1)
    life = waits if waits_again else RUNNING._replace(state=RunState.SUCCEEDED, phase=None)
    store.leases.write_change(
        lease, RunChange(LAST.until + 2, (Fact(f"run.{life.state}", {"reason": "limit"}),), status=life)
    )
    told = place.type("retro", "weekly", "--json").json
    assert told["times"]["waits"] == [{"reason": "human", "times": 0, "ms": LAST.until - LAST.start}]
    assert (told["times"]["running"], told["times"]["queued"], told["ended"]) == (0, 0, 0)
    told = place.type("retro", "weekly", "--week", BEFORE.name, "--json").json
    assert told["times"]["waits"] == [{"reason": "human", "times": 1, "ms": BEFORE.until - BEFORE.start - HOUR}]


@pytest.mark.parametrize("began", [BEFORE.until - HOUR, LAST.until - HOUR])
def test_an_imported_run_is_at_work_over_the_end_of_a_week(place: Place, store: Store, began: int) -> None:
    started, ended = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000)) for at in (began, LAST.until + HOUR))
    old.runner(place.folder, start_time=started, end_time=ended)
    assert place.type("import", str(place.folder / "logs")).code == 0
    told = place.type("retro", "weekly", "--json").json["times"]
    assert (told["running"], told["queued"]) == (LAST.until - max(began, LAST.start), 0)


# --- what a person wrote -------------------------------------------------------------------------------------


def test_notes_around_the_generated_part_stay(place: Place, store: Store) -> None:
    assert place.type("retro", "weekly").code == 0
    path = place.home / "retros" / f"{LAST.name}.md"
    path.write_text("What we think: \n" + path.read_text() + "We agreed on this.\n")
    filled(store)
    assert place.type("retro", "weekly", "--json").json["kept"] is None
    text = path.read_text()
    assert text.startswith("What we think: \n")
    assert text.endswith("We agreed on this.\n")
    assert "5 runs ended" in text


@pytest.mark.parametrize("wrote", ["all mine\n", "", b"\xff\xfe"])
def test_a_file_that_is_a_persons_is_left_alone(place: Place, store: Store, wrote: str | bytes) -> None:
    path = place.home / "retros" / f"{LAST.name}.md"
    path.parent.mkdir(parents=True)
    content = wrote if isinstance(wrote, bytes) else wrote.encode()
    path.write_bytes(content)
    ended = place.type("retro", "weekly")
    beside = path.with_name(f"{LAST.name}.new.md")
    assert (ended.code, ended.out) == (0, f"{beside}\n")
    assert f"{path} was edited and is left unchanged" in ended.err
    assert place.type("retro", "weekly").out == f"{beside}\n"
    beside.write_text("mine, too\n")
    refused = place.type("retro", "weekly")
    assert (refused.code, is_one_line(refused)) == (2, True)
    assert "both edited" in refused.err
    assert (path.read_bytes(), beside.read_text()) == (content, "mine, too\n")


# --- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["2026-W60", "2026-46", "yesterday", "", "2026-W00", "\x1b[31m"])
def test_what_is_no_week(place: Place, store: Store, name: str) -> None:
    ended = place.type("retro", "weekly", "--week", name)
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert f"is not an ISO week: use one such as {LAST.name}" in ended.err


def test_a_week_in_the_future(place: Place, store: Store) -> None:
    ended = place.type("retro", "weekly", "--week", "2999-W01")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "has not begun" in ended.err
    assert not (place.home / "retros").exists()


def test_this_week_so_far(place: Place) -> None:
    assert place.play(SAY).code == 0
    now = retro_report.get_current_week(round(time.time() * 1000))
    ended = place.type("retro", "weekly", "--week", now.name)
    assert ended.code == 0
    assert f"{now.name} is not over" in ended.err
    assert "The week is not over" in (place.home / "retros" / f"{now.name}.md").read_text()


def test_an_empty_week_says_so_and_is_written(place: Place, store: Store) -> None:
    ended = place.type("retro", "weekly", "--week", "2001-W01")
    assert (ended.code, ended.err) == (0, "nothing happened in 2001-W01\n")
    assert "Nothing happened in this week." in (place.home / "retros" / "2001-W01.md").read_text()


def test_no_home_no_retro(place: Place) -> None:
    ended = place.type("retro", "weekly")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert not place.home.exists()
    assert place.type("retro").code == 2


def test_a_folder_that_cannot_be_written(place: Place, store: Store) -> None:
    (place.home / "retros").write_text("a file")
    ended = place.type("retro", "weekly")
    assert (ended.code, is_one_line(ended)) == (1, True)
    assert f"`jackline retro weekly --week {LAST.name}`" in ended.err
    assert os.path.isfile(place.home / "retros")
