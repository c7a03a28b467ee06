"""Checks whether an HTTP client command only reads or also sends data. Pure; by its arguments alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.domain.shell import Word

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


def kind(program: str, words: Sequence[Word], names: Sequence[Word]) -> str:
    """Return `reads`, `sends` or `open`."""
    found = _CLASSIFIERS[program](words, [word.text for word in names])
    # An inexact word may expand to any flag.
    is_inexact = any(not word.exact and word.text[:1] in {"$", "`", "{"} for word in words)
    return OPEN if found == READS and is_inexact else found


def address(words: Sequence[Word]) -> str:
    """Return the URL in the arguments; empty if there is none."""
    texts = [word.text for word in words]
    whole = (text for text in texts if "://" in text and not text.startswith("-"))
    named = (text for text in texts if not text.startswith("-") and text.upper() not in _METHODS)
    return next(whole, "") or next(named, "")


def _classify_curl(words: Sequence[Word], _: list[str]) -> str:
    sent, method, as_query = _has_interactive_scheme(words), "", False
    flags = list(_parse_flags(words))
    for name, value in flags:
        if name in {"-X", "--request"}:
            method = value.upper()
        sent = sent or name in {"-d", "-F", "-T", "-K", "-Q", "-a"} or _is_long_flag(name, _CURL_LONG)
    as_query = any(name in {"-G", "--get"} for name, _ in _parse_flags(words, sure=True))
    only_query = (
        as_query
        and not _has_interactive_scheme(words)
        and not any(name in {"-F", "-T", "-K", "-Q"} or _is_long_flag(name, _CURL_LONG[5:]) for name, _ in flags)
    )
    if method and method not in _READING_METHODS:
        return SENDS
    return SENDS if sent and not only_query else READS


def _has_interactive_scheme(words: Sequence[Word]) -> bool:
    schemes = (word.text.partition("://") for word in words if not word.text.startswith("-"))
    return any(mark and scheme.lower() not in _CURL_FETCHES and scheme.isalnum() for scheme, mark, _ in schemes)


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
            yield from _split_short_flags(word.text, after)


def _may_take_value(text: str) -> bool:
    """Check whether the next word may be the value of this one."""
    if text.startswith("--"):
        return "=" not in text and text not in _CURL_ALONE
    return text.startswith("-") and any(letter in _CURL_VALUED for letter in text[1:])


def _split_short_flags(text: str, after: str) -> Iterator[tuple[str, str]]:
    for position, letter in enumerate(text[1:], 1):
        joined = text[position + 1 :]
        yield f"-{letter}", joined or after
        if letter in _CURL_VALUED:
            return


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
