"""Detects environment variables before a command that change which code it runs. Pure; checks names only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.shell import Command

_STEERING = (
    "PATH=", "LD_", "DYLD_", "GIT_", "BASH_ENV=", "ENV=", "PAGER=", "EDITOR=", "VISUAL=", "PYTHONSTARTUP=",
    "NODE_OPTIONS=", "PERL5", "RUBYOPT=", "LESS", "MANPAGER=", "MANOPT=", "RIPGREP_CONFIG_PATH=", "SHELL=",
    "SHELLOPTS=", "BASHOPTS=", "BROWSER=", "SSH_ASKPASS=", "KUBECTL_EXTERNAL_DIFF=", "DOCKER_HOST=",
    "DOCKER_CONTEXT=", "DOCKER_CONFIG=", "TAR_OPTIONS=", "RSYNC_", "CURL_HOME=", "WGETRC=", "AWKPATH=",
    "AWKLIBPATH=", "BAT_", "ACK_", "ACKRC=", "ZIPOPT=", "UNZIP=", "GCONV_PATH=", "TF_CLI_ARGS",
)  # fmt: skip
_HARMLESS = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TRACE", "GIT_TERMINAL_PROMPT=", "GIT_MERGE_AUTOEDIT=")
_HARMLESS_WHOLE = frozenset(
    f"{name}={value}" for name in ("GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "GIT_SEQUENCE_EDITOR")
    for value in ("", "cat", "true", ":")
)  # fmt: skip
# The user's configuration folders: these programs read there what to run.
_HOMES = ("HOME=", "XDG_CONFIG_HOME=")
_CONFIGURED = frozenset(
    {"git", "curl", "wget", "bat", "ack", "ag", "kubectl", "docker", "helm", "gh", "sqlite3", "psql"}
)


def is_steered(command: Command, program: str) -> bool:
    """Check whether a variable of the command, or of its shell, may make it run other code."""
    for text, _ in command.assignments:
        name, _, value = text.partition("=")
        whole = f"{name.removesuffix('+')}={value}"
        if whole.startswith(_HOMES) and program in _CONFIGURED:
            return True
        if whole.startswith(_STEERING) and whole not in _HARMLESS_WHOLE and not whole.startswith(_HARMLESS):
            return True
    return False
