"""Checks whether HTTP client commands, and sed, awk and sqlite3 scripts, only read. Pure; by their arguments alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.shell.model import Word

READS, SENDS, OPEN = "reads", "sends", "open"  # open: unknown
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS = _READING_METHODS | {"POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE"}
_CURL_VALUED = frozenset("AbcCdDeEFhHKmoPQrtTuUwxXyYz")
_CURL_LONG = (
    *("--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii", "--form", "--form-string"),
    *("--form-escape", "--json", "--upload-file", "--config", "--quote", "--mail-from", "--mail-rcpt", "--append"),
)  # fmt: skip
_WGET_LONG = ("--post-data", "--post-file", "--body-data", "--body-file")
_API_LONG = ("--field", "--raw-field", "--input", "--form")
# With any other scheme curl is interactive and sends its standard input.
_CURL_FETCHES = ("http", "https", "ftp", "ftps", "file", "sftp", "scp", "tftp")
_CURL_SWITCHES = (
    "--silent --show-error --fail --fail-with-body --location --insecure --verbose --compressed --include --head "
    "--ipv4 --ipv6 --http1.1 --http2 --no-progress-meter --globoff --path-as-is --get"
)
_CURL_ALONE = frozenset(_CURL_SWITCHES.split())


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


def _classify_curl(words: Sequence[Word], _: list[str]) -> str:
    urls = (word.text.partition("://") for word in words if not word.text.startswith("-"))
    if any(mark and scheme.lower() not in _CURL_FETCHES and scheme.isalnum() for scheme, mark, _ in urls):
        return SENDS
    flags = list(_parse_flags(words))
    methods = [value.upper() for name, value in flags if name in {"-X", "--request"}]
    if methods and methods[-1] and methods[-1] not in _READING_METHODS:
        return SENDS
    if any(name in {"-G", "--get"} for name, _ in _parse_flags(words, sure=True)):  # data becomes the query
        sent = any(name in {"-F", "-T", "-K", "-Q"} or _is_long_flag(name, _CURL_LONG[5:]) for name, _ in flags)
    else:
        letters = {"-d", "-F", "-T", "-K", "-Q", "-a"}
        sent = any(name in letters or _is_long_flag(name, _CURL_LONG) for name, _ in flags)
    return SENDS if sent else READS


def _parse_flags(words: Sequence[Word], *, sure: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each flag with the next word or its joined value; a word may hold several short flags.

    With `sure`, skip words that may be the value of the previous flag: `-H -G` sends the header "-G".
    """
    for index, word in enumerate(words):
        if sure and index and _may_take_value(words[index - 1].text):
            continue
        after = words[index + 1].text if index + 1 < len(words) else ""
        name, equals, value = word.text.partition("=")
        if name.startswith("--"):
            yield name, value if equals else after
        elif name.startswith("-"):
            for position, letter in enumerate(word.text[1:], 2):
                yield f"-{letter}", word.text[position:] or after
                if letter in _CURL_VALUED:
                    break


def _may_take_value(text: str) -> bool:
    """Check whether the next word may be the value of this one."""
    if text.startswith("--"):
        return "=" not in text and text not in _CURL_ALONE
    return text.startswith("-") and any(letter in _CURL_VALUED for letter in text[1:])


def _classify_wget(words: Sequence[Word], _: list[str]) -> str:
    for name, value in _parse_flags(words):
        if _is_long_flag(name, _WGET_LONG) or (
            _is_long_flag(name, ("--method",)) and value.upper() not in _READING_METHODS
        ):
            return SENDS
    return READS


def _classify_httpie(words: Sequence[Word], named: list[str]) -> str:
    if any(_is_long_flag(word.text.partition("=")[0], ("--raw",)) for word in words):
        return SENDS
    if not named:
        return READS
    method = named[0].upper()
    if method in _METHODS:
        return READS if method in _READING_METHODS and not any(map(_is_body_item, named[2:])) else SENDS
    # Without a method, it depends on standard input.
    return SENDS if any(map(_is_body_item, named[1:])) else OPEN


def _is_body_item(text: str) -> bool:
    """Check for a part of the body: `name=value`, `name:=1`, `name@file`; but `name==value` is a query parameter."""
    return ("=" in text and "==" not in text) or "@" in text


def _classify_api(words: Sequence[Word], named: list[str]) -> str:
    """Classify `gh api`, which sends POST if it has fields, unless a method is given."""
    method, sent = "", False
    for name, value in _parse_flags(words):
        if name in {"-X", "--method"}:
            method = value.upper()
        sent = sent or name in {"-f", "-F"} or _is_long_flag(name, _API_LONG)
    if "graphql" in named:
        plain = all(word.exact for word in words) and not any("mutation" in word.text for word in words)
        opaque = any(word.text == "--input" or "=@" in word.text for word in words)
        return READS if plain and not opaque else SENDS
    if method:
        return READS if method in _READING_METHODS else SENDS
    return SENDS if sent else READS


def _is_long_flag(name: str, flags: Sequence[str]) -> bool:
    return name.startswith("--") and len(name) > len("--x") and any(flag.startswith(name) for flag in flags)


_CLASSIFIERS = {
    "curl": _classify_curl,
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
_SED_SCRIPTED = frozenset({"-e", "--expression"})
_LONGEST = 1_000
_SQL_SHOWS = (
    "bail|changes|databases|dbinfo|dump|echo|eqp|exit|explain|fullschema|headers?|help|indexes|indices|limits?|mode"
    "|nullvalue|print|quit|schema|separator|sha3sum|show|stats|tables|timeout|timer|version|width"
)
# Other dot commands may be abbreviated, and may access files or programs.
_SQL_RISK = re.compile(rf"(?im)^[^\S\n]*+\.(?!(?:{_SQL_SHOWS})(?:\s|$))|writefile|load_extension|edit\s*+\(|\battach\b")
_SQL_COPIES = (re.compile(r"(?i)\bvacuum\b"), re.compile(r"(?i)\binto\b"))  # both together: copy into another file


def is_plain_script(program: str, words: Sequence[Word]) -> bool:
    """Check that the script is known and accesses neither files nor commands."""
    return _CHECKERS[program](words)


def find_sed_files(words: Sequence[Word]) -> tuple[Word, ...]:
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
