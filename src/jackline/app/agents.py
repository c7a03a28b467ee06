"""The agents of this home: their adapters, where their programs are, which are usable, which are paused.

It never sends a prompt: a program is only asked for its version.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.accounts import AUTO, list_accounts, require_account
from jackline.app.environment import read_agent_environ
from jackline.domain.agent_ref import join_agent, split_agent
from jackline.domain.states import Failure
from jackline.errors import AgentUnavailable, NotLoggedIn, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.agents.toml_agents import TomlAgent
    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.domain.adapter import Adapter, Declaration
    from jackline.domain.agent_health import AgentHealth

_CONNECT_TIMEOUT_S = 0.3
_PATH_PARTS = 5  # of a program may contain its name: node_modules/@google/gemini-cli/bundle/gemini.js


class AgentProgram(NamedTuple):
    """An agent's program on this machine; `why` is the problem, and empty if it is usable."""

    name: str
    binary: str = ""
    version: str = ""
    why: str = ""
    login: str = ""  # that it is not logged in, and how to log in; a run is not refused for it


def load_adapter(config: Config, name: str) -> Adapter:
    """Load the adapter of that name."""
    from jackline.agents import registry

    return registry.load_adapter(name, load_toml_agents(config))


def list_agents(config: Config) -> tuple[str, ...]:
    """List every agent, sorted."""
    from jackline.agents import registry

    return registry.list_agents(load_toml_agents(config))


def list_references(config: Config) -> tuple[str, ...]:
    """List every agent, sorted, each followed by its accounts; those of an unknown agent come last."""
    known = list_agents(config)
    found = [one for name in known for one in (name, *list_accounts(config, name))]
    return (*found, *(one for name in config.accounts if name not in known for one in list_accounts(config, name)))


def load_declaration(config: Config, name: str) -> tuple[Declaration, str]:
    """Load an agent's declaration, and its adapter's error if there is one: it must not hide the other agents."""
    try:
        return load_adapter(config, name).declaration, ""
    except (AgentUnavailable, UsageError) as error:
        from jackline.domain.adapter import Declaration

        unknown = "its adapter cannot be loaded"
        return Declaration(
            name=name, binary="", gate="advisory", gate_reason=unknown, chooses_session=False, resumes=False
        ), str(error)


def load_toml_agents(config: Config) -> dict[str, TomlAgent]:
    """The agents that the config defines."""
    if not config.agents:
        return {}
    from jackline.agents.toml_agents import parse_tables

    return parse_tables(config.agents)


def list_pauses(home: Home) -> dict[str, AgentHealth]:
    """The agents that are paused now, each with the reason and the end."""
    at = clock.wall_ms()
    return {} if home.is_new else {one.agent: one for one in home.store().records.list_health() if one.until > at}


def list_pause_ends(home: Home) -> dict[str, int]:
    """The ends of the pauses, by agent."""
    return {name: one.until for name, one in list_pauses(home).items()}


def require_program(home_path: str, config: Config, adapter: Adapter, environ: Mapping[str, str]) -> str:
    """The program to start; AgentUnavailable if there is no usable one, or if its gate does not hold."""
    from jackline.engine.gate_socket import find_hooks

    found = find_program(home_path, config, adapter, environ)
    if found.why:
        raise AgentUnavailable(found.name, why=found.why)
    if find_hooks(adapter) is not None:  # without hooks there is no gate to prove, and no module to load for it
        from jackline.app import canary

        canary.check_gate(home_path, adapter, found)
    return found.binary


def require_login(declaration: Declaration, binary: str, environ: Mapping[str, str], workspace: str = "") -> None:
    """NotLoggedIn if the agent has no credentials; an unknown state counts as logged in."""
    if declaration.login is not None:
        from jackline.app.agent_logins import find_login_problem

        if problem := find_login_problem(declaration, binary, environ, workspace):
            raise NotLoggedIn(declaration.name, why=problem)


