"""Accounts of agents: named sets of variables in the user's own settings. `[accounts.AGENT.NAME]` defines one.

Settings hold no secrets: a key is named by the variable or the private file that has it, or comes from an env_file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app.env_file import read_env_file, read_secret_file, refuse_variables
from jackline.domain import ids
from jackline.domain.agent_ref import is_account, join_agent, split_agent
from jackline.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.config import Config
    from jackline.domain.adapter import Declaration

AUTO = "auto"  # chooses an agent, or an account, when a run starts
ENV_FILE = "env_file"
_SOURCES = ("env", "file")
_FOLDERS = ("_DIR", "_HOME")  # the ends of variables that name a folder

Accounts = dict[str, dict[str, dict[str, Any]]]  # by agent and name


def check_accounts(tables: object, path: str) -> Accounts:
    """Check the tables below `[accounts]` in the user's file; which variables an agent knows is checked on use."""
    wanted = "write [accounts.AGENT.NAME], and below it one line for each variable"
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: accounts must be tables: {wanted}")
    checked: Accounts = {}
    for agent, accounts in tables.items():
        if not isinstance(accounts, dict) or not ids.is_chosen(agent):
            raise ConfigError(f"{path}: accounts.{agent} must be a table of accounts: {wanted}")
        for name, table in accounts.items():
            where = f"{path}: [accounts.{agent}.{name}]"
            if not isinstance(table, dict):
                raise ConfigError(f"{path}: accounts.{agent}.{name} must be a table: {wanted}")
            if not is_account(name) or name == AUTO:
                raise ConfigError(
                    f"{where}: use another name: lower-case letters, digits, '.', '_' and '-', not {AUTO}"
                )
            values = {variable: _check_value(variable, value, where, path) for variable, value in table.items()}
            checked.setdefault(agent, {})[name] = values
    return checked


def _check_value(variable: str, value: object, where: str, path: str) -> object:
    """Check one line of an account. A secret is never repeated, and never accepted."""
    if variable == ENV_FILE:
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{where} {ENV_FILE} must be the path of a file")
        return resolve_path(value, path)
    refuse_variables((variable,), where)
    if isinstance(value, dict):
        (source, named), *others = [*value.items()] or [("", "")]
        if others or source not in _SOURCES or not isinstance(named, str) or not named.strip():
            raise ConfigError(f'{where} {variable} must be text, {{ env = "NAME" }} or {{ file = "PATH" }}')
        return {source: resolve_path(named, path) if source == "file" else named}
    if not isinstance(value, str):
        raise ConfigError(f'{where} {variable} must be text, {{ env = "NAME" }} or {{ file = "PATH" }}')
    if _is_secret(variable, value):
        raise ConfigError(
            f"{where} {variable} is a secret, which does not belong in this file: write "
            f'{{ env = "NAME" }} or {{ file = "PATH" }} (chmod 600), or put it into an {ENV_FILE}'
        )
    if variable.endswith(_FOLDERS):
        return resolve_path(value, path)
    return value


def _is_secret(variable: str, value: str) -> bool:
    from jackline.secrets.redactor import Redactor, is_secret_variable

    return bool(value) and (is_secret_variable(variable) or Redactor().has_secret(f"{variable}={value}"))


def resolve_path(text: str, path: str) -> str:
    """The absolute path that a settings file means: `~` is the user's home, and others start at the file's folder."""
    return os.path.abspath(os.path.join(os.path.dirname(path), os.path.expanduser(text)))


def list_accounts(config: Config, agent: str) -> tuple[str, ...]:
    """The references of an agent's accounts, in the order of the settings; the plain agent is not one of them."""
    return tuple(join_agent(agent, name) for name in config.accounts.get(agent, {}))


def require_account(config: Config, reference: str) -> Mapping[str, Any]:
    """The lines of an account; UsageError if there is no such account."""
    name, account = split_agent(reference)
    known = config.accounts.get(name, {})
    if account not in known:
        names = ", ".join(join_agent(name, one) for one in known) or "none"
        raise UsageError(
            f"{name} has no account '{account}' (known: {names}): add [accounts.{name}.{account}] to your config.toml"
        )
    return known[account]


def read_account(config: Config, declaration: Declaration, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of an account: its own variables instead of all that decide as whom the agent works.

    ConfigError if one of them cannot be read, or is unknown to the agent.
    """
    reference = declaration.name
    lines, where = require_account(config, reference), f"[accounts.{reference.replace('@', '.', 1)}]"
    found = {name: value for name, value in environ.items() if name not in declaration.account_variables}
    if ENV_FILE in lines:
        found |= read_env_file(str(lines[ENV_FILE]), f"{where} {ENV_FILE}")
    for variable, value in lines.items():
        if variable == ENV_FILE:
            continue
        if not _is_known(declaration, variable):
            known = ", ".join(declaration.account_variables)
            raise ConfigError(
                f"{where} {variable} is not a variable of {declaration.agent}: use {known}, or {ENV_FILE}"
            )
        # Right after the name and a colon, the path of its file would be redacted as the value of a key.
        found[variable] = _read_value(value, environ, f"{variable} in {where}")
    return found


def _is_known(declaration: Declaration, variable: str) -> bool:
    return any(
        variable.startswith(one[:-1]) if one.endswith("*") else variable == one
        for one in (*declaration.account_variables, *declaration.passes)
    )


def _read_value(value: object, environ: Mapping[str, str], where: str) -> str:
    if not isinstance(value, dict):
        return str(value)
    if "file" in value:
        return read_secret_file(str(value["file"]), where)
    name = str(value["env"])
    if not environ.get(name):
        raise ConfigError(f"{where}: the variable {name} is not set where the run is executed")
    return environ[name]


def format_login(declaration: Declaration, environ: Mapping[str, str]) -> str:
    """How a person logs in with this account: the agent's own way, with the account's settings folder before it."""
    login = declaration.login
    if login is None:
        return ""
    if not split_agent(declaration.name).account or not environ.get(login.home_variable):
        return login.command
    from shlex import quote

    setting = f"{login.home_variable}={quote(environ[login.home_variable])}"
    return login.command.replace("`", f"`{setting} ", 1)
