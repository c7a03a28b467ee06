"""`attach`: the history of a run, then what is added, whichever process works on it; leaving never stops the run."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND, Place
from tests.cli.test_serve import serve
from tests.cli.test_terminal import Terminal, read_screen, wait_in_shell

ASK = EFFECT_RULE.replace('"allow"', '"ask"')
HOSTILE = "\x1b[2Jx\u202e\x9b1m"


def hold(place: Place, name: str) -> dict[str, object]:
    """A call that says that it runs, and ends when the test lets it go."""
    command = f"touch {place.path(name)}.on; {wait_in_shell(place, name)}; echo {name} over"
    return {"call": {"tool": "bash", "input": {"command": f"wait {name}"}, "run": command}}


def start_held(place: Place, *words: str, detach: bool = False) -> None:
    steps = ({"say": f"before {HOSTILE}"}, hold(place, "go"), {"say": "after"})
    if detach:
        assert place.play(*steps, words=("mend it", "--run-id", "r", "--detach", *words)).code == 0
    else:
        place.start_playing(*steps, words=("mend it", "--run-id", "r", *words))
    place.wait_for("go.on")


def test_a_run_that_has_ended_shows_its_history_and_its_state(place: Place) -> None:
    assert (
        place.play(
            {"say": f"hello {HOSTILE}"},
            words=("mend it", "--run-id", "r", "--proof", "exit 3", "--max-iterations", "1"),
        ).code
        == 16
    )
    attached = place.type("attach")
    history = place.type("logs").out
    assert attached.code == 16
    assert attached.out.startswith(history)
    rest = attached.out[len(history) :].splitlines()
    assert rest[0].startswith("run r (#1) failed: ")
    assert any("jackline resume r --max-iterations" in line for line in rest)
    assert all(line.isprintable() for line in attached.out.splitlines())
    *entries, end = place.type("attach", "r", "--json").rows
    assert entries == place.type("logs", "r", "--json").rows
    assert (end["id"], end["state"], end["exit_code"]) == ("r", "failed", 16)


def test_at_a_terminal_history_comes_first_and_ctrl_c_leaves_the_run_alone(place: Place) -> None:
    start_held(place)
    terminal = Terminal(place, "attach", "#1", "--no-color")
    terminal.until(r"you: mend it")
    terminal.until(r"scripted: before ")
    terminal.until(r"left · [\d.ms ]+ \$ wait go")  # the call that began before
    os.write(terminal.ours, b"\x03")
    screen = read_screen(terminal.end())
    assert terminal.process.returncode == 0
    assert "detached from run r (#1), which is running; again: jackline attach r" in screen
    assert not [line for line in screen if " left · " in line]
    place.let_go("go")
    assert place.end_of(place.started[0]).code == 0
    assert place.type("show", "r", "--json").json["attempt"] == 1


def test_at_a_terminal_it_ends_with_the_run(place: Place) -> None:
    start_held(place, "--proof", "exit 3", "--max-iterations", "1", detach=True)
    terminal = Terminal(place, "attach", "r", "--no-color")
    terminal.until(r"\$ wait go")
    place.let_go("go")
    screen = read_screen(terminal.end())
    assert terminal.process.returncode == 16
    assert len([line for line in screen if line.startswith("scripted: before ")]) == 1
    assert screen.count("scripted: after") == 1
    assert "    go over" in screen
    (end,) = [number for number, line in enumerate(screen) if line.startswith("run r (#1) failed: ")]
    assert screen.index("scripted: after") < end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_signal_to_the_viewer_reaches_the_run(place: Place, number: signal.Signals) -> None:
    start_held(place, detach=True)
    viewer = place.start("attach", "r", bufsize=0)
    assert viewer.stdout is not None
    while "before" not in (line := viewer.stdout.readline()):
        assert line
    viewer.send_signal(number)
    left = place.end_of(viewer)
    assert (left.code, "detached from run r" in left.err) == (0, True)
    followed = place.start("attach", "r")
    place.let_go("go")
    seen = place.end_of(followed)
    assert seen.code == 0
    assert "scripted: after" in seen.out


def test_a_run_that_parks_ends_it_with_the_exit_code_and_the_next_steps(place: Place) -> None:
    assert place.play(SEND, SAY, words=("--run-id", "r", "--policy", place.policy(ASK))).code == 14
    parked = place.type("attach", "r")
    assert parked.code == 14
    assert "run r (#1) waiting: approval" in parked.out
    assert re.search(r"jackline answer r \w+ allow", parked.out)
    assert parked.err == "or answer it with all that needs you: jackline inbox\n"


def test_it_stays_while_a_process_waits_for_an_answer(place: Place) -> None:
    words = ("--run-id", "r", "--policy", place.policy(ASK), "--on-ask", "wait")
    place.start_playing(SEND, SAY, words=words)
    waiting = place.started[0].stderr
    assert waiting is not None
    while "waits for a person" not in (line := waiting.readline()):
        assert line
    viewer = place.start("attach", "r")
    assert viewer.stderr is not None
    assert viewer.stderr.readline() == "run r waits for a person (approval): answer there, or jackline inbox\n"
    (call,) = place.type("show", "r", "--json").json["calls"]
    assert place.type("answer", "r", call["id"], "allow").code == 0
    seen = place.end_of(viewer)
    assert seen.code == 0
    assert "scripted: hello" in seen.out
    assert "run r (#1) succeeded" in seen.out


def test_a_run_that_nobody_works_on(place: Place) -> None:
    assert place.type("attach", "nothing").code == 2
    script = place.script(SAY)
    assert place.type("enqueue", "later", "--script", script, "--run-id", "queued").code == 0
    queued = place.type("attach", "queued")
    assert (queued.code, "you: later" in queued.out) == (1, True)
    assert "queued" in queued.out
    assert "start it here now: jackline resume queued" in queued.out
    assert queued.err.startswith("run queued (#1) is queued, and no service is running here: jackline serve starts it")
    followed = place.type("logs", "-f", "queued")
    assert (followed.code, followed.err) == (0, queued.err)


@pytest.mark.parametrize("words", [("attach",), ("logs", "-f"), ("logs", "-f", "--events"), ("logs", "-f", "--raw")])
def test_a_run_that_a_service_will_start(place: Place, words: tuple[str, ...]) -> None:
    """`enqueue` prints that command: it says why the run waits, and follows it to its end."""
    service = serve(place)
    place.type("enqueue", "later", "--script", place.script(SAY), "--run-id", "r", "--hold")
    viewer = place.start(*words, "r")
    assert viewer.stderr is not None
    assert viewer.stderr.readline() == "run r (#1) is queued, held: waiting until it starts\n"
    assert place.type("hold", "--release", "r").code == 0
    seen = place.end_of(viewer)
    assert (seen.code, "hello" in seen.out or "run.succeeded" in seen.out) == (0, True), seen
    service.send_signal(signal.SIGTERM)
    assert service.wait() == 0


def test_a_lost_run(place: Place) -> None:
    start_held(place)
    viewer = place.start("attach", "r")
    place.started[0].kill()
    lost = place.end_of(viewer)
    assert lost.code == 1
    assert "run r is lost: " in lost.err
    assert "continue: jackline resume r" in lost.out
