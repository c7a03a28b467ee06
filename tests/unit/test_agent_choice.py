"""Where an agent's program is, which version it is, and what a person is told when it cannot be used."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from jackline.agents import registry
from jackline.app import agent_versions, agents, config
from jackline.domain.adapter import Declaration, Launch, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from jackline.errors import AgentUnavailable

DECLARATION = Declaration(
    name="nimble",
    binary="nimble",
    gate="advisory",
    gate_reason="none",
    chooses_session=False,
    resumes=False,
    minimum=(2, 1, 295),
    install="npm install -g nimble",
)


@dataclass(frozen=True)
class Nimble:
    """An adapter with nothing but a declaration, and a way past its launcher."""

    declaration: Declaration = DECLARATION
    native: tuple[str, ...] = ()

    def native_path(self, real: str) -> tuple[str, ...]:
        return tuple(os.path.join(os.path.dirname(real), one) for one in self.native)

    def launch(self, request: TurnRequest) -> Launch:
        raise NotImplementedError

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        raise NotImplementedError

    def classify(self, exit_: Exit, heard: tuple[AgentEvent, ...], tail: str) -> Outcome:
        raise NotImplementedError


class Machine:
    """A PATH with programs that count how often they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.home = folder, folder / "bin", folder / "home"
        self.bin.mkdir()
        self.home.mkdir()
        self.environ = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder)}

    def program(self, says: str, name: str = "nimble", folder: Path | None = None) -> Path:
        path = (folder or self.bin) / name
        path.write_text(f'#!/bin/sh\necho asked >> {self.folder}/asked\n[ "$1" = --version ] || exit 9\n{says}\n')
        path.chmod(0o700)
        return path

    def asked(self) -> int:
        path = self.folder / "asked"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def find(self, adapter: Nimble | None = None, **more: str) -> agents.AgentProgram:
        environ: Mapping[str, str] = {**self.environ, "JACKLINE_HOME": str(self.home), **more}
        loaded = config.load_config(environ, str(self.folder))
        return agents.find_program(str(self.home), loaded, adapter or Nimble(), environ)

    def ollama(self, **more: str) -> agents.AgentProgram:
        loaded = config.load_config({**self.environ, "JACKLINE_HOME": str(self.home)}, str(self.folder))
        return agents.locate_program(loaded, registry.load_adapter("ollama").declaration, {**self.environ, **more})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_version_is_asked_once_for_each_binary(machine: Machine) -> None:
    path = machine.program("echo nimble-cli 2.1.300 '(Nimble)'")
    assert machine.find() == machine.find() == agents.AgentProgram("nimble", str(path), "2.1.300")
    assert machine.asked() == 1
    note = machine.home / agent_versions.CACHE
    assert note.stat().st_mode & 0o777 == 0o600
    machine.program("echo 2.1.301; # another file now")
    assert machine.find().version == "2.1.301"
    assert machine.asked() == 2


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"x": 1', b'{"PATH": {"key": 3, "version": [], "at": "x"}}'])
def test_a_damaged_cache_is_built_again(machine: Machine, damage: bytes) -> None:
    path = machine.program("echo 2.1.300")
    note = machine.home / agent_versions.CACHE
    note.write_bytes(damage.replace(b"PATH", str(path).encode()))
    assert machine.find().version == "2.1.300"
    assert json.loads(note.read_bytes())[str(path)]["version"] == "2.1.300"


def test_an_old_answer_is_asked_for_again(machine: Machine) -> None:
    path = machine.program("echo 2.1.300")
    machine.find()
    note = machine.home / agent_versions.CACHE
    known = json.loads(note.read_text())
    known[str(path)]["at"] -= 25 * 3600 * 1000
    note.write_text(json.dumps(known))
    machine.find()
    assert machine.asked() == 2


def test_looking_makes_no_home(machine: Machine) -> None:
    machine.program("echo 2.1.300")
    machine.home.rmdir()
    assert machine.find().version == "2.1.300"
    assert not machine.home.exists()


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("echo 2.0.1", "is 2.0.1, needs 2.1.295 or newer: install it with `npm install -g nimble`"),
        ("echo 2.1", "is 2.1, needs 2.1.295 or newer"),
        ("echo no idea", "`nimble --version` prints no version: no idea"),
        ("exit 0", "it prints nothing"),
        ("echo 2.1.300; exit 3", "prints no version"),
    ],
)
def test_why_a_program_cannot_be_used(machine: Machine, says: str, why: str) -> None:
    path = machine.program(says)
    found = machine.find()
    assert why in found.why
    assert found.binary == str(path)


@pytest.mark.parametrize("version", ["2.1.295", "2.2", "3.0.0", "10.0.0"])
def test_versions_are_compared_as_numbers(machine: Machine, version: str) -> None:
    machine.program(f"echo {version}")
    assert machine.find().why == ""


def test_a_program_that_hangs_is_given_up(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_versions, "_TIMEOUT_S", 0.3)
    machine.program("exec sleep 60")
    began = time.monotonic()
    assert "did not finish within 0.3 s" in machine.find().why
    assert time.monotonic() - began < 20


