"""Finds a rule's program behind an interpreter, another path, a link or a copy. Pure: the host resolves links.

Only rules that restrict a call use it: `bash ./ls` is not `ls`, but `bash ./send` is `send`.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.policy import command_line, path_zones
from jackline.policy.builtin import flag_tables
from jackline.shell.model import Word
from jackline.shell.special_wrappers import SHELLS, find_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jackline.policy.command_line import CommandLine
    from jackline.policy.rules import Rule
    from jackline.shell.model import ShellCommand

_SOURCE = frozenset({".", "source"})
# Other interpreters, with the flags after which there is no script file.
_INTERPRETERS = {
    "python": "-c -m -", "pypy": "-c -m -", "node": "-e -p -i - --eval --print --test", "nodejs": "-e -p -i -",
    "deno": "eval -", "bun": "-e --eval -", "tsx": "-e", "ts-node": "-e", "perl": "-e -E -", "ruby": "-e -",
    "php": "-r -", "lua": "-e -", "Rscript": "-e", "tclsh": "", "expect": "-c", "osascript": "-e", "groovy": "-e",
    "julia": "-e -E", "elixir": "-e", "fish": "-c", "pwsh": "-c -Command", "csh": "-c", "tcsh": "-c",
}  # fmt: skip
_STARTING = frozenset({"run", "-f", "-File"})  # `deno run file`, `php -f file`
_GOALS = frozenset(
    {"make", "just", "task", "rake", "invoke", "gulp", "grunt", "ninja", "mvn", "gradle", "ant", "sbt"}
)  # they run several goals
_COPYING = frozenset({"ln", "cp", "mv", "link", "install"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[:?+]?=")
_MOST_COMMANDS = 8  # that are tried for one command
_MOST_GOALS = 16
_MOST_OPERANDS = 3  # of an interpreter: an unknown flag may take the first ones
_LINK = 2  # operands: the file and its new name


class _RuleForm(NamedTuple):
    """One way to write the command of a rule."""

    dropped: tuple[str, ...]  # the interpreter that a call may leave out
    command: tuple[str, ...]
    path: str  # of the program, if the rule names one


def find_copies(commands: tuple[ShellCommand, ...]) -> Mapping[str, str]:
    """Return the files that the call itself links or copies, by their new names."""
    copies: dict[str, str] = {}
    for command in commands:
        if not command.words or command.words[0].text not in _COPYING:
            continue
        operands = command_line.parse_line(command.words).operands
        if len(operands) == _LINK and all(word.exact for word in operands):
            copies[posixpath.basename(operands[1].text)] = operands[0].text
    return copies


def list_hidden_lines(
    command: ShellCommand, folder: str | None, copies: Mapping[str, str], resolve_link: Callable[[str], str]
) -> tuple[CommandLine, ...]:
    """Return the other command lines that a command may stand for; empty for most commands."""
    waiting, found = [command.words], list[tuple[Word, ...]]()
    while waiting and len(found) < _MOST_COMMANDS:
        words = waiting.pop(0)
        for other in _iterate_hidden_words(words, folder, copies, resolve_link):
            if other not in found and other != command.words:
                found.append(other)
                waiting.append(other)
    lines = [command_line.parse_line(words) for words in found]
    return (*lines, *(goal for words in (command.words, *found) for goal in _list_goals(words)))


def _iterate_hidden_words(
    words: tuple[Word, ...], folder: str | None, copies: Mapping[str, str], resolve_link: Callable[[str], str]
) -> Iterator[tuple[Word, ...]]:
    program, rest = words[0], words[1:]
    if not program.exact or not program.text:
        return
    name = posixpath.basename(program.text)
    plain = command_line.strip_version(name)
    if plain in _SOURCE:
        if rest:
            yield rest
    elif plain in SHELLS:
        script = find_script(words)
        if script:
            yield script
    elif plain in _INTERPRETERS:
        yield from _find_scripts(rest, frozenset(_INTERPRETERS[plain].split()))
    if name in copies:
        yield (Word(copies[name]), *rest)
    if "/" not in program.text or folder or program.text.startswith("/"):
        path = posixpath.join(folder or "/", program.text) if "/" in program.text else program.text
        target = resolve_link(path)
        if posixpath.basename(target) != name:
            yield (Word(target), *rest)


def _find_scripts(words: tuple[Word, ...], without: frozenset[str]) -> Iterator[tuple[Word, ...]]:
    """Yield the script of an interpreter with its arguments; after an unknown flag, also the next words."""
    left = _MOST_OPERANDS
    for index, word in enumerate(words):
        if word.text in without or not left:
            return
        if word.text.startswith("-") or word.text in _STARTING:
            continue
        yield words[index:]
        left -= 1
        if index == 0 or not words[0].text.startswith("-"):
            return


def _list_goals(words: tuple[Word, ...]) -> Iterator[CommandLine]:
    """Yield `make send V=1` for `make V=1 send`: each goal runs."""
    name = posixpath.basename(words[0].text)
    if flag_tables.ALIASES.get(name, name) not in _GOALS:
        return
    line = command_line.parse_line(words)
    for index in line.operand_indexes[:_MOST_GOALS]:
        if not _ASSIGNMENT.match(line.words[index].text):
            others = (*line.words[:index], *line.words[index + 1 :])
            yield command_line.parse_line((words[0], line.words[index], *others))


def match_hidden_line(rule: Rule, lines: tuple[CommandLine, ...], folder: str | None) -> CommandLine | None:
    """Return the line that a restricting rule matches, as the rule would write it; None if it matches none.

    `lines` are the line as written, and the hidden ones.
    """
    for form in _list_rule_forms(rule.command):
        plain = rule._replace(command=form.command)
        for line in lines:
            if command_line.matches_rule(plain, line) and (not form.path or _may_be_path(form.path, line, folder)):
                written = tuple(Word(word) for word in form.dropped)
                return command_line.parse_line((*written, Word(line.program), *line.words)) if written else line
    return None


@lru_cache(maxsize=256)
def _list_rule_forms(command: tuple[str, ...]) -> tuple[_RuleForm, ...]:
    first = posixpath.basename(command[0])
    forms = [_RuleForm(dropped=(), command=(first, *command[1:]), path=command[0] if "/" in command[0] else "")]
    names = {command_line.strip_version(name) for name in first.split("|")}
    if len(command) > 1 and names & (SHELLS | _INTERPRETERS.keys()) and not command[1].startswith("-"):
        path = command[1] if "/" in command[1] else ""
        script = (posixpath.basename(command[1]), *command[2:])
        forms.insert(0, _RuleForm(dropped=(first.split("|")[0],), command=script, path=path))
    return tuple(forms)


def _may_be_path(path: str, line: CommandLine, folder: str | None) -> bool:
    """Check whether a program may be the file that a rule names; a relative path of a rule counts in any folder."""
    if "/" not in line.path or (folder is None and not line.path.startswith("/")):
        return True
    whole = path_zones.resolve_path(line.path, folder or "/")
    return f"/{whole}".endswith(f"/{posixpath.normpath(path.removeprefix('~/'))}")


def matches_named_file(rule: Rule, line: CommandLine, folder: str | None, workspace: str) -> bool:
    """Check whether a rule names the path of exactly this program, such as `./build.sh`, and matches it."""
    if "/" not in rule.command[0] or "/" not in line.path or folder is None:
        return False
    if path_zones.resolve_path(line.path, folder) != path_zones.resolve_path(rule.command[0], workspace):
        return False
    plain = rule._replace(command=(posixpath.basename(rule.command[0]), *rule.command[1:]))
    return command_line.matches_rule(plain, line._replace(path=line.program))
