"""Finds the exit codes that prove that an effect could not happen: its program cannot be started, or curl sent nothing.

Output proves nothing: a program can print anything. The host is looked at before the call, because the call can change
it. It runs nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from jackline.domain.states import NOT_STARTED
from jackline.policy import classify, simple_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CURL_CONFIGS = (
    ("CURL_HOME", ".curlrc"), ("XDG_CONFIG_HOME", ".curlrc"), ("XDG_CONFIG_HOME", "curlrc"), ("HOME", ".curlrc"),
    ("HOME", ".config/.curlrc"), ("HOME", ".config/curlrc"),
)  # fmt: skip
# What a shell reads before a command, and where its functions, aliases and folders of programs come from.
_START_FILES = (
    "/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zshenv", "/etc/zsh/zshenv", "/etc/zsh/zshrc", "/etc/zshrc",
    "~/.profile", "~/.bash_profile", "~/.bash_login", "~/.bashrc", "~/.bash_aliases", "~/.zshenv", "~/.zprofile",
    "~/.zshrc", "~/.zlogin",
)  # fmt: skip
_LONGEST_START_FILE = 1_000_000
_USUAL_FOLDERS = (
    "~/bin",
    "~/.local/bin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/sbin",
)
_FOLDER = re.compile(r"(~|\$HOME|\$\{HOME\}|)((?:/[\w.@+-]+)+)")  # in a start file
_SCRIPT = b"#!"


def find_impossible_codes(tool: str, tool_input: object, folder: str, environ: Mapping[str, str]) -> frozenset[int]:
    """The exit codes with which the call has changed nothing; `folder` is where it would run."""
    text = classify.find_command_text(tool, tool_input)
    command = simple_command.parse_simple_command(text) if text is not None else None
    if command is None:
        return frozenset()
    words = [word.text for word in command.words]
    program, start_text = words[0], _read_start_files(environ)
    if command.assignments or _is_named_by_shell(program, start_text, environ):  # PATH=…: it may be another program
        return frozenset()
    files = _list_programs(program, folder, start_text, environ)
    if not files:
        return NOT_STARTED
    if not simple_command.is_single_request(command) or any(map(_is_script, files)):
        return frozenset()  # the program itself may end with any code
    # A configuration file can add redirects, retries and requests; -q as the first argument ignores it.
    is_configured = words[1] not in {"-q", "--disable"} and any(map(os.path.exists, _list_curl_configs(environ)))
    return frozenset() if is_configured else simple_command.CURL_NOT_SENT


def _list_programs(program: str, folder: str, start_text: str, environ: Mapping[str, str]) -> list[str]:
    """The files that a shell may start: its start files can add folders to the ones that we know."""
    folders = [""]
    if "/" not in program:
        named = (f"{'~' if home else ''}{path}" for home, path in _FOLDER.findall(start_text))
        found = (*environ.get("PATH", os.defpath).split(os.pathsep), *_USUAL_FOLDERS, *named)
        folders = [_expand_home(one, environ) for one in dict.fromkeys(found)]
    files = [os.path.join(folder, one, program) for one in folders]
    return [path for path in files if os.path.isfile(path) and os.access(path, os.X_OK)]


def _is_named_by_shell(program: str, start_text: str, environ: Mapping[str, str]) -> bool:
    """Whether a start file of a shell mentions the program: as a function or an alias it may do anything."""
    mentioned = re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w.-])", start_text)
    return mentioned is not None or f"BASH_FUNC_{program}%%" in environ


def _read_start_files(environ: Mapping[str, str]) -> str:
    """The text of the start files that exist, without comments."""
    lines: list[str] = []
    for path in (*_START_FILES, environ.get("BASH_ENV", ""), environ.get("ENV", "")):
        with (
            contextlib.suppress(OSError),
            open(_expand_home(path, environ), encoding="utf-8", errors="replace") as file,
        ):
            lines += file.read(_LONGEST_START_FILE).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _is_script(path: str) -> bool:
    """Whether the file is a wrapper, or cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_SCRIPT)) == _SCRIPT
    except OSError:
        return True


def _expand_home(path: str, environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("HOME", "/"), path[2:]) if path.startswith("~/") else path


def _list_curl_configs(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, name in _CURL_CONFIGS:
        if environ.get(variable):
            yield os.path.join(environ[variable], name)
