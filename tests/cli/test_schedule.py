"""`jackline schedule`: what is stored, shown and refused, and a run that a service starts."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from jackline.app.home import open_home
from jackline.cli.main import main
from jackline.features.schedules.schedule_commands import find_machine_zone
from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.store.open import open_store
from tests.cli.place import SAY, Place
from tests.conftest import SLOW_BACKENDS
from tests.support.stores import by_hand

ADD = ("schedule", "add", "nightly", "0 3 * * *")


class Shell:
    """Runs commands in this process: most of them are about words only."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def type(self, *words: str, code: int = 0) -> str:
        """The output of a command, or its error."""
        assert main(list(words)) == code, self._capsys.readouterr()
        seen = self._capsys.readouterr()
        return seen.err if code else seen.out

    def list_json(self, *words: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.type(*words, "--json").splitlines()]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    for name, value in {"HOME": str(tmp_path), "JACKLINE_HOME": str(tmp_path / "home"), "TZ": "Europe/Berlin"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Shell(tmp_path, capsys)


def test_a_schedule_from_add_to_remove(shell: Shell) -> None:
    assert shell.type("schedule", "list") == ""
    shown = shell.type(*ADD, "--agent", "claude", "tidy up", "--expect", "2h", "--only-if", "make check", "--", "-v")
    assert "cron       0 3 * * * (Europe/Berlin)" in shown
    assert "expect     2h 00m" in shown
    (record,) = shell.list_json("schedule", "list")
    assert record["run"] == {"agent": "claude", "prompt": "tidy up", "arguments": ["-v"]}
    assert (record["catch_up"], record["overlap"], record["last_outcome"]) == ("once", "skip", None)
    assert len(record["next_fires"]) == 3  # type: ignore[arg-type]
    assert record["workspace"] == os.path.realpath(shell.folder / "workspace")
    assert "next       paused" in shell.type("schedule", "pause", "nightly")
    assert shell.list_json("schedule", "list")[0]["next_fires"] == []
    assert "next       paused" not in shell.type("schedule", "resume", "nightly")
    assert shell.type("schedule", "history", "nightly") == ""
    assert "tidy up" in shell.type("schedule", "show", "nightly")
    shell.type("schedule", "remove", "nightly")
    assert "no schedule matches 'nightly'" in shell.type("schedule", "show", "nightly", code=2)


def test_a_schedule_is_replaced_only_on_request(shell: Shell) -> None:
    shell.type(*ADD, "one", "--agent", "claude")
    assert "replace it with --replace" in shell.type(*ADD, "two", "--agent", "claude", code=2)
    shell.type("schedule", "pause", "nightly")
    shell.type(*ADD, "two", "--agent", "claude", "--replace", "--catch-up", "all:5")
    (record,) = shell.list_json("schedule", "list")
    assert record["run"] == {"agent": "claude", "prompt": "two"}
    assert (record["catch_up"], record["catch_up_most"], record["overlap"]) == ("all", 5, "queue")
    assert record["paused_at"] is not None


def test_files_are_stored_with_their_whole_path(shell: Shell) -> None:
    Path("job.toml").write_text('prompt = "do it"\nagent = "claude"\n')
    shell.type(*ADD, "--job", "job.toml")
    assert shell.list_json("schedule", "list")[0]["run"] == {"job": os.path.realpath("job.toml")}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "n", "61 3 * * *", "x"), "bad minute"),
        (("add", "n", "* * *", "x"), "write five fields"),
        (("add", "a b", "0 3 * * *", "x"), "cannot be the name of a schedule"),
        (("add", "n" * 41, "0 3 * * *", "x"), "cannot be the name of a schedule"),
        (("add", "../n", "0 3 * * *", "x"), "cannot be the name of a schedule"),
        (("add", "n", "0 3 * * *"), "no prompt given"),
        (("add", "n", "0 3 * * *", "  "), "the prompt is empty"),
        (("add", "n", "0 3 * * *", "x", "--zone", "Mars"), "is not a time zone"),
        (("add", "n", "0 3 * * *", "x", "--catch-up", "most"), "use skip, once, all"),
        (("add", "n", "0 3 * * *", "x", "--catch-up", "all", "--overlap", "skip"), "needs --overlap queue"),
        (("add", "n", "0 3 * * *", "x", "--overlap", "both"), "invalid choice"),
        (("add", "n", "0 3 * * *", "x", "--expect", "soon"), "use a time such as"),
        (("add", "n", "0 3 * * *", "x", "--expect", "0s"), "use a time such as"),
        (("add", "n", "0 3 * * *", "x", "--only-if", " "), "--only-if is empty"),
        (("add", "n", "0 3 * * *", "x", "--task", "no-such"), "no task is called"),
        (("add", "n", "0 3 * * *", "x", "--workspace", "/no/such"), "is not a folder"),
        (("add", "n", "0 3 * * *", "x", "--fallback", "no-such"), "there is no agent 'no-such'"),
        (("add", "n", "0 3 * * *", "x", "--run-id", "r"), "unrecognized arguments"),
        (("add", "n", "0 3 * * *", "x", "--max-calls", "many"), "max_calls must be"),
        (("add", "n", "0 3 * * *", "curl -H 'Authorization: Bearer abcdefghijklmnop1234'"), "contains a secret"),
        (("add", "n", "0 3 * * *", "x", "--only-if", "curl -u ada:s3cretpassw0rd x"), "--only-if contains a secret"),
        (("add", "n", "0 3 * * *", "half \udc80"), "is not text in UTF-8"),
        (("show", "n"), "there is no home"),
        (("run-now",), "required: NAME"),
        (("fire", "n"), "invalid choice"),
    ],
)
def test_bad_input_is_one_line_and_stores_nothing(shell: Shell, words: tuple[str, ...], says: str) -> None:
    more = ("--agent", "claude") if words[0] == "add" else ()
    error = shell.type("schedule", *words, *more, code=2)
    assert says in error
    assert error.startswith("jackline: ")
    assert error.count("\n") == 1
    assert not (shell.folder / "home" / "state.sqlite").exists()


