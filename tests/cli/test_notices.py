"""`jackline notices` and `jackline notify`: what is listed, what is stuck, and what a person sends."""

from __future__ import annotations

from contextlib import closing

from jackline.store.open import open_store
from tests.cli.place import SAY, Place
from tests.cli.test_delivery_after_work import TOPIC, ntfy_table, set_up
from tests.support.ntfy_server import NtfyServer
from tests.support.stores import by_hand


def test_stuck_notices_come_first_and_can_be_delivered(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        server.die()
        ended = place.play(SAY)
        assert "notices for phone were not delivered and stay due" in ended.err
        server.start()
        assert place.type("notify", "later", "--kind", "message").code == 0  # it delivers both
        server.die()
        assert place.type("notify", "stuck one", "with a text").code == 0
        first, *others = place.type("notices", "--json").rows
        assert [channel["state"] for channel in first["channels"]] == ["pending"]
        assert (first["title"], first["delivered_at"]) == ("stuck one", None)
        assert [one["channels"][0]["state"] for one in others] == ["sent", "sent"]
        listed = place.type("notices", "--stuck")
        assert "stuck one" in listed.out
        assert "phone pending (1 attempt)" in listed.out
        assert "phone: next attempt" in listed.err
        with closing(open_store(str(place.home / "state.sqlite"), create=False)) as store:
            by_hand(store, "UPDATE deliveries SET next_at = 1 WHERE state = 'pending'")
        assert "phone: due again: " in place.type("notices", "--stuck").err
        assert place.type("notices", "--deliver").code == 1
        server.start()
        delivered = place.type("notices", "--deliver")
        assert (delivered.code, delivered.out) == (0, "1 message sent\n")
        assert place.type("notices", "--stuck", "--json").rows == []
        assert len(server.list_messages(TOPIC)) == 3


def test_notices_of_a_run_and_unknown_ones(place: Place) -> None:
    place.play(SAY)
    place.play({"say": "again"})
    assert len(place.type("notices", "--json").rows) == 2
    (row,) = place.type("notices", "--run", "1", "--json").rows
    assert row["kind"] == "run.succeeded"
    plain = place.type("notices")
    assert plain.out.count("run.succeeded") == 2
    assert "no channel is configured" in plain.err
    for row in place.type("notices", "--json").rows:  # the list says which run, and an id that is enough for --retry
        assert f"\t{row['id']}\t{row['subject'].removeprefix('run:')}\t" in plain.out
    for words in (
        ("notices", "--retry", "none"),
        ("notices", "--retry", ""),
        ("notices", "--deliver"),
        ("notify", "x"),
        ("notify", "--test"),
        ("notify", "x", "--test"),
    ):
        ended = place.type(*words)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended


def test_a_message_of_a_person_has_its_kind_labels_and_priority(place: Place) -> None:
    with NtfyServer() as server:
        set_up(
            place,
            ntfy_table(server, 'kinds = ["backup.*"]', 'labels = ["home"]'),
            ntfy_table(server, 'kinds = ["!backup.*"]', name="other"),
        )
        words = ("--kind", "backup.done", "--label", "home,disk", "--priority", "max")
        ended = place.type("notify", "copied \x07", "-", *words, stdin="all\x1b[31m of it\n")
        assert ended.code == 0, ended
        assert "other skipped, phone sent" in ended.out
        (message,) = server.list_messages(TOPIC)
        assert (message["title"], message["priority"]) == ("copied", 5)
        assert message["tags"][1:] == ["home", "disk"]
        assert "\x1b" not in message["message"]


def test_bad_messages_are_refused(place: Place) -> None:
    set_up(place, '[channels.bell]\ntype = "bell"')
    wrong = (
        ("notify",),
        ("notify", " "),
        ("notify", "x", "--kind", "A b"),
        ("notify", "x", "--label", "a/b"),
        ("notify", "x", "--priority", "urgent"),
        ("notify", "x" * 300),
        ("notify", "--test", "phone"),
    )
    for words in wrong:
        ended = place.type(*words)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), (words, ended)
    assert not (place.home / "state.sqlite").exists()


def test_channels_are_tested_one_by_one(place: Place) -> None:
    with NtfyServer() as server, NtfyServer() as dead:
        dead.die()
        set_up(
            place,
            ntfy_table(server),
            ntfy_table(dead, name="dead"),
            '[channels.bell]\ntype = "bell"',
            '[channels.say]\ntype = "command"\ncommand = ["true"]',
        )
        ended = place.type("notify", "--test")
        assert ended.code == 1
        lines = dict(line.split(": ", 1) for line in ended.out.splitlines())
        assert (lines["phone"], lines["say"], lines["bell"]) == ("sent", "sent", "skipped: there is no terminal")
        assert lines["dead"].startswith("failed: the server cannot be reached")
        assert place.type("notify", "--test", "phone").code == 0
        assert [one["title"] for one in server.list_messages(TOPIC)] == ["jackline: a test"] * 2


def test_a_project_can_name_no_channel(place: Place) -> None:
    (place.repository / "jackline.toml").write_text('[channels.spy]\ntype = "command"\ncommand = ["touch", "spied"]\n')
    ended = place.play(SAY)
    assert ended.code == 2
    assert "a project may not set 'channels'" in ended.err
    assert not (place.home / "spied").exists()


def test_doctor_checks_channels_and_config_hides_what_they_hold(place: Place) -> None:
    with NtfyServer() as server:
        set_up(
            place,
            ntfy_table(server, 'token = { env = "NTFY_TOKEN" }'),
            '[channels.wrong]\ntype = "ntfy"\ntopic = "t"\ntoken = "tk_written_here"',
            '[channels.say]\ntype = "command"\ncommand = ["no-such-program"]',
            '[channels.bell]\ntype = "bell"\nkinds = ["run.failed"]',
        )
        parts = place.type("doctor", "--json").json["findings"]
        found = {row["part"]: row for row in parts if row["part"].startswith("channel")}
        assert {part: row["state"] for part, row in found.items()} == {
            "channel phone": "fail",
            "channel wrong": "fail",
            "channel say": "fail",
            "channel bell": "ok",
        }
        assert "NTFY_TOKEN is not set" in found["channel phone"]["found"]
        assert server.requests == []
        shown = place.type("config").out + place.type("config", "--json").out
        assert TOPIC not in shown
        assert "tk_written_here" not in shown
        assert server.url not in shown
        assert "NTFY_TOKEN" in shown
        assert "run.failed" in shown
