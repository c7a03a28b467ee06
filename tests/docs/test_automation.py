"""The files of examples/automation: valid for the program that reads them, and every command in them exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from cronsim import CronSim
from ruamel.yaml import YAML

from jackline.cli.main import COMMANDS
from jackline.cli.output import open_output
from jackline.cli.parser import CommandParser
from tests.docs.pages import ROOT

FOLDER = ROOT / "examples" / "automation"
WORKFLOW = FOLDER / "github-actions.yml"
CRONTAB = FOLDER / "crontab"
UNITS = ("jackline-run@.service", "jackline-run@.timer")
_CRON_FIELDS = 5


def read_workflow() -> dict[str, object]:
    loaded = YAML(typ="safe").load(WORKFLOW)
    assert isinstance(loaded, dict)
    return loaded


def find_workflow_scripts() -> list[str]:
    jobs = read_workflow()["jobs"]
    assert isinstance(jobs, dict)
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def find_cron_jobs() -> Iterator[tuple[str, str]]:
    """The schedule and the command of each job; not comments and variables."""
    for line in CRONTAB.read_text().splitlines():
        if not line or line.startswith("#") or re.match(r"\w+=", line):
            continue
        count = 1 if line.startswith("@") else _CRON_FIELDS
        *schedule, command = line.split(maxsplit=count)
        yield " ".join(schedule), command


def find_unit_commands() -> list[str]:
    text = (FOLDER / UNITS[0]).read_text()
    return [
        found.replace("%i", "nightly") for found in re.findall(r"^Exec\w+=-?/usr/bin/env (.+)$", text, re.MULTILINE)
    ]


def find_jackline_commands() -> list[str]:
    scripts = [*find_workflow_scripts(), *(command for _, command in find_cron_jobs()), *find_unit_commands()]
    joined = "\n".join(scripts).replace("\\\n", " ")
    found: list[str] = re.findall(r"\bjackline (?!-)[a-z][^|&;>\n]*", joined)
    return found


def test_the_workflow_fits_the_schema_of_github() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("script", [*find_workflow_scripts(), *(command for _, command in find_cron_jobs())])
def test_the_scripts_are_valid_for_the_shell(script: str) -> None:
    ended = subprocess.run(
        ["bash", "-n"], input=script.replace("\\%", "%"), capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_times_of_the_crontab_are_valid() -> None:
    times = [schedule for schedule, _ in find_cron_jobs()]
    assert times[1:2] == ["@reboot"]
    for schedule in times[:1] + times[2:]:
        assert next(CronSim(schedule, datetime(2026, 11, 1, tzinfo=UTC))).year == 2026


def test_a_percent_sign_of_the_crontab_is_escaped() -> None:
    """cron reads an unescaped one as the end of the command."""
    assert all(re.search(r"(?<!\\)%", command) is None for _, command in find_cron_jobs())


@pytest.mark.parametrize("broken", [False, True])
def test_systemd_accepts_the_units(tmp_path: Path, broken: bool) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    names = [name.replace("@", "@nightly") for name in UNITS]
    for unit, name in zip(UNITS, names, strict=True):
        shutil.copy(FOLDER / unit, tmp_path / name)
    if broken:  # the check itself can fail
        (tmp_path / names[0]).write_text((FOLDER / UNITS[0]).read_text().replace("ExecStart=/usr", "ExecStart=usr"))
    command = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in names)]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    complaints = [line for line in ended.stderr.splitlines() if "jackline-run" in line]
    assert (bool(complaints), ended.returncode == 0) == (broken, not broken), ended.stderr


@pytest.mark.parametrize("command", find_jackline_commands())
def test_every_command_and_flag_exists(command: str) -> None:
    words = shlex.split(re.sub(r"\$\([^)]*\)", "X", command))[1:]
    parser = CommandParser(out=open_output(json=False, colour=False))
    import_module(COMMANDS[words[0]][0]).configure(parser)
    parser.parse_words(words[1:])
