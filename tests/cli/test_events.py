"""`jackline events`: append, tail, since, search; errors are one line, and late events are not missed."""

from __future__ import annotations

import gzip
import json
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from jackline.domain.events import Fact, broken_at
from jackline.features.cases.case_model import NewCase, Problem
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem
from jackline.store.models import JOURNAL
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.cli.place import SAY, SEND, Place, is_one_line
from tests.cli.test_startup_imports import HEAVY, PROGRAM

MANY = """
import sys
from jackline.cli.main import main
for number in range(int(sys.argv[2])):
    payload = '{"by": %s, "number": %d}' % (sys.argv[1], number)
    assert main(["events", "append", "load.added", "--payload", payload]) == 0
"""


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    """The same store, behind the commands' back."""
    place.home.mkdir()
    opened = open_store(str(place.home / "state.sqlite"), create=True)
    yield opened
    opened.close()


def append(place: Place, kind: str = "note.made", *words: str, **payload: Any) -> dict[str, Any]:
    ended = place.type("events", "append", kind, "--payload", json.dumps(payload), *words, "--json")
    assert ended.code == 0, ended
    return ended.json


def types(place: Place, *words: str) -> list[str]:
    ended = place.type("events", *words, "--json")
    assert ended.code == 0, ended
    return [row["type"] for row in ended.rows]


# append


def test_an_appended_event_is_named_and_found(place: Place) -> None:
    ended = place.type("events", "append", "build.finished", "--payload", '{"build": 7}', "--actor", "ada")
    assert (ended.code, ended.out, ended.err) == (0, "journal:#1\n", "")
    (row,) = place.type("events", "tail", "--json").rows
    assert row.pop("ts").endswith("Z")
    assert row.pop("at") > 1_700_000_000_000
    assert len(row.pop("hash")) == 64
    assert row == {
        "id": "journal:#1", "type": "build.finished", "actor": "ada", "stream": "journal:", "seq": 1, "run": None,
        "work_item_id": None, "case": None, "payload": {"build": 7},
    }  # fmt: skip
    line = place.type("events", "tail").out.split("\t")
    assert line[1:] == ["journal:#1", "build.finished", "ada", "build=7\n"]


def test_the_payload_may_come_from_stdin_or_a_file_or_not_at_all(place: Place) -> None:
    (place.folder / "payload.json").write_text('{"from": "file é"}')
    assert place.type("events", "append", "a", "--payload", "-", stdin='{"from": "stdin"}').code == 0
    assert place.type("events", "append", "b", "--payload", f"@{place.path('payload.json')}").code == 0
    assert place.type("events", "append", "c").code == 0
    payloads = [row["payload"] for row in place.type("events", "tail", "--json").rows]
    assert payloads == [{"from": "stdin"}, {"from": "file é"}, {}]


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "x",
        "[1]",
        "7",
        '"text"',
        "null",
        '{"a": NaN}',
        '{"a": Infinity}',
        "{",
        "@missing.json",
        "@",
        "[" * 100_000,
        '{"a": 1e400}',
        '{"a": [-1e999]}',
    ],
)
def test_a_bad_payload_is_one_line(place: Place, payload: str) -> None:
    ended = place.type("events", "append", "note.made", "--payload", payload)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert not place.home.exists()


def test_a_payload_that_is_no_text_or_too_large_is_one_line(place: Place) -> None:
    (place.folder / "bytes").write_bytes(b'{"a": "\xff"}')
    (place.folder / "large").write_text(json.dumps({"a": "x" * 1_000_001}))
    for name in ("bytes", "large"):
        ended = place.type("events", "append", "note.made", "--payload", f"@{place.path(name)}")
        assert (ended.code, is_one_line(ended)) == (2, True), ended


@pytest.mark.parametrize(("depth", "code"), [(99, 0), (100, 2), (400, 2), (980, 2)])
def test_a_payload_may_be_nested_but_not_for_ever(place: Place, depth: int, code: int) -> None:
    payload = '{"a":' + "[" * depth + "]" * depth + "}"
    ended = place.type("events", "append", "note.made", "--payload", payload)
    assert (ended.code, code == 0 or is_one_line(ended)) == (code, True), ended.err[:300]


@pytest.mark.parametrize(
    "kind",
    [
        "run.succeeded", "call.done", "agent.message", "work.created", "case.closed", "gate.advisory", "run", "Build",
        "1a", ".a", "a b", "a\n", "é", "", "a" * 101, "a/b",
    ],
)  # fmt: skip
def test_a_type_that_is_jacklines_own_or_none_is_refused(place: Place, kind: str) -> None:
    ended = place.type("events", "append", kind)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert not place.home.exists()


@pytest.mark.parametrize("kind", ["a", "runs.x", "agent-x.y", "callback", "a.b_c-d.e1", "a" * 100])
def test_any_other_type_will_do(place: Place, kind: str) -> None:
    append(place, kind)
    assert types(place, "tail") == [kind]


