"""What the engine is told about this place: folders, lease times, names, and how it names new things."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain import ids
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Spec

_INHERITED = (
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "NO_COLOR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
    "XDG_STATE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip


class Settings(NamedTuple):
    """One engine on one host."""

    home: str
    host: str
    lease_ms: int = 30_000
    probe_timeout_s: float = 60.0
    meanwhile: Callable[[], object] = lambda: None  # done when an agent is at work, and we would only wait for it
    changed: Callable[[], object] = lambda: None  # told whenever a run came a step further; it must not wait
    database: str = ""  # its address, where a run's own `jackline` has to be told: never one with a password in it
    server: tuple[str, ...] = ()  # the command line of jackline's own MCP server; empty: agents get none
    server_missing: str = ""  # why not, where somebody should know
    find: Callable[[Adapter], str] = lambda adapter: adapter.declaration.binary  # AgentUnavailable if it cannot be used

    def folder(self, run_id: str) -> str:
        """The run's own folder."""
        return os.path.join(self.home, "runs", run_id)


def fresh_id() -> str:
    """A new id: time-ordered, and never the same in two processes."""
    return ids.make(clock.wall_ms(), os.urandom(ids.RANDOM_BYTES))


def fresh_session() -> str:
    """A new session id: the CLIs that let us choose one want a random UUID."""
    random = bytearray(os.urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    digits = random.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def passed(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """What an agent may see besides: its names, and for one that ends in `*` all that begin so."""
    whole = frozenset(names)
    beginnings = tuple(name[:-1] for name in whole if name.endswith("*"))
    return {name: value for name, value in environ.items() if name in whole or name.startswith(beginnings)}


def agreed(environ: Mapping[str, str], spec: Spec) -> dict[str, str]:
    """What a person lets the run's agents see besides: a probe looks by the same key or agent."""
    return passed(environ, [name for manner in spec.manners.values() for name in manner.passes])


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a child process gets of our environment: an allow-list, so that no credential leaks by accident."""
    return {name: value for name, value in environ.items() if name in _INHERITED or name.startswith("LC_")}