def test_a_program_that_hangs_is_not_waited_for_again_and_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = agent_versions._TIMEOUT_S
    monkeypatch.setattr(agent_versions, "_TIMEOUT_S", 2.0)
    path = machine.program("exec sleep 60")
    assert machine.find() == machine.find()
    assert machine.asked() == 1
    note = machine.home / agent_versions.CACHE
    known = json.loads(note.read_text())
    known[str(path)]["at"] -= 61 * 1000
    note.write_text(json.dumps(known))
    monkeypatch.setattr(agent_versions, "_TIMEOUT_S", patient)
    machine.program("echo 2.1.300")
    os.utime(path, ns=(0, int(known[str(path)]["key"].split(":")[1])))
    assert machine.find().version == "2.1.300", "after a minute it is asked again"


def test_one_that_is_simply_wrong_is_asked_again_at_once(machine: Machine) -> None:
    machine.program(f"[ -e {machine.folder}/mended ] && echo 2.1.300")
    assert "prints no version" in machine.find().why
    (machine.folder / "mended").touch()
    assert machine.find().version == "2.1.300"


# --- a server that it needs


def test_a_server_that_does_not_answer_is_in_the_way(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert machine.ollama(OLLAMA_HOST=place).why == ""
    why = f"there is no answer at {place}: start it with `ollama serve`"
    assert machine.ollama(OLLAMA_HOST=place) == agents.AgentProgram("ollama", why=why)


@pytest.mark.parametrize("host", ["127.0.0.1:port", f"{'x' * 70}.example"])
def test_where_no_server_can_be_is_no_traceback(machine: Machine, host: str) -> None:
    found = machine.ollama(OLLAMA_HOST=host)
    assert "which is not an address" in found.why or "there is no answer at xxx" in found.why


def test_a_turn_has_more_patience_with_a_server(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    loaded = config.load_config(machine.environ, str(machine.folder))
    assert agents.require_program(str(machine.home), loaded, registry.load_adapter("ollama"), {}) == sys.executable


def test_a_missing_one_says_how_to_install_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AgentUnavailable, match="not on the PATH: install it with `npm install -g nimble`") as caught:
        agents.require_program(
            str(machine.home), config.load_config(machine.environ, str(machine.folder)), Nimble(), machine.environ
        )
    assert caught.value.exit_code == 13


def test_the_current_folder_is_not_searched(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.program("echo 2.1.300", folder=machine.folder)
    monkeypatch.chdir(machine.folder)
    assert "not on the PATH" in machine.find(PATH=f":.:{machine.bin}").why


def test_a_named_binary_wins_and_a_wrong_one_names_its_place(machine: Machine) -> None:
    machine.program("echo 2.1.300")
    other = machine.program("echo 2.1.400", name="other")
    assert machine.find(JACKLINE_NIMBLE_BINARY=str(other)) == agents.AgentProgram("nimble", str(other), "2.1.400")
    wrong = machine.find(JACKLINE_NIMBLE_BINARY="/nonexistent/nimble")
    assert wrong.why == "/nonexistent/nimble (from JACKLINE_NIMBLE_BINARY) is not an executable program"
    settings = machine.folder / ".config" / "jackline"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text('[agents.nimble]\nbinary = "../../bin/other"\n')
    assert machine.find().version == "2.1.400"


def test_no_launcher_stays_in_between(machine: Machine) -> None:
    package = machine.folder / "node_modules" / "nimble-cli"
    package.mkdir(parents=True)
    launcher = machine.program("echo 2.1.300", name="start.js", folder=package)
    (machine.bin / "nimble").symlink_to(launcher)
    assert machine.find().binary == str(launcher)
    native = machine.program("echo 2.1.500", name="native", folder=package)
    assert machine.find(Nimble(native=("gone", "native"))) == agents.AgentProgram("nimble", str(native), "2.1.500")


@pytest.mark.parametrize(
    ("name", "launcher", "program"),
    [
        ("kilo", "@kilocode/cli/bin", "@kilocode/cli-linux-x64/bin"),
        ("opencode", "opencode-ai/bin", "opencode-linux-x64/bin"),
    ],
)
def test_a_fork_knows_the_way_past_its_own_launcher(machine: Machine, name: str, launcher: str, program: str) -> None:
    modules = machine.folder / "node_modules"
    for folder in (launcher, program):
        (modules / folder).mkdir(parents=True)
        machine.program("echo 9.9.9", name=name, folder=modules / folder)
    (machine.bin / name).symlink_to(modules / launcher / name)
    loaded = config.load_config(machine.environ, str(machine.folder))
    assert agents.find_binary(loaded, registry.load_adapter(name), machine.environ) == str(modules / program / name)


def test_a_manager_of_versions_keeps_the_name_it_is_called_by(machine: Machine) -> None:
    shims = machine.folder / "shims"
    shims.mkdir()
    shim = machine.program('[ "${0##*/}" = nimble ] || exit 1; echo 2.1.300', name="shim", folder=shims)
    (machine.bin / "nimble").symlink_to(shim)
    assert machine.find() == agents.AgentProgram("nimble", str(machine.bin / "nimble"), "2.1.300")


def test_an_agent_without_a_version_is_not_started(machine: Machine) -> None:
    path = machine.program("exit 1")
    found = machine.find(Nimble(DECLARATION._replace(version_arguments=())))
    assert (found, machine.asked()) == (agents.AgentProgram("nimble", str(path)), 0)


def test_the_program_is_asked_away_from_here_and_without_our_environment(machine: Machine) -> None:
    machine.program(f"pwd > {machine.folder}/where; env > {machine.folder}/seen; echo 2.1.300")
    machine.find(SECRET_TOKEN="s3cret")
    assert (machine.folder / "where").read_text() == "/\n"
    assert "s3cret" not in (machine.folder / "seen").read_text()
