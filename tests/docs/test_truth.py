"""What the pages name exists: files, modules, headings, commands, flags, settings, variables, targets of make."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pkgutil import resolve_name

import pytest

from jackline import crash_points
from jackline.app.setting_keys import KEYS
from jackline.domain.states import Failure, RunState, WaitReason, exit_code
from jackline.errors import PackageBroken
from jackline.features.work.work_commands import EXIT_NOTHING
from tests.docs.pages import NAMES, ROOT, anchors, blocks, commands, inline_code, links, read

COMMAND = re.compile(r"(?:^|[\s/;|&(])jackline(?P<flags>(?: --?[a-z-]+)*) (?P<name>[a-z][a-z-]*)(?P<rest>[^|;&#]*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
ACTION = re.compile(r"^    ([a-z][a-z-]*)(?: |$)", re.MULTILINE)
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*")
MODULE_FILE = re.compile(r"\w+\.py")
PYTHON_NAME = re.compile(r"(jackline(?:\.\w+)+)(?:\(.*\))?")
VARIABLE = re.compile(r"\bJACKLINE_[A-Z_]+\b")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
CLI = "docs/cli.md"
ELSEWHERE = {"--help", "--version"}  # known to the whole program
# Folders in a home, a run's folder or a user's configuration, and refs of git: no files of this tree.
NOT_OURS = (
    ".github",
    ".claude",
    ".codex",
    ".gemini",
    "vendor",
    "HOST/",
    "retros/",
    "context/",
    "imported/",
    ".claude/",
    "runs/",
    "refs/",
    "logs/",
    "archive/",
    "turns/",
    "agent/",
    "jackline/",
    ".agents/",
    "tasks/NAME.md",
)
# Files, rules of the policy, and events.
NOT_PYTHON = {
    *("jackline.toml", "jackline.log", "jackline.answer", "jackline.change"),
    *("jackline.settings_changed", "jackline.settings_confirmed", "jackline.trusted", "jackline.trust_revoked"),
}


@cache
def help_of(*words: str) -> str:
    argv = [sys.executable, "-m", "jackline", *words, "--help"]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@cache
def known_commands() -> frozenset[str]:
    return frozenset(re.findall(r"^  ([a-z]+)  ", help_of(), re.MULTILINE))


@cache
def flags_of(*words: str) -> frozenset[str]:
    """Those of a command and of all its actions, however deep."""
    shown = help_of(*words)
    actions = ACTION.findall(shown) if " ...\n" in shown else []
    return frozenset(FLAG.findall(shown)).union(*(flags_of(*words, action) for action in actions))


def typed(name: str) -> list[str]:
    """Everything on a page that is written as code: whole lines of shell, and words between backticks."""
    shell = [line for block in blocks(name) if block.language == "sh" for line in commands(block.text)]
    return [*shell, *inline_code(name)]


# --- commands ------------------------------------------------------------------------------------------------


def test_the_help_is_understood() -> None:
    assert {"run", "resume", "list", "db", "demo"} <= known_commands()
    assert {"--keep", "--json"} <= flags_of("demo")
    assert {"--older-than", "--to"} <= flags_of("db")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_flag_that_a_page_names_exists(name: str) -> None:
    for text in typed(name):
        for found in COMMAND.finditer(text):
            assert found["name"] in known_commands(), text
            unknown = set(FLAG.findall(found["rest"])) - flags_of(found["name"]) - ELSEWHERE
            assert not unknown, text


def test_the_page_about_commands_has_them_all() -> None:
    rows = re.findall(r"^\| `([a-z]+)[ `]", read(CLI).partition("\n## ")[0], re.MULTILINE)
    assert set(rows) == known_commands()


def test_the_changelog_names_them_all_once() -> None:
    """In one line, since nothing was released before."""
    shown = " ".join(read("CHANGELOG.md").partition("- Commands: ")[2].partition("\n- ")[0].split())
    named = re.findall(r"`([a-z]+)`", shown.partition(";")[0])
    assert sorted(named) == sorted(known_commands())


def test_the_page_about_commands_has_every_flag_and_no_other() -> None:
    named = set(FLAG.findall(" ".join(inline_code(CLI))))
    there = frozenset().union(*(flags_of(name) for name in known_commands()))
    assert named - ELSEWHERE == there - ELSEWHERE


def test_the_page_about_commands_has_every_exit_code() -> None:
    table = read(CLI).partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    named = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    ends = {exit_code(RunState.SUCCEEDED, None, None), exit_code(RunState.CANCELLED, None, None)}
    failures = {exit_code(RunState.FAILED, None, failure) for failure in Failure}
    waits = {exit_code(RunState.WAITING, reason, None) for reason in WaitReason}
    assert named == ends | failures | waits | {2, PackageBroken.exit_code, EXIT_NOTHING}


# --- settings ------------------------------------------------------------------------------------------------


def test_the_table_of_settings_is_that_of_the_code() -> None:
    table = read(CLI).partition("\n## Settings\n")[2]
    cells = re.findall(r"`([a-z_]+)`( \*)? \| ([^|]+?) \|", table)
    named = {name: (default, not star) for name, star, default in cells}
    assert named.keys() == {key.name for key in KEYS}
    for key in KEYS:
        default, by_project = named[key.name]
        assert by_project == key.project, key.name
        if not isinstance(key.default, str):
            number = re.match(r"[\d.]+", default)
            assert number is not None, key.name
            assert float(number[0]) == float(key.default), key.name


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_that_a_page_names_is_read_somewhere(name: str) -> None:
    settings = {f"JACKLINE_{key.name.upper()}" for key in KEYS}
    unread = set(VARIABLE.findall(read(name))) - settings - set(VARIABLE.findall(_sources()))
    assert {one for one in unread if not one.endswith("_")} == set()


@cache
def _sources() -> str:
    examples = (ROOT / "examples").glob("*.py")  # a host's own programs read what the host tells them
    files = [*(ROOT / "src").rglob("*.py"), *examples, ROOT / "tests" / "simulation" / "test_simulation.py"]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def test_crash_points_in_examples_exist() -> None:
    shown = [line for name in NAMES for line in typed(name) if "JACKLINE_CRASH_AT=" in line]
    points = {re.split(r"[:\s]", line.partition("JACKLINE_CRASH_AT=")[2])[0] for line in shown}
    assert points - {"point["} <= set(crash_points.POINTS)
    assert points


# --- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    for link in links(name):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        assert target.exists(), f"{name}: {link}"
        if anchor:
            assert anchor in anchors(target.relative_to(ROOT).as_posix()), f"{name}: {link}"


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_a_page_names_is_in_the_tree(name: str) -> None:
    paths = [text for text in inline_code(name) if PATH.fullmatch(text) and not text.startswith((".venv", *NOT_OURS))]
    missing = [path for path in paths if not any((root / path).exists() for root in (ROOT, ROOT / "src" / "jackline"))]
    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_every_module_that_a_page_names_is_in_the_tree(name: str) -> None:
    files = {text for text in inline_code(name) if MODULE_FILE.fullmatch(text)}
    assert files <= {path.name for path in (ROOT / "src").rglob("*.py")}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_package_on_a_page_can_be_imported(name: str) -> None:
    found = [PYTHON_NAME.fullmatch(text) for text in inline_code(name)]
    for dotted in {match[1] for match in found if match} - NOT_PYTHON:
        resolve_name(dotted)


@pytest.mark.parametrize("name", NAMES)
def test_every_target_of_make_that_a_page_names_exists(name: str) -> None:
    targets = set(TARGET.findall(read("Makefile")))
    named = {text.split()[1] for text in typed(name) if re.match(r"make [a-z]", text)}
    assert named <= targets


def test_every_page_can_be_found_from_the_index() -> None:
    pages = {name for name in NAMES if name.startswith("docs/") and name != "docs/README.md"}
    linked = {((ROOT / "docs") / link.partition("#")[0]).resolve() for link in links("docs/README.md")}
    assert {name for name in pages if (ROOT / name).resolve() not in linked} == set()