def locate_program(config: Config, declaration: Declaration, environ: Mapping[str, str] | None = None) -> AgentProgram:
    """Find the program of an agent, its version, and whether it and its server are usable.

    A turn does not check its server this way: the turn itself waits longer, and is retried.
    """
    adapter = load_adapter(config, declaration.name)
    if environ is None:
        try:
            environ = read_agent_environ(config, declaration)
        except AgentUnavailable as error:  # its program may be there anyway
            found = find_program(config.get_text("home"), config, adapter, os.environ)
            return found if found.why else found._replace(why=str(error.facts["why"]))
    found = find_program(config.get_text("home"), config, adapter, environ)
    problem = "" if found.why else _check_server(adapter, environ)
    if problem or found.why or declaration.login is None:
        return AgentProgram(declaration.name, why=problem) if problem else found
    from jackline.app.agent_logins import find_login_problem

    return found._replace(login=find_login_problem(declaration, found.binary, environ))


def find_program(home_path: str, config: Config, adapter: Adapter, environ: Mapping[str, str]) -> AgentProgram:
    """Find the program of an adapter, and check its version."""
    declaration = adapter.declaration
    path = find_binary(config, adapter, environ)
    if path is None:
        why = f"'{declaration.binary}' is not on the PATH{_install_hint(declaration)}"
        if named := config.binaries.get(declaration.agent):
            where = config.sources.get(f"agents.{declaration.agent}.binary", "the settings")
            why = f"{named} (from {where}) is not an executable program"
        return AgentProgram(declaration.name, why=why)
    if not declaration.version_arguments:
        return AgentProgram(name=declaration.name, binary=path)
    from jackline.app.agent_versions import find_version, is_at_least

    answer = find_version(home_path, path, declaration.version_arguments, environ)
    if answer.why:
        return AgentProgram(name=declaration.name, binary=path, why=answer.why)
    if not is_at_least(answer.version, declaration.minimum):
        minimum = ".".join(map(str, declaration.minimum))
        why = f"{path} is {answer.version}, needs {minimum} or newer{_install_hint(declaration)}"
        return AgentProgram(name=declaration.name, binary=path, version=answer.version, why=why)
    return AgentProgram(name=declaration.name, binary=path, version=answer.version)


def find_binary(config: Config, adapter: Adapter, environ: Mapping[str, str]) -> str | None:
    """The path of its program, if there is one; starts nothing."""
    declaration = adapter.declaration
    path = find_executable(config.binaries.get(declaration.agent, "") or declaration.binary, environ)
    return path if path is None or not declaration.version_arguments else _resolve_program(adapter, path)


def _check_server(adapter: Adapter, environ: Mapping[str, str]) -> str:
    """The problem of an agent whose server accepts no connection; most agents need no server."""
    address = getattr(adapter, "address", None)
    if address is None:
        return ""
    from socket import create_connection

    try:
        host, port = address(environ)
    except UsageError as error:
        return str(error)
    try:
        create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except (OSError, UnicodeError):  # UnicodeError: an invalid host name
        serves = getattr(adapter, "serves", "")
        return f"there is no answer at {host}:{port}" + (f": start it with `{serves}`" if serves else "")
    return ""


def find_executable(name: str, environ: Mapping[str, str]) -> str | None:
    """Find the executable of that name: on the PATH, or at that path."""
    name = os.path.expanduser(name)
    if os.sep in name:
        return os.path.abspath(name) if is_executable(name) else None
    folders = (environ.get("PATH") or os.defpath).split(os.pathsep)
    # An empty entry means the current folder, which is the workspace: an agent may have put any file there.
    candidates = (os.path.join(folder, name) for folder in folders if os.path.isabs(folder))
    return next((path for path in candidates if is_executable(path)), None)


