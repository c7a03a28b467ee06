"""The pinned CLIs, and their paths in the cache. Installs nothing, and does not import jackline."""

from __future__ import annotations

import os
import platform
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
        """The path of the program to start."""
        return os.path.join(self.folder(cache), "bin", self.name)


def read() -> dict[str, Pin]:
    """Read all pins, by name."""
    with open(os.path.join(HERE, "pins.toml"), "rb") as file:
        tables = tomllib.load(file)
    pins = {}
    for name, table in tables.items():
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        pins[name] = Pin(name=name, **fields)  # a wrong key is a TypeError that names it
    return pins


def cache_folder(environ: Mapping[str, str]) -> str:
    """The cache folder, outside of any checkout: all checkouts share it."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.abspath(environ.get("JACKLINE_AGENTS_CACHE") or os.path.join(base, "jackline", "agents"))


def here() -> str:
    """The platform of this machine, as npm names it."""
    machine = platform.machine().lower()
    return f"{sys.platform}-{_MACHINES.get(machine, machine)}"
