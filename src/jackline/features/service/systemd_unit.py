"""The text of the systemd user unit that runs `jackline serve`. Pure; `service_command` installs it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "# Written by `jackline service install`, which writes it again: change it with `systemctl --user edit`."
_STOP_MARGIN_S = 30  # to end agents and store their state, after the drain and the grace period
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./~-]+")


class ServiceUnit(NamedTuple):
    """What the unit of one home needs to know."""

    home: str
    argv: tuple[str, ...]  # the first word is an absolute path
    environment: Mapping[str, str]  # of the installing shell: PATH, and where the settings are; never a secret
    env_file: str  # where a person puts variables that the agents need; it may be missing
    drain_s: float
    grace_s: float


def build_unit(unit: ServiceUnit) -> str:
    """Build the unit file."""
    variables = (f"Environment={_quote(f'{name}={value}')}" for name, value in unit.environment.items())
    lines = [
        MARK,
        "[Unit]",
        f"Description=jackline service of {_escape(unit.home)}",
        "# Never give up: a machine that was without its disk or its database for an hour starts it again.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_quote_word(word) for word in unit.argv)}",
        *variables,
        "# Variables that the agents need, such as keys; for your eyes only (chmod 600). The - allows a missing file.",
        f"EnvironmentFile=-{_escape(unit.env_file)}",
        "Restart=always",
        "RestartSec=5",
        "# SIGTERM goes to jackline alone, which parks its runs and ends the agents; then what is left is killed.",
        "KillMode=mixed",
        f"TimeoutStopSec={compute_stop_seconds(unit.drain_s, unit.grace_s)}",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def compute_stop_seconds(drain_s: float, grace_s: float) -> int:
    """How long systemd has to wait for a service that it stops."""
    return round(drain_s + grace_s) + _STOP_MARGIN_S


def _escape(text: str) -> str:
    """Escape what systemd would expand in any value; a value has one line."""
    return text.replace("%", "%%").replace("\n", " ")


def _quote(text: str) -> str:
    """Quote a value as one word."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_escape(escaped)}"'


def _quote_word(word: str) -> str:
    """Quote a word of a command line, where `$` is expanded, too."""
    if _PLAIN.fullmatch(word):
        return _escape(word)
    return _quote(word).replace("$", "$$")
