"""`jackline channel`: sets up a phone in the user's settings, and changes nothing else there."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from tests.cli.place import Place, is_one_line

MINE = '# mine\nagent = "claude"  # kept\n\n[channels.bell]\ntype = "bell"\n'


def settings_of(place: Place) -> Path:
    return place.folder / ".config" / "jackline" / "config.toml"


def write_settings(place: Place, text: str) -> Path:
    path = settings_of(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_it_makes_random_topics_and_says_what_they_allow(place: Place) -> None:
    ended = place.type("channel", "add", "phone", "--replies", "deny")
    assert ended.code == 0, ended
    path = settings_of(place)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    table = tomllib.loads(path.read_text())["channels"]["phone"]
    topics = {table["topic"], table["reply_topic"]}
    assert (table["type"], table["replies"], len(topics)) == ("ntfy", "deny", 2)
    for topic in topics:
        assert topic in ended.out
        assert len(topic) == len("jl-") + 32  # 24 random bytes
    assert "can deny calls and answer questions" in ended.out
    assert "an agent that runs as your user" in ended.out
    assert "Test it with: jackline notify --test\nReplies are read while this runs: jackline serve\n" in ended.out
    (row,) = place.type("channel", "list", "--json").rows
    assert row == {"name": "phone", "type": "ntfy", "replies": "deny", "closed_at": None}


def test_it_keeps_everything_else_in_the_file(place: Place) -> None:
    path = write_settings(place, MINE.rstrip("\n"))
    path.chmod(0o644)
    token = place.folder / "token"
    token.write_text("tk_secret\n")
    token.chmod(0o600)
    words = ("--server", "https://ntfy.example.org/", "--token-file", str(token), "--replies", "all")
    ended = place.type("channel", "add", "phone", *words, "--button-token-file", str(token))
    assert ended.code == 0, ended
    assert path.read_text().startswith(MINE)
    assert "its mode is 600 now" in ended.out
    assert "tk_secret" not in path.read_text() + ended.out
    table = tomllib.loads(path.read_text())["channels"]["phone"]
    assert (table["url"], table["token"]) == ("https://ntfy.example.org/", {"file": str(token)})
    assert "on the server https://ntfy.example.org:" in ended.out
    assert "can approve, deny and answer" in ended.out
    assert place.type("channel", "add", "second").code == 0
    assert [row["name"] for row in place.type("channel", "list", "--json").rows] == ["bell", "phone", "second"]


def test_without_replies_there_is_no_reply_topic(place: Place) -> None:
    shown = place.type("channel", "add", "phone", "--json").json
    assert (shown["topics"]["replies"], shown["server"]) == ("", "https://ntfy.sh")
    assert "reply_topic" not in settings_of(place).read_text()


def test_a_link_to_the_settings_stays_a_link(place: Place) -> None:
    target = place.folder / "dotfiles.toml"
    target.write_text(MINE)
    settings_of(place).parent.mkdir(parents=True)
    settings_of(place).symlink_to(target)
    assert place.type("channel", "add", "phone").code == 0
    assert settings_of(place).is_symlink()
    assert "[channels.phone]" in target.read_text()


@pytest.mark.parametrize(
    ("before", "words", "says"),
    [
        (MINE, ("bell",), "choose another name"),
        ("channels = {}\n", ("phone",), "cannot be added"),
        ("broken = \n", ("phone",), "config.toml"),
        ("", ("Phone!",), "lowercase letters"),
        ("", ("phone", "--server", "ftp://x"), "http:// or https://"),
        ("", ("phone", "--token-file", "/etc/passwd"), "jackline: [channels.phone] token: /etc/passwd is open"),
        ("", ("phone", "--token-file", "/nowhere"), "cannot be read"),
        ("", ("phone", "--button-token-file", "/nowhere"), "add --replies"),
        ("", ("phone", "--replies", "yes"), "invalid choice"),
    ],
)
def test_what_cannot_be_added_changes_nothing(place: Place, before: str, words: tuple[str, ...], says: str) -> None:
    path = write_settings(place, before)
    ended = place.type("channel", "add", *words)
    assert (ended.code, is_one_line(ended), says in ended.err) == (2, True, True), ended
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ('replies = "yes"', "replies must be one of off, deny, all"),
        ('replies = "all"', "reply_topic is missing"),
        ('replies = "all"\nreply_topic = "all of them!"', "reply_topic must be 1 to 64 letters"),
        ('replies = "all"\nreply_topic = "answers"', "can be guessed"),
        ('replies = "all"\nreply_topic = "0123456789-0123456789"', "must not be the topic of the notices"),
        ('replies = "all"\nreply_topic = "0123456789-abcdefghij"\nreply_valid = "soon"', "reply_valid must be a time"),
        ('replies = "all"\nreply_topic = "0123456789-abcdefghij"\nreply_valid = "31d"', "reply_valid must be a time"),
        ('reply_token = "tk_secret"', "reply_token"),
    ],
)
def test_keys_that_do_not_fit_are_named(place: Place, keys: str, says: str) -> None:
    write_settings(place, f'[channels.phone]\ntype = "ntfy"\ntopic = "0123456789-0123456789"\n{keys}\n')
    ended = place.type("channel", "list")
    assert says in ended.err
    assert "tk_secret" not in ended.err + ended.out


def test_a_channel_that_is_not_closed_cannot_be_reopened(place: Place) -> None:
    write_settings(place, MINE)
    assert "not closed" in place.type("channel", "reopen", "bell").err
    unknown = place.type("channel", "reopen", "phone")
    assert (unknown.code, is_one_line(unknown)) == (2, True), unknown
