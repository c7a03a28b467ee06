"""Routing by kind and label, priorities, and what is refused in a `[channels.NAME]` table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackline.errors import ConfigError
from jackline.features.notify.channel import BELL, Channel, cut_text, find_priority, find_tag, is_wanted
from jackline.features.notify.channel_secrets import read_secret
from jackline.features.notify.channel_settings import parse_channel

NTFY: dict[str, Any] = {"type": "ntfy", "topic": "watch"}
SECRET = {"env": "A_SECRET"}

ROUTES: tuple[tuple[list[str], list[str], str, list[str], bool], ...] = (
    # kinds, labels, kind of the notice, its labels, sent
    ([], [], "run.succeeded", [], True),
    (["run.*"], [], "run.waiting.approval", [], True),
    (["run.*"], [], "question", [], False),
    (["run.*", "question"], [], "question", [], True),
    (["run.*", "!run.succeeded"], [], "run.succeeded", [], False),
    (["!run.succeeded"], [], "run.failed", [], True),
    (["!run.succeeded"], [], "run.succeeded", [], False),
    ([], ["nightly"], "run.failed", ["nightly", "claude"], True),
    ([], ["nightly"], "run.failed", ["claude"], False),
    ([], ["nightly", "!claude"], "run.failed", ["nightly", "claude"], False),
    ([], ["!claude*"], "run.failed", ["claude@work"], False),
    (["run.failed"], ["nightly"], "run.succeeded", ["nightly"], False),
    ([], ["nightly"], "service.died", [], False),
)


def test_routes() -> None:
    wrong = []
    for kinds, labels, kind, has, expected in ROUTES:
        channel = Channel(name="phone", type=BELL, options={}, kinds=tuple(kinds), labels=tuple(labels))
        if is_wanted(channel, kind, has) is not expected:
            wrong.append((kinds, labels, kind, has))
    assert wrong == []


def test_what_needs_a_person_is_urgent_and_a_channel_may_decide_otherwise() -> None:
    channel = parse_channel("phone", NTFY)
    found = {kind: find_priority(channel, kind) for kind in PRIORITIES}
    assert found == PRIORITIES
    assert find_priority(channel, "run.succeeded", "max") == "max"
    own = parse_channel("phone", {**NTFY, "priority": {"run.failed": "max", "run.*": "min"}})
    assert find_priority(own, "run.failed") == "max"
    assert find_priority(own, "run.waiting.approval") == "min"
    assert find_priority(parse_channel("phone", {**NTFY, "priority": "low"}), "run.failed") == "low"


PRIORITIES = {
    "run.succeeded": "default",
    "run.failed": "high",
    "run.cancelled": "low",
    "run.waiting.approval": "high",
    "run.waiting.in_doubt": "high",
    "run.waiting.human": "high",
    "run.waiting.budget": "high",
    "run.waiting.limit": "low",
    "run.waiting.paused": "low",
    "question": "high",
    "work.failed": "high",
    "service.died": "high",
    "schedule.overdue": "high",
    "trigger.failing": "high",
    "budget.low": "default",
    "budget.spent": "high",
    "reply.taken": "low",
    "replies.closed": "high",
    "something.new": "default",
}


def test_tags_show_how_it_went() -> None:
    assert [find_tag(kind) for kind in ("run.succeeded", "run.failed", "schedule.missed", "other")] == [
        "white_check_mark",
        "x",
        "alarm_clock",
        "bell",
    ]


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("Phone", NTFY, "a name has"),
    ("phone", {"topic": "watch"}, "type must be one of"),
    ("phone", {"type": "carrier-pigeon"}, "type must be one of"),
    ("phone", {"type": "ntfy"}, "topic is missing"),
    ("phone", {**NTFY, "topic": "a/b"}, "topic must be"),
    ("phone", {**NTFY, "tokne": SECRET}, "did you mean token?"),
    ("phone", {**NTFY, "token": "tk_secret"}, "a secret is not written here"),
    ("phone", {**NTFY, "token": {"env": ""}}, "a secret is not written here"),
    ("phone", {**NTFY, "token": {"env": "A", "file": "/b"}}, "a secret is not written here"),
    ("phone", {**NTFY, "token": SECRET, "user": "ada", "password": SECRET}, "either token"),
    ("phone", {**NTFY, "user": "ada"}, "belong together"),
    ("phone", {**NTFY, "url": "ftp://host"}, "http:// or https://"),
    ("phone", {**NTFY, "url": "http://[::1"}, "http:// or https://"),
    ("phone", {**NTFY, "url": "http://host:99999"}, "http:// or https://"),
    ("phone", {**NTFY, "url": "http://my host"}, "http:// or https://"),
    ("phone", {**NTFY, "url": "https://ada:pass@host"}, "must not hold a password"),
    ("phone", {**NTFY, "kinds": "run.*"}, "list of patterns"),
    ("phone", {**NTFY, "labels": ["!"]}, "list of patterns"),
    ("phone", {**NTFY, "priority": "urgent"}, "priority must be"),
    ("phone", {**NTFY, "timeout_seconds": 0}, "timeout_seconds"),
    ("phone", {**NTFY, "timeout_seconds": True}, "timeout_seconds"),
    ("hook", {"type": "webhook", "url": "https://host"}, "secret is missing"),
    ("say", {"type": "command", "command": "notify-send hello"}, "list of words"),
    ("say", {"type": "command", "command": []}, "list of words"),
    ("any", {"type": "apprise", "url": "json://host"}, "a secret is not written here"),
)


def test_wrong_tables_are_refused_without_repeating_a_secret() -> None:
    wrong = []
    for name, table, expected in WRONG:
        with pytest.raises(ConfigError) as caught:
            parse_channel(name, table)
        if expected not in str(caught.value) or "tk_secret" in str(caught.value) or "pass@" in str(caught.value):
            wrong.append((table, str(caught.value)))
    assert wrong == []


def test_a_table_may_be_named_like_its_type() -> None:
    assert parse_channel("bell", {}).type == "bell"


def test_a_secret_comes_from_a_variable_or_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    channel = parse_channel("phone", {**NTFY, "token": {"file": str(path)}})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_secret(channel, "token", {})
    path.write_text("tk_1\n")
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_secret(channel, "token", {})
    path.chmod(0o600)
    assert read_secret(channel, "token", {}) == "tk_1"
    path.write_text("")
    with pytest.raises(ConfigError, match="must have one line"):
        read_secret(channel, "token", {})
    path.write_text("tk_1\nX: y")
    with pytest.raises(ConfigError, match="must have one line"):
        read_secret(channel, "token", {})
    channel = parse_channel("phone", {**NTFY, "token": SECRET})
    assert read_secret(channel, "token", {"A_SECRET": "tk_2"}) == "tk_2"
    with pytest.raises(ConfigError, match="A_SECRET is not set"):
        read_secret(channel, "token", {})
    with pytest.raises(ConfigError, match="must have one line"):
        read_secret(channel, "token", {"A_SECRET": "tk_2\r\nX: y"})


def test_a_text_is_cut_between_characters() -> None:
    assert cut_text("ä" * 10, 20) == "ä" * 10
    assert cut_text("ä" * 11, 20) == "ä" * 8 + "…"
