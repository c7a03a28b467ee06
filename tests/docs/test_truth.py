"""What the pages name exists: files, modules, headings, commands, flags, settings, variables, targets of make."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pkgutil import resolve_name
from typing import Any

from jackline import crash_points
from jackline.app.setting_keys import KEYS
from jackline.domain.states import Failure, RunState, WaitReason, exit_code
from jackline.errors import PackageBroken
from jackline.features.work.work_commands import EXIT_NOTHING
from tests.docs.pages import NAMES, ROOT, anchors, blocks, commands, inline_code, links, read
from tests.support.command_server import start_jackline

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
    ".git/",
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
    environ = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start_jackline((*words, "--help"), cwd="/", env=environ, **pipes)
    shown, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return str(shown)


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


def test_every_command_and_flag_that_a_page_names_exists() -> None:
    found = [(name, text, one) for name in NAMES for text in typed(name) for one in COMMAND.finditer(text)]
    assert [(name, text) for name, text, one in found if one["name"] not in known_commands()] == []
    unknown = [(name, text, set(FLAG.findall(one["rest"])) - flags_of(one["name"])) for name, text, one in found]
    assert [one for one in unknown if one[2] - ELSEWHERE] == []


def test_the_page_about_commands_has_them_all() -> None:
    rows = re.findall(r"^\| `([a-z]+)[ `]", read(CLI).partition("\n## ")[0], re.MULTILINE)
    assert set(rows) == known_commands()


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


def test_every_variable_that_a_page_names_is_read_somewhere() -> None:
    examples = (ROOT / "examples").glob("*.py")  # a host's own programs read what the host tells them
    for_tests = [ROOT / "tests" / "simulation" / "test_simulation.py", ROOT / "tests" / "support" / "command_server.py"]
    files = [*(ROOT / "src").rglob("*.py"), *examples, *for_tests]
    known = {f"JACKLINE_{key.name.upper()}" for key in KEYS}
    known |= {one for path in files for one in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    named = {(name, one) for name in NAMES for one in VARIABLE.findall(read(name)) if not one.endswith("_")}
    assert {(name, one) for name, one in named if one not in known} == set()


def test_crash_points_in_examples_exist() -> None:
    shown = [line for name in NAMES for line in typed(name) if "JACKLINE_CRASH_AT=" in line]
    points = {re.split(r"[:\s]", line.partition("JACKLINE_CRASH_AT=")[2])[0] for line in shown}
    assert points - {"point["} <= set(crash_points.POINTS)
    assert points


# --- files ---------------------------------------------------------------------------------------------------


def test_every_link_leads_somewhere() -> None:
    local = [(name, link) for name in NAMES for link in links(name) if "://" not in link]
    assert [(name, link) for name, link in local if not leads_somewhere(name, link)] == []


def leads_somewhere(name: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = ((ROOT / name).parent / path).resolve() if path else ROOT / name
    return target.exists() and (not anchor or anchor in anchors(target.relative_to(ROOT).as_posix()))


def test_every_file_that_a_page_names_is_in_the_tree() -> None:
    paths = [(name, text) for name in NAMES for text in inline_code(name) if PATH.fullmatch(text)]
    ours = [(name, path) for name, path in paths if not path.startswith((".venv", *NOT_OURS))]
    roots = (ROOT, ROOT / "src" / "jackline")
    assert [(name, path) for name, path in ours if not any((root / path).exists() for root in roots)] == []


def test_every_module_that_a_page_names_is_in_the_tree() -> None:
    there = {path.name for path in (ROOT / "src").rglob("*.py")}
    files = [(name, text) for name in NAMES for text in inline_code(name) if MODULE_FILE.fullmatch(text)]
    assert [(name, file) for name, file in files if file not in there] == []


def test_every_name_of_the_package_on_a_page_can_be_imported() -> None:
    found = [PYTHON_NAME.fullmatch(text) for name in NAMES for text in inline_code(name)]
    for dotted in {match[1] for match in found if match} - NOT_PYTHON:
        resolve_name(dotted)


def test_every_target_of_make_that_a_page_names_exists() -> None:
    targets = set(TARGET.findall(read("Makefile")))
    named = {(name, text.split()[1]) for name in NAMES for text in typed(name) if re.match(r"make [a-z]", text)}
    assert {(name, target) for name, target in named if target not in targets} == set()


def test_every_page_can_be_found_from_the_index() -> None:
    pages = {name for name in NAMES if name.startswith("docs/") and name != "docs/README.md"}
    linked = {((ROOT / "docs") / link.partition("#")[0]).resolve() for link in links("docs/README.md")}
    assert {name for name in pages if (ROOT / name).resolve() not in linked} == set()
