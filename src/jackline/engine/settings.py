"""Settings of the engine, the environment it passes on, and new ids."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain import ids
from jackline.domain.prices import PriceTable
from jackline.errors import AgentUnavailable
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jackline.domain.adapter import Adapter, UntrustedSettings
    from jackline.domain.records import Run
    from jackline.domain.spec import Spec

_INHERITED = (
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "NO_COLOR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
    "XDG_STATE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip

# What git and gh need of the person's environment; an agent gets it only by agreement.
_OF_PERSON = (
    "GH_*", "GITHUB_*", "SSH_*", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "GNUPGHOME",
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
    on_phase: Callable[[Run], object] = lambda _run: None  # called after a turn, a check or a publication has started
    warn: Callable[[str], object] = lambda _text: None  # tells the person something that does not stop the work
    database: str = ""  # the address for `jackline` inside a run, if it needs one; never with a password
    server: tuple[str, ...] = ()  # the command of jackline's MCP server; empty: agents get none
    server_missing: str = ""  # why there is none, if a person should know
    prices: PriceTable = PriceTable()
    usd_micros_per_day: int = 0  # the budget of all runs of the home; 0: no limit
    asks: bool = True  # a call that needs approval stops the run; otherwise it is denied for now
    # The program of an agent for work in a folder; raises AgentUnavailable, NotLoggedIn if it has no credentials.
    find_binary: Callable[[Adapter, str], str] = lambda adapter, _workspace: adapter.declaration.binary
    # The settings of an untrusted workspace that the agent is started without; raises AgentUnavailable.
    read_untrusted: Callable[[Adapter, str], UntrustedSettings | None] = lambda _adapter, _workspace: None
    share_workspace: bool = False  # a person lets a run work beside another one in the same worktree
    keep_awake: bool = False  # the machine must not go to sleep by itself while a run is active
    environ: Mapping[str, str] = os.environ  # what agents, checks and probes get a part of
    # The same for an agent, with the variables of its account; AgentUnavailable if they cannot be read.
    read_environ: Callable[[str], Mapping[str, str]] = lambda _reference: os.environ
    # A service works on the run: the run starts only when the queue lets it, and is taken only as it was seen.
    from_queue: bool = False
    cache: str = ""  # where reviewers get their copies of the work

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


def select_agreed_variables(settings: EngineSettings, spec: Spec) -> dict[str, str]:
    """Select the variables that a person lets the run's agents see; probes need the same credentials."""
    agreed: dict[str, str] = {}
    for agent, options in spec.agent_options.items():
        with suppress(AgentUnavailable):  # its turn reports why
            agreed |= select_variables(settings.read_environ(agent), options.passes) if options.passes else {}
    return agreed


def select_inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that every child process gets: an allow-list, so that no credential leaks by accident."""
    return {name: value for name, value in environ.items() if name in _INHERITED or name.startswith("LC_")}


def select_host_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that git and gh need to act for the person."""
    return select_variables(environ, _OF_PERSON)
