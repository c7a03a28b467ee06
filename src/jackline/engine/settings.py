"""Settings of the engine, the environment it passes on, and new ids."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain import ids
from jackline.domain.prices import PriceTable
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jackline.domain.adapter import Adapter, UntrustedSettings
    from jackline.domain.records import Spec

_INHERITED = (
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "NO_COLOR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
    "XDG_STATE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip


class EngineSettings(NamedTuple):
    """The settings of one engine on one host."""

    home: str
    host: str
    lease_ms: int = 30_000
    probe_timeout_s: float = 60.0
    other_host_s: float = 0  # after which a probe is believed about a call of another host; 0: a person decides
    preload: Callable[[], object] = lambda: None  # called once the agent runs, to use the waiting time
    on_change: Callable[[], object] = lambda: None  # called after each step of a run; it must not block
    database: str = ""  # the address for `jackline` inside a run, if it needs one; never with a password
    server: tuple[str, ...] = ()  # the command of jackline's MCP server; empty: agents get none
    server_missing: str = ""  # why there is none, if a person should know
    prices: PriceTable = PriceTable()
    usd_micros_per_day: int = 0  # the budget of all runs of the home; 0: no limit
    asks: bool = True  # a call that needs approval stops the run; otherwise it is denied for now
    find_binary: Callable[[Adapter], str] = lambda adapter: adapter.declaration.binary  # raises AgentUnavailable
    # The settings of an untrusted workspace that the agent is started without; raises AgentUnavailable.
    read_untrusted: Callable[[Adapter, str], UntrustedSettings | None] = lambda _adapter, _workspace: None
    share_workspace: bool = False  # a person lets a run work beside another one in the same worktree

    def build_folder(self, run_id: str) -> str:
        """The folder of a run."""
        return os.path.join(self.home, "runs", run_id)


def new_id() -> str:
    """Return a new id: time-ordered and unique across processes."""
    return ids.make(clock.wall_ms(), os.urandom(ids.RANDOM_BYTES))


def new_session_id() -> str:
    """Return a new session id: a random UUID, which the CLIs require."""
    random = bytearray(os.urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    digits = random.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def select_variables(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Select the named variables; a name that ends in `*` selects a prefix."""
    exact = frozenset(names)
    prefixes = tuple(name[:-1] for name in exact if name.endswith("*"))
    return {name: value for name, value in environ.items() if name in exact or name.startswith(prefixes)}


def select_agreed_variables(environ: Mapping[str, str], spec: Spec) -> dict[str, str]:
    """Select the variables that a person lets the run's agents see; probes need the same credentials."""
    return select_variables(environ, [name for options in spec.agent_options.values() for name in options.passes])


def select_inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that every child process gets: an allow-list, so that no credential leaks by accident."""
    return {name: value for name, value in environ.items() if name in _INHERITED or name.startswith("LC_")}
