"""Every command that jackline prints can be pasted into a shell and runs jackline once, with these arguments."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from jackline.cli.main import COMMANDS
from jackline.cli.output import Output, Printer
from jackline.cli.parser import CommandParser
from tests.cli.place import EFFECT_RULE, SAY, SEND, SEND_FAILS, Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAITS = 14
ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
DOUBT = ("happened", "did-not", "retry", "skip")
RECORDER = '#!/bin/sh\nprintf "%s\\n" "$*" >> "$RECORDED"\n'
SPAN = re.compile(r"`(jackline [^`]+)`")
LINE = re.compile(r"^\s+(?:[a-z ]+: )?(?:cd \S+ && )?(jackline .*)$", re.MULTILINE)


def commands(text: str) -> list[str]:
    """The commands in what a person reads: a span of code, or the end of an indented line."""
    return [*SPAN.findall(text), *LINE.findall(SPAN.sub("", text))]


def paste(command: str, folder: Path) -> list[str]:
    """What jackline is given when the text is pasted into a shell that knows no other program."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    recorded = folder / "recorded"
    recorded.write_text("")
    stub = programs / "jackline"
    stub.write_text(RECORDER)
    stub.chmod(0o755)
    environment = {"PATH": str(programs), "RECORDED": str(recorded)}
    ended = subprocess.run(
        ["/bin/bash", "-c", command], cwd=programs, env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, ""), (command, ended)
    assert [path.name for path in programs.iterdir()] == ["jackline"], command  # nothing was redirected into a file
    return recorded.read_text().splitlines()


def pages(place: Place, run: str) -> dict[str, str]:
    """Every text that tells a person what to do about a run that waits."""
    files = {path.name: path.read_text() for path in (place.home / "runs" / run).glob("*.*") if path.suffix != ".json"}
    return {
        "resume": place.type("resume", run).out,
        "show": place.type("show", run).out,
        "list": place.type("list").out,
        "dashboard": (place.home / "dashboard.md").read_text(),
        **files,
    }


@pytest.mark.parametrize(
    ("step", "rule", "answers"), [(SEND, ASK_RULE, ("allow", "deny")), (SEND_FAILS, EFFECT_RULE, DOUBT)]
)
def test_each_answer_has_a_line_of_its_own_that_can_be_pasted(
    place: Place, step: dict[str, object], rule: str, answers: tuple[str, ...]
) -> None:
    ended = place.play(step, SAY, words=("--policy", place.policy(rule), "--run-id", "r"))
    assert ended.code == WAITS
    (call,) = [one["id"] for one in place.type("show", "r", "--json").json["calls"]]
    texts = {"run": ended.out, **pages(place, "r")}
    for name, text in texts.items():
        pasted = [paste(command, place.folder) for command in commands(text)]
        assert all(len(given) == 1 for given in pasted), (name, pasted)
        said = {given.split(" --home ")[0].strip() for (given,) in pasted if given.startswith("answer ")}
        if name in {"run", "resume", "show", "dashboard", "RESUME.md"}:
            assert said == {f"answer r {call} {answer}" for answer in answers}, name


def test_a_hint_after_an_answer_can_be_pasted(place: Place) -> None:
    """Of two calls that wait, one is answered: the other's lines are shown."""
    sends = [{"call": {"tool": "send", "input": {"to": to}, "run": "false"}} for to in ("ada", "bob")]
    ended = place.play(*sends, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r"))
    assert ended.code == WAITS
    made = [one["id"] for one in place.type("show", "r", "--json").json["calls"] if one["state"] == "in_doubt"]
    assert made
    answered = place.type("answer", "r", made[0], "skip")
    assert answered.code == 0
    found = commands(answered.out)
    assert found
    assert all(len(paste(command, place.folder)) == 1 for command in found)


def test_a_choice_that_is_joined_by_pipes_would_not_pass(place: Place) -> None:
    """The check itself: a pipe starts a different program, and a bracket writes a file."""
    with pytest.raises(AssertionError):
        paste("jackline answer r c allow|deny", place.folder)
    with pytest.raises(AssertionError):
        paste("jackline answer r <CALL>", place.folder)


def usages(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield parser.format_usage()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from usages(below)


def test_no_usage_line_joins_words_with_a_pipe() -> None:
    """What --help prints is copied too."""
    found = []
    nowhere = Output(Printer(None), Printer(None), json=False, colour=False)
    for name, (module, _) in COMMANDS.items():
        parser = CommandParser(prog=f"jackline {name}", out=nowhere)
        importlib.import_module(module).configure(parser)
        found += [usage for usage in usages(parser) if re.search(r"\S\|\S|[<>]", usage)]
    assert found == []
