"""A question of a run's agent: the run waits for the answer at the end of the turn, and its next prompt has it."""

from __future__ import annotations

import sys

from tests.cli.place import SAY, Place
from tests.cli.test_interactive import say
from tests.cli.test_terminal import Terminal

WAITS = 14


def ask(place: Place, run_id: str = "r") -> dict[str, object]:
    """A step that stores a question as the agent's tool does."""
    program = (
        "import json, os; from jackline import open_home; from jackline.features.work import work_queue\n"
        f"asked = json.dumps({{'question': 'merge?', 'run': '{run_id}'}})\n"
        "with open_home() as home: work_queue.enqueue_item(home, 'q', 'question', asked, question='merge?')"
    )
    path = place.folder / "ask.py"
    path.write_text(program)
    return {"call": {"tool": "ask", "input": {}, "run": f"{sys.executable} {path}"}}


def test_an_open_question_parks_the_run_and_the_answer_is_in_its_prompt(any_place: Place) -> None:
    ended = any_place.play(ask(any_place), SAY, words=("--run-id", "r"))
    assert ended.code == WAITS, ended
    assert "answer: jackline answer r 'YOUR ANSWER'\n  then continue: jackline resume r" in ended.out
    shown = any_place.type("show", "r", "--json").json
    assert (shown["state"], shown["reason"], shown["detail"]) == ("waiting", "human", "the agent asks: merge?")
    assert any_place.type("resume", "r").code == WAITS, "it never succeeds past a question"
    assert any_place.type("work", "answer", "q", "yes, merge").code == 0
    assert any_place.type("show", "r", "--json").json["state"] == "queued"
    assert any_place.type("resume", "r").code == 0
    prompt = any_place.type("show", "r", "--json").json["turns"][-1]["prompt"]
    assert "A person answered your questions:\n- merge? Answer: yes, merge" in prompt
    assert any_place.type("verify", "r").code == 0


def test_a_question_of_another_run_does_not_hold_this_one(any_place: Place) -> None:
    assert any_place.play(ask(any_place, "other"), SAY, words=("--run-id", "r")).code == 0
    assert any_place.type("work", "get", "q", "--json").json["status"] == "waiting_human"


def test_a_terminal_asks_the_question_of_the_agent(any_place: Place) -> None:
    script = any_place.script(ask(any_place), SAY)
    terminal = Terminal(any_place, "run", "--script", script, "--run-id", "r")
    terminal.until("the agent asks: merge?")
    say(terminal, "Answer ", b"yes, merge\n")
    terminal.end()
    assert terminal.process.returncode == 0
    assert "Answer: yes, merge" in any_place.type("show", "r", "--json").json["turns"][-1]["prompt"]


def test_a_question_is_left_open_by_enter_and_answered_elsewhere(any_place: Place) -> None:
    script = any_place.script(ask(any_place), SAY)
    terminal = Terminal(any_place, "run", "--script", script, "--run-id", "r")
    say(terminal, "Answer ", b"\n")
    terminal.end()
    assert terminal.process.returncode == WAITS
    terminal = Terminal(any_place, "resume", "r")
    terminal.until("Answer ")
    answered = any_place.type("answer", "r", "yes")
    assert "the process that waits for the answer continues it" in answered.out
    assert "answered elsewhere" in terminal.end()
    assert terminal.process.returncode == 0


def test_a_cancel_from_elsewhere_removes_the_question(place: Place) -> None:
    terminal = Terminal(place, "run", "--script", place.script(ask(place), SAY), "--run-id", "r")
    terminal.until(r"Answer \[Enter: later, \?: help\]: ")
    assert place.type("cancel", "r").code == 0
    terminal.until(r"\r\x1b\[2Krun r has changed meanwhile: it is cancelled\r\n")
    terminal.end()
    assert terminal.process.returncode == 17
