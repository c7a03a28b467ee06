"""Homes that older commits made, opened by this code: every run comes to its end, and no effect happens twice."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place
from tests.conftest import SLOW_BACKENDS
from tests.fixtures.make_old_home import FIRST, KEYS, SHELLS, WAITS, environment, request_of
from tests.support.old_home import restore, unpacked
from tests.support.postgres import database_of_its_own

LOST = ("lost-after", "lost-before", "lost-local", "resend", "child")
RUNS = (*LOST, "lost-unprobed", "asks", "in-doubt", "limited", "gave-up", "deferred", "parent")
# Each mail that was asked for, and how often it must have been sent in the end.
SENT = {
    "lost-after": 1, "lost-after-2": 1, "built": 1, "lost-before": 1, "lost-local": 1, "lost-local-2": 1, "resend": 1,
    "lost-unprobed": 1, "asks": 1, "in-doubt": 1, "in-doubt-2": 1, "limited": 1, "limited-2": 1, "deferred": 1,
    "parent": 1, "parent-2": 1, "gave-up": 1, "gave-up-2": 1,
}  # fmt: skip
CONFLICT = 2


class OldHome(Place):
    """The place of the fixture, with the environment that it was made in."""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, **more: str) -> dict[str, str]:
        # Claude Code has to be logged in before it is started.
        return environment(self.folder, ANTHROPIC_API_KEY="dummy", **{**self.environ, **more})

    def do(self, *words: str, code: int = 0) -> Ended:
        ended = self.type(*words)
        assert ended.code == code, (words, ended)
        return ended

    def show(self, run_id: str) -> dict[str, Any]:
        return self.do("show", run_id, "--json").json

    def sent(self) -> Counter[str]:
        return Counter((self.folder / "outbox").read_text().split())

    def verify_all(self) -> None:
        for run_id in RUNS:
            self.do("verify", run_id)
        self.do("db", "check")


STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=SLOW_BACKENDS)
def old(request: pytest.FixtureRequest) -> Iterator[OldHome]:
    """The home on each store, its schema brought up to date."""
    yield from open_home(request, FIRST)


@pytest.fixture(params=STORES)
def old_shells(request: pytest.FixtureRequest) -> Iterator[OldHome]:
    """The home with runs of policy version 1."""
    yield from open_home(request, SHELLS)


@pytest.mark.parametrize(
    "command",
    [("serve", "--once"), pytest.param(("run", "more", "--agent", "scripted", "--script"), marks=pytest.mark.full)],
)
def test_what_starts_work_migrates_a_file_by_itself(command: tuple[str, ...]) -> None:
    with unpacked(FIRST, "sqlite") as folder:
        place = OldHome(folder)
        try:
            place.do(*command, *([place.script(SAY)] if command[0] == "run" else []))
            place.do("list", "--all-repos")
        finally:
            place.close()


def open_home(request: pytest.FixtureRequest, commit: str) -> Iterator[OldHome]:
    with unpacked(commit, request.param) as folder:
        place = OldHome(folder)
        if request.param == "sqlite":
            yield from _closed(place)
            return
        with database_of_its_own(request.getfixturevalue("postgres_server"), like="template0") as url:
            restore(url, folder)
            place.environ["JACKLINE_DATABASE"] = url
            yield from _closed(place)


def _closed(place: OldHome) -> Iterator[OldHome]:
    try:
        place.do("db", "migrate")
        yield place
    finally:
        place.close()


@pytest.mark.full
def test_everything_in_it_comes_to_its_end(old: OldHome) -> None:
    old.verify_all()
    _send_again(old)
    for run_id in LOST:
        old.do("resume", run_id)
    _answer_runs(old)
    old.do("resume", "limited")
    _end_given_up(old)
    _end_work(old)
    _end_case(old)
    states = {run_id: old.show(run_id)["state"] for run_id in RUNS}
    assert states == dict.fromkeys(RUNS, "succeeded")
    assert old.sent() == SENT
    old.verify_all()


def _send_again(old: OldHome) -> None:
    """The same words with the same id are the same run still; other words are refused."""
    same = request_of(old.folder, "asks")
    assert old.do(*same, "--json", code=WAITS).json["id"] == "asks"
    assert old.do(*request_of(old.folder, "parent"), "--json").json["state"] == "succeeded"
    other = old.do(*request_of(old.folder, "parent"), "--retries", "7", code=CONFLICT)
    assert "parent" in other.err


def _answer_runs(old: OldHome) -> None:
    """A person looks, and says what is there."""
    old.do("resume", "lost-unprobed", code=WAITS)
    for run_id, state, verdict in (
        ("lost-unprobed", "in_doubt", "happened"),
        ("in-doubt", "in_doubt", "happened"),
        ("asks", "denied", "allow"),
        ("deferred", "denied", "allow"),
    ):
        calls = [call["id"] for call in old.show(run_id)["calls"] if call["state"] == state]
        assert len(calls) == 1, run_id
        old.do("answer", run_id, calls[0], verdict)
        old.do("resume", run_id)
    # The session was told nothing: it went on with the call that waited.
    assert [turn["prompt"] == "" for turn in old.show("deferred")["turns"]] == [False, True]


def _end_given_up(old: OldHome) -> None:
    """The repeat of a call that was cut off, or that its turn gave up, names the call that it repeats."""
    old.do("resume", "gave-up")
    for run_id in ("gave-up", "lost-local", "resend"):
        first, second, *_ = old.show(run_id)["calls"]
        assert second["original"] == first["id"], run_id


def _end_work(old: OldHome) -> None:
    items = {row["id"]: row for row in old.do("work", "list", "--json").rows}
    assert {name: item["status"] for name, item in items.items()} == {
        "in-flight": "in_flight", "waits-human": "waiting_human", "pending": "pending",
    }  # fmt: skip
    assert items["in-flight"]["payload"] == {"to": "in-flight"}
    token = str(items["in-flight"]["token"])
    old.do("work", "resolve", "in-flight", "--owner", "ada", "--token", token)
    assert old.do("work", "answer", "waits-human", "blue", "--json").json["status"] == "pending"
    for _ in range(2):
        taken = old.do("work", "next", "--owner", "eve", "--json").json
        old.do("work", "resolve", taken["id"], "--owner", "eve", "--token", str(taken["token"]))
    assert {row["status"] for row in old.do("work", "list", "--json").rows} == {"done"}


def _end_case(old: OldHome) -> None:
    (case,) = old.do("case", "list", "--json").rows
    assert case["status"] == "open"
    (hypothesis,) = old.do("case", "hypothesis", "list", "--json", "--case", case["id"]).rows
    assert hypothesis["status"] == "open", hypothesis
    old.do("case", "hypothesis", "resolve", "H001", "--status", "accepted", "--case", case["id"])
    old.do("case", "close", "--summary", "it ends now", "--case", case["id"])
    assert [row["status"] for row in old.do("case", "list", "--json").rows] == ["closed"]
    folder = old.repository / ".agents" / "runs" / case["id"]
    assert json.loads((folder / "problem.json").read_text())
    assert os.path.exists(folder / "learning.jsonl")


# --- runs of policy version 1


def test_effects_in_the_shells_of_an_old_run_are_not_repeated(old_shells: OldHome) -> None:
    """The rules for their keys have changed, and one of them is no effect any more for a run that begins now."""
    before = old_shells.sent()
    old_shells.do("resume", "keys")
    assert old_shells.sent() == before | Counter({"keys": 1})  # the local call that hung
    decisions = [call["decision"] for call in old_shells.show("keys")["calls"] if call["tool"] == "Bash"]
    assert decisions == ["allow"] * len(KEYS) + ["stored"] * len(KEYS)
    old_shells.do("verify", "keys")


def test_an_old_run_keeps_what_was_agreed_for_it(old_shells: OldHome) -> None:
    """`--allow git.push` was for any target then; and a tool without a rule was not asked about."""
    for run_id in ("agreed", "tools"):
        old_shells.do("resume", run_id)
        assert old_shells.show(run_id)["state"] == "succeeded"
    pushed = old_shells.folder / "other" / "refs" / "heads" / "other"
    assert pushed.exists()


def test_a_fork_of_an_old_run_knows_its_effects(old_shells: OldHome) -> None:
    old_shells.do("fork", "parent", "--run-id", "child")
    assert old_shells.sent()["parent-1"] == 1
    (call,) = old_shells.show("child")["calls"]
    assert call["decision"] == "stored"
    assert old_shells.show("child")["spec"]["policy_version"] == 1
