"""Every command that jackline prints can be pasted into a shell and runs jackline once, with these arguments."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jackline.cli.main import COMMANDS
from jackline.cli.output import Output, Printer
from jackline.cli.parser import CommandParser
from tests.cli.place import EFFECT_RULE, SAY, SEND, SEND_FAILS, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "jackline"
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


def find_operators(command: str) -> list[str]:
    """The shell operators of a command that are not quoted: pipes, redirections, several commands."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return [token for token in lexer if set(token) <= set("|<>")]


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Every text of a module; what an f-string inserts is a word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_command_in_a_message_of_the_source_has_an_unquoted_operator() -> None:
    found: list[tuple[str, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        for text in texts_of(ast.parse(path.read_text())):
            found += [(path.name, command) for command in SPAN.findall(text) if command.count("\n") == 0]
    assert len(found) > 30
    assert [(name, command) for name, command in found if find_operators(command)] == []


def test_no_command_in_a_page_has_an_unquoted_operator() -> None:
    """Inline commands are copied, too; blocks are scripts, and run as tests."""
    pages = sorted((*ROOT.glob("docs/**/*.md"), ROOT / "README.md", *SOURCE.rglob("*.md")))
    texts = [(page, re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)) for page in pages]
    found = [(page.name, command) for page, text in texts for command in SPAN.findall(text)]
    assert [(name, command) for name, command in found if find_operators(command)] == []


def test_the_check_of_commands_finds_operators() -> None:
    assert find_operators("jackline answer r c allow|deny") == ["|"]
    assert find_operators("jackline answer r <CALL> allow") == ["<", ">"]
    assert find_operators("jackline answer r 'a|b' \"<c>\"") == []


SPENDS = {"usage": {"input": 10, "output": 5, "usd": 1.2}}
ENDS = {
    "budget": ((SPENDS, SPENDS, SAY), ("--max-usd", "1")),
    "authentication": (({"error": {"class": "authentication", "detail": "log in"}},), ("--retries", "0")),
    "timeout": (({"hang": True},), ("--timeout-seconds", "1", "--grace-seconds", "1")),
    "crashed": (({"crash": "SIGKILL"},), ("--retries", "0")),
    "limit": (({"limit": {"resets_in": 900, "text": "limit"}},), ()),
    "proof": ((SAY,), ("--proof", "false")),
    "succeeded": ((SAY,), ()),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_command_about_a_run_that_stopped_can_be_pasted(place: Place, end: str) -> None:
    steps, words = ENDS[end]
    ended = place.play(*steps, words=("--run-id", "r", *words))
    texts = {"run": ended.out + ended.err, "inbox": place.type("inbox").out, **pages(place, "r")}
    found = {name: commands(text) for name, text in texts.items()}
    assert found["run"]
    for name, spans in found.items():
        assert all(len(paste(command, place.folder)) == 1 for command in spans), (name, spans)
