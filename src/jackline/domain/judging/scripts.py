"""Whether a script for sed, awk or sqlite3 only works on text: they can write files and run commands, too. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.shell import Word

_AWK_RISK = re.compile(r"system|getline|[|>@]|close")
_AWK_ALONE = frozenset({"--", "--posix", "--traditional", "--re-interval", "--csv", "-k", "-b", "-P", "-c", "-r", "-n"})
_AWK_VALUED = ("-F", "-v", "--assign", "--field-separator")
_SED_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SED_RANGE = rf"(?:{_SED_ADDRESS}(?:\s*,\s*(?:{_SED_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
_SED_PARTS = r"(?:[^{0}\\\n]|\\.)*"
_SED_CHANGES = "|".join(
    rf"[sy]{re.escape(mark)}{_SED_PARTS.format(re.escape(mark))}{re.escape(mark)}{_SED_PARTS.format(re.escape(mark))}"
    rf"{re.escape(mark)}[gpiIM0-9]*"
    for mark in "/|#,:@!%~;_+"
)
_SED_TEXT = r"[aic]\\?[^\n]*+"
_SED_ONE = rf"{_SED_RANGE}(?:{_SED_CHANGES}|[dDpPnNhHgGxqQ=lz]\s*\d*|{_SED_TEXT}|b\s*\w*|t\s*\w*|:\w+)?"
# Nothing is tried twice: a script of an agent must not keep the gate busy.
_SED = re.compile(rf"\s*+(?:{_SED_RANGE}\{{\s*+)?(?>{_SED_ONE})\s*+(?:[;\n}}]\s*+(?>{_SED_ONE})\s*+)*+", re.DOTALL)
_SED_SCRIPTED = frozenset({"-e", "--expression"})
_LONGEST = 1_000
_SQL_SHOWS = (
    "bail|changes|databases|dbinfo|dump|echo|eqp|exit|explain|fullschema|headers?|help|indexes|indices|limits?|mode"
    "|nullvalue|print|quit|schema|separator|sha3sum|show|stats|tables|timeout|timer|version|width"
)
# Every other command of its own may be shortened, and may reach a file or a program.
_SQL_RISK = re.compile(rf"(?im)^[^\S\n]*+\.(?!(?:{_SQL_SHOWS})(?:\s|$))|writefile|load_extension|edit\s*+\(|\battach\b")
_SQL_COPIES = (re.compile(r"(?i)\bvacuum\b"), re.compile(r"(?i)\binto\b"))  # both: into another file


def is_plain(program: str, words: Sequence[Word]) -> bool:
    """Whether the script can be read here, and holds nothing that reaches a file or a command."""
    return _PLAIN[program](words)


def sed_files(words: Sequence[Word]) -> tuple[Word, ...]:
    """The files that sed works on: its script, if it is no flag's value, stands before them."""
    scripts, files = _sed_words(words)
    return files if scripts else files[1:]


def _sed(words: Sequence[Word]) -> bool:
    if any(word.text in {"-f", "--file"} or word.text.startswith(("--file=", "-f")) for word in words):
        return False
    scripts, files = _sed_words(words)
    found = scripts or files[:1]
    return bool(found) and all(
        word.exact and len(word.text) <= _LONGEST and _SED.fullmatch(word.text) for word in found
    )


def _sed_words(words: Sequence[Word]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    scripts: list[Word] = []
    files: list[Word] = []
    left = iter(words)
    for word in left:
        text = word.text
        if text in _SED_SCRIPTED or re.fullmatch(r"-[nErsuz]+e", text):
            following = next(left, None)
            scripts.extend([following] if following else [])
        elif text.startswith(("--expression=", "-e")):
            scripts.append(word._replace(text=text.removeprefix("--expression=").removeprefix("-e")))
        elif text in {"-l", "--line-length"}:
            next(left, None)
        elif not text.startswith("-"):
            files.append(word)
    return tuple(scripts), tuple(files)


def _awk(words: Sequence[Word]) -> bool:
    left = iter(words)
    for word in left:
        if word.text in _AWK_VALUED:
            next(left, None)
        elif not word.text.startswith("-"):
            return word.exact and not _AWK_RISK.search(word.text)
        elif word.text not in _AWK_ALONE and not word.text.startswith(_AWK_VALUED):
            return False  # a script or a library in a file, or a file that is written
    return False


def _sqlite3(words: Sequence[Word]) -> bool:
    """With its statements in the command; what comes through a pipe nobody can see."""
    named = [word for word in words if not word.text.startswith("-")]
    flags = {word.text.lstrip("-") for word in words if word.text.startswith("-")}
    if len(named) < len(("file", "statement")) or flags & {"init", "cmd", "A", "interactive"}:
        return False
    return all(word.exact and _is_plain_sql(word.text) for word in named[1:])


def _is_plain_sql(text: str) -> bool:
    return not _SQL_RISK.search(text) and not all(word.search(text) for word in _SQL_COPIES)


_PLAIN = {"sed": _sed, "awk": _awk, "sqlite3": _sqlite3}