def test_the_actor_is_given_or_found(place: Place) -> None:
    append(place)
    append(place, "note.made", "--actor", "bob")
    place.environ["JACKLINE_ACTOR"] = "forge"
    append(place)
    actors = [row["actor"] for row in place.type("events", "tail", "--json").rows]
    assert actors[0]
    assert actors[1:] == ["bob", "forge"]
    assert types(place, "tail", "--actor", "forge") == ["note.made"]
    for actor in ("a\tb", "x" * 201, " "):
        ended = place.type("events", "append", "note.made", "--actor", actor)
        assert (ended.code, is_one_line(ended)) == (2, True), ended


def test_a_secret_is_not_written(place: Place) -> None:
    token = "ghp_" + "a1B2" * 9
    append(place, token=token, text=f"see {token}")
    assert token not in place.type("events", "tail", "--json").out
    assert token.encode() not in b"".join(path.read_bytes() for path in place.home.glob("state.sqlite*"))


def test_an_event_with_and_without_a_work_item(place: Place, store: Store) -> None:
    ended = place.type("events", "append", "note.made", "--work-item", "mail-1")
    assert (ended.code, is_one_line(ended)) == (1, True), ended
    WorkQueue(store).enqueue(NewItem("mail-1", "mail"), 1_700_000_000_000, "ada")
    row = append(place, "note.made", "--work-item", "mail-1")
    assert (row["id"], row["work_item_id"]) == ("work:mail-1#2", "mail-1")
    assert types(place, "tail", "--work-item", "mail-1") == ["work.created", "note.made"]
    assert types(place, "tail", "--stream", "work:mail-1", "-n", "1") == ["note.made"]
    assert store.verify.check_all() == []
    ended = place.type("events", "tail", "--work-item", "mail-2")
    assert (ended.code, is_one_line(ended)) == (1, True), ended


# reading


def test_reading_creates_nothing(place: Place) -> None:
    for words in (("tail",), ("since", "2h"), ("search", "x")):
        ended = place.type("events", *words)
        assert (ended.code, ended.out) == (0, ""), ended
    assert not place.home.exists()


def test_tail_shows_the_newest_with_the_newest_last(place: Place) -> None:
    for number in range(5):
        append(place, f"kind.{number}" if number % 2 else f"other.{number}")
    assert types(place, "tail", "-n", "2") == ["kind.3", "other.4"]
    assert types(place, "tail", "-n", "0") == []
    assert types(place, "tail", "--kind", "kind.") == ["kind.1", "kind.3"]
    assert types(place, "tail", "--stream", "journal:", "-n", "1") == ["other.4"]
    assert types(place, "tail", "--stream", "nothing") == []


def test_the_talk_of_a_run_is_read_run_by_run(place: Place) -> None:
    policy = place.policy('[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["to"]\n')
    assert place.play(SAY, SEND, words=("--run-id", "r", "--policy", policy)).code == 0
    timeline, run = types(place, "tail", "-n", "100"), types(place, "tail", "-n", "100", "--run", "r")
    assert not [one for one in timeline if one.startswith(("agent.", "call."))]
    assert {"run.created", "turn.started", "run.succeeded"} <= set(timeline)
    assert {"agent.message", "call.prepared", "call.done"} <= set(run)
    assert [one for one in run if not one.startswith(("agent.", "call."))] == timeline
    assert types(place, "tail", "--run", "r", "--kind", "call.") == ["call.prepared", "call.done"]
    assert types(place, "search", "HELLO", "--run", "r") == ["agent.message"]
    rows = place.type("events", "tail", "--run", "r", "--json").rows
    assert {row["run"] for row in rows} == {"r"}
    ended = place.type("events", "tail", "--run", "nothing")
    assert (ended.code, is_one_line(ended)) == (2, True)


def test_since_a_time_and_since_an_event(place: Place) -> None:
    rows = [append(place, f"kind.{number}") for number in range(4)]
    assert types(place, "since", "2h") == types(place, "since", "2020-01-01") == [row["type"] for row in rows]
    assert types(place, "since", "2120-01-01") == []
    assert types(place, "since", rows[1]["id"]) == ["kind.2", "kind.3"]
    assert types(place, "since", rows[3]["id"]) == []
    assert types(place, "since", rows[0]["id"], "--stream", "journal:") == ["kind.1", "kind.2", "kind.3"]
    ended = place.type("events", "since", "1h", "--limit", "2", "--kind", "kind.")
    assert [line.split("\t")[2] for line in ended.out.splitlines()] == ["kind.0", "kind.1"]
    assert ended.err == "more: jackline events since 'journal:#2' --limit 2 --kind kind.\n"
    assert types(place, *shlex.split(ended.err)[3:]) == ["kind.2", "kind.3"]


