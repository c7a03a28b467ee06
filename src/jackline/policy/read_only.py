"""Checks whether HTTP clients, and sed, awk and sqlite3 scripts, only read. Pure; by their arguments alone."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.policy.curl_requests import (
    OPEN,
    READING_METHODS,
    READS,
    SENDS,
    classify_curl,
    is_long_flag,
    parse_flags_leniently,
    sends_content,
)
from jackline.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_METHODS = READING_METHODS | {"POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE"}
_WGET_LONG = ("--post-data", "--post-file", "--body-data", "--body-file")
_API_LONG = ("--field", "--raw-field", "--input", "--form")


def classify_request(program: str, words: Sequence[Word], names: Sequence[Word]) -> str:
    """Return `reads`, `sends` or `open`."""
    found = _CLASSIFIERS[program](words, [word.text for word in names])
    # An inexact word may expand to any flag.
    is_inexact = any(not word.exact and word.text[:1] in {"$", "`", "{"} for word in words)
    return OPEN if found == READS and is_inexact else found


def find_url(words: Sequence[Word]) -> str:
    """Return the URL in the arguments; empty if there is none."""
    texts = [word.text for word in words]
    whole = (text for text in texts if "://" in text and not text.startswith("-"))
    named = (text for text in texts if not text.startswith("-") and text.upper() not in _METHODS)
    return next(whole, "") or next(named, "")


def _classify_wget(words: Sequence[Word], _: list[str]) -> str:
    flags = list(parse_flags_leniently(words))
    if sends_content(words):
        return SENDS
    for name, value in flags:
        if is_long_flag(name, _WGET_LONG) or (
            is_long_flag(name, ("--method",)) and value.upper() not in READING_METHODS
        ):
            return SENDS
    # With a base address, every line of the input file is sent as a path.
    based = any(name == "-B" or is_long_flag(name, ("--base",)) for name, _ in flags)
    return SENDS if based and any(name == "-i" or is_long_flag(name, ("--input-file",)) for name, _ in flags) else READS


def _classify_httpie(words: Sequence[Word], named: list[str]) -> str:
    if any(is_long_flag(word.text.partition("=")[0], ("--raw",)) for word in words) or sends_content(words):
        return SENDS
    if not named:
        return READS
    method = named[0].upper()
    if method in _METHODS:
        if method not in READING_METHODS or any(map(_is_body_item, named[2:])):
            return SENDS
        # It sends its standard input as the body, whatever the method.
        return READS if {"--ignore-stdin", "-I"}.intersection(word.text for word in words) else OPEN
    # Without a method, it depends on standard input.
    return SENDS if any(map(_is_body_item, named[1:])) else OPEN


def _is_body_item(text: str) -> bool:
    """Check for a part of the body: `name=value`, `name:=1`, `name@file`; but `name==value` is a query parameter."""
    return ("=" in text and "==" not in text) or "@" in text


def _classify_api(words: Sequence[Word], named: list[str]) -> str:
    """Classify `gh api`, which sends POST if it has fields, unless a method is given."""
    method, sent = "", False
    for name, value in parse_flags_leniently(words):
        if name in {"-X", "--method"}:
            method = value.upper()
        sent = sent or name in {"-f", "-F"} or is_long_flag(name, _API_LONG)
    opaque = any(word.text.partition("=")[0] == "--input" or "=@" in word.text for word in words)
    if sends_content(words):
        return SENDS
    if "graphql" in named:
        plain = all(word.exact for word in words) and not any("mutation" in word.text for word in words)
        return READS if plain and not opaque else SENDS
    if method:
        return READS if method in READING_METHODS and not opaque else SENDS
    return SENDS if sent else READS


_CLASSIFIERS = {
    "curl": lambda words, _: classify_curl(words),
    "wget": _classify_wget,
    "http": _classify_httpie,
    "gh": _classify_api,
    "glab": _classify_api,
}


# --- scripts

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
_LONGEST = 1_000
_SQL_SHOWS = (
    "bail|changes|databases|dbinfo|dump|echo|eqp|exit|explain|fullschema|headers?|help|indexes|indices|limits?|mode"
    "|nullvalue|print|quit|schema|separator|sha3sum|show|stats|tables|timeout|timer|version|width"
)
# Other dot commands may be abbreviated, and may access files or programs.
_SQL_RISK = re.compile(rf"(?im)^[^\S\n]*+\.(?!(?:{_SQL_SHOWS})(?:\s|$))|writefile|load_extension|edit\s*+\(|\battach\b")
_SQL_VALUED = frozenset({"separator", "nullvalue", "newline", "mmap", "vfs", "maxsize", "heap", "cmd", "init"})
_SQL_COPIES = (re.compile(r"(?i)\bvacuum\b"), re.compile(r"(?i)\binto\b"))  # both together: copy into another file


def is_plain_script(program: str, words: Sequence[Word]) -> bool:
    """Check that the script is known and accesses neither files nor commands."""
    return _CHECKERS[program](words)


def find_sed_files(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the files of sed; the script comes first unless a flag gives it."""
    found = _split_sed_words(words)
    return found.files if found.scripts else found.files[1:]


