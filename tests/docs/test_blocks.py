"""Every block of code in the documentation runs, loads or parses; what cannot run says why in the line above it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from jackline.agents.scripted.script_format import validate
from jackline.app import config, job_file
from jackline.app.tasks import TASK_SETTINGS
from jackline.domain import task
from jackline.policy import rule_lookup
from tests.cli.place import Ended, Place
from tests.docs.pages import NAMES, ROOT, Block, all_blocks, blocks, commands, read

LANGUAGES = {"sh", "python", "toml", "json", "text", "mermaid", "markdown"}
FIRST_READ = {"README.md", "docs/quickstart.md"}  # the commands of the other pages run with the long tests
CHECKED = {"sh", "python"}  # what a reason may stand above; the others need none to be looked at
# A command that is meant to end otherwise says so: `jackline resume 3   # exit 14: a person is asked`
EXPECTED = re.compile(r"\s# exit (\d+)")
RUNNABLE = re.compile(r"^(?:echo [^|;&]*\| )?(?:[A-Z_]+=\S* )*(?:\.venv/bin/|python -m )?jackline(?: |$)")
MAKE = re.compile(r"^make (?P<targets>[a-z -]+?)(?:\s+[A-Z]+=\S+)*(?:\s+#.*)?$")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
KILLED = 128 + 9
SECONDS = 60


def pages_with(language: str) -> list[str]:
    return [name for name in NAMES if any(block.language == language and not block.not_run for block in blocks(name))]


def end(place: Place, argv: list[str]) -> Ended:
    process = place.execute(argv)
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode if process.returncode >= 0 else 128 - process.returncode, out, err)


def check(place: Place, block: Block, line: str) -> None:
    """Run one line as a reader would type it; targets of make are only looked up: some of them take minutes."""
    if made := MAKE.match(line):
        missing = set(made["targets"].split()) - set(TARGET.findall(read("Makefile")))
        assert not missing, f"{block}: there is no target {missing}"
        return
    assert RUNNABLE.match(line), f"{block}: nobody can check `{line}`; put <!-- not run: why --> above the block"
    expected = int(found[1]) if (found := EXPECTED.search(line)) else 0
    ended = end(place, ["/bin/sh", "-c", line])
    assert ended.code == expected, (str(block), line, ended)
    assert "Traceback" not in ended.err, (str(block), line, ended)


@pytest.mark.parametrize(
    "name", [name if name in FIRST_READ else pytest.param(name, marks=pytest.mark.full) for name in pages_with("sh")]
)
def test_the_commands_of_a_page_can_be_typed_one_after_the_other(name: str, place: Place) -> None:
    shown = [block for block in blocks(name) if block.language == "sh" and not block.not_run]
    for block in shown:
        for line in commands(block.text):
            check(place, block, line)


@pytest.mark.parametrize("block", [one for one in all_blocks("python") if not one.not_run], ids=str)
def test_a_program_runs(block: Block, place: Place) -> None:
    ended = end(place, [sys.executable, "-W", "error", "-c", block.text])
    assert (ended.code, ended.err) == (0, ""), (str(block), ended)


@pytest.mark.parametrize("block", all_blocks("toml"), ids=str)
def test_a_policy_a_job_or_a_settings_file_loads(block: Block, tmp_path: Path) -> None:
    tables = tomllib.loads(block.text)
    if "task" in tables:
        assert job_file.parse_job(block.text, str(block)).task == tables["task"]
        return
    if set(tables) == {"rule"}:
        assert rule_lookup.parse_rule_tables(tables["rule"], str(block))
        return
    settings = tmp_path / "jackline" / config.USER_FILE
    settings.parent.mkdir()
    settings.write_text(block.text)
    loaded = config.load_config({"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}, str(tmp_path))
    assert str(settings) in loaded.sources.values()


@pytest.mark.parametrize("block", all_blocks("markdown"), ids=str)
def test_a_task_file_loads(block: Block) -> None:
    assert task.parse_task("shown", block.text, str(block), TASK_SETTINGS).prompt


@pytest.mark.parametrize("block", all_blocks("json"), ids=str)
def test_a_script_or_a_step_is_valid(block: Block) -> None:
    shown = json.loads(block.text)
    validate(block.text if "steps" in shown else json.dumps({"version": 1, "steps": [shown]}))


@pytest.mark.parametrize("block", [one for one in all_blocks("json") if '"steps"' in one.text], ids=str)
def test_a_whole_script_can_be_played(block: Block, place: Place) -> None:
    (place.repository / "script.json").write_text(block.text)
    ended = end(place, ["/bin/sh", "-c", "jackline run --script script.json --retry-seconds 0"])
    assert ended.code == 0, (str(block), ended)


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "scripts").iterdir()), ids=lambda path: path.name)
def test_an_example_can_be_played(path: Path, place: Place) -> None:
    words = f"jackline run --script examples/scripts/{path.name} --run-id it --retry-seconds 0"
    ended = end(place, ["/bin/sh", "-c", f"{words} || jackline resume it"])
    assert ended.code == 0, ended


def test_every_block_names_its_language() -> None:
    """So that none escapes the tests above by having none."""
    assert [str(block) for name in NAMES for block in blocks(name) if block.language not in LANGUAGES] == []


def test_only_what_could_run_needs_a_reason_not_to() -> None:
    shown = [block for name in NAMES for block in blocks(name)]
    assert [str(block) for block in shown if block.not_run and block.language not in CHECKED] == []
