"""A question of a run's agent: the run waits for the answer at the end of the turn, and its next prompt has it."""

from __future__ import annotations

import sys

from tests.cli.place import SAY, Place
from tests.cli.test_interactive import say
from tests.cli.test_terminal import Terminal

WAITS = 14
# `jackline`, which starts `jackline work answer` when it has looked for open questions for the n-th time: at the end of
# the turn (1) it waits for it, in the transaction that parks the run (2) it cannot.
ANSWERED_MEANWHILE = """
import subprocess, sys
from jackline import extensions
from jackline.cli.main import main
from jackline.features.work import run_questions
looks, answers = [], []
def look(statements, run_id):
    found = run_questions.list_open_texts(statements, run_id)
    looks.append(found)
    if len(looks) == int(sys.argv[1]):
        answers.append(subprocess.Popen([sys.executable, "-m", "jackline", "work", "answer", "q", "yes"]))
        if len(looks) == 1:
            assert answers[0].wait() == 0
    return found
extensions.HOOKS["open_questions"] = ("__main__:look",)
code = main(sys.argv[2:])
sys.exit(code if answers[0].wait() == 0 else 99)
"""


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
    assert (answered.code, "jackline resume" in answered.out) == (0, False), "the process that waits continues it"
    assert "answered elsewhere" in terminal.end()
    assert terminal.process.returncode == 0


def test_a_cancel_from_elsewhere_removes_the_question(place: Place) -> None:
    terminal = Terminal(place, "run", "--script", place.script(ask(place), SAY), "--run-id", "r")
    terminal.until(r"Answer \[Enter: later, \?: help\]: ")
    assert place.type("cancel", "r").code == 0
    terminal.until(r"\r\x1b\[2Krun r has changed in the meantime: it is cancelled\r\n")
    terminal.end()
    assert terminal.process.returncode == 17


def test_an_answer_between_the_look_and_the_park_continues_the_run(any_place: Place) -> None:
    words = ("run", "--script", any_place.script(ask(any_place), SAY), "--run-id", "r")
    ended = any_place.end_of(any_place.python(ANSWERED_MEANWHILE, "1", *words))
    assert ended.code == 0, ended
    shown = any_place.type("show", "r", "--json").json
    assert "merge? Answer: yes" in shown["turns"][-1]["prompt"]
    assert any_place.type("verify", "r").code == 0


def test_an_answer_that_the_agent_has_not_read_continues_the_run(any_place: Place) -> None:
    steps = (ask(any_place), {"touch": any_place.path("asked")}, {"wait_for": any_place.path("go")}, SAY)
    process = any_place.start_playing(*steps, words=("--run-id", "r"))
    any_place.wait_for("asked")
    assert any_place.type("work", "answer", "q", "yes").code == 0
    any_place.let_go("go")
    ended = any_place.end_of(process)
    assert ended.code == 0, ended
    _, second = any_place.type("show", "r", "--json").json["turns"]
    assert "merge? Answer: yes" in second["prompt"]


def test_an_answer_during_the_park_queues_the_run(any_place: Place) -> None:
    words = ("run", "--script", any_place.script(ask(any_place), SAY), "--run-id", "r")
    ended = any_place.end_of(any_place.python(ANSWERED_MEANWHILE, "2", *words))
    assert ended.code == WAITS, ended
    assert any_place.type("show", "r", "--json").json["state"] == "queued"
    assert any_place.type("resume", "r").code == 0
    assert any_place.type("verify", "r").code == 0


def test_a_question_that_a_person_withdraws_queues_the_run(any_place: Place) -> None:
    assert any_place.play(ask(any_place), SAY, words=("--run-id", "r")).code == WAITS
    assert any_place.type("work", "resolve", "q", "--status", "cancelled").code == 0
    assert any_place.type("show", "r", "--json").json["state"] == "queued"
    assert any_place.type("resume", "r").code == 0
