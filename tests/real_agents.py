"""Where the real CLIs of `make agents` are, for tests that run them. It installs nothing."""

from __future__ import annotations

import os

import pytest

from tools.agents.pins import Pin, cache_folder, here, read


def binary(name: str) -> str:
    """The pinned CLI of that name; without it the test is skipped, and where it must be there (CI=true) it fails."""
    pin = read()[name]
    if not pin.is_for_here:
        pytest.skip(f"the pinned {name} is for {', '.join(pin.platforms)}, not for {here()}")
    path = pin.binary(cache_folder(os.environ))
    if not os.access(path, os.X_OK):
        _missing(pin)
    return path


def _missing(pin: Pin) -> None:
    said = f"{pin.name} {pin.version} is not installed: run `make agents`"
    if os.environ.get("CI") == "true":
        pytest.fail(said)
    pytest.skip(said)
