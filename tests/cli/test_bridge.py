"""`jackline bridge`: a person reads the messages of a run and sends some."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_commands_inside_run import REFUSED, linux, try_below_run

FIELDS = ["id", "type", "from", "to", "content", "timestamp", "run_id", "iteration"]


@pytest.fixture
def queued(place: Place) -> Place:
    """A place with a run that has not started."""
    words = ("enqueue", "mend it", "--agent", "scripted", "--script", place.script(SAY), "--run-id", "r")
    assert place.type(*words).code == 0
    return place


def test_a_person_sends_and_reads(queued: Place) -> None:
    sent = queued.type("bridge", "r", "--send", "the port is 8080")
    assert (sent.code, sent.out) == (0, "sent message #1: worker gets it with its next prompt\n")
    words = ("--to", "worker", "--kind", "signal", "--signal", "DONE", "--json")
    record = queued.type("bridge", "r", "--send", "-", *words, stdin="two\x1b[2J\nlines").json
    assert [*record] == [*FIELDS[:5], "signal", *FIELDS[5:]]
    read = queued.type("bridge", "r")
    assert re.fullmatch(
        r"#1 \S+ person → worker \(chat\)\n    the port is 8080\n"
        r"#2 \S+ person → worker \(signal DONE\)\n    two�\[2J\n    lines\n",
        read.out,
    )
    assert "2 messages in run r; participants: worker (scripted)" in read.err
    assert "messages   2: jackline bridge r" in queued.type("show", "r").out
    assert "person to worker (chat): the port is 8080" in queued.type("logs", "r", "--events").out
    assert "you: person to worker (chat): the port is 8080" in queued.type("logs", "r").out
    assert queued.type("resume", "r").code == 0
    (turn,) = queued.type("show", "r", "--json").json["turns"]
    assert turn["prompt"].startswith("mend it\n\nMessages to you from other participants of this run.")
    assert "#1 chat from person\n> the port is 8080\n\n#2 signal DONE from person\n> two" in turn["prompt"]
    lines = (queued.home / "runs" / "r" / "bridge.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == queued.type("bridge", "r", "--json").rows
    assert queued.type("verify", "r").code == 0
    late = queued.type("bridge", "r", "--send", "late")
    assert (late.code, is_one_line(late), "has succeeded" in late.err) == (2, True, True)


def test_each_message_is_in_one_prompt(place: Place) -> None:
    """The proof fails once: the second turn gets what was sent during the first, and nothing of the first prompt."""
    steps = ({"touch": place.path("on")}, {"wait_for": place.path("go")}, SAY)
    proof = f"test -e {place.path('tried')} || {{ touch {place.path('tried')}; exit 1; }}"
    words = ("--agent", "scripted", "--script", place.script(*steps), "--run-id", "r", "--proof", proof)
    assert place.type("enqueue", "mend it", *words).code == 0
    assert place.type("bridge", "r", "--send", "before").code == 0
    running = place.start("resume", "r")
    place.wait_for("on")
    assert place.type("bridge", "r", "--send", "meanwhile").code == 0
    place.let_go("go")
    assert place.end_of(running).code == 0
    first, second = (turn["prompt"] for turn in place.type("show", "r", "--json").json["turns"])
    assert ("> before" in first, "> meanwhile" in first) == (True, False)
    assert ("> before" in second, "> meanwhile" in second) == (False, True)
    assert place.type("verify", "r").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "worker"), "need --send TEXT"),
        (("--send", "x", "-f"), "do not go together"),
        (("--send", " "), "the message is empty"),
        (("--send", "x", "--to", "nobody"), "send to one of worker, person, all"),
        (("--send", "x", "--to", "person"), "you are person"),
        (("--send", "x", "--kind", "order"), "invalid choice: 'order'"),
        (("--send", "x", "--signal", "DONE"), "no other kind has one"),
        (("--send", "x" * 8_001), "at most 8,000 characters"),
    ],
)
def test_a_mistake_is_one_line_and_sends_nothing(queued: Place, words: tuple[str, ...], said: str) -> None:
    ended = queued.type("bridge", "r", *words)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert said in ended.err
    assert queued.type("bridge", "r", "--json").out == ""


def test_following_prints_what_is_sent_until_the_run_has_ended(queued: Place) -> None:
    following = queued.start("bridge", "r", "-f", "--json")
    assert queued.type("bridge", "r", "--send", "hello").code == 0
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["content"] == "hello"
    assert queued.type("cancel", "r").code == 0
    assert following.wait(timeout=60) == 0


def test_a_signal_is_no_proof(place: Place) -> None:
    words = ("--agent", "scripted", "--script", place.script(SAY), "--run-id", "r", "--proof", "false")
    assert place.type("enqueue", "mend it", *words, "--max-iterations", "1").code == 0
    for signal in ("DONE", "PASS"):
        assert place.type("bridge", "r", "--send", "", "--to", "all", "--kind", "signal", "--signal", signal).code == 0
    assert place.type("resume", "r").code == 16


@linux
def test_an_agent_reads_and_sends_nothing_as_the_person(place: Place) -> None:
    commands = ("bridge agent --send hi", "mcp --run agent --as helper", "bridge agent")
    tried = try_below_run(place, *(f"{{jackline}} {words}" for words in commands))
    assert [ended.code for ended in tried] == [2, 2, 0]
    assert all(REFUSED in ended.err for ended in tried[:2])
    assert place.type("bridge", "agent", "--json").out == ""
