"""A real CLI of `make agents` in a place of its own: HOME, temporary folder, a repository with one commit.

It measures nothing, and installs nothing: a CLI that is not there is left out, with the reason.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.command import CommandFailed
from jackline.agents import registry
from jackline.domain.adapter import Launch
from jackline.fake.pointing import point
from tools.agents import pins


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one CLI works, and the environment that points it at a model."""

    agent: str
    folder: str
    environ: Mapping[str, str]

    @property
    def repository(self) -> str:
        return os.path.join(self.folder, "repository")

    def run(self, launch: Launch, environ: Mapping[str, str]) -> None:
        """Start the CLI as told, and wait for its end; CommandFailed if that is not a good one."""
        done = subprocess.run(
            launch.argv, cwd=self.repository, env=environ, input=launch.stdin or b"", capture_output=True, check=False
        )
        if done.returncode != 0:
            raise CommandFailed(f"{self.agent}: exit {done.returncode}: {done.stderr.decode().strip()}")


def why_not(name: str) -> str:
    """Why this CLI cannot be measured here; empty if it can."""
    pin = pins.read()[name]
    if name not in registry.AGENTS:
        return "there is no adapter for it"
    is_there = pin.is_for_here and os.access(binary(name), os.X_OK)
    return "" if is_there else f"{pin.version} is not installed (`make agents`)"


def binary(name: str) -> str:
    """The pinned program."""
    return pins.read()[name].binary(pins.cache_folder(os.environ))


def named(name: str) -> str:
    """The CLI with its version."""
    return f"{name} {pins.read()[name].version}"


def prepare(name: str, folder: str, address: str) -> Stage:
    """A fresh stage, pointed at the model at `address`."""
    stage = pointed(name, folder, address)
    for place in (stage.environ["HOME"], stage.environ["TMPDIR"], stage.repository):
        os.makedirs(place)
    write(point(name, address, stage.environ["HOME"]).files)
    for words in (("init", "-q"), ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(("git", *words), cwd=stage.repository, env=stage.environ, check=True)
    return stage


def pointed(name: str, folder: str, address: str) -> Stage:
    """The stage in this folder, as the environment of its CLI has it."""
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TMPDIR": os.path.join(folder, "tmp"),  # some CLIs leave megabytes there, at every start
        "JACKLINE_HOME": os.path.join(folder, "home"),
        f"JACKLINE_{name.upper()}_BINARY": binary(name),
        **point(name, address, os.path.join(folder, "user")).env,
    }
    return Stage(name, folder, environ)


def write(files: Mapping[str, bytes]) -> None:
    """The files that a CLI is to find."""
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
