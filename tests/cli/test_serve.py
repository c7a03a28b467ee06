"""`jackline serve` as a process: signals, drains, SIGKILL, another boot, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.engine import orphans, run_env
from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.conftest import BACKENDS, SLOW_BACKENDS
from tests.support.helpers import is_alive, wait_until

NEVER = "3600"  # a poll that no test waits for
# A service after a reboot: another boot id, and the pids of before mean nothing.
REBOOTED = """
import sys
from jackline import clock
clock.boot_id = lambda: "another boot"
from jackline.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

# A service that soon gives up what does not answer.
IMPATIENT = """
import sys
from jackline.cli.main import main
from jackline.features.service import serve_command
serve_command._STOP_SECONDS = 0.5
sys.exit(main(sys.argv[1:]))
"""

# A service that cannot begin.
UNABLE = """
import sys
from jackline.cli.main import main
from jackline.features.service.service_runner import Service
def fail(service):
    raise RuntimeError("can't start new thread")
Service._list_feature_tasks = fail
sys.exit(main(sys.argv[1:]))
"""


def use_store(place: Place, request: pytest.FixtureRequest) -> Place:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return place


@pytest.fixture(params=BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Iterator[Place]:
    yield use_store(place, request)
    end_leftovers(place)


@pytest.fixture(params=SLOW_BACKENDS)
def slow_place(place: Place, request: pytest.FixtureRequest) -> Place:
    return use_store(place, request)


def open_place(place: Place) -> Home:
    return Home(load_config(place.environment(), str(place.repository)))


def end_leftovers(place: Place) -> None:
    """A test that failed may leave wardens, which end a moment after their service."""
    with open_place(place) as home:
        if not home.is_new:
            mark = run_env.build_process_tag(home.store().secret, "one")
            wait_until(lambda: not orphans.find_orphans(mark), 30)


def serve(place: Place, *words: str, **more: Any) -> subprocess.Popen[str]:
    """Start a service, and wait until it says so."""
    process = place.start("serve", "--json", *words, **more)
    assert read_event(process)["event"] == "started"
    return process


def read_event(process: subprocess.Popen[str], event: str = "") -> dict[str, Any]:
    """Its next event, or the next one of this name."""
    assert process.stdout is not None
    for line in process.stdout:
        found: dict[str, Any] = json.loads(line)
        if event in {"", found["event"]}:
            return found
    raise AssertionError((event, process.wait(), process.stderr and process.stderr.read()))


def enqueue(place: Place, *steps: dict[str, Any], run_id: str = "one", words: tuple[str, ...] = ()) -> str:
    script = place.script(*(steps or (SAY,)), name=f"{run_id}.json")
    ended = place.type("enqueue", "--agent", "scripted", "--script", script, "--run-id", run_id, *words)
    assert ended.code == 0, ended
    return run_id


def wait_step(place: Place, name: str = "one") -> tuple[dict[str, Any], ...]:
    """Show that the agent works, and wait for a file."""
    mark = {"call": {"tool": "mark", "input": {}, "run": ["touch", place.path(f"{name}.begun")]}}
    return mark, {"wait_for": place.path(f"{name}.go")}


def show(place: Place, run_id: str = "one") -> dict[str, Any]:
    return place.type("show", run_id, "--json").json


def test_a_run_is_taken_from_the_queue_and_a_signal_ends_the_service(slow_place: Place) -> None:
    place = slow_place
    service = serve(place, environ={"JACKLINE_POLL_SECONDS": NEVER})
    enqueue(place)
    assert read_event(service, "claimed")["run"] == "one"
    assert read_event(service, "ended")["state"] == "succeeded"
    service.send_signal(signal.SIGTERM)
    assert read_event(service, "stopped")
    assert service.wait(60) == 0
    assert show(place)["state"] == "succeeded"
    assert os.listdir(place.home / "services") == []


def test_without_a_drain_a_run_is_due_again_at_once(slow_place: Place) -> None:
    place = slow_place
    service = serve(place)
    enqueue(place, *wait_step(place))
    place.wait_for("one.begun")
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0
    parked = show(place)
    assert (parked["state"], parked["reason"]) == ("waiting", "retry")
    place.let_go("one.go")
    ended = place.type("serve", "--once", "--json")
    assert ended.code == 0, ended
    assert [row["event"] for row in ended.rows] == ["started", "claimed", "ended", "stopped"]
    assert show(place)["state"] == "succeeded"


def test_a_drain_lets_runs_end_and_takes_no_new_one(place: Place) -> None:
    """For ever, if a person wishes: it is more than the system can wait for."""
    service = serve(place, "--drain", "1000000000000", environ={"JACKLINE_POLL_SECONDS": "1000000000000"})
    enqueue(place, *wait_step(place))
    assert read_event(service)["event"] == "claimed"
    place.wait_for("one.begun")
    service.send_signal(signal.SIGTERM)
    assert read_event(service)["event"] == "stopping"
    enqueue(place, run_id="two", words=("--workspace", place.path(".")))
    place.let_go("one.go")
    assert service.wait(60) == 0
    assert show(place)["state"] == "succeeded"
    assert show(place, "two")["state"] == "queued"


@pytest.mark.postgres
def test_a_database_that_keeps_silent_does_not_keep_a_service_alive(place: Place, postgres_database: str) -> None:
    """Its connections stay open and get no answer; a run is taken up by the next service."""
    import psycopg

    place.environ["JACKLINE_DATABASE"] = postgres_database
    service = place.python(IMPATIENT, "serve", "--json", environ={"JACKLINE_GRACE_SECONDS": "0.1"})
    assert read_event(service)["event"] == "started"
    enqueue(place, *wait_step(place))
    place.wait_for("one.begun")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        pids = [pid for (pid,) in connection.execute(query)]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        service.send_signal(signal.SIGTERM)
        assert "does not answer" in read_event(service, "problem")["error"]
        assert service.wait(60) == 1
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    place.let_go("one.go")
    ended = place.type("serve", "--once", "--json")
    assert (ended.code, show(place)["state"]) == (0, "succeeded"), ended


def test_a_second_signal_ends_the_drain(place: Place) -> None:
    service = serve(place, "--drain", "600")
    enqueue(place, *wait_step(place))
    place.wait_for("one.begun")
    service.send_signal(signal.SIGINT)
    read_event(service, "stopping")
    service.send_signal(signal.SIGINT)
    assert service.wait(60) == 0
    assert show(place)["reason"] == "retry"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_once_as_it_stops_every_service(place: Place, number: signal.Signals) -> None:
    enqueue(place, *wait_step(place))
    service = serve(place, "--once")
    place.wait_for("one.begun")
    service.send_signal(number)
    assert read_event(service, "stopping")
    assert service.wait(60) == 0
    assert (show(place)["state"], show(place)["reason"]) == ("waiting", "retry")


@pytest.mark.parametrize("boot", ["this", "another"])
def test_the_runs_of_a_killed_service_are_taken_up_at_once(any_place: Place, boot: str) -> None:
    """Neither the lease nor the poll ends within the test."""
    place = any_place
    place.environ |= {"JACKLINE_POLL_SECONDS": NEVER, "JACKLINE_LEASE_SECONDS": NEVER}
    service = serve(place)
    enqueue(place, *wait_step(place))
    place.wait_for("one.begun")
    service.send_signal(signal.SIGKILL)
    service.wait(60)
    place.let_go("one.go")
    words = ("serve", "--json")
    second = place.start(*words) if boot == "this" else place.python(REBOOTED, *words)
    events = [read_event(second) for _ in range(4)]
    assert {event["event"] for event in events} == {"started", "died", "claimed", "ended"}
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0
    run = show(place)
    assert (run["state"], run["attempt"]) == ("succeeded", 2)
    with open_place(place) as home:
        assert [one.kind for one in home.store().notices.list_newest()] == ["service.died"]


def test_a_run_that_kills_its_service_waits_for_a_person_after_three_takeovers(slow_place: Place) -> None:
    place = slow_place
    enqueue(place)
    deadly = {"JACKLINE_CRASH_AT": "turn.spawning"}
    for _ in range(4):  # the first attempt and three takeovers
        assert place.type("serve", "--once", environ=deadly).code == -signal.SIGKILL
    ended = place.type("serve", "--once", environ=deadly)
    assert ended.code == 0, ended
    run = show(place)
    assert (run["state"], run["reason"], run["attempt"]) == ("waiting", "human", 5)
    assert "died 4 times in a row" in run["detail"]
    assert place.type("serve", "--once", environ=deadly).code == 0  # it is left alone
    assert place.type("resume", "one").code == 0
    assert show(place)["state"] == "succeeded"


def test_an_answered_run_continues_at_once(slow_place: Place) -> None:
    """No process waits for it, and the service never looks by itself."""
    place = slow_place
    rule = '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "ask"\nkey = ["to"]\ntarget = "{to}"\n'
    call = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    service = serve(place, environ={"JACKLINE_POLL_SECONDS": NEVER})
    enqueue(place, call, SAY, words=("--policy", place.policy(rule)))
    assert read_event(service, "ended")["reason"] == "approval"
    assert "a running service continues it" in place.type("answer", "one", "allow").out
    assert read_event(service, "ended")["state"] == "succeeded"


def test_a_service_says_what_it_does_in_lines(place: Place) -> None:
    enqueue(place)
    ended = place.type("serve", "--once", "--slots", "3")
    assert ended.code == 0
    lines = [line.split(" ", 2)[2] for line in ended.out.splitlines()]
    assert lines[0].endswith(f"started: {place.home}, 3 slots")
    assert lines[1:3] == ["run one (#1) scripted/adhoc started", "run one (#1) succeeded"]
    assert lines[3].endswith(" stopped")


def test_under_systemd_it_says_the_same_without_the_time(place: Place) -> None:
    enqueue(place)
    ended = place.type("serve", "--once", environ={"JOURNAL_STREAM": "8:1"})
    assert ended.out.splitlines()[1:3] == ["run one (#1) scripted/adhoc started", "run one (#1) succeeded"]
    assert len(ended.out.splitlines()) == 4


def test_with_quiet_it_says_only_what_is_wrong(place: Place) -> None:
    enqueue(place)
    assert place.type("serve", "--once", "--quiet") == Ended(0, "", "")
    enqueue(place, run_id="two", words=("--workspace", str(place.repository)))
    (place.repository / "jackline.toml").write_text("home = 3")
    ended = place.type("serve", "--once", "--quiet", cwd=place.folder)
    assert "run two (#2) cannot start" in ended.out
    assert len(ended.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--slots", "0"), "slots must be"),
        (("--drain", "soon"), "drain_seconds must be"),
        (("--env-file", "/no/such"), "--env-file: /no/such cannot be read"),
    ],
)
def test_a_wrong_option_is_one_line(place: Place, words: tuple[str, ...], says: str) -> None:
    ended = place.type("serve", *words)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert says in ended.err


