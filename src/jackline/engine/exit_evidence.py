"""Finds the exit codes that prove that an effect could not happen: its program cannot be started, or curl sent nothing.

Output proves nothing: a program can print anything. The host is looked at before the call, because the call can change
it. It runs nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.policy import classify, simple_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NOT_EXECUTABLE, _NOT_FOUND = 126, 127  # the shell's exit codes for a program that it could not start
_CURL_CONFIGS = (
    ("CURL_HOME", ".curlrc"), ("XDG_CONFIG_HOME", ".curlrc"), ("XDG_CONFIG_HOME", "curlrc"), ("HOME", ".curlrc"),
    ("HOME", ".config/.curlrc"), ("HOME", ".config/curlrc"),
)  # fmt: skip


def find_impossible_codes(tool: str, tool_input: object, folder: str, environ: Mapping[str, str]) -> frozenset[int]:
    """The exit codes with which the call has changed nothing; `folder` is where it would run."""
    text = classify.find_command_text(tool, tool_input)
    command = simple_command.parse_simple_command(text) if text is not None else None
    if command is None:
        return frozenset()
    words = [word.text for word in command.words]
    codes = _find_start_codes(words[0], folder, environ)
    if not simple_command.is_single_request(command):
        return codes
    # A configuration file can add redirects, retries and requests; -q as the first argument ignores it.
    is_configured = words[1] not in {"-q", "--disable"} and any(map(os.path.exists, _list_curl_configs(environ)))
    return codes if is_configured else codes | simple_command.CURL_NOT_SENT


def _find_start_codes(program: str, folder: str, environ: Mapping[str, str]) -> frozenset[int]:
    """The shell's exit codes, if the host cannot start the program either; else they may be the program's own."""
    folders = [""] if "/" in program else environ.get("PATH", os.defpath).split(os.pathsep)
    files = [os.path.join(folder, one, program) for one in folders]
    if any(os.path.isfile(path) and os.access(path, os.X_OK) for path in files):
        return frozenset()
    return frozenset({_NOT_EXECUTABLE, _NOT_FOUND})


def _list_curl_configs(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, name in _CURL_CONFIGS:
        if environ.get(variable):
            yield os.path.join(environ[variable], name)