def is_executable(path: str) -> bool:
    """Whether this user may execute the file."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _resolve_program(adapter: Adapter, path: str) -> str:
    """The program itself, without a launcher in between if the adapter knows the path behind it.

    A link to a version manager (volta, mise, asdf) stays: such a program depends on the name that it is called by.
    """
    real = os.path.realpath(path)
    parts = real.split(os.sep)[-_PATH_PARTS:]
    if os.path.basename(path) != os.path.basename(real) and not any(
        adapter.declaration.agent in part for part in parts
    ):
        return path
    native_path = getattr(adapter, "native_path", None)  # most adapters have none
    candidates = () if native_path is None else tuple(native_path(real))
    return next((one for one in candidates if is_executable(one)), real)


def _install_hint(declaration: Declaration) -> str:
    return f": install it with `{declaration.install}`" if declaration.install else ""


def choose_agents(home: Home, config: Config, agent: str, fallback: tuple[str, ...]) -> tuple[str, ...]:
    """The agents to try, in order and without duplicates: `config` is the home's, with the settings of the run."""
    if not agent:
        raise UsageError(f"no agent given; use --agent NAME ({', '.join(list_agents(home.config))}, or {AUTO})")
    if agent == AUTO and config.sources["account"].startswith("--") and config.get_text("account") != AUTO:
        raise UsageError("--account needs the agent whose account it is: name it with --agent")
    wanted = _rank_usable(home) if agent == AUTO else (agent,)
    accounted = (name_account(config, name) for name in wanted)
    chosen = (one for name in (*accounted, *fallback) for one in expand_account(home, name))
    return tuple(dict.fromkeys(chosen))


def name_account(config: Config, name: str) -> str:
    """The agent with the account that the setting `account` names; an account that is named with it stays.

    The setting is ignored by an agent for which no account is defined; a flag is not.
    """
    account, (agent, named) = config.get_text("account"), split_agent(name)
    is_flag = config.sources["account"].startswith("--")
    if is_flag and named and named != account:
        raise UsageError(f"--agent {name} and --account {account} name two accounts: leave one out")
    if not account or named:
        return name
    return join_agent(agent, account) if is_flag or config.accounts.get(agent) else name


def expand_account(home: Home, reference: str) -> tuple[str, ...]:
    """The agent itself; for `NAME@auto` its accounts, the best first. UsageError if there is no such agent or account.

    Without a reset time nothing is known about what is left of an account: the one that rests, or that reached a limit
    last, comes last.
    """
    config, (name, account) = home.config, split_agent(reference)
    load_adapter(config, reference)  # UsageError if it cannot be one
    if not account:
        return (name,)
    if account != AUTO:
        require_account(config, reference)
        return (reference,)
    known = list_accounts(config, name)
    if not known:
        raise UsageError(f"{name} has no accounts to choose from: add [accounts.{name}.NAME] to your config.toml")
    programs = {one: locate_program(config, load_adapter(config, one).declaration) for one in (*known, name)}
    # The agent without an account belongs to the choice only if it can work as it is.
    ready = [one for one in (*known, name) if one != name or not (programs[one].why or programs[one].login)]
    health = {} if home.is_new else home.store().records.get_health()
    at = clock.wall_ms()

    def rank(one: str) -> tuple[bool, int, int]:
        last = health.get(one)
        limited = last is not None and last.failure == Failure.LIMIT
        resting = last.until if last is not None and last.until > at else 0
        return bool(programs[one].why or programs[one].login), resting, last.at if last is not None and limited else 0

    return tuple(sorted(ready, key=rank))


def split_names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _rank_usable(home: Home) -> tuple[str, ...]:
    """The usable agents of the configured ranking; paused ones come later, those that are not logged in last."""
    ranking = split_names(home.config.get_text("auto"))
    programs = [locate_program(home.config, load_adapter(home.config, name).declaration) for name in ranking]
    ready = [one for one in programs if not one.why]
    if not ready:
        raise AgentUnavailable(AUTO, why=f"none of {', '.join(ranking)} is ready; `jackline agents` shows why")
    paused = list_pause_ends(home)
    return tuple(one.name for one in sorted(ready, key=lambda one: (bool(one.login), one.name in paused)))