@pytest.fixture(params=SLOW_BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Place:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return place


def test_a_service_fires_a_schedule_and_runs_it(any_place: Place) -> None:
    added = any_place.type("schedule", "add", "nightly", "0 3 * * *", "--script", any_place.script(SAY))
    assert added.code == 0, added
    database = any_place.environ.get("JACKLINE_DATABASE") or str(any_place.home / "state.sqlite")
    with closing(open_store(database, create=False)) as store:  # as if it had been added two days ago
        by_hand(store, "UPDATE schedules SET checked_until = checked_until - 172800000")
    served = any_place.type("serve", "--once")
    assert served.code == 0, served
    newest, older = any_place.type("schedule", "history", "nightly", "--json").rows
    assert (newest["state"], newest["reason"], older["state"]) == ("ended", "succeeded", "missed")
    assert any_place.type("schedule", "list", "--json").json["last_outcome"] == "succeeded"
    assert any_place.type("show", newest["run_id"], "--json").json["state"] == "succeeded"
    now = any_place.type("schedule", "run-now", "nightly", "--json").json
    assert (now["state"], now["schedule"]) == ("started", "nightly")
    assert any_place.type("resume", str(now["run_id"])).code == 0
    by_hand_fired = any_place.type("schedule", "run-now", "nightly")
    assert by_hand_fired.code == 0
    assert "no service is running here" in by_hand_fired.err
    again = any_place.type("schedule", "run-now", "nightly")
    assert again.code == 1
    assert "has not ended" in again.err


def test_run_now_says_why_no_run_was_started(place: Place) -> None:
    words = ("--script", place.script(SAY), "--only-if", "echo the tests fail; false")
    assert place.type("schedule", "add", "nightly", "0 3 * * *", *words).code == 0
    ended = place.type("schedule", "run-now", "nightly")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "jackline: no run was started: the command of --only-if failed: exit 1: the tests fail\n"


def test_a_schedule_whose_zone_is_gone_hides_no_other(shell: Shell) -> None:
    """An update of the machine may remove old names of zones; here by hand."""
    shell.type(*ADD, "--agent", "claude", "tidy up")
    with open_home() as home:
        schedules = ScheduleStore(home.store())
        known = schedules.get("nightly")
        schedules.put(known._replace(name="old", definition=known.definition._replace(zone="Old/Name")))
    shown = {str(one["name"]): one["next_fires"] for one in shell.list_json("schedule", "list")}
    assert (len(shown["nightly"]), shown["old"]) == (3, [])  # type: ignore[arg-type]
    assert "old\t0 3 * * *\tOld/Name\t-\t" in shell.type("schedule", "list")
    assert "next       never" in shell.type("schedule", "show", "old")
    assert "| `old` | `0 3 * * * Old/Name` | - |" in shell.type("dashboard", "--print")
    assert "next       paused" in shell.type("schedule", "pause", "old")
    words = ("schedule", "add", "old", "0 3 * * *", "--zone", "UTC", "--replace", "--agent", "claude", "tidy up")
    assert "cron       0 3 * * * (UTC)" in shell.type(*words)


def test_resume_of_a_schedule_that_is_not_paused_records_what_was_missed(shell: Shell) -> None:
    shell.type(*ADD, "--agent", "claude", "tidy up")
    with open_home() as home:  # as if it had been added two days ago
        by_hand(home.store(), "UPDATE schedules SET checked_until = checked_until - 172800000")
    shell.type("schedule", "resume", "nightly")
    assert [one["state"] for one in shell.list_json("schedule", "history", "nightly")] == ["claimed", "missed"]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("America/New_York", "America/New_York"), (":UTC", "UTC"), ("CET-1CEST", "UTC"), ("../x", "UTC")],
)
def test_the_zone_of_the_machine(zone: str, expected: str) -> None:
    assert find_machine_zone({"TZ": zone}) == expected


def test_doctor_says_that_no_service_fires_it(place: Place) -> None:
    def find_service() -> list[dict[str, object]]:
        return [row for row in place.type("doctor", "--json").json["findings"] if row["part"] == "service"]

    assert find_service() == []
    added = place.type(
        "schedule", "add", "night", "0 3 * * *", "hi", "--script", place.script(SAY), "--agent", "scripted"
    )
    assert (added.code, "nothing fires until jackline serve" in added.err) == (0, True), added
    (found,) = find_service()
    assert (found["state"], "1 schedule" in str(found["found"])) == ("warn", True), found
