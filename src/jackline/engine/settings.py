"""What the engine is told about this place: folders, lease times, names, and how it names new things."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain import ids

if TYPE_CHECKING:
    from collections.abc import Mapping

_INHERITED = (
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "NO_COLOR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """One engine on one host."""

    home: str
    host: str
    lease_ms: int = 30_000
    probe_timeout_s: float = 60.0
    binaries: Mapping[str, str] = field(default_factory=dict)

    def folder(self, run_id: str) -> str:
        """The run's own folder."""
        return os.path.join(self.home, "runs", run_id)


def fresh_id() -> str:
    """A new id: time-ordered, and never the same in two processes."""
    return ids.make(clock.wall_ms(), os.urandom(ids.RANDOM_BYTES))


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a child process gets of our environment: an allow-list, so that no credential leaks by accident."""
    return {name: value for name, value in environ.items() if name in _INHERITED or name.startswith("LC_")}
