"""Finds out whether an agent's CLI is logged in, without a network and without reading a credential.

A variable or a file that holds credentials is enough; its content is never read. Without one, the CLI's own status
command is asked, if it has one.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.errors import JacklineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import Declaration, LoginFacts

_TIMEOUT_S = 10.0
_OWN_PROVIDER = re.compile(rb"^\s*model_provider\s*=", re.MULTILINE)
_MOST_BYTES = 1 << 20


def find_login_problem(declaration: Declaration, binary: str, environ: Mapping[str, str]) -> str:
    """Why the CLI cannot reach its model, with the command that logs in; empty if it can, or if nobody can tell."""
    login = declaration.login
    if login is None or _has_evidence(login, environ) or _reports_login(declaration, login, binary, environ):
        return ""
    return f"not logged in: {login.command}"


def _has_evidence(login: LoginFacts, environ: Mapping[str, str]) -> bool:
    if any(environ.get(name) for name in login.variables):
        return True
    folder = environ.get(login.home_variable) or os.path.join(paths.find_user_home(environ), login.folder)
    if any(os.path.exists(os.path.join(folder, name)) for name in login.files):
        return True
    return bool(login.config) and _names_provider(os.path.join(folder, login.config))


def _names_provider(path: str) -> bool:
    """Whether the settings name a provider of their own, which needs no log-in."""
    try:
        with open(path, "rb") as file:
            return _OWN_PROVIDER.search(file.read(_MOST_BYTES)) is not None
    except OSError:
        return False


def _reports_login(declaration: Declaration, login: LoginFacts, binary: str, environ: Mapping[str, str]) -> bool:
    """Ask the CLI. One that cannot be asked, or does not answer in time, is not called logged out."""
    if not login.status_arguments:
        return False
    from jackline.engine.command_runner import run_command
    from jackline.engine.settings import select_inherited_variables

    visible = {name: environ[name] for name in declaration.list_visible(environ) if name in environ}
    env = {**select_inherited_variables(environ), **visible}
    try:
        ended = run_command([binary, *login.status_arguments], cwd="/", env=env, timeout_s=_TIMEOUT_S)
    except JacklineError:
        return True
    return ended.timed_out or ended.exit_code != 1
