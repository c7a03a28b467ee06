"""`jackline work`: the queue from a shell, on both databases; every mistake is one line with its exit code."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from jackline.engine import run_env
from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_startup_imports import HEAVY, PROGRAM
from tests.conftest import SLOW_BACKENDS


@pytest.fixture(params=SLOW_BACKENDS)
def queue(place: Place, request: pytest.FixtureRequest) -> Place:
    """A place with a database of each kind."""
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return place


def work(place: Place, *words: str, **more: Any) -> dict[str, Any]:
    """What a command that must succeed prints as JSON."""
    ended = place.type("work", *words, "--json", **more)
    assert ended.code == 0, ended
    return ended.json


def refused(place: Place, code: int, said: str, *words: str, **more: Any) -> None:
    ended = place.type("work", *words, **more)
    assert (ended.code, is_one_line(ended), said in ended.err) == (code, True, True), ended


def test_an_item_from_its_beginning_to_its_end(queue: Place) -> None:
    made = work(queue, "enqueue", "--id", "m-1", "--kind", "mail", "--payload", '{"to": "bob"}', "--priority", "-2")
    assert made == {
        **made, "id": "m-1", "kind": "mail", "payload": {"to": "bob"}, "status": "pending", "owner_agent": None,
        "notes": "", "priority": -2, "attempts": 0, "max_attempts": 5, "token": 0, "new": True,
    }  # fmt: skip
    assert made["created_at"] == made["updated_at"]
    again = work(queue, "enqueue", "--id", "m-1", "--kind", "mail", "--payload", '{"to":"bob"}')
    assert again == {**made, "new": False}
    taken = work(queue, "next", "--owner", "ada")
    assert (taken["status"], taken["owner_agent"], taken["token"], taken["attempts"]) == ("in_flight", "ada", 1, 1)
    assert work(queue, "renew", "m-1", "--owner", "ada", "--token", "1", "--lease", "2h")["token"] == 1
    back = work(queue, "release", "m-1", "--owner", "ada", "--token", "1", "--notes", "busy")
    assert (back["status"], back["notes"]) == ("pending", "busy")
    assert work(queue, "claim", "--id", "m-1", "--owner", "eve", "--lease", "30s")["token"] == 2
    done = work(queue, "resolve", "m-1", "--owner", "eve", "--token", "2", "--notes-json", '{"b":1, "a":[]}')
    assert (done["status"], done["notes"]) == ("done", '{"a":[],"b":1}')
    assert done["finished_at"] == done["updated_at"]
    assert work(queue, "get", "m-1") == done
    assert queue.type("work", "list", "--json").rows == [done]
    events = queue.type("events", "tail", "--work-item", "m-1", "--json").rows
    assert [event["type"] for event in events] == [
        "work.created", "work.claimed", "work.released", "work.claimed", "work.resolved",
    ]  # fmt: skip
    assert [event["actor"] for event in events[1:]] == ["ada", "ada", "eve", "eve"]
    assert queue.type("db", "check").code == 0


def test_a_loop_ends_when_there_is_nothing_left(queue: Place) -> None:
    for number in range(3):
        work(queue, "enqueue", "--id", f"i{number}", "--kind", "mail", "--payload", str(number))
    program = (
        'while item=$("$0" -m jackline work next --kind mail --json); code=$?; [ "$code" -eq 0 ]; do '
        'id=$(printf "%s" "$item" | "$0" -c "import json,sys; print(json.load(sys.stdin)[\'id\'])"); '
        'echo "$id"; "$0" -m jackline work resolve --id="$id" > /dev/null; done; [ "$code" -eq 4 ]'
    )
    ended = queue.end_of(queue.execute(["/bin/sh", "-c", program, sys.executable]))
    assert (ended.code, ended.out) == (0, "i0\ni1\ni2\n"), ended
    assert ended.err == "jackline: nothing to claim\n"
    refused(queue, 4, "nothing to claim", "next")


def test_an_empty_queue_differs_from_an_error(place: Place) -> None:
    """A loop may end with the one, and must not be silent about the other."""
    nothing = {"error": "nothing to claim", "exit_code": 4}
    assert place.type("work", "next", "--json").json == nothing
    work(place, "enqueue", "--kind", "mail")
    assert place.type("work", "next", "--kind", "other", "--json").json == nothing
    (place.home / "state.sqlite").write_bytes(b"no database at all, but as long as the head of one is" * 4)
    refused(place, 1, "is damaged or not a jackline database", "next")


def test_reading_creates_no_home(place: Place) -> None:
    for action in ("list", "pending", "replay"):
        ended = place.type("work", action)
        assert (ended.code, ended.out, ended.err) == (0, "", "no matching work items\n")
        assert place.type("work", action, "--json").out == ""
    refused(place, 4, "nothing to claim", "next")
    for words in (
        ("claim", "x"),
        ("get", "x"),
        ("resolve", "x"),
        ("annotate", "x", "--notes", "y"),
        ("answer", "x", "y"),
    ):
        refused(place, 1, "no work item has the id 'x'; see `jackline work list`", *words)
    assert not place.home.exists()


def test_items_without_an_id_get_fresh_ones(place: Place) -> None:
    first, second = (place.type("work", "enqueue", "--kind", "k").out for _ in range(2))
    assert len(first) == len(second) == 27
    assert first < second
    assert [one["id"] for one in place.type("work", "list", "--json").rows] == [second.strip(), first.strip()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "arguments are required: ACTION"),
        (("take",), "invalid choice: 'take'"),
        (("enqueue",), "arguments are required: --kind"),
        (("enqueue", "--kind", "k", "--payload", "{"), "the payload is not valid JSON"),
        (("enqueue", "--kind", "k", "--payload", "NaN"), "NaN is not a number"),
        (("enqueue", "--kind", "k", "--payload", '{"a": [1e400]}'), "has a number that is too large"),
        (("annotate", "a", "--notes-json", "1e999"), "has a number that is too large"),
        (("next", "--lease", "9" * 5_000 + "x"), "is not a valid time"),
        (("enqueue", "--kind", "k", "--payload", ""), "the payload is not valid JSON"),
        (("enqueue", "--kind", "k", "--payload", "@missing.json"), "missing.json cannot be read"),
        (("enqueue", "--kind", "k", "--id", "a\nb"), "cannot be the id of a work item"),
        (("enqueue", "--kind", "k", "--id", ""), "'' cannot be the id of a work item"),
        (("get", "--id", "-x"), "--id: expected one argument; a value that starts with a dash is written --id=-…"),
        (("enqueue", "--kind", "k", "--id", "x" * 201), "cannot be the id of a work item"),
        (("enqueue", "--kind", ""), "cannot be the kind of a work item"),
        (("enqueue", "--kind", "k", "--priority", "high"), "'high' is not a whole number"),
        (("enqueue", "--kind", "k", "--priority", "99999999999999999999"), "is not a whole number"),
        (("enqueue", "--kind", "k", "--max-attempts", "0"), "'0' is not a whole number"),
        (("enqueue", "--kind", "k", "--notes", "a", "--notes-json", "1"), "not allowed with argument"),
        (("enqueue", "--kind", "k", "--notes-json", "nope"), "--notes-json is not valid JSON"),
        (("next", "--lease", "soon"), "--lease 'soon' is not a valid time; use 45s, 15m, 2h or 3d"),
        (("next", "--limit", "3"), "unrecognized arguments: --limit"),
        (("claim",), "give exactly one item: jackline work claim ID"),
        (("claim", "a", "--id", "b"), "give exactly one item"),
        (("resolve", "a", "b"), "unrecognized arguments: b"),
        (("resolve", "a", "--status", "pending"), "invalid choice: 'pending'"),
        (("resolve", "a", "--token", "0"), "'0' is not a token; a claim prints it"),
        (("annotate", "a"), "one of the arguments --notes --notes-json is required"),
        (("annotate", "a", "--notes-json", "{"), "--notes-json is not valid JSON"),
        (("enqueue", "--kind", "k", "--question", ""), "the question is empty"),
        (("enqueue", "--kind", "k", "--question", " "), "the question is empty"),
        (("next", "--kind", "k", "--kind", ""), "a kind is empty"),
        (("wait-human", "a"), "arguments are required: --question"),
        (("wait-human", "a", "--question", " "), "the question is empty"),
        (("answer", "a"), "give an item and an answer: jackline work answer ID TEXT"),
        (("answer", "a", "b", "c"), "give an item and an answer"),
        (("answer", "a", " "), "the answer is empty"),
        (("list", "--status", "lost"), "invalid choice: 'lost'"),
        (("list", "--limit", "0"), "'0' is not a whole number"),
        (("replay", "--older-than", "long"), "--older-than 'long' is not a valid time"),
    ],
)
def test_bad_arguments_are_usage_errors(place: Place, words: tuple[str, ...], said: str) -> None:
    refused(place, 2, said, *words)


def test_what_cannot_be_done_is_an_error(place: Place) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k", "--payload", "1")
    refused(place, 1, "work item a already exists", "enqueue", "--id", "a", "--kind", "k", "--payload", "2")
    refused(place, 1, "a is pending: claim it first", "release", "a")
    refused(place, 1, "there is no lease to renew", "renew", "a")
    work(place, "claim", "a", "--owner", "ada")
    refused(place, 1, "work item a is held by ada", "claim", "a", "--owner", "eve")
    refused(place, 1, "work item a is held by ada, not by eve", "resolve", "a", "--owner", "eve")
    refused(place, 1, "is held with token 1: token 7 is over", "resolve", "a", "--owner", "ada", "--token", "7")
    work(place, "resolve", "a", "--owner", "ada", "--status", "failed")
    refused(place, 1, "work item a is failed: it has ended", "resolve", "a", "--owner", "ada")
    ended = place.type("work", "claim", "a", "--json")
    assert (ended.code, ended.json["exit_code"]) == (1, 1)


def test_a_payload_comes_from_anywhere(place: Place) -> None:
    (place.repository / "p.json").write_text('{"from": "file"}')
    assert work(place, "enqueue", "--kind", "k", "--payload", "@p.json")["payload"] == {"from": "file"}
    piped = work(place, "enqueue", "--kind", "k", "--payload", "-", stdin='["from", "pipe", "ü"]\n')
    assert piped["payload"] == ["from", "pipe", "ü"]
    (place.repository / "p.json").write_bytes(b'"\xff"')
    refused(place, 2, "p.json is not UTF-8 text", "enqueue", "--kind", "k", "--payload", "@p.json")
    deep = "[" * 100_000
    refused(place, 2, "nested more than 100 deep", "enqueue", "--kind", "k", "--payload", "-", stdin=deep)
    longest = json.dumps("x" * 1_000_000)
    refused(place, 2, "is longer than 1,000,000 characters", "enqueue", "--kind", "k", "--payload", "-", stdin=longest)


def test_a_payload_that_could_not_be_read_back_is_refused(place: Place) -> None:
    """It would be claimed, and then nothing could print it; nor any page of the list that it is on."""
    for depth, code in ((99, 0), (101, 2), (990, 2)):
        payload = "[" * depth + "]" * depth
        assert place.type("work", "enqueue", "--id", f"d{depth}", "--kind", "k", "--payload", payload).code == code
    work(place, "enqueue", "--id", "odd", "--kind", "k")
    with sqlite3.connect(place.home / "state.sqlite") as connection:  # as another program may have written it
        connection.execute("UPDATE work_items SET payload = ? WHERE id = 'odd'", ("[" * 5_000,))
    connection.close()
    assert [one["id"] for one in place.type("work", "list", "--json").rows] == ["odd", "d99"]
    assert work(place, "next")["id"] == "d99"


def test_a_span_of_any_length_is_one(place: Place) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k")
    assert work(place, "next", "--lease", "9" * 5_000 + "w")["token"] == 1
    assert [row["id"] for row in place.type("work", "replay", "--older-than", "0" * 5_000 + "s", "--json").rows] == [
        "a"
    ]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", " ", "x" * 201])
def test_who_acts_has_a_name_in_one_line(place: Place, name: str) -> None:
    environ = {"JACKLINE_ACTOR": name}
    refused(place, 2, "a name in one line", "enqueue", "--kind", "k", environ=environ)
    assert not place.home.exists()
    work(place, "enqueue", "--id", "a", "--kind", "k", "--question", "?")
    for words in (("annotate", "a", "--notes", "x"), ("answer", "a", "x"), ("replay", "--requeue")):
        if words[0] != "replay":  # replay has nothing to change here
            refused(place, 2, "a name in one line", *words, environ=environ)


def test_a_person_is_asked_and_answers(queue: Place) -> None:
    work(queue, "enqueue", "--id", "a", "--kind", "k")
    token = str(work(queue, "next", "--owner", "agent")["token"])
    ended = queue.type("work", "wait-human", "a", "--owner", "agent", "--token", token, "--question", "left or right?")
    assert (ended.code, ended.out) == (0, "a waits for a person: jackline work answer a 'YOUR ANSWER'\n")
    refused(queue, 4, "nothing to claim", "next")
    refused(queue, 1, "it needs an answer first", "claim", "a")
    assert "left or right?" in queue.type("work", "list", "--status", "waiting_human").out
    answered = work(queue, "answer", "a", "left")
    assert (answered["status"], answered["answer"]) == ("pending", "left")
    again = work(queue, "next")
    assert (again["question"], again["answer"], again["token"]) == ("left or right?", "left", 2)


def test_a_shown_command_works_for_any_id(place: Place) -> None:
    for name in ("-a", "--home=/evil"):
        work(place, "enqueue", f"--id={name}", "--kind", "k")
    shown = place.type("work", "list", "--limit", "1").err
    again = shlex.split(shown.removeprefix("more: "))
    assert again == ["jackline", "work", "list", "--limit", "1", "--after=--home=/evil"]
    assert place.type(*again[1:]).out.startswith("-a\t")
    work(place, "claim", "--id=-a", "--owner", "agent")
    parked = place.type("work", "wait-human", "--id=-a", "--owner", "agent", "--question", "left or right?")
    command = shlex.split(parked.out.partition("person: ")[2])
    assert work(place, *command[2:-1], "left")["answer"] == "left"


@pytest.mark.parametrize("words", [("a", "yes"), ("--id", "a", "yes"), ("a", "--answer", "yes")])
def test_an_answer_may_be_given_in_several_ways(place: Place, words: tuple[str, ...]) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k", "--question", "well?")
    assert work(place, "answer", *words)["answer"] == "yes"


@pytest.mark.parametrize("name", [run_env.TAG_VARIABLE, "JACKLINE_RUN"])
def test_an_agent_does_not_answer_its_own_question(place: Place, name: str) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k", "--question", "may I?")
    refused(
        place,
        2,
        "`jackline work answer` is refused inside a run",
        "answer",
        "a",
        "yes",
        environ={name: "0123456789"},
    )
    assert work(place, "get", "a")["status"] == "waiting_human"


@pytest.mark.parametrize("name", [run_env.TAG_VARIABLE, "JACKLINE_RUN"])
@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_an_agent_does_not_put_away_what_waits_for_a_person(place: Place, name: str, status: str) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "retro.proposal", "--question", "shall we?")
    words = ("resolve", "a", "--status", status)
    refused(place, 1, "an agent cannot end a work item that waits for a person", *words, environ={name: "0123456789"})
    assert work(place, "get", "a")["status"] == "waiting_human"
    assert work(place, *words)["status"] == status


def test_a_run_s_agent_does_not_answer(place: Place) -> None:
    """The real thing: a command that an agent of a run starts, past the gate."""
    work(place, "enqueue", "--id", "a", "--kind", "k", "--question", "may I?")
    answer = f"{sys.executable} -m jackline work answer a yes > answered 2>&1; true"
    ended = place.play({"call": {"tool": "read", "input": {}, "run": answer}}, SAY)
    assert ended.code == 0, ended
    assert "inside a run" in (place.repository / "answered").read_text()
    assert work(place, "get", "a")["status"] == "waiting_human"


def test_the_policy_denies_it_to_agents(place: Place) -> None:
    said = place.type("policy", "explain", "Bash", "--command", "jackline work answer a yes", "--json")
    assert said.code == 0
    assert "jackline.answer" in said.out
    assert "deny" in said.out


def test_pages_follow_each_other(place: Place) -> None:
    for number in range(5):
        work(place, "enqueue", "--id", f"i{number}", "--kind", ("x", "y")[number % 2])
    first = place.type("work", "list", "--limit", "2")
    assert [line.split("\t")[0] for line in first.out.splitlines()] == ["i4", "i3"]
    assert first.err == "more: jackline work list --limit 2 --after i3\n"
    second = place.type("work", "list", "--limit", "2", "--after", "i3")
    assert [line.split("\t")[0] for line in second.out.splitlines()] == ["i2", "i1"]
    last = place.type("work", "pending", "--limit", "2", "--after", "i1", "--json")
    assert [row["id"] for row in last.rows] == ["i0"]
    assert [row["id"] for row in place.type("work", "pending", "--kind", "y", "--json").rows] == ["i3", "i1"]
    refused(place, 1, "no work item has the id 'none'", "list", "--after", "none")
    replayed = place.type("work", "replay", "--limit", "2")
    assert [line.split("\t")[0] for line in replayed.out.splitlines()] == ["i0", "i1"]
    assert replayed.err == "there are more: use a larger --limit\n"


def test_replay_shows_and_puts_back_what_was_given_up(queue: Place) -> None:
    for name in ("held", "dropped", "waiting"):
        work(queue, "enqueue", "--id", name, "--kind", "k", "--max-attempts", "1")
    work(queue, "claim", "held")
    work(queue, "claim", "dropped", "--lease", "0s")
    shown = [(row["id"], row["status"]) for row in queue.type("work", "replay", "--json").rows]
    assert shown == [("dropped", "in_flight"), ("waiting", "pending")]
    old = [row["id"] for row in queue.type("work", "replay", "--older-than", "0s", "--json").rows]
    assert old == ["held", "dropped", "waiting"]
    put_back = [(row["id"], row["dead"]) for row in queue.type("work", "replay", "--requeue", "--json").rows]
    assert put_back == [("dropped", True), ("waiting", False)]
    assert queue.type("work", "get", "dropped").out.count("dead: no attempts left") == 1
    assert "failed: dead" in queue.type("work", "list", "--status", "failed").out


def test_what_was_given_up_is_put_back_before_what_only_waits(queue: Place) -> None:
    """A host that crashed while working on the newest of many items gets that item back first."""
    for number in range(4):
        work(queue, "enqueue", "--id", f"i{number}", "--kind", "k")
    work(queue, "claim", "i3")
    put_back = queue.type("work", "replay", "--older-than", "0s", "--requeue", "--limit", "2", "--json").rows
    assert [(row["id"], row["status"]) for row in put_back] == [("i0", "pending"), ("i3", "pending")]


def test_the_actor_is_given_or_found(place: Place) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k", environ={"JACKLINE_ACTOR": "forge"})
    assert work(place, "next", environ={"JACKLINE_ACTOR": "forge"})["owner_agent"] == "forge"
    work(place, "release", "a", "--owner", "forge")
    user = str(work(place, "next")["owner_agent"])
    assert user not in {"", "forge", "None"}
    assert [row["id"] for row in place.type("work", "list", "--owner", user, "--json").rows] == ["a"]
    assert place.type("work", "list", "--owner", "forge", "--json").rows == []
    first = place.type("events", "tail", "--work-item", "a", "--json").rows[0]
    assert first["actor"] == "forge"


def test_any_sqlite_tool_reads_the_queue(place: Place) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "mail", "--payload", '{"to": "bob"}', "--notes", "n")
    with sqlite3.connect(place.home / "state.sqlite") as connection:
        columns = "id, kind, payload, status, owner_agent, notes"
        rows = connection.execute(f"SELECT {columns} FROM work_items").fetchall()
        events = connection.execute("SELECT kind, actor FROM events WHERE stream = 'work:a'").fetchall()
    connection.close()
    assert rows == [("a", "mail", '{"to":"bob"}', "pending", None, "n")]
    assert [kind for kind, _ in events] == ["work.created"]


def test_secrets_do_not_get_into_the_queue(place: Place) -> None:
    secret = {"MY_API_KEY": "correct-horse-battery"}
    words = ("enqueue", "--id", "a", "--kind", "k", "--payload", '{"t": "correct-horse-battery"}')
    made = work(place, *words, environ=secret)
    assert made["payload"] == {"t": "[redacted]"}
    assert work(place, *words, environ=secret)["new"] is False


# schemas of kinds

SCHEMA = {
    "type": "object",
    "required": ["to"],
    "properties": {"to": {"type": "string", "minLength": 1}},
    "additionalProperties": False,
}


def schema(path: Any, text: str | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(SCHEMA) if text is None else text)


def test_a_payload_fits_the_schema_of_its_kind(place: Place) -> None:
    schema(place.repository / ".agents" / "schemas" / "mail.schema.json")
    work(place, "enqueue", "--id", "a", "--kind", "mail", "--payload", '{"to": "bob"}')
    mail = ("enqueue", "--kind", "mail", "--payload")
    refused(place, 2, "mail.schema.json: $ must contain ['to'] properties", *mail, "{}")
    refused(place, 2, "mail.schema.json: $ must not contain {'cc'} properties", *mail, '{"to": "bob", "cc": 1}')
    refused(place, 2, "$.to must be string", *mail, '{"to": 1}')
    work(place, "enqueue", "--kind", "other", "--payload", "{}")
    inner = place.repository / "src"
    inner.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    refused(place, 2, "must contain ['to']", *mail, "{}", cwd=inner)


def test_the_home_s_schema_wins(place: Place) -> None:
    schema(place.repository / ".agents" / "schemas" / "mail.schema.json")
    schema(place.home / "schemas" / "mail.json", '{"required": ["subject"]}')
    work(place, "enqueue", "--id", "a", "--kind", "mail", "--payload", '{"subject": "x"}')
    words = ("enqueue", "--kind", "mail", "--payload", '{"to": "bob"}')
    refused(place, 2, "schemas/mail.json: $ must contain ['subject']", *words)


def test_an_existing_item_is_not_validated_again(place: Place) -> None:
    """Who enqueues on every start must not fail because the schema became stricter meanwhile."""
    work(place, "enqueue", "--id", "a", "--kind", "mail", "--payload", "{}")
    schema(place.home / "schemas" / "mail.json")
    assert work(place, "enqueue", "--id", "a", "--kind", "mail", "--payload", "{}")["new"] is False
    refused(place, 2, "must contain ['to']", "enqueue", "--id", "b", "--kind", "mail", "--payload", "{}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "mail.json is not valid JSON"),
        ('{"minimum": NaN}', "mail.json is not valid JSON: NaN is not a number"),
        ('{"type": "text"}', "cannot be used: $.type cannot be validated by any definition (known types: null"),
        ('{"properties": {"to": {"format": "email"}}}', "cannot be used: $.properties.to must not contain {'format'}"),
        ('{"$ref": "http://127.0.0.1:1/x"}', "cannot be used: $ must not contain {'$ref'}"),
        ('{"pattern": "("}', "cannot be used: a pattern is not a regular expression"),
    ],
)
def test_a_schema_that_cannot_be_used_refuses_everything(place: Place, text: str, said: str) -> None:
    schema(place.home / "schemas" / "mail.json", text)
    refused(place, 2, said, "enqueue", "--kind", "mail", "--payload", "{}")
    work(place, "enqueue", "--kind", "../schemas/mail")  # no file's name: a kind without a schema


@pytest.mark.parametrize(
    ("wanted", "payload"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 60 + "!"),
        pytest.param(
            {"items": {"enum": [str(number) for number in range(60_000)]}}, ["59999"] * 60_000, marks=pytest.mark.full
        ),
    ],
)
def test_a_schema_that_takes_ages_is_given_up(place: Place, wanted: Any, payload: Any) -> None:
    """A regular expression may take longer than anybody waits, and cannot be interrupted."""
    schema(place.home / "schemas" / "mail.json", json.dumps(wanted))
    (place.repository / "p.json").write_text(json.dumps(payload))
    refused(place, 2, "takes more than 5 s to check", "enqueue", "--kind", "mail", "--payload", "@p.json")


def test_a_pattern_is_checked(place: Place) -> None:
    schema(place.home / "schemas" / "mail.json", '{"pattern": "^[[a]+$"}')  # of which Python warns
    assert place.type("work", "enqueue", "--id", "a", "--kind", "mail", "--payload", '"a["').err == ""
    refused(place, 2, "$ must match pattern ^[[a]+$", "enqueue", "--kind", "mail", "--payload", '"b"')
    schema(place.home / "schemas" / "mail.json", '{"pattern": "("}')
    assert work(place, "enqueue", "--id", "a", "--kind", "mail", "--payload", '"a["')["new"] is False


def test_a_schema_that_is_no_file_refuses_everything(place: Place) -> None:
    (place.home / "schemas").mkdir(parents=True)
    os.mkfifo(place.home / "schemas" / "mail.json")
    refused(place, 2, "mail.json is not a regular file", "enqueue", "--kind", "mail")


@pytest.mark.parametrize("words", [("list",), ("pending", "--json"), ("get", "a"), ("replay",)])
def test_reading_the_queue_imports_nothing_heavy(place: Place, words: tuple[str, ...]) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k")
    ended = place.end_of(place.python(PROGRAM, "work", *words))
    assert ended.code == 0, ended
    loaded = ended.out.splitlines()[-1].split()
    heavy = [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in HEAVY)]
    assert heavy == []


def test_times_and_tables_are_for_people_on_a_terminal(place: Place) -> None:
    work(place, "enqueue", "--id", "a", "--kind", "k\u00e4se", "--notes", "tab\there \x1b[31m")
    shown = place.type("work", "get", "a").out
    assert "\x1b" not in shown
    assert "kind      k\u00e4se\n" in shown
    assert "\x1b" not in place.type("work", "list").out
