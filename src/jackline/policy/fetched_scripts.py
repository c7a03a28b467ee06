"""Recognizes text that is fetched from another machine and run at once, such as `curl URL | sh`. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.policy import command_line, loopback, path_args, read_only
from jackline.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.shell.model import ShellCommand

_FETCHERS = frozenset({"curl", "wget", "http", "https", "xh", "xhs", "aria2c", "fetch", "lynx"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "ash"})
_INTERPRETERS = _SHELLS | {"python", "pypy", "perl", "ruby", "node", "php", "deno", "bun", "lua", "Rscript", "pwsh"}
_SOURCING = frozenset({"source", ".", "eval"})
# `$(curl URL)`, `<(curl URL)` and the same in backticks.
_SUBSTITUTED = re.compile(r"(?:\$\(|<\(|`)[^`]*?\b(?:curl|wget|xh|https?|aria2c|fetch)\s")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_TEXT_FLAGS = frozenset({"-c", "-e", "-r", "-p", "-m", "-E", "--eval", "--print"})
_ABOUT_ITSELF = frozenset({"--version", "--help"})  # with these an interpreter runs nothing
_STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_OUTPUTS = ("-o", "--output", "-O", "--output-document")


class Fetches(NamedTuple):
    """What a call fetches from other machines."""

    urls: tuple[str, ...]  # an empty one is only known to the shell
    files: frozenset[str]  # where it is written to


def find_fetches(commands: Sequence[ShellCommand]) -> Fetches | None:
    """Return what the commands of a call fetch from other machines; None if they fetch nothing."""
    urls: list[str] = []
    files: set[str] = set()
    for command in commands:
        if not command.words or command.words[0].text.rpartition("/")[2] not in _FETCHERS:
            continue
        url = read_only.find_url(command.words[1:])
        if not loopback.is_local_url(Word(url), frozenset()):
            urls.append(url if Word(url) in command.words else "")
            files.update(posixpath.normpath(name) for name in _find_outputs(command))
    return Fetches(tuple(dict.fromkeys(urls)), frozenset(files - {"."})) if urls else None


def runs_fetched_text(command: ShellCommand, fetches: Fetches) -> bool:
    """Check whether a command of the call runs what the call has fetched."""
    program = command_line.parse_line(command.words).program
    is_interpreter = program in _INTERPRETERS
    if not (is_interpreter or program in _SOURCING or "/" in command.words[0].text or not command.words[0].exact):
        return False
    if is_interpreter and _reads_fetched_input(program, command):
        return True
    return any(
        posixpath.normpath(word.text) in fetches.files if word.exact else _holds_fetched_text(word, command)
        for word in _find_run_words(program, command.words)
    )


def _reads_fetched_input(program: str, command: ShellCommand) -> bool:
    """Check whether the interpreter runs its standard input, and whether that may be the fetched text."""
    if command.stdin:
        return _SUBSTITUTED.search(command.stdin) is not None
    opened = [redirect.target for redirect in command.redirects if redirect.operator.endswith("<")]
    if opened:
        return any(_SUBSTITUTED.search(target.text) for target in opened)
    for word in command.words[1:]:
        text = word.text
        if text in _ABOUT_ITSELF or (text == "-V" and program not in _SHELLS):
            return False
        if text in _STANDARD_INPUT:
            return True
        if program in _SHELLS and re.fullmatch(r"-[a-zA-Z]*s[a-zA-Z]*", text):
            return True
        if text.partition("=")[0] in _TEXT_FLAGS or (program in _SHELLS and re.fullmatch(r"-[a-zA-Z]*c", text)):
            return False
        if not text.startswith("-"):
            return False
    return True


def _find_run_words(program: str, words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words that are run: the text after -c, the script, or the program itself."""
    if program == "eval":
        yield from words[1:]
        return
    if program not in _INTERPRETERS and program not in _SOURCING:
        yield words[0]
        return
    for index, word in enumerate(words[1:], 1):
        if word.text in _TEXT_FLAGS or re.fullmatch(r"-[a-zA-Z]*c", word.text):
            yield from words[index + 1 : index + 2]
            return
        if not word.text.startswith("-"):
            yield word
            return


def _holds_fetched_text(word: Word, command: ShellCommand) -> bool:
    if word.exact:
        return False
    if _SUBSTITUTED.search(word.text) or (
        "{}" in word.text and any(one.startswith("xargs") for one in command.through)
    ):
        return True
    names = {first or second for first, second in _VARIABLE.findall(word.text)}
    given = (one.text.partition("=") for one in command.assignments)
    return any(name in names and _SUBSTITUTED.search(value) for name, _, value in given)


def _find_outputs(fetch: ShellCommand) -> Iterator[str]:
    """Yield the files that a fetch writes."""
    line = command_line.parse_line(fetch.words)
    yield from (word.text for word in path_args.find_flag_values(line, _OUTPUTS))
    yield from (redirect.target.text for redirect in fetch.redirects if ">" in redirect.operator)
    yield posixpath.basename(read_only.find_url(line.words).partition("?")[0])  # `curl -O URL`, `wget URL`
