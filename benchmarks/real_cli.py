"""A real CLI of `make agents` with its own HOME, temporary folder and a repository with one commit.

It measures nothing and installs nothing: a missing CLI is skipped, with the reason.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.command import CommandFailed
from jackline.agents import registry
from jackline.domain.adapter import Launch
from jackline.fake_model.pointing import point
from tools.agents import pins


@dataclass(frozen=True, slots=True)
class CliStage:
    """The folder of one CLI, and the environment that points it at a model."""

    agent: str
    folder: str
    environ: Mapping[str, str]

    @property
    def repository(self) -> str:
        return os.path.join(self.folder, "repository")

    def run(self, launch: Launch, environ: Mapping[str, str]) -> None:
        """Run the CLI to its end; CommandFailed if it fails."""
        done = subprocess.run(
            launch.argv, cwd=self.repository, env=environ, input=launch.stdin or b"", capture_output=True, check=False
        )
        if done.returncode != 0:
            raise CommandFailed(f"{self.agent}: exit {done.returncode}: {done.stderr.decode().strip()}")


def find_obstacle(name: str) -> str:
    """Why this CLI cannot be measured here; empty if it can."""
    pin = pins.read()[name]
    if name not in registry.AGENTS:
        return "there is no adapter for it"
    is_installed = pin.is_for_here and os.access(find_binary(name), os.X_OK)
    return "" if is_installed else f"{pin.version} is not installed (`make agents`)"


def find_binary(name: str) -> str:
    """The pinned program."""
    return pins.read()[name].binary(pins.cache_folder(os.environ))


def format_name(name: str) -> str:
    """The CLI with its version."""
    return f"{name} {pins.read()[name].version}"


def prepare_stage(name: str, folder: str, address: str) -> CliStage:
    """Create a stage whose CLI uses the model at `address`."""
    stage = build_stage(name, folder, address)
    for path in (stage.environ["HOME"], stage.environ["TMPDIR"], stage.repository):
        os.makedirs(path)
    write_files(point(name, address, stage.environ["HOME"]).files)
    for words in (("init", "-q"), ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(("git", *words), cwd=stage.repository, env=stage.environ, check=True)
    return stage


def build_stage(name: str, folder: str, address: str) -> CliStage:
    """Build the stage of a folder, with the environment of its CLI."""
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TMPDIR": os.path.join(folder, "tmp"),  # some CLIs leave megabytes there, at every start
        "JACKLINE_HOME": os.path.join(folder, "home"),
        f"JACKLINE_{name.upper()}_BINARY": find_binary(name),
        **point(name, address, os.path.join(folder, "user")).env,
    }
    return CliStage(name, folder, environ)


def write_files(files: Mapping[str, bytes]) -> None:
    """Write the settings files of a CLI."""
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
