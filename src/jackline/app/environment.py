"""The environment of a run, resolved where it is executed: the part that agents get, and the secrets in it.

It is that of this process, then the home's `env_file`, then the agent's, then the variables of the account. The values
of files are known to every redactor of the process before anything is written.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from jackline.app.accounts import ENV_FILE, read_account
from jackline.app.config import USER_FILE
from jackline.app.env_file import read_env_file, read_secret_file
from jackline.domain.agent_ref import split_agent
from jackline.errors import AgentUnavailable, ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jackline.app.config import Config
    from jackline.domain.adapter import Declaration
    from jackline.secrets.redactor import Redactor

_learned: dict[str, None] = {}  # values of files that this process has read; they are never forgotten
_redactors: WeakSet[Redactor] = WeakSet()


def read_home_environ(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What checks and probes get a part of; ConfigError if the home's env_file cannot be used."""
    found = dict(os.environ if environ is None else environ)
    if path := config.get_text(ENV_FILE):
        source = config.sources[ENV_FILE]
        found |= _read_file(path, f"{source}: {ENV_FILE}" if source.endswith(f"/{USER_FILE}") else source)
    return found


def read_agent_environ(
    config: Config, declaration: Declaration, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What the agent gets a part of; AgentUnavailable if it cannot be read. Its secrets are learned."""
    try:
        found = read_home_environ(config, environ)
        if path := config.agents.get(declaration.agent, {}).get(ENV_FILE):
            found |= _read_file(str(path), f"[agents.{declaration.agent}] {ENV_FILE}")
        if not split_agent(declaration.name).account:
            return found
        account = read_account(config, declaration, found)
    except UsageError as error:
        raise AgentUnavailable(declaration.name, why=error) from None
    lines = config.accounts[declaration.agent][split_agent(declaration.name).account]
    named = (account[variable] for variable, value in lines.items() if isinstance(value, dict))
    learn_secrets((*named, *_find_file_secrets({name: account[name] for name in account if name not in found})))
    return account


def _read_file(path: str, what: str) -> dict[str, str]:
    found = read_env_file(path, what)
    learn_secrets(_find_file_secrets(found))
    return found


def list_env_files(config: Config) -> tuple[str, ...]:
    """The files with variables that the user's settings file names: changes are watched as its own are.

    One that only a flag or a variable names is not: another process of the home need not know it.
    """
    is_named = config.sources[ENV_FILE].endswith(f"/{USER_FILE}")
    files = (path for where, path, _ in _list_named_files(config) if where != ENV_FILE or is_named)
    return tuple(dict.fromkeys(files))


def _list_named_files(config: Config) -> Iterator[tuple[str, str, bool]]:
    """Each file with the setting that names it, and whether it has one value instead of lines."""
    if path := config.get_text(ENV_FILE):
        yield ENV_FILE, path, False
    for agent, table in config.agents.items():
        if path := str(table.get(ENV_FILE, "")):
            yield f"[agents.{agent}] {ENV_FILE}", path, False
    for agent, accounts in config.accounts.items():
        for name, lines in accounts.items():
            for variable, value in lines.items():
                where = f"[accounts.{agent}.{name}] {variable}"
                if variable == ENV_FILE:
                    yield where, str(value), False
                elif isinstance(value, dict) and "file" in value:
                    yield where, str(value["file"]), True
    yield from _list_channel_files(config)


def _list_channel_files(config: Config) -> Iterator[tuple[str, str, bool]]:
    for channel, table in config.channels.items():
        for key, value in table.items():
            if isinstance(value, dict) and "file" in value:
                yield f"[channels.{channel}] {key}", os.path.expanduser(str(value["file"])), True


# what is secret


def make_redactor(config: Config | None = None) -> Redactor:
    """A redactor that knows the secrets of this process, of the files that the settings name, and those learned later.

    A file that cannot be read is left out: then no agent of this process gets its values either.
    """
    from jackline.secrets.redactor import Redactor, find_secret_values

    for where, path, is_value in () if config is None else _list_named_files(config):
        with suppress(ConfigError):
            found = [read_secret_file(path, where)] if is_value else _find_file_secrets(read_env_file(path, where))
            learn_secrets(found)
    learn_secrets(() if config is None else _find_channel_secrets(config))
    if config is not None and config.get_text("ping"):
        learn_secrets(list_ping_secrets(config.get_text("ping")))
    redactor = Redactor((*find_secret_values(os.environ), *_learned))
    _redactors.add(redactor)
    return redactor


def list_ping_secrets(url: str) -> list[str]:
    """The secret parts of an address that is pinged: anyone who knows them can report for the run."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return [part for part in (*parts.path.split("/"), parts.query) if part]


def learn_secrets(values: Iterable[str]) -> None:
    """Let every redactor of this process know more values, from now on."""
    from jackline.secrets.redactor import is_searchable

    new = [value for value in values if value not in _learned and is_searchable(value)]
    _learned.update(dict.fromkeys(new))
    if new:
        for redactor in tuple(_redactors):
            redactor.learn(new)


def list_learned() -> tuple[str, ...]:
    """The values that this process has learned."""
    return tuple(_learned)


def _find_channel_secrets(config: Config) -> Iterator[str]:
    """Topics, paths of addresses, and variables that tables of channels name.

    Who knows a topic reads notices, and may answer them; who knows the address of a webhook may write there.
    """
    from jackline.secrets.redactor import is_key_like

    for table in config.channels.values():
        for key, value in table.items():
            if key.endswith("topic") and isinstance(value, str) and is_key_like(value):
                yield value
            elif key == "url" and isinstance(value, str):
                with suppress(ValueError):  # not an address: the channel is not used
                    yield from (part for part in list_ping_secrets(value) if is_key_like(part))
            elif isinstance(value, dict) and "env" in value:
                yield os.environ.get(str(value["env"]), "")


def _find_file_secrets(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets of a file: by the name of the variable, as in any environment, and by the form of the value.

    Plain words, paths and addresses without a key are not secrets: without them no log could be read.
    """
    from jackline.secrets.redactor import find_secret_values, is_key_like, is_searchable

    values = list(variables.values())
    for name, value in variables.items():
        if name.endswith("_HEADERS"):  # `Name: value`, one per line
            values += [line.partition(":")[2].strip() for line in value.splitlines()]
    found = (value for value in values if is_key_like(value) or (is_searchable(value) and _has_secret_form(value)))
    return (*find_secret_values(variables), *found)


def _has_secret_form(value: str) -> bool:
    """Whether a value is a text of several words, such as a passphrase, or an address with a key in its path."""
    from urllib.parse import urlsplit

    if len(value.split()) > 1:
        return True
    path = value.partition("://")[2].partition("/")[2]
    return bool(urlsplit(value).query) or any(one.isdigit() for one in path)
