"""Where the real CLIs of `make agents` are, for tests that run them. It installs nothing."""

from __future__ import annotations

import os

import pytest

from tests.support.skips import NOT_POSSIBLE
from tools.agents.pins import cache_folder, here, read


def binary(name: str) -> str:
    """The pinned CLI of that name; without it the test is skipped."""
    pin = read()[name]
    if not pin.is_for_here:
        pytest.skip(f"{NOT_POSSIBLE}the pinned {name} is for {', '.join(pin.platforms)}, not for {here()}")
    path = pin.binary(cache_folder(os.environ))
    if not os.access(path, os.X_OK):
        pytest.skip(f"{pin.name} {pin.version} is not installed: run `make agents`")
    return path
