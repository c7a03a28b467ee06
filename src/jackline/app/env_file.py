"""Reads environment files: NAME=VALUE lines as in systemd's EnvironmentFile, private to the user. Expands nothing.

The content is secret: no message repeats any of it but the names of variables.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from jackline.app.paths import find_config_folder
from jackline.app.text_files import shorten_name
from jackline.errors import ConfigError, UsageError
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 100_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BLANKS = " \t\n\r"
_ESCAPED = '"\\`$'  # what a backslash escapes in double quotes; before anything else it stays
_OTHERS = 0o077
# Besides those that make programs run other code (`policy.builtin.risky_options`): what leads jackline or a CLI to
# another home, another interpreter or other modules.
_REFUSED = (
    "JACKLINE_", "HOME=", "USER=", "LOGNAME=", "TMPDIR=", "IFS=", "CDPATH=", "PROMPT_COMMAND=", "XDG_CONFIG_HOME=",
    "XDG_STATE_HOME=", "PYTHON", "NODE_PATH=", "RUBYLIB=", "JAVA_TOOL_OPTIONS=", "_JAVA_OPTIONS=", "JDK_JAVA_OPTIONS=",
    "NPM_CONFIG_", "npm_config_",
)  # fmt: skip


def read_env_file(path: str, what: str) -> dict[str, str]:
    """Read the variables of a file that the setting `what` names; ConfigError if it cannot be used.

    It must be the user's own and closed to others, and not be part of a project, even behind a link.
    """
    where = f"{what}: {shorten_name(path)}"
    text = _read_private(path, where)
    try:
        variables = parse_env_file(text)
    except UsageError as error:
        raise ConfigError(f"{where}: {error}") from None
    refuse_variables(variables, where)
    return variables


def _read_private(path: str, where: str) -> str:
    """Read the file; what is checked is the open file, so that no other one can be put in its place."""
    path = os.path.realpath(path)
    if root := _find_foreign_repository(os.path.dirname(path)):
        raise ConfigError(f"{where} is in the repository {root}: keep it beside your settings instead")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{where} is not a regular file")
            if status.st_uid != os.geteuid():
                raise ConfigError(f"{where} belongs to another user: chown it to yours")
            if status.st_mode & _OTHERS:
                raise ConfigError(f"{where} is open to other users: chmod 600 {shorten_name(path)}")
            data = file.read(_LONGEST + 1)
        if len(data) > _LONGEST:
            raise ConfigError(f"{where} is larger than {_LONGEST} bytes")
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _find_foreign_repository(folder: str) -> str:
    """The repository around a folder; empty if there is none, or if it holds the user's settings, too."""
    root = find_worktree(folder)
    if not os.path.lexists(os.path.join(root, ".git")) or find_worktree(find_config_folder(os.environ)) == root:
        return ""
    return root


def read_secret_file(path: str, what: str) -> str:
    """Read a file with one value, such as a key; ConfigError if others can read it, too, or if it has more lines."""
    where = f"{what}: {shorten_name(path)}"
    value = _read_private(path, where).strip()
    if not value or "\n" in value or "\0" in value:
        raise ConfigError(f"{where} must have one line, with the value alone")
    return value


def refuse_variables(names: Iterable[str], where: str) -> None:
    """ConfigError for a variable that makes programs run other code, or leads them to another home."""
    from jackline.policy.builtin import risky_options

    refused = (*_REFUSED, *risky_options.VARIABLES)
    for name in names:
        whole = f"{name}="
        if whole.startswith(refused) and not whole.startswith(risky_options.HARMLESS_VARIABLES):
            raise ConfigError(f"{where} sets {name}, which can make programs run other code: remove it")


def parse_env_file(text: str) -> dict[str, str]:
    """Parse the lines; the last value of a name wins. UsageError names the number of an invalid line.

    A value in quotes may have several lines; a backslash at the end of a line continues it; `#` and `;` start comments.
    """
    variables: dict[str, str] = {}
    reader = _VariableReader(text.replace("\r\n", "\n"))
    while reader.skip_to_entry():
        line = reader.line
        name = reader.read_name()
        value = reader.read_value() if name else None
        if value is None or "\0" in value:
            raise UsageError(f"line {line} is not NAME=VALUE, with quotes closed and without `export`")
        variables[name] = value
    return variables


class _VariableReader:
    """A position in the text, which moves as systemd's parser does."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    @property
    def line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _take(self) -> str:
        """The next character; empty at the end."""
        one = self._text[self._at : self._at + 1]
        self._at += 1
        return one

    def skip_to_entry(self) -> bool:
        """Skip blanks and comments; False at the end of the text."""
        while self._at < len(self._text):
            one = self._text[self._at]
            if one in "#;":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end + 1
            elif one in _BLANKS:
                self._at += 1
            else:
                return True
        return False

    def read_name(self) -> str:
        """The name before `=`; empty if it is not one."""
        end = self._text.find("=", self._at)
        name = self._text[self._at : end].rstrip(" \t") if end >= 0 else ""
        if not _NAME.fullmatch(name):
            return ""
        self._at = end + 1
        return name

    def read_value(self) -> str | None:
        """The value up to the end of the line; None if a quote is not closed."""
        value = ""
        while (one := self._take()) and one != "\n":
            if one in "'\"":
                part = self._read_quoted(one)
                if part is None:
                    return None
                value += part
            elif one not in _BLANKS:
                self._at -= 1
                return value + self._read_plain()
        return value

    def _read_plain(self) -> str:
        value, kept = "", 0  # `kept`: how much of it stays if blanks at the end are cut
        while (one := self._take()) and one != "\n":
            if one == "\\":
                one = self._take().replace("\n", "")
                kept = len(value) + len(one)
            value += one
            kept = kept if one in _BLANKS else len(value)
        return value[:kept]

    def _read_quoted(self, quote: str) -> str | None:
        value = ""
        while one := self._take():
            if one == quote:
                return value
            if one == "\\" and quote == '"':
                one = self._take()
                one = one.replace("\n", "") if one in _ESCAPED or one == "\n" else f"\\{one}"
            value += one
        return None