def find_sed_backups(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the backup files of `sed -i`: in a suffix with `/` or `*`, the `*` is the name of the file."""
    for suffix in _split_sed_words(words).suffixes:
        if "/" in suffix.text:
            for file in find_sed_files(words):
                path = posixpath.join(posixpath.dirname(file.text), suffix.text.replace("*", "name"))
                yield Word(path, file.exact and suffix.exact)
        elif "*" in suffix.text and not suffix.exact:
            yield Word("$?", exact=False)


class _SedWords(NamedTuple):
    scripts: tuple[Word, ...]
    files: tuple[Word, ...]
    suffixes: tuple[Word, ...]  # of -i
    has_script_file: bool


def _is_plain_sed(words: Sequence[Word]) -> bool:
    split = _split_sed_words(words)
    found = split.scripts or split.files[:1]
    return (
        not split.has_script_file
        and bool(found)
        and all(word.exact and len(word.text) <= _LONGEST and _SED.fullmatch(word.text) for word in found)
    )


def _split_sed_words(words: Sequence[Word]) -> _SedWords:
    scripts: list[Word] = []
    files: list[Word] = []
    suffixes: list[Word] = []
    has_script_file = is_ended = False
    left = iter(words)
    for word in left:
        name, equals, value = word.text.partition("=")
        if is_ended or not word.text.startswith("-") or word.text == "-":
            files.append(word)
        elif word.text == "--":
            is_ended = True
        elif not name.startswith("--"):
            flag, joined = _find_sed_letter(word.text)
            name, equals, value = flag, "=" if joined else "", joined
        if not word.text.startswith("-") or is_ended:
            continue
        if name == "-f" or is_long_flag(name, ("--file",)):
            has_script_file = True
        elif name == "-i" or is_long_flag(name, ("--in-place",)):
            suffixes.append(word._replace(text=value))
        elif name == "-e" or is_long_flag(name, ("--expression",)):
            following = word._replace(text=value) if equals else next(left, None)
            scripts += [following] if following else []
        elif (name == "-l" or is_long_flag(name, ("--line-length",))) and not equals:
            next(left, None)
    return _SedWords(tuple(scripts), tuple(files), tuple(suffixes), has_script_file)


def _find_sed_letter(text: str) -> tuple[str, str]:
    """Return the first flag with a value in a cluster such as `-nf`, and what follows it in the same word."""
    place = next((place for place, letter in enumerate(text) if letter in "efil"), 0)
    return (f"-{text[place]}", text[place + 1 :]) if place else ("", "")


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
    named = find_sqlite_operands(words)
    flags = {word.text.lstrip("-") for word in words if word.text.startswith("-")}
    if len(named) < len(("file", "statement")) or flags & {"init", "cmd", "interactive", "vfs"}:
        return False
    if any(flag.startswith("A") for flag in flags):  # an archive
        return False
    return all(
        word.exact and not _SQL_RISK.search(word.text) and not all(copy.search(word.text) for copy in _SQL_COPIES)
        for word in named[1:]
    )


def find_sqlite_operands(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the file and the statements; some flags have a value."""
    before = ("", *(word.text.lstrip("-") if word.text.startswith("-") else "" for word in words))
    return tuple(
        word
        for word, flag in zip(words, before, strict=False)
        if not word.text.startswith("-") and flag not in _SQL_VALUED
    )


_CHECKERS = {"sed": _is_plain_sed, "awk": _is_plain_awk, "sqlite3": _is_plain_sqlite}