@pytest.mark.parametrize(
    ("when", "code"),
    [("yesterday", 2), ("", 2), ("journal:#99", 1), ("x#1", 1), ("journal:#0", 1), ("#1", 2), ("journal:#-1", 2),
     ("journal:#" + "9" * 30, 2)],
)  # fmt: skip
def test_since_something_that_is_no_time_and_no_event(place: Place, when: str, code: int) -> None:
    append(place)
    ended = place.type("events", "since", when)
    assert (ended.code, is_one_line(ended)) == (code, True), ended


@pytest.mark.parametrize("flag", ["--stream", "--run", "--work-item", "--case"])
def test_a_name_that_is_empty_does_not_mean_everything(place: Place, flag: str) -> None:
    """As a variable of a script that was never set."""
    append(place)
    ended = place.type("events", "tail", flag, "")
    assert (ended.code != 0, ended.out, is_one_line(ended)) == (True, "", True), ended


def test_since_a_span_of_any_length(place: Place) -> None:
    append(place)
    assert types(place, "since", "9" * 5_000 + "s") == ["note.made"]


def test_an_event_of_another_stream_is_no_place_in_this_one(place: Place) -> None:
    append(place)
    ended = place.type("events", "since", "journal:#1", "--stream", "work:x")
    assert (ended.code, is_one_line(ended)) == (2, True)


def test_search_finds_what_is_newest_first(place: Place) -> None:
    append(place, "build.red", text="the Cache is cold")
    append(place, "build.green", text="100% warm")
    assert types(place, "search", "BUILD") == ["build.green", "build.red"]
    assert types(place, "search", "cache") == ["build.red"]
    assert types(place, "search", "0% w") == ["build.green"]
    assert types(place, "search", "%") == ["build.green"]
    assert types(place, "search", "BUILD", "--limit", "1") == ["build.green"]
    assert types(place, "search", "BUILD", "--since", "2120-01-01") == []
    assert types(place, "search", "nothing") == []
    for words in (("",), ("x", "--since", "never"), ("x", "--since", ""), ("x" * 1_001,)):
        ended = place.type("events", "search", *words)
        assert (ended.code, is_one_line(ended)) == (2, True), ended
    event = place.type("events", "search", "x", "--since", "journal:#1")
    assert event.err.startswith("jackline: --since 'journal:#1' is not a valid time; use 45s, 30m, 2h"), event
    assert "or an event" not in event.err


def test_what_a_terminal_would_obey_is_not_printed(place: Place) -> None:
    append(place, text="\x1b[31mred\x07\nline")
    assert place.type("events", "tail").out.count("\n") == 1
    assert "\x1b" not in place.type("events", "tail").out
    with sqlite3.connect(place.home / "state.sqlite") as connection:  # as another program may have written it
        connection.execute("INSERT INTO events SELECT stream, 2, at, char(27) || '[0m', 'a', '{}', '' FROM events")
    connection.close()
    assert "\x1b" not in place.type("events", "tail").out


@pytest.mark.parametrize("words", [("tail",), ("since", "2h"), ("search", "x"), ("append", "note.made")])
def test_it_starts_fast(place: Place, words: tuple[str, ...]) -> None:
    append(place)
    loaded = place.end_of(place.python(PROGRAM, "events", *words)).out.splitlines()[-1].split()
    assert "jackline.store.open" in loaded
    heavy = [
        one for one in HEAVY if words[0] != "append" or one != "jackline.exports"
    ]  # a write ends with the dashboard
    assert [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in heavy)] == []


def test_what_is_archived_leaves_the_timeline_and_takes_nothing_else_with_it(place: Place, store: Store) -> None:
    long_ago = 1_700_000_000_000
    WorkQueue(store).enqueue(NewItem("mail-1", "mail"), long_ago, "ada")
    item = WorkQueue(store).claim("mail-1", "ada", 1_000, long_ago)
    WorkQueue(store).resolve(Hold("mail-1", "ada", item.token), "succeed", long_ago)
    case = NewCase("case-1", "repository", "/srv/repository", "ada", "why?", Problem())
    CaseNotebook(store).start(case, "repository:ada", long_ago)
    CaseNotebook(store).close("case-1", {"summary": "because"}, long_ago, "ada")
    store.journal.append(Fact("note.made"), long_ago, "ada")
    before = types(place, "tail", "-n", "100")
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    row = store.runs.get("r")
    assert row is not None
    whole = place.type("events", "tail", "--run", "r", "-n", "100", "--json").rows
    done = place.type("db", "archive", "--older-than", "0s", "--json").json
    assert (done["runs"], done["events"]) == (1, len(whole))
    assert types(place, "tail", "-n", "100") == before
    with gzip.open(place.home / "archive" / "r.jsonl.gz", "rt") as file:
        kept = [json.loads(line) for line in file]
    assert [event["hash"] for event in kept] == [event["hash"] for event in whole]
    assert kept[-1]["hash"] == row.chain_head
    assert place.type("db", "check").code == 0
    ended = place.type("events", "tail", "--run", "r")
    assert (ended.code, ended.out, "were archived" in ended.err) == (0, "", True)


