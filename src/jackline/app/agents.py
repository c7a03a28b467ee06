"""The agents of this place: their adapters, where their programs are, which can be used, which are resting.

It never sends a prompt: a program is only asked for its version.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.errors import AgentUnavailable, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.agents.toml_agents import TomlAgent
    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.domain.adapter import Adapter, Declaration
    from jackline.domain.health import Health

_KNOCK_S = 0.3
_NEAR = 5  # how many folders above a program may still name it: node_modules/@google/gemini-cli/bundle/gemini.js


class Found(NamedTuple):
    """An agent's program as it is here; `why` says what is in the way, and is empty if it can be used."""

    name: str
    binary: str = ""
    version: str = ""
    why: str = ""


def load(config: Config, name: str) -> Adapter:
    """The adapter of that name."""
    from jackline.agents import registry

    return registry.load(name, described(config))


def names(config: Config) -> tuple[str, ...]:
    """Every agent that can be asked for here, in order."""
    from jackline.agents import registry

    return registry.names(described(config))


def declared(config: Config, name: str) -> tuple[Declaration, str]:
    """What is declared of an agent, and what is wrong with its adapter: a broken one must not hide the others."""
    try:
        return load(config, name).declaration, ""
    except (AgentUnavailable, UsageError) as error:
        from jackline.domain.adapter import Declaration

        unknown = "its adapter cannot be loaded"
        return Declaration(name, "", "advisory", unknown, chooses_session=False, resumes=False), str(error)


def described(config: Config) -> dict[str, TomlAgent]:
    """The agents that the settings describe."""
    if not config.agents:
        return {}
    from jackline.agents.toml_agents import parse_tables

    return parse_tables(config.agents)


def rests(home: Home) -> dict[str, Health]:
    """The agents that are better left alone now, each with the reason and the time until when."""
    at = clock.wall_ms()
    return {} if home.is_new else {one.agent: one for one in home.store().health() if one.until > at}


def resting(home: Home) -> dict[str, int]:
    """The same with the time alone."""
    return {name: one.until for name, one in rests(home).items()}


def usable(home_path: str, config: Config, adapter: Adapter) -> str:
    """The program to start; AgentUnavailable says what to do if there is none that can be used, or be held."""
    from jackline.engine.doors import hooks_of

    found = find(home_path, config, adapter, os.environ)
    if found.why:
        raise AgentUnavailable(found.name, why=found.why)
    if hooks_of(adapter) is not None:  # without hooks there is nothing to prove, and nothing to load for it
        from jackline.app import canary

        canary.check(home_path, adapter, found)
    return found.binary


def locate(config: Config, declaration: Declaration, environ: Mapping[str, str] | None = None) -> Found:
    """Where the program of a known agent is, its version, and whether it and the server it needs can be used.

    Whoever starts a turn does not ask the server this way: the turn itself has more patience, and is tried again.
    """
    adapter = load(config, declaration.name)
    environ = os.environ if environ is None else environ
    found = find(config.text("home"), config, adapter, environ)
    silent = "" if found.why else _silent(adapter, environ)
    return Found(declaration.name, why=silent) if silent else found


def find(home_path: str, config: Config, adapter: Adapter, environ: Mapping[str, str]) -> Found:
    """The same for an adapter."""
    declaration = adapter.declaration
    path = program(config, adapter, environ)
    if path is None:
        return Found(declaration.name, why=_missing(config, declaration))
    if not declaration.version_arguments:
        return Found(declaration.name, path)
    return _judged(home_path, declaration, path, environ)


def program(config: Config, adapter: Adapter, environ: Mapping[str, str]) -> str | None:
    """Where its program is, if it is anywhere; nothing is started to find out."""
    declaration = adapter.declaration
    path = which(config.binaries.get(declaration.name, "") or declaration.binary, environ)
    return path if path is None or not declaration.version_arguments else _real(adapter, path)


def _judged(home_path: str, declaration: Declaration, path: str, environ: Mapping[str, str]) -> Found:
    from jackline.app.versions import is_at_least, version_of

    answer = version_of(home_path, path, declaration.version_arguments, environ)
    if answer.why:
        return Found(declaration.name, path, why=answer.why)
    if not is_at_least(answer.version, declaration.minimum):
        least = ".".join(map(str, declaration.minimum))
        why = f"{path} is {answer.version}, needs {least} or newer{_advice(declaration)}"
        return Found(declaration.name, path, answer.version, why)
    return Found(declaration.name, path, answer.version)


def _silent(adapter: Adapter, environ: Mapping[str, str]) -> str:
    """What is in the way of an agent that needs a server, if that does not take a connection; most need none."""
    address = getattr(adapter, "address", None)
    if address is None:
        return ""
    from socket import create_connection

    try:
        host, port = address(environ)
    except UsageError as error:
        return str(error)
    try:
        create_connection((host, port), timeout=_KNOCK_S).close()
    except (OSError, UnicodeError):  # the second is what looking up a strange name raises
        serves = getattr(adapter, "serves", "")
        return f"nothing answers at {host}:{port}" + (f": start it with `{serves}`" if serves else "")
    return ""


def which(name: str, environ: Mapping[str, str]) -> str | None:
    """The executable file of that name: on the PATH, or where it says."""
    name = os.path.expanduser(name)
    if os.sep in name:
        return os.path.abspath(name) if is_program(name) else None
    folders = (environ.get("PATH") or os.defpath).split(os.pathsep)
    # An empty entry means the current folder: that is the workspace, where an agent may have put anything.
    candidates = (os.path.join(folder, name) for folder in folders if os.path.isabs(folder))
    return next((path for path in candidates if is_program(path)), None)


def is_program(path: str) -> bool:
    """Whether it is a file that this user may execute."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _real(adapter: Adapter, path: str) -> str:
    """The program itself, with no launcher in between where the adapter knows the way past it.

    A link to a manager of versions (volta, mise, asdf) is left alone: that program goes by the name it is called with.
    """
    real = os.path.realpath(path)
    near = real.split(os.sep)[-_NEAR:]
    if os.path.basename(path) != os.path.basename(real) and not any(adapter.declaration.name in one for one in near):
        return path
    return next((one for one in _native_paths(adapter, real) if is_program(one)), real)


def _native_paths(adapter: Adapter, real: str) -> tuple[str, ...]:
    """What the adapter says may lie behind a launcher; most have none."""
    native_path = getattr(adapter, "native_path", None)
    return () if native_path is None else tuple(native_path(real))


def _missing(config: Config, declaration: Declaration) -> str:
    if named := config.binaries.get(declaration.name):
        where = config.sources.get(f"agents.{declaration.name}.binary", "the settings")
        return f"{named} (from {where}) is not a program that can be executed"
    return f"'{declaration.binary}' is not on the PATH{_advice(declaration)}"


def _advice(declaration: Declaration) -> str:
    return f": install it with `{declaration.install}`" if declaration.install else ""
