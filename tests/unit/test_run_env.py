"""What everything below a run can tell of it, and where it finds `jackline`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jackline.domain.states import Role
from jackline.engine.run_env import (
    add_program_to_path,
    build_actor_env,
    build_reader_env,
    build_reminder_command,
    build_run_env,
    find_docker_ports,
)
from jackline.engine.settings import EngineSettings
from tests.support.repositories import Work


def program(folder: Path, mode: int = 0o755) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "jackline").write_text("#!/bin/sh\n")
    (folder / "jackline").chmod(mode)
    return str(folder)


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An interpreter with our script beside it."""
    folder = program(tmp_path / "venv")
    monkeypatch.setattr(sys, "executable", os.path.join(folder, "python"))
    monkeypatch.setattr(sys, "argv", ["-m"])
    return folder


def test_the_run_and_its_home_are_named(beside: str) -> None:
    told = build_run_env(EngineSettings("/srv/home", "host"), "run-1", {"PATH": "/bin"})
    assert told == {
        "JACKLINE_RUN": "run-1",
        "JACKLINE_RUN_ID": "run-1",
        "JACKLINE_HOME": "/srv/home",
        "PATH": f"/bin:{beside}",
    }


def test_an_agent_acts_under_its_own_name_unless_we_were_told_one() -> None:
    assert (
        build_actor_env("claude", {})
        == build_actor_env("claude", {"JACKLINE_ACTOR": ""})
        == {"JACKLINE_ACTOR": "claude"}
    )
    assert build_actor_env("claude", {"JACKLINE_ACTOR": "forge"}) == {"JACKLINE_ACTOR": "forge"}


def test_a_database_is_named_if_the_settings_hand_one_over(beside: str) -> None:
    settings = EngineSettings("/srv/home", "host", database="postgresql://db/jackline")
    assert build_run_env(settings, "r", {"PATH": beside})["JACKLINE_DATABASE"] == "postgresql://db/jackline"


def test_ours_is_put_at_the_end_so_that_it_hides_nothing(beside: str) -> None:
    assert add_program_to_path("/usr/bin:/bin") == f"/usr/bin:/bin:{beside}"
    assert add_program_to_path("") == beside


def test_a_jackline_that_is_found_already_is_left_alone(beside: str, tmp_path: Path) -> None:
    path = f"/bin:{program(tmp_path / 'other')}"
    assert add_program_to_path(path) == path
    assert beside not in add_program_to_path(path)


def test_one_that_cannot_be_executed_does_not_count(beside: str, tmp_path: Path) -> None:
    path = f"/bin:{program(tmp_path / 'other', 0o644)}"
    assert add_program_to_path(path) == f"{path}:{beside}"


def test_the_script_that_was_started_is_preferred(beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = program(tmp_path / "local")
    monkeypatch.setattr(sys, "argv", [os.path.join(started, "jackline"), "run"])
    assert add_program_to_path("/bin") == f"/bin:{started}"
    assert beside not in add_program_to_path("/bin")


def test_without_a_script_the_path_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert add_program_to_path("/bin") == "/bin"


def test_the_reminder_imports_nothing_of_the_workspace() -> None:
    assert build_reminder_command("claude") == (sys.executable, "-P", "-m", "jackline", "case", "hook", "claude")


@pytest.mark.parametrize(
    ("address", "ports"),
    [
        ("tcp://localhost:4444", {4444}),
        ("tcp://127.0.0.1:4444/x", {4444}),
        ("unix:///run/docker.sock", set()),
        ("", set()),
    ],
)
def test_the_port_of_docker_is_found(address: str, ports: set[int]) -> None:
    assert find_docker_ports({"DOCKER_HOST": address}) == ports


@pytest.mark.parametrize(
    ("role", "run"), [(Role.WORK, {"monitor", "hook"}), (Role.REVIEW, {"hook"}), (Role.PLAN, set())]
)
def test_git_runs_no_configured_program_in_a_turn_that_only_reads(tmp_path: Path, role: Role, run: set[str]) -> None:
    work, ran = Work(tmp_path), tmp_path / "ran"
    ran.mkdir()
    for name, place in {"monitor": ".git/monitor", "hook": ".git/hooks/post-index-change"}.items():
        (work.tree / place).write_text(f"#!/bin/sh\ntouch {ran / name}\n")
        (work.tree / place).chmod(0o755)
    work.git("config", "core.fsmonitor", str(work.tree / ".git/monitor"))
    (work.tree / "a").write_text("a")
    work.git("add", "a")
    os.utime(work.tree / "a", (1, 1))  # so that `git status` writes the index
    for file in ran.iterdir():
        file.unlink()
    work.env["GIT_CONFIG_PARAMETERS"] = "'user.name=Bob'"
    work.env |= build_reader_env(role, work.env)
    work.git("status")
    assert {file.name for file in ran.iterdir()} == run
    assert work.git("config", "user.name") == "Bob"
