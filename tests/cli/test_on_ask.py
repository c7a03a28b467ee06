"""A run that needs a person: the question waits in the store, and the first answer from anywhere counts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline import open_home
from jackline.engine.owner_lock import has_waiter
from tests.cli.place import SAY, SECONDS, Place
from tests.cli.test_approval import ASK_RULE, outbox, send
from tests.cli.test_interactive import QUESTION, say
from tests.cli.test_terminal import Terminal
from tests.conftest import SLOW_BACKENDS

WAITS, CANCELLED = 14, 17
FAILS_FIRST = {"error": {"class": "agent_error", "detail": "no"}, "when": {"attempt": 1}}


@pytest.fixture(params=SLOW_BACKENDS)
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place on either database."""
    place = Place(tmp_path)
    place.repository.mkdir()
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_url")
        assert place.type("db", "migrate").code == 0
    yield place
    place.close()


def words(place: Place, *flags: str, steps: tuple[dict[str, Any], ...] = (), rule: str = ASK_RULE) -> list[str]:
    script = place.script(*(steps or (send(place), SAY)))
    return ["run", "--script", script, "--policy", place.policy(rule), "--run-id", "r", *flags]


def show(place: Place) -> dict[str, Any]:
    return place.type("show", "r", "--json").json


def open_call(place: Place) -> str:
    (call,) = [one["id"] for one in show(place)["calls"] if one["decision"] == "ask" and not one["answer"]]
    return str(call)


def answer(place: Place, verdict: str, *flags: str) -> None:
    assert place.type("answer", "r", open_call(place), verdict, *flags).code == 0


def is_watched(place: Place) -> bool:
    return has_waiter(str(place.home / "runs" / "r"))


def start_waiting(place: Place, *flags: str) -> subprocess.Popen[str]:
    """A command without a terminal that waits for an answer."""
    process = place.start(*words(place, "--on-ask", "wait", *flags))
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any("waits for a person (approval); this command continues it after the answer" in line for line in lines)
    return process


# at a terminal


@pytest.mark.parametrize(("verdict", "sent"), [("allow", ["ada"]), ("deny", [])])
def test_an_answer_from_elsewhere_removes_the_question(anywhere: Place, verdict: str, sent: list[str]) -> None:
    terminal = Terminal(anywhere, *words(anywhere))
    terminal.until(QUESTION)
    assert is_watched(anywhere)
    answer(anywhere, verdict)
    terminal.until(rf"\r\x1b\[2Kanswered elsewhere: {verdict}\r\n")
    terminal.end()
    assert (terminal.process.returncode, outbox(anywhere)) == (0, sent)
    assert not is_watched(anywhere)
    assert not re.search(QUESTION, terminal.seen.partition("answered elsewhere")[2])


def test_a_cancel_from_elsewhere_removes_the_question(place: Place) -> None:
    terminal = Terminal(place, *words(place))
    terminal.until(QUESTION)
    assert place.type("cancel", "r").code == 0
    terminal.end()
    assert terminal.process.returncode == CANCELLED


def test_the_next_question_follows_when_one_is_answered_elsewhere(place: Place) -> None:
    terminal = Terminal(place, *words(place, steps=(send(place), send(place, "bob"), SAY)))
    terminal.until(r"mail:ada")
    terminal.until(QUESTION)
    answer(place, "allow")
    terminal.until(r"answered elsewhere: allow[\s\S]*mail:bob[\s\S]*Allow it")
    terminal.seen = ""
    os.write(terminal.ours, b"y\n")
    terminal.end()
    assert (terminal.process.returncode, outbox(place)) == (0, ["ada", "bob"])


def test_always_is_not_asked_again_for_the_same_rule_and_target(place: Place) -> None:
    rule = ASK_RULE.replace('key = ["to"]', 'key = ["to", "text"]')
    again = send(place)
    again["call"]["input"]["text"] = "other content"
    terminal = Terminal(place, *words(place, steps=(send(place), again, SAY), rule=rule))
    say(terminal, QUESTION, b"a\n")
    seen = terminal.end()
    assert (terminal.process.returncode, outbox(place)) == (0, ["ada", "ada"])
    assert "Allow it?" not in seen


def test_the_time_for_an_answer_ends_the_question(place: Place) -> None:
    terminal = Terminal(place, *words(place, "--approval-timeout", "1", "--approval-answer", "allow"))
    terminal.until(QUESTION)
    terminal.end()
    assert (terminal.process.returncode, outbox(place)) == (0, ["ada"])


def test_what_was_typed_before_the_question_is_no_answer(place: Place) -> None:
    terminal = Terminal(place, *words(place, steps=({"wait_for": place.path("go")}, send(place), SAY)))
    terminal.until("working")
    os.write(terminal.ours, b"\ny\n\n")
    place.let_go("go")
    say(terminal, QUESTION, b"n\n")
    terminal.end()
    assert (terminal.process.returncode, outbox(place)) == (0, [])


def test_help_explains_each_answer_and_the_whole_command_is_shown(place: Place) -> None:
    long = {"call": {"tool": "send", "input": {"to": "ada", "text": "word " * 2000 + "END"}, "run": "true"}}
    terminal = Terminal(place, *words(place, steps=(long, SAY)))
    terminal.until(r"word word END")
    say(terminal, QUESTION, b"?\n")
    terminal.until(r"y +approve the call\s+n +deny the call[\s\S]+a +approve it, and every[\s\S]+Enter +leave it open")
    say(terminal, QUESTION, b"\n")
    terminal.end()
    assert terminal.process.returncode == WAITS