# following


def test_tail_follows_what_other_processes_append(place: Place) -> None:
    append(place, "before.it", number=0)
    following = _follow(place)
    assert _next(following)["type"] == "before.it"
    for number in range(3):
        append(place, number=number)
        assert _next(following)["payload"] == {"number": number}
    assert _interrupted(place, following, signal.SIGINT) == []


def test_only_what_is_new_and_only_what_fits_is_followed(place: Place) -> None:
    append(place, "before.it")
    append(place, "note.seen")
    following = _follow(place, "-n", "1", "--kind", "note.", "--actor", "ada")
    append(place, "other", "--actor", "ada")
    append(place, "note.made", "--actor", "bob")
    append(place, "note.made", "--actor", "ada", number=1)
    assert _next(following)["payload"] == {"number": 1}
    assert _interrupted(place, following, signal.SIGTERM) == []


def test_an_event_that_was_committed_late_is_not_missed(place: Place, store: Store) -> None:
    """Another host's clock is behind, or its commit was slow: its event sorts before one that was shown."""
    now = time.time_ns() // 1_000_000
    store.journal.append(Fact("first"), now, "ada")
    WorkQueue(store).enqueue(NewItem("mail-1", "mail"), now - 30_000, "ada")
    following = _follow(place)
    assert [_next(following)["type"] for _ in range(2)] == ["work.created", "first"]
    store.journal.append(Fact("late"), now - 60_000, "ada", "mail-1")
    assert _next(following)["type"] == "late"
    store.journal.append(Fact("ahead"), now + 3_600_000, "ada")
    assert _next(following)["type"] == "ahead"
    store.journal.append(Fact("after.it"), now + 5, "ada")
    assert _next(following)["type"] == "after.it"
    assert _interrupted(place, following, signal.SIGINT) == []


def test_one_stream_is_followed_by_its_sequence(place: Place, store: Store) -> None:
    """However wrong a clock is."""
    now = time.time_ns() // 1_000_000
    store.journal.append(Fact("first"), now, "ada")
    following = _follow(place, "--stream", JOURNAL)
    assert _next(following)["type"] == "first"
    store.journal.append(Fact("a.year.ago"), now - 31_536_000_000, "ada")
    assert _next(following)["type"] == "a.year.ago"
    assert _interrupted(place, following, signal.SIGHUP) == []


def test_a_reader_who_goes_away_ends_it(place: Place) -> None:
    append(place)
    following = _follow(place)
    _next(following)
    assert following.stdout is not None
    following.stdout.close()
    following.stdout = None
    assert following.wait(30) == 0


def test_it_waits_for_a_home_that_is_not_there_yet(place: Place) -> None:
    following = _follow(place)
    append(place, "first")
    assert _next(following)["type"] == "first"
    assert _interrupted(place, following, signal.SIGINT) == []


def test_eight_processes_append_and_one_follows_them_all(place: Place, store: Store) -> None:
    append(place, "first")
    following = _follow(place)
    _next(following)
    devnull = subprocess.DEVNULL
    writers = [place.python(MANY, str(number), "25", stdout=devnull) for number in range(8)]
    followed = [_next(following) for _ in range(200)]
    assert [writer.wait() for writer in writers] == [0] * 8
    said = sorted((row["payload"]["by"], row["payload"]["number"]) for row in followed)
    assert said == [(by, number) for by in range(8) for number in range(25)]
    assert sorted(row["seq"] for row in followed) == list(range(2, 202))
    assert broken_at(store.records.list_events(JOURNAL)) is None
    assert _interrupted(place, following, signal.SIGINT) == []
    assert place.type("db", "check").code == 0


def _follow(place: Place, *words: str) -> subprocess.Popen[str]:
    return place.start("events", "tail", "-f", "--json", *words)


def _next(following: subprocess.Popen[str]) -> dict[str, Any]:
    assert following.stdout is not None
    line = following.stdout.readline()
    assert line, following.communicate()
    row: dict[str, Any] = json.loads(line)
    return row


def _interrupted(place: Place, following: subprocess.Popen[str], number: signal.Signals) -> list[dict[str, Any]]:
    """What it still printed before it ended as every interrupted command does."""
    following.send_signal(number)
    ended = place.end_of(following)
    assert (ended.code, ended.err) == (130, "jackline: interrupted\n")
    rows = ended.rows
    assert rows.pop() == {"error": "interrupted", "exit_code": 130}
    return rows