def test_a_home_that_cannot_be_used_is_one_line(place: Place) -> None:
    place.home.write_text("a file")
    ended = place.type("serve")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    place.home.unlink()
    place.home.mkdir()
    (place.home / "services").write_text("a file")
    ended = place.type("serve")
    assert (ended.code, is_one_line(ended)) == (1, True), ended
    assert f"{place.home}/services cannot be written (File exists); check the disk" in ended.err
    (place.home / "services").unlink()
    ended = place.type("serve", environ={"JACKLINE_DATABASE": "postgresql://127.0.0.1:1/none"})
    assert (ended.code, is_one_line(ended)) == (1, True), ended
    assert list(place.home.glob("services/*")) == []


@pytest.mark.parametrize("words", [(), ("--once",)])
def test_a_service_that_cannot_begin_is_one_line(place: Place, words: tuple[str, ...]) -> None:
    enqueue(place)
    service = place.python(UNABLE, "serve", "--quiet", *words)
    out, err = service.communicate(timeout=60)
    (line,) = (out + err).splitlines()
    assert "unexpected RuntimeError: can't start new thread" in line
    assert service.returncode == 1
    assert "in _list_feature_tasks" not in line
    assert "RuntimeError: can't start new thread" in (place.home / "jackline.log").read_text()
    assert show(place)["state"] == "queued"


def test_a_service_whose_database_is_gone_ends(place: Place) -> None:
    """It would work in the removed file for ever, while `run --detach` counts on it."""
    service = serve(place, environ={"JACKLINE_POLL_SECONDS": "0.1", "JACKLINE_DRAIN_SECONDS": NEVER})
    enqueue(place, *wait_step(place))
    place.wait_for("one.begun")
    (place.home / "state.sqlite").unlink()
    assert "was removed or replaced" in read_event(service, "problem")["error"]
    assert read_event(service, "stopped")
    assert service.wait(60) == 1


def test_nothing_of_a_killed_service_lives_on(place: Place) -> None:
    service = serve(place)
    enqueue(place, *wait_step(place))
    place.wait_for("one.begun")
    with open_place(place) as home:
        mark = run_env.build_process_tag(home.store().secret, "one")
        left = [one.pid for one in orphans.find_orphans(mark)]
        assert left
        service.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, left)), 30)
