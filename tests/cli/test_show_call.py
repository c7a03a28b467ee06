"""The command of a call is shown where a person decides or reads: `show`, questions, RESUME.md, the dashboard."""

from __future__ import annotations

import json
import re

import pytest

from jackline.formatting import measure_width
from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_terminal import Terminal

ASK_RULE = '[[rule]]\ntool = "Bash"\ncommand = "deploy"\nclass = "effect"\ndecision = "ask"\ntarget = "site::{1|}"\n'
LONG = "echo " + "word " * 5_000
STEPS = (
    {"call": {"tool": "Bash", "input": {"command": "pytest -q\nexit 3", "cwd": "web"}, "run": "echo out; exit 3"}},
    {"call": {"tool": "Bash", "input": {"command": LONG}, "run": "true"}},
    {"call": {"tool": "Bash", "input": {"command": "deploy web \x1b[2J"}, "run": "true"}},
    SAY,
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run that waits for approval; the tests only read it."""
    place = Place(tmp_path_factory.mktemp("asked"))
    place.repository.mkdir()
    ended = place.play(*STEPS, words=("--run-id", "r", "--policy", place.policy(ASK_RULE)))
    assert ended.code == 14, ended
    return place


def calls(place: Place) -> list[dict[str, object]]:
    found: list[dict[str, object]] = place.type("show", "r", "--json").json["calls"]
    return found


def test_the_calls_of_a_run_are_commands(asked: Place) -> None:
    lines = Terminal(asked, "show", "r", "--no-color", COLUMNS="80").end().splitlines()
    start = lines.index("calls") + 2
    first, second, third = lines[start : start + 3]
    ids = [str(one["id"]) for one in calls(asked)]
    assert first.split()[0] == ids[0][-6:]
    assert first.endswith("$ pytest -q ⏎ exit 3 (in web/)")
    assert " 3 " in first  # the exit code
    assert second.endswith("…")
    assert "asked" in third
    assert third.endswith("$ deploy web [2J")
    assert max(map(len, lines[start : start + 3])) <= 80
    row = next(line for line in asked.type("show", "r").out.splitlines() if line.startswith(ids[0]))
    assert row.endswith("\t3\t-\t$ pytest -q ⏎ exit 3 (in web/)")  # complete in a pipe


def test_one_call_is_shown_whole(asked: Place) -> None:
    failed, long, _ = (str(one["id"]) for one in calls(asked))
    shown = asked.type("show", "--call", failed[-8:]).out
    for line in (
        f"call {failed} of run r (#1)",
        "exit code  3",
        "decision   allow",
        "$ pytest -q",
        "exit 3",
        "(in web/)",
        "out",
    ):
        assert line in shown.splitlines()
    whole = asked.type("show", "r", "--call", long, "--json").json
    assert whole["text"] == f"$ {LONG}"
    assert json.loads(whole["input"])["command"] == LONG
    unknown = asked.type("show", "--call", "nothing")
    assert (unknown.code, is_one_line(unknown)) == (2, True)


def test_a_question_is_asked_with_the_command(asked: Place) -> None:
    call_id = str(calls(asked)[2]["id"])
    lines = asked.type("show", "r").out.splitlines()
    place = lines.index("$ deploy web [2J → site:web")
    assert lines[place + 1].startswith(f"  call {call_id} needs approval")
    assert "    $ deploy web \ufffd[2J" in (asked.home / "runs" / "r" / "RESUME.md").read_text().splitlines()
    assert "- `$ deploy web [2J → site:web`: call" in (asked.home / "dashboard.md").read_text()


def test_a_run_fits_sixty_columns(place: Place) -> None:
    fails = {"error": {"class": "agent_error", "detail": "a long reason " * 5}, "when": {"attempt": 1}}
    spends = {"usage": {"input": 100_000, "output": 5, "usd": 0.0123}}
    assert place.play({"say": "I look."}, spends, fails, SAY, words=("--run-id", "r", "--retries", "0")).code == 1
    assert place.type("resume", "r").code == 0
    seen = Terminal(place, "show", "r", "--no-color", COLUMNS="60").end()
    shown = [line for line in seen.splitlines() if not line.startswith("folder")]
    assert "agent_e" in seen
    assert [line for line in shown if measure_width(line) > 60] == []
    assert re.search(r"created \S+ \(\d+s ago\)", seen)
