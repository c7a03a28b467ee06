"""Variables in front of a command with which a program does what somebody else says. Pure; by their names alone."""

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
# Where the settings of a person lie: these programs find there what to run.
_HOMES = ("HOME=", "XDG_CONFIG_HOME=")
_CONFIGURED = frozenset(
    {"git", "curl", "wget", "bat", "ack", "ag", "kubectl", "docker", "helm", "gh", "sqlite3", "psql"}
)


def is_steered(command: Command, program: str) -> bool:
    """Whether one of its variables, or of the shell before it, may make it another program."""
    return any(_steers(text, program) for text, _ in command.assignments)


def _steers(text: str, program: str) -> bool:
    name, _, value = text.partition("=")
    whole = f"{name.removesuffix('+')}={value}"
    if whole.startswith(_HOMES):
        return program in _CONFIGURED
    return whole.startswith(_STEERING) and whole not in _HARMLESS_WHOLE and not whole.startswith(_HARMLESS)
