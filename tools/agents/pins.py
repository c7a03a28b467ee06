"""What is pinned, and where the cache keeps it. It installs nothing, and imports nothing of jackline."""

from __future__ import annotations

import os
import platform
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Pin:
    """One CLI in one version."""

    name: str
    package: str
    version: str
    program: tuple[str, ...]
    node: bool = False
    platforms: tuple[str, ...] = ()

    @property
    def is_for_here(self) -> bool:
        """Whether the pinned packages have a program for this machine."""
        return not self.platforms or here() in self.platforms

    def folder(self, cache: str) -> str:
        """Its own folder in the cache."""
        return os.path.join(cache, f"{self.name}-{self.version}")

    def binary(self, cache: str) -> str:
        """What is started."""
        return os.path.join(self.folder(cache), "bin", self.name)


def read() -> dict[str, Pin]:
    """Every pin, by name."""
    with open(os.path.join(HERE, "pins.toml"), "rb") as file:
        tables = tomllib.load(file)
    return {name: _pin(name, table) for name, table in tables.items()}


def _pin(name: str, table: Mapping[str, object]) -> Pin:
    lists = {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
    return Pin(name=name, **{**table, **lists})  # type: ignore[arg-type] # a wrong key is a TypeError that names it


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where the CLIs are kept, outside of any checkout: all of them share it."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.abspath(environ.get("JACKLINE_AGENTS_CACHE") or os.path.join(base, "jackline", "agents"))


def here() -> str:
    """This machine, in npm's words."""
    machine = platform.machine().lower()
    return f"{sys.platform}-{_MACHINES.get(machine, machine)}"
