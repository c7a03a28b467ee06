"""Finds out whether an agent's CLI is logged in, without a network and without reading a credential.

A variable or a file that holds credentials is enough; its content is never read. Without one, the CLI's own status
command is asked, if it has one.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.app.accounts import format_login
from jackline.errors import JacklineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import Declaration, LoginFacts

_TIMEOUT_S = 10.0
_OWN_PROVIDER = re.compile(rb"^\s*model_provider\s*=", re.MULTILINE)
_MOST_BYTES = 1 << 20


def find_login_problem(declaration: Declaration, binary: str, environ: Mapping[str, str], workspace: str = "") -> str:
    """Why the CLI cannot reach its model, with the command that logs in; empty if it can, or if that is unknown.

    With a workspace, files of its project may have the credentials, too.
    """
    login = declaration.login
    if login is None or _has_evidence(login, environ) or (workspace and _has_project_credentials(login, workspace)):
        return ""
    if _reports_login(declaration, login, binary, environ):
        return ""
    return f"not logged in: {format_login(declaration, environ)}"


def _has_evidence(login: LoginFacts, environ: Mapping[str, str]) -> bool:
    if any(environ.get(name) for name in login.variables):
        return True
    named = environ.get(login.home_variable)
    folder = os.path.join(named, login.below) if named else os.path.join(paths.find_user_home(environ), login.folder)
    if any(os.path.exists(os.path.join(folder, name)) for name in login.files):
        return True
    if not login.config:
        return False
    # The settings may name another provider, which needs no login.
    return _OWN_PROVIDER.search(_read_start(os.path.join(folder, login.config))) is not None


def _has_project_credentials(login: LoginFacts, workspace: str) -> bool:
    """Whether a file of the project, or of a folder above it, may have credentials or name where they are."""
    words = [word.encode() for word in (*login.variables, *login.project_words)]
    folder = os.path.realpath(workspace)
    while True:
        for name in login.project_files:
            text = _read_start(os.path.join(folder, name))
            if any(word in text for word in words):
                return True
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)


def _read_start(path: str) -> bytes:
    """The start of a settings file; empty if there is none. A pipe is not waited for."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return file.read(_MOST_BYTES) or b""
    except OSError:
        return b""


def _reports_login(declaration: Declaration, login: LoginFacts, binary: str, environ: Mapping[str, str]) -> bool:
    """Ask the CLI. One that cannot be asked, or does not answer in time, is not called logged out."""
    if not login.status_arguments:
        return False
    from jackline.engine.command_runner import run_command
    from jackline.engine.settings import select_inherited_variables, select_variables

    env = {**select_inherited_variables(environ), **select_variables(environ, declaration.list_visible(environ))}
    try:
        ended = run_command([binary, *login.status_arguments], cwd="/", env=env, timeout_s=_TIMEOUT_S)
    except JacklineError:
        return True
    return ended.timed_out or ended.exit_code != 1
