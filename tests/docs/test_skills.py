"""The texts that jackline writes for agents (skills, persona, the pointer) name only commands that really parse."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from jackline.app import init
from jackline.cli.main import COMMANDS, _parse_args
from jackline.cli.output import open_output
from jackline.errors import UsageError
from tests.cli.place import Place
from tests.docs import pages
from tests.docs.test_truth import COMMAND, ELSEWHERE, FLAG, flags_of, known_commands

SOURCE = pages.ROOT / "src" / "jackline"
TEXTS = sorted([*(SOURCE / "skills").glob("*.md"), *(SOURCE / "persona").glob("*.md")])
SECTIONS = ["Intent", "Request Signals", "Open First", "Verify", "Risks", "Workflow"]
FRONT = re.compile(r"\A---\nname: ([a-z-]+)\ndescription: (.+)\n---\n")


def lines(path: Path) -> list[str]:
    """Every command in the blocks of a text."""
    name = path.relative_to(pages.ROOT).as_posix()
    return [line for block in pages.blocks(name) for line in pages.commands(block.text)]


def parses(line: str) -> bool:
    """Whether the real parser of the command takes these words."""
    program, command, *words = shlex.split(line)
    assert program == "jackline", line
    assert command in COMMANDS, line
    return _parse_args(command, words, open_output(json=False, colour=False)) is not None


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_command_can_be_typed(path: Path) -> None:
    for line in lines(path):
        assert parses(line), line


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_command_and_flag_in_a_sentence_exists(path: Path) -> None:
    for text in pages.inline_code(path.relative_to(pages.ROOT).as_posix()):
        for found in COMMAND.finditer(text):
            assert found["name"] in known_commands(), text
            assert set(FLAG.findall(found["rest"])) - flags_of(found["name"]) - ELSEWHERE == set(), text


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(UsageError):
        parses("jackline case conclude --now")
    with pytest.raises(UsageError):
        parses("jackline case learning review --require-solved")


def test_every_skill_is_shipped_and_no_other() -> None:
    assert {path.stem for path in (SOURCE / "skills").iterdir()} == set(init.SKILL_NAMES)


@pytest.mark.parametrize("name", init.SKILL_NAMES)
def test_a_skill_is_one_that_agents_understand(name: str) -> None:
    """The limits of the open format: a name that is the folder's, a description of at most 1024 characters."""
    front = FRONT.match(init.read_skill(name))
    assert front is not None
    assert front[1] == name
    assert len(front[2]) <= 1024
    assert ": " not in front[2]  # unquoted, it would be no YAML


@pytest.mark.parametrize("name", init.SKILL_NAMES)
def test_a_skill_has_the_sections_of_its_kind(name: str) -> None:
    found = re.findall(r"^## (.+)$", init.read_skill(name), re.MULTILINE)
    assert [title for title in found if title in SECTIONS] == SECTIONS


def test_the_main_skill_says_when_to_do_without() -> None:
    assert "## When not to open a case" in init.read_skill("jackline")


@pytest.mark.parametrize("name", ["pre-land-review", "commit"])
def test_the_others_pass_the_learning_gate(name: str) -> None:
    text = init.read_skill(name)
    assert "jackline case learning review --require-resolved" in text
    assert "jackline case close" in text


def test_what_the_commit_skill_says_about_an_unresolved_learning_resolves_it(place: Place) -> None:
    learn = ("learning", "add", "--kind", "doc-gap", "--summary", "s", "--repo-action", "docs", "--path", "no.md")
    for words in (("start", "why is it slow?"), learn):
        assert place.type("case", *words).code == 0
    gate = ("case", "learning", "review", "--require-resolved")
    assert place.type(*gate).code == 1
    (cure,) = (line for line in lines(SOURCE / "skills" / "commit.md") if "L001" in line)
    assert place.type(*shlex.split(cure)[1:]).code == 0
    assert place.type(*gate).code == 0
