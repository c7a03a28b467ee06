"""`jackline completion`: the scripts are sourced in bash, and in zsh and fish if they are installed."""

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
complete -p jackline | grep -q -- "-F _jackline " || exit 9
shift_to "$@"
"""
# zsh completes only inside its line editor: an inner shell on a pseudo-terminal, which writes down what it would add.
ZSH = r"""
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner 'PROMPT= RPROMPT=; stty -echo; autoload -Uz compinit && compinit -u -D; eval "$(<./script)"'
zpty -w inner 'compadd() {
    local -a found; builtin compadd -O found "$@"; print -rl -- "${found[@]}" >> offered; builtin compadd "$@"
}'
zpty -w inner 'finish() { print >> finished }; comppostfuncs=(finish)'
zpty -w -n inner "$*"$'\t'
for ((turn = 0; turn < 300; turn++)); do
    [[ -e finished ]] && break
    zpty -rt inner line
    sleep 0.1
done
[[ -e finished ]] || exit 9
[[ ! -e offered ]] || cat offered
"""
CASES = [
    (("jackline", ""), set(COMMANDS), True),
    (("jackline", "list", "--"), {"--state", "--active", "--all-repos", "--json"}, False),
    (
        ("jackline", "list", "--state", ""),
        {"queued", "running", "waiting", "succeeded", "failed", "cancelled", "lost"},
        True,
    ),
    (("jackline", "--home", "x", "db", ""), {"migrate", "status", "check", "backup", "archive"}, True),
    (("jackline", "db", "archive", "--"), {"--older-than", "--to"}, False),
    (("jackline", "answer", "r", "c", ""), {"happened", "did-not", "retry", "skip", "allow", "always", "deny"}, True),
    (("jackline", "run", "--agent", ""), {"scripted", "auto"}, False),
    (("jackline", "run", "--max-usd", ""), set(), True),
]
# A shell takes a second to start.
SLOW_CASES = [CASES[0], *(pytest.param(*case, marks=pytest.mark.full) for case in CASES[1:])]


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


def test_bash_completes_prefixes_files_and_runs(scripted: Place) -> None:
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
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@missing_is_a_skip("zsh")
@pytest.mark.parametrize(("words", "wanted", "exactly"), SLOW_CASES)
def test_zsh(scripted: Place, words: tuple[str, ...], wanted: set[str], exactly: bool) -> None:
    write(scripted, "zsh")
    found = offered(scripted, ["zsh", "-f", "-c", ZSH, "zsh", *words])
    assert found == wanted if exactly else found >= wanted


@missing_is_a_skip("zsh")
def test_zsh_offers_runs(scripted: Place) -> None:
    write(scripted, "zsh")
    assert scripted.play(SAY, words=("--run-id", "alpha")).code == 0
    assert offered(scripted, ["zsh", "-f", "-c", ZSH, "zsh", "jackline", "show", "al"]) == {"alpha"}


@missing_is_a_skip("fish")
def test_fish_offers_runs(scripted: Place) -> None:
    write(scripted, "fish")
    assert scripted.play(SAY, words=("--run-id", "alpha")).code == 0
    lines = offered(scripted, ["fish", "--no-config", "-c", 'source ./script; complete -C "jackline show al"'])
    assert {line.split("\t")[0] for line in lines} == {"alpha"}


@missing_is_a_skip("fish")
@pytest.mark.parametrize(("words", "wanted", "exactly"), SLOW_CASES)
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
