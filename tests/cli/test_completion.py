"""`jackline completion`: really sourced, in bash always, in zsh and fish where they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jackline.cli.main import COMMANDS
from tests.cli.place import SAY, Place

BASH = """
source ./script
shift_to() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _jackline
    printf '%s\\n' "${COMPREPLY[@]}"
}
complete -p jackline >/dev/null || exit 9
shift_to "$@"
"""
ZSH = """
autoload -Uz compinit && compinit -u -D
source ./script
[[ $_comps[jackline] = _jackline ]] || exit 9
compadd() { shift; print -l -- "$@" }
_files() { print -- "files $*" }
words=("$@"); CURRENT=$#words; _jackline
"""
CASES = [
    (("jackline", ""), set(COMMANDS), True),
    (("jackline", "list", "--"), {"--state", "--active", "--all-repos", "--json"}, False),
    (("jackline", "list", "--state", ""), {"queued", "running", "waiting", "succeeded", "failed", "cancelled"}, True),
    (("jackline", "--home", "x", "db", ""), {"migrate", "status", "check", "backup", "archive"}, True),
    (("jackline", "db", "archive", "--"), {"--older-than", "--to"}, False),
    (("jackline", "answer", "r", "c", ""), {"happened", "did-not", "retry", "skip", "allow", "deny"}, True),
    (("jackline", "run", "--agent", ""), {"scripted", "auto"}, False),
    (("jackline", "run", "--max-usd", ""), set(), True),
]


@pytest.fixture
def scripted(place: Place) -> Place:
    programs = place.folder / "bin"
    programs.mkdir()
    (programs / "jackline").write_text(f'#!/bin/sh\nexec {sys.executable} -m jackline "$@"\n')
    (programs / "jackline").chmod(0o700)
    place.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    return place


def write(place: Place, shell: str) -> Path:
    ended = place.type("completion", shell)
    assert (ended.code, ended.err) == (0, ""), ended
    path = place.repository / "script"
    path.write_text(ended.out)
    return path


def offered(place: Place, argv: list[str]) -> set[str]:
    ended = place.end_of(place.execute(argv))
    assert (ended.code, ended.err) == (0, ""), ended
    return set(ended.out.split("\n")) - {""}


@pytest.mark.parametrize(("words", "wanted", "exactly"), CASES)
def test_bash(scripted: Place, words: tuple[str, ...], wanted: set[str], exactly: bool) -> None:
    write(scripted, "bash")
    found = offered(scripted, ["bash", "--norc", "-c", BASH, "bash", *words])
    assert found == wanted if exactly else found >= wanted


def test_bash_offers_what_begins_so_and_files_and_runs(scripted: Place) -> None:
    write(scripted, "bash")
    bash = ["bash", "--norc", "-c", BASH, "bash", "jackline"]
    assert offered(scripted, [*bash, "do"]) == {"doctor"}
    (scripted.repository / "a file.json").touch()
    (scripted.repository / "a folder").mkdir()
    assert offered(scripted, [*bash, "run", "--script", "a"]) == {"a file.json", "a folder"}
    assert offered(scripted, [*bash, "run", "--workspace", "a"]) == {"a folder"}
    assert offered(scripted, [*bash, "list", "--state", "=", "ru"]) == {"running"}
    assert scripted.play(SAY, words=("--run-id", "alpha")).code == 0
    assert offered(scripted, [*bash, "show", "al"]) == {"alpha"}
    scripted.task("mine")
    assert offered(scripted, [*bash, "run", "--task", "mi"]) == {"mine"}
    assert offered(scripted, [*bash, "tasks", "show", "debug_s"]) == {"debug_smoke_commit"}


def missing_is_a_skip(shell: str) -> pytest.MarkDecorator:
    """On a person's machine; CI has both, and fails without."""
    missing = shutil.which(shell) is None and os.environ.get("CI") != "true"
    return pytest.mark.skipif(missing, reason=f"{shell} is not installed")


@missing_is_a_skip("zsh")
@pytest.mark.parametrize(("words", "wanted", "exactly"), CASES)
def test_zsh(scripted: Place, words: tuple[str, ...], wanted: set[str], exactly: bool) -> None:
    write(scripted, "zsh")
    found = offered(scripted, ["zsh", "-f", "-c", ZSH, "zsh", *words])
    assert found == wanted if exactly else found >= wanted


@missing_is_a_skip("fish")
@pytest.mark.parametrize(("words", "wanted", "exactly"), CASES)
def test_fish(scripted: Place, words: tuple[str, ...], wanted: set[str], exactly: bool) -> None:
    write(scripted, "fish")
    lines = offered(scripted, ["fish", "--no-config", "-c", 'source ./script; complete -C "$argv"', " ".join(words)])
    found = {line.split("\t")[0] for line in lines}
    assert found >= wanted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_every_script(place: Place, shell: str) -> None:
    script = write(place, shell).read_text()
    for name in COMMANDS:
        assert name in script
    assert "older-than" in script
    assert not place.home.exists()


def test_bash_accepts_the_script_with_every_warning(place: Place) -> None:
    checked = subprocess.run(["bash", "-n", str(write(place, "bash"))], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
