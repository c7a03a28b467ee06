"""Checks whether a script for sed, awk or sqlite3 writes files or runs commands. Pure."""

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
# Possessive and atomic: no backtracking, so an agent's script cannot block the gate.
_SED = re.compile(rf"\s*+(?:{_SED_RANGE}\{{\s*+)?(?>{_SED_ONE})\s*+(?:[;\n}}]\s*+(?>{_SED_ONE})\s*+)*+", re.DOTALL)
_SED_SCRIPTED = frozenset({"-e", "--expression"})
_LONGEST = 1_000
_SQL_SHOWS = (
    "bail|changes|databases|dbinfo|dump|echo|eqp|exit|explain|fullschema|headers?|help|indexes|indices|limits?|mode"
    "|nullvalue|print|quit|schema|separator|sha3sum|show|stats|tables|timeout|timer|version|width"
)
# Other dot commands may be abbreviated, and may access files or programs.
_SQL_RISK = re.compile(rf"(?im)^[^\S\n]*+\.(?!(?:{_SQL_SHOWS})(?:\s|$))|writefile|load_extension|edit\s*+\(|\battach\b")
_SQL_COPIES = (re.compile(r"(?i)\bvacuum\b"), re.compile(r"(?i)\binto\b"))  # both together: copy into another file


def is_plain(program: str, words: Sequence[Word]) -> bool:
    """Check that the script is known and accesses neither files nor commands."""
    return _CHECKERS[program](words)


def sed_files(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the files of sed; the script comes first unless a flag gives it."""
    scripts, files = _split_sed_words(words)
    return files if scripts else files[1:]


def _is_plain_sed(words: Sequence[Word]) -> bool:
    if any(word.text in {"-f", "--file"} or word.text.startswith(("--file=", "-f")) for word in words):
        return False
    scripts, files = _split_sed_words(words)
    found = scripts or files[:1]
    return bool(found) and all(
        word.exact and len(word.text) <= _LONGEST and _SED.fullmatch(word.text) for word in found
    )


def _split_sed_words(words: Sequence[Word]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
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


def _is_plain_awk(words: Sequence[Word]) -> bool:
    left = iter(words)
    for word in left:
        if word.text in _AWK_VALUED:
            next(left, None)
        elif not word.text.startswith("-"):
            return word.exact and not _AWK_RISK.search(word.text)
        elif word.text not in _AWK_ALONE and not word.text.startswith(_AWK_VALUED):
            return False  # a script or library file, or an output file
    return False


def _is_plain_sqlite(words: Sequence[Word]) -> bool:
    """Check the statements in the arguments; a statement from a pipe is unknown, so there must be one."""
    named = [word for word in words if not word.text.startswith("-")]
    flags = {word.text.lstrip("-") for word in words if word.text.startswith("-")}
    if len(named) < len(("file", "statement")) or flags & {"init", "cmd", "A", "interactive"}:
        return False
    return all(
        word.exact and not _SQL_RISK.search(word.text) and not all(copy.search(word.text) for copy in _SQL_COPIES)
        for word in named[1:]
    )


_CHECKERS = {"sed": _is_plain_sed, "awk": _is_plain_awk, "sqlite3": _is_plain_sqlite}
