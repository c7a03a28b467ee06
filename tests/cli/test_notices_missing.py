"""`jackline notices --missing`: what should have been reported, what was sent, and what the topic holds."""

from __future__ import annotations

from contextlib import closing

import pytest

from jackline.store.open import open_store
from tests.cli.place import SAY, Place
from tests.support.ntfy_server import NtfyServer
from tests.support.stores import by_hand

TOPIC = "jackline-missing-test"


def set_up(place: Place, server: NtfyServer) -> None:
    config = place.folder / ".config" / "jackline" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[channels.phone]\ntype = "ntfy"\nurl = "{server.url}"\ntopic = "{TOPIC}"\n')


def change(place: Place, sql: str) -> None:
    with closing(open_store(str(place.home / "state.sqlite"), create=False)) as store:
        by_hand(store, sql)


def test_nothing_is_missing_after_a_run_was_reported(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, server)
        assert place.type("notices", "--missing").code == 0
        assert place.play(SAY).code == 0
        server.publish(TOPIC, "of somebody else, with\x85other\u2028line\x1cends")
        ended = place.type("notices", "--missing")
        assert (ended.code, ended.out, ended.err) == (0, "", "nothing is missing\n")


def test_a_title_that_was_cut_is_found_on_a_server_without_sequence_ids(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, server)
        assert place.type("notify", "漢" * 100).code == 0
        assert place.type("notices", "--missing").code == 0


def test_each_difference_is_a_line(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, server)
        assert place.play(SAY, words=("--run-id", "one")).code == 0
        server.forget()
        assert place.play(SAY, words=("--run-id", "two")).code == 0
        server.fail(503)
        assert place.play(SAY, words=("--run-id", "three")).code == 0
        change(place, "DELETE FROM deliveries WHERE notice_id IN (SELECT id FROM notices WHERE run_id = 'two')")
        change(place, "DELETE FROM notices WHERE run_id = 'two'")
        ended = place.type("notices", "--missing", "--json")
        assert ended.code == 1
        found = {(one["kind"], one["text"].split(" at ")[0].split(":")[0]) for one in ended.rows}
    assert found == {
        ("topic", "run.succeeded (scripted/adhoc"),
        ("run", "run.succeeded"),
        ("delivery", "run.succeeded (scripted/adhoc"),
    }
    assert [one["subject"] for one in ended.rows if one["kind"] == "run"] == ["two"]
    texts = " ".join(one["text"] for one in ended.rows)
    assert "is not in its topic" in texts
    assert "the server answered 503" in texts


@pytest.mark.parametrize(("kinds", "code"), [("run.failed", 0), ("run.*", 1)])
def test_a_channel_misses_only_what_it_wants(place: Place, kinds: str, code: int) -> None:
    with NtfyServer() as server:
        set_up(place, server)
        assert place.play(SAY).code == 0
        change(place, "DELETE FROM deliveries")
        change(place, "UPDATE notices SET delivered_at = NULL")
        with (place.folder / ".config" / "jackline" / "config.toml").open("a") as file:
            file.write(f'kinds = ["{kinds}"]\n')
        ended = place.type("notices", "--missing")
        assert (ended.code, "nothing has delivered since" in ended.out) == (code, bool(code)), ended


@pytest.mark.parametrize(("reason", "code"), [("ci", 0), ("retry", 0), ("human", 1)])
def test_a_run_that_continues_by_itself_needs_no_notice(place: Place, reason: str, code: int) -> None:
    assert place.play(SAY).code == 0
    change(place, f"UPDATE runs SET state = 'waiting', reason = '{reason}', finished_at = NULL")
    assert place.type("notices", "--missing").code == code


def test_a_server_that_cannot_be_asked_is_a_difference(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, server)
        assert place.play(SAY).code == 0
    ended = place.type("notices", "--missing")
    assert ended.code == 1
    assert "topic phone: the topic of phone cannot be read: the server cannot be reached" in ended.out


def test_missed_fires_are_a_difference(place: Place) -> None:
    place.type("schedule", "add", "nightly", "0 * * * *", "--script", place.script(SAY), "--catch-up", "skip")
    change(place, "UPDATE schedules SET checked_until = checked_until - 18000000")
    ended = place.type("notices", "--missing")
    assert ended.code == 1
    assert ended.out == "schedule nightly: is due, and nothing fires it: start `jackline serve`\n"
    assert place.type("serve", "--once").code == 0
    late = place.type("notices", "--missing", "--json").rows
    assert len(late) in {4, 5}  # the newest may have been on time
    assert all(one["text"].endswith("missed") for one in late)
    assert place.type("notices", "--missing", "--since", "1s").code == 0


@pytest.mark.parametrize(
    ("words", "says"), [(("--missing", "--since", "soon"), "--since"), (("--since", "1h"), "--missing")]
)
def test_bad_words(place: Place, words: tuple[str, ...], says: str) -> None:
    ended = place.type("notices", *words)
    assert ended.code == 2
    assert says in ended.err