def test_the_reason_of_a_question_is_shown_once(place: Place) -> None:
    terminal = Terminal(place, *words(place))
    assert terminal.until(rf"[\s\S]+{QUESTION}")[0].count("requires approval") == 1
    say(terminal, QUESTION, b"n\n")
    terminal.end()


def test_a_process_in_the_background_does_not_read_the_terminal(place: Place) -> None:
    program = (
        "import os, sys\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os.setpgid(0, 0)\n"
        "    os.execv(sys.executable, [sys.executable, '-m', 'jackline', *sys.argv[1:]])\n"
        "_, status = os.waitpid(child, os.WUNTRACED)\n"
        "stopped = os.WIFSTOPPED(status)\n"
        "if stopped: os.kill(child, 9)\n"
        "print('STOPPED' if stopped else f'CODE {os.waitstatus_to_exitcode(status)}', flush=True)\n"
    )
    terminal = Terminal(place, *words(place), program=program)
    assert f"CODE {WAITS}" in terminal.end()


# without a terminal


def test_the_default_ends_the_command(place: Place) -> None:
    assert place.type(*words(place)).code == WAITS
    assert not is_watched(place)


def test_a_command_that_waits_is_woken_by_an_answer_and_the_time_costs_nothing(anywhere: Place) -> None:
    process = start_waiting(anywhere)
    spent = wall_ms(anywhere)
    assert is_watched(anywhere)
    time.sleep(1.1)  # the time that must not count
    assert wall_ms(anywhere) == spent
    assert not agents_of(anywhere)
    answer(anywhere, "allow")
    ended = anywhere.end_of(process)
    assert (ended.code, outbox(anywhere)) == (0, ["ada"])
    turns = show(anywhere)["turns"]
    assert len(turns) == 2


def wall_ms(place: Place) -> int:
    with open_home(None, place.environment()) as home:
        return home.find("r").status.spent.wall_ms


def agents_of(place: Place) -> list[str]:
    """The processes of agents that belong to the place."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"JACKLINE_HOME={place.home}".encode() in environ and b"JACKLINE_RUN_ID=r" in environ:
                found.append(entry.name)
    return found


def test_a_command_that_waits_applies_the_default_answer_in_time(anywhere: Place) -> None:
    ended = anywhere.type(*words(anywhere, "--on-ask", "wait", "--approval-timeout", "1"))
    assert (ended.code, outbox(anywhere)) == (0, []), ended
    assert [call["answer"] for call in show(anywhere)["calls"]] == ["deny", ""]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_run_waits_on(place: Place, number: signal.Signals) -> None:
    process = start_waiting(place)
    process.send_signal(number)
    ended = place.end_of(process)
    assert (ended.code, show(place)["state"], is_watched(place)) == (WAITS, "waiting", False), ended


def test_after_a_kill_of_the_waiting_command_anyone_continues(anywhere: Place) -> None:
    process = start_waiting(anywhere)
    process.kill()
    process.wait(SECONDS)
    assert (show(anywhere)["state"], is_watched(anywhere)) == ("waiting", False)
    answer(anywhere, "allow", "--resume")
    assert outbox(anywhere) == ["ada"]


def test_two_processes_that_continue_one_run_do_it_once_and_both_report_its_end(anywhere: Place) -> None:
    process = start_waiting(anywhere)
    other = anywhere.type("answer", "r", open_call(anywhere), "allow", "--resume", "--on-ask", "wait")
    ended = anywhere.end_of(process)
    # The one that answers may find the run taken by the one that waited.
    assert ended.code == 0, ended
    assert other.code == 0 or "is being worked on" in other.err, other
    assert outbox(anywhere) == ["ada"]


def test_denied_for_now_the_agent_continues_and_a_later_attempt_asks(anywhere: Place) -> None:
    steps = (send(anywhere), FAILS_FIRST, send(anywhere), SAY)
    ended = anywhere.type(*words(anywhere, "--on-ask", "deny", steps=steps))
    assert ended.code == 1, ended
    (call,) = show(anywhere)["calls"]
    assert (call["state"], call["decision"], call["reason_code"], call["answer"]) == ("denied", "deny", "not_now", "")
    assert "continue with the rest of the task" in call["reason"]
    assert "on_ask" not in str(show(anywhere)["spec"])
    assert anywhere.type("resume", "r").code == WAITS
    assert show(anywhere)["calls"][-1]["decision"] == "ask"
    assert outbox(anywhere) == []


def test_what_was_asked_before_is_set_aside_and_can_be_asked_again(anywhere: Place) -> None:
    assert anywhere.type(*words(anywhere, steps=(send(anywhere), SAY))).code == WAITS
    ended = anywhere.type("resume", "r", environ={"JACKLINE_ON_ASK": "deny"})
    assert ended.code == 0, ended
    assert [(call["decision"], call["answer"]) for call in show(anywhere)["calls"]] == [
        ("ask", "not-now"),
        ("deny", ""),
    ]
    assert "Not allowed now; continue with the rest of the task:\n- send" in show(anywhere)["turns"][-1]["prompt"]
    assert anywhere.type("verify", "r").code == 0


def test_a_run_begun_at_a_terminal_is_woken_by_a_process_without_one(place: Place) -> None:
    terminal = Terminal(place, *words(place))
    say(terminal, QUESTION, b"\n")
    terminal.end()
    assert terminal.process.returncode == WAITS
    answer(place, "allow")
    assert (place.type("resume", "r").code, outbox(place)) == (0, ["ada"])
