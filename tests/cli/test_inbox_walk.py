"""`jackline inbox` at a terminal: every kind of entry is answered; then runs without a process are resumed."""

from __future__ import annotations

import os
import signal
import stat
import time
from typing import Any

from jackline.engine.owner_lock import hold_waiter
from tests.cli.place import EFFECT_RULE, SAY, SECONDS, SEND_FAILS, Place
from tests.cli.test_inbox import ask, entries
from tests.cli.test_terminal import Terminal

SPENDS = {"usage": {"input": 10, "output": 5, "usd": 1.2}}


def type_line(terminal: Terminal, prompt: str, text: str) -> None:
    terminal.until(prompt)
    terminal.seen = ""
    os.write(terminal.ours, f"{text}\n".encode())


def show(place: Place, run: str) -> dict[str, Any]:
    return place.type("show", run, "--json").json


def wait_for_state(place: Place, run: str, *states: str) -> dict[str, Any]:
    """The run in one of these states; a process in the background moves it there."""
    until = time.monotonic() + SECONDS
    while (shown := show(place, run))["state"] not in states:
        assert time.monotonic() < until, shown["state"]
        time.sleep(0.05)
    return shown


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not our child is gone: the kernel removes its folder."""
    until = time.monotonic() + SECONDS
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < until
        time.sleep(0.02)


def background_pid(seen: str) -> int:
    return int(seen.partition("(pid ")[2].partition(")")[0])


def test_an_approval_is_given_and_the_run_continues_in_the_background(place: Place) -> None:
    ask(place, "r", "ada")
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"Allow it\? \[y/n/a, Enter: later, \?: help\]", "?")
    type_line(terminal, r"Allow it\?", "maybe")
    terminal.until("'maybe' is not a valid answer; use y, n, a")
    type_line(terminal, r"Allow it\?", "y")
    seen = terminal.end()
    assert terminal.process.returncode == 0
    assert "run r continues in the background" in seen
    shown = wait_for_state(place, "r", "succeeded")
    assert [call["state"] for call in shown["calls"]] == ["denied", "done"]
    wait_for_end(background_pid(seen))
    log = place.home / "runs" / "r" / "background.log"
    assert (stat.S_IMODE(log.stat().st_mode), "succeeded" in log.read_text()) == (0o600, True)


def test_a_pasted_line_does_not_answer_a_question_that_was_not_shown(place: Place) -> None:
    ask(place, "first", "ada")
    ask(place, "second", "bob")
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"Allow it\?", "n\ny\ny")
    type_line(terminal, r"2/2(.|\n)*Allow it\?", "")
    terminal.end()
    answers = [show(place, run)["calls"][0]["answer"] for run in ("first", "second")]
    assert answers == ["deny", ""]


def test_a_log_that_cannot_be_written_does_not_stop_the_other_runs(place: Place) -> None:
    (place.folder / "other").mkdir()
    ask(place, "first", "ada")
    (place.home / "runs" / "first" / "background.log").mkdir()
    ask(place, "second", "bob", words=("--workspace", place.path("other")))
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"1/2(.|\n)*Allow it\?", "y")
    type_line(terminal, r"2/2(.|\n)*Allow it\?", "y")
    seen = terminal.end()
    assert "run first could not be resumed" in seen
    assert "run second continues in the background" in seen
    wait_for_state(place, "second", "succeeded")
    wait_for_end(background_pid(seen))


def test_nothing_is_asked_below_a_run(place: Place) -> None:
    ask(place, "r", "ada")
    terminal = Terminal(place, "inbox", JACKLINE_RUN="0123456789")
    assert "`jackline inbox` is refused inside a run" in terminal.end()
    assert terminal.process.returncode == 2
    terminal = Terminal(place, "inbox", "--list", JACKLINE_RUN="0123456789")
    assert "a call needs your approval" in terminal.end()


def test_every_kind_of_entry_is_asked_about(place: Place) -> None:
    assert place.play(SEND_FAILS, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "doubts")).code == 14
    assert place.play(SPENDS, SPENDS, SAY, words=("--run-id", "spends", "--max-usd", "1")).code == 15
    asked = place.type("work", "enqueue", "--id", "mail-1", "--kind", "mail", "--question", "which one?")
    assert asked.code == 0
    steps = ({"touch": place.path("here")}, {"wait_for": place.path("go")})
    process = place.start_playing(*steps, words=("--run-id", "lost"))
    place.wait_for("here")
    process.send_signal(signal.SIGKILL)
    process.wait()
    place.let_go("go")
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"Did it happen\? \[happened/did-not/retry/skip, Enter: later, \?: help\]", "skip")
    type_line(terminal, r"New total of --max-usd, such as [\d.]+ \[", "much")
    terminal.until("'much' is not a number")
    type_line(terminal, r"New total of --max-usd", "0.5")
    terminal.until("2.4 is spent already|1.2 is spent already")
    type_line(terminal, r"New total of --max-usd", "9")
    type_line(terminal, r"Answer \[", "the red one")
    type_line(terminal, r"Resume it\? \[y, ", "y")
    seen = terminal.end()
    assert terminal.process.returncode == 0
    for run in ("doubts", "spends", "lost"):  # one after the other: they share a worktree
        assert f"run {run} continues in the background" in seen
        assert wait_for_state(place, run, "succeeded", "failed")["state"] == "succeeded", run
    assert place.type("work", "list", "--json").rows[0]["answer"] == "the red one"
    assert entries(place) == []
    for part in seen.split("(pid ")[1:]:
        wait_for_end(int(part.partition(")")[0]))


def test_enter_and_the_end_of_input_leave_everything_open(place: Place) -> None:
    ask(place, "r", "ada")
    ask(place, "s", "ada")
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"1/2 .*run r[\s\S]*Allow it\?", "")
    terminal.until(r"2/2 .*run s[\s\S]*Allow it\?")
    os.write(terminal.ours, b"\x04")
    seen = terminal.end()
    assert (terminal.process.returncode, "background" in seen) == (0, False)
    assert [entry["kind"] for entry in entries(place)] == ["approval", "approval"]


def test_an_answer_from_elsewhere_removes_each_question(place: Place) -> None:
    ask(place, "r", "ada")
    assert place.play(SPENDS, SPENDS, SAY, words=("--run-id", "spends", "--max-usd", "1")).code == 15
    asked = place.type("work", "enqueue", "--id", "mail-1", "--kind", "mail", "--question", "which one?")
    assert asked.code == 0
    terminal = Terminal(place, "inbox")
    terminal.until(r"Allow it\?")
    assert place.type("answer", "r", "deny").code == 0
    terminal.until(r"\r\x1b\[2Kanswered elsewhere: deny\r\n")
    terminal.until(r"New total of --max-usd")
    assert place.type("cancel", "spends").code == 0
    terminal.until(r"\r\x1b\[2Krun spends has changed in the meantime: it is cancelled\r\n")
    terminal.until(r"Answer \[")
    assert place.type("work", "answer", "mail-1", "the red one").code == 0
    seen = terminal.end()
    assert "\x1b[2Kanswered elsewhere\n" in seen
    assert (terminal.process.returncode, "background" in seen) == (0, False)


def test_a_run_that_a_process_waits_for_is_left_to_it(place: Place) -> None:
    ask(place, "r", "ada")
    with hold_waiter(str(place.home / "runs" / "r")):
        terminal = Terminal(place, "inbox")
        type_line(terminal, r"Allow it\?", "y")
        seen = terminal.end()
    assert "run r: a process that waits for it continues it" in seen
    assert show(place, "r")["state"] == "queued"


def test_a_start_that_fails_is_reported(place: Place) -> None:
    ask(place, "r", "ada")
    (place.repository / "jackline.toml").write_text("agent = [")  # `resume` refuses a project file that is broken
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"Allow it\?", "y")
    seen = terminal.end()
    assert terminal.process.returncode == 1
    assert "run r could not be resumed: jackline: " in seen
    assert "jackline resume r" in seen
    assert show(place, "r")["state"] == "queued"


def test_an_answer_survives_a_kill_before_the_resume(place: Place) -> None:
    ask(place, "r", "ada")
    terminal = Terminal(place, "inbox", JACKLINE_CRASH_AT="call.judged")
    type_line(terminal, r"Allow it\?", "y")
    terminal.end()
    assert terminal.process.returncode == -signal.SIGKILL
    (entry,) = entries(place)
    assert (entry["kind"], entry["run"]) == ("answered", "r")
    terminal = Terminal(place, "inbox")
    type_line(terminal, r"Resume it\?", "y")
    seen = terminal.end()
    wait_for_state(place, "r", "succeeded")
    wait_for_end(background_pid(seen))
