"""`jackline verify`: finds every change of a run's records and names its place."""

from __future__ import annotations

import gzip
import sqlite3

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND, Place, is_one_line


@pytest.fixture
def played(place: Place) -> Place:
    assert place.play(SEND, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r")).code == 0
    return place


def tamper(place: Place, *statements: str) -> None:
    """Behind jackline's back, with the triggers out of the way."""
    database = sqlite3.connect(place.home / "state.sqlite")
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for sql in [*(f"DROP TRIGGER {name}" for (name,) in names), *statements]:
        database.executescript(sql)
    database.commit()
    database.close()


def test_an_unchanged_run_is_verified(played: Place) -> None:
    ended = played.type("verify", "r")
    assert (ended.code, "run r is intact: " in ended.out) == (0, True)
    found = played.type("verify", "r", "--json").json
    shown = played.type("show", "r", "--json").json
    assert (found["ok"], found["problems"]) == (True, [])
    assert (found["chain_head"], found["events"]) == (shown["chain_head"], shown["event_seq"])
    assert (found["calls"], found["receipts"], found["heads"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE events SET data = replace(data, 'send', 'read') WHERE kind = 'call.prepared'", "broken at event"),
        ("DELETE FROM events WHERE seq = 3", "its chain is broken at event 3"),
        ("UPDATE events SET seq = -seq WHERE seq IN (3, 4)", "event -4 precedes the first"),
        (
            "INSERT INTO events SELECT stream, seq + 100, at, kind, actor, data, hash FROM events WHERE seq = 2",
            "broken at",
        ),
        ("UPDATE calls SET target = 'mail:eve'", "was altered after it had been written"),
        ("UPDATE receipts SET output = 'never'", "the receipt of call"),
        ("DELETE FROM receipts", "has no receipt"),
        ("UPDATE runs SET state = 'failed'", "its row was altered after it had been written"),
        ("UPDATE runs SET state = 'nonsense'", "its row was altered after it had been written"),
        ("UPDATE specs SET spec = 'nonsense'; UPDATE runs SET proof = 'proved'", "its spec was altered"),
        ("UPDATE checkpoints SET life = '{}' WHERE step = 2", "checkpoint 2 boundary was altered"),
        ("UPDATE specs SET spec = replace(spec, 'mail:', 'post:')", "its spec was altered"),
    ],
)
def test_an_altered_record_is_named(played: Place, tampering: str, said: str) -> None:
    tamper(played, tampering)
    ended = played.type("verify", "r")
    assert (ended.code, said in ended.out) == (1, True), ended
    assert ended.out.startswith("run r has been altered\n")
    found = played.type("verify", "r", "--json")
    assert (found.code, found.json["ok"], said in found.json["problems"][0]) == (1, False, True)


def test_a_head_that_was_kept_must_be_on_the_chain(played: Place) -> None:
    head = played.type("verify", "r", "--json").json["chain_head"]
    assert played.type("verify", "r", "--head", head.upper()).code == 0
    other = played.type("verify", "r", "--head", "0" * 64)
    assert (other.code, "that was kept is not on the chain" in other.out) == (1, True)
    for wrong in ("abc", "", "z" * 64):
        refused = played.type("verify", "r", "--head", wrong)
        assert (refused.code, is_one_line(refused)) == (2, True)


def test_an_archived_run_is_whole_only_with_its_archive(played: Place) -> None:
    assert played.type("db", "archive", "--older-than", "0s").code == 0
    assert played.type("verify", "r").code == 0
    kept = played.home / "archive" / "r.jsonl.gz"
    whole = gzip.decompress(kept.read_bytes())
    kept.write_bytes(gzip.compress(whole.replace(b"mail:ada", b"mail:eve")))
    ended = played.type("verify", "r")
    assert (ended.code, "its chain is broken at event" in ended.out) == (1, True)
    checked = played.type("db", "check")
    assert (checked.code, "run r: its chain is broken at event" in checked.out) == (1, True)
    packed = gzip.compress(whole)
    torn = packed[: len(packed) // 2] + b"\xff" * 40 + packed[len(packed) // 2 + 40 :]
    odd = gzip.compress(b'{"stream": "r", "seq": "1", "at": 1, "kind": "k", "actor": "a", "data": 5, "hash": ""}\n')
    for unreadable in (b"not an archive", torn, packed[:-20], odd, gzip.compress(b"[]\n")):
        kept.write_bytes(unreadable)
        ended = played.type("verify", "r")
        assert (ended.code, "cannot be read" in ended.out, ended.err) == (1, True, ""), ended
    elsewhere = played.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / kept.name).write_bytes(gzip.compress(whole))
    kept.unlink()
    ended = played.type("verify", "r")
    assert (ended.code, "events were archived and are not here" in ended.out) == (1, True)
    checked = played.type("db", "check")
    assert (checked.code, checked.out, "1 run with archived events" in checked.err) == (0, "no problems found\n", True)
    assert played.type("verify", "r", "--archive", str(elsewhere)).code == 0


def test_a_run_that_is_not_there_is_one_line(place: Place) -> None:
    refused = place.type("verify", "r")
    assert (refused.code, is_one_line(refused)) == (2, True)
