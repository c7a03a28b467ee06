"""Finds secrets whose values are known, in all their spellings. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.secrets.tokens import Span, places

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORTEST = 8
_LONGEST_NEEDLE = 2_048
_SHORTEST_NUMBER = 12  # shorter numbers may be a date, a port or a size
_AWS_SECRET_KEY = 40  # length; it may begin with a slash
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Common words, which occur everywhere and are never searched for.
_COMMON = frozenset({
    "password", "passw0rd", "changeme", "changeit", "postgres", "postgresql", "username", "administrator", "default",
    "production", "development", "staging", "testing", "localhost", "anonymous", "disabled", "enabled", "required",
    "jackline", "scripted", "undefined", "redacted", "[redacted]", "keychain", "keyring", "interactive", "automatic",
})  # fmt: skip


def is_telling(value: str) -> bool:
    """Check whether a value can be searched for; a short or common one would match unrelated text."""
    word = value.strip()
    if len(word) < _SHORTEST or word.lower() in _COMMON or not word.strip("*x.-_0"):
        return False
    if word.isdigit() and len(word) < _SHORTEST_NUMBER:
        return False
    return not _is_path(word)


def _is_path(value: str) -> bool:
    if len(value) == _AWS_SECRET_KEY and value.replace("/", "").replace("+", "").isalnum():
        return False
    return value.startswith(("/", "./", "../", "~/")) and "\n" not in value


def needles(values: Iterable[str]) -> tuple[str, ...]:
    """Return the search strings of each value: line by line, in all spellings."""
    found: list[str] = []
    for value in values:
        for line in value.splitlines():
            for start in range(0, len(line), _LONGEST_NEEDLE):
                piece = line[start : start + _LONGEST_NEEDLE].strip()
                if len(piece) >= _SHORTEST:
                    found += _build_spellings(piece)
    return tuple(dict.fromkeys(found))


def _build_spellings(value: str) -> list[str]:
    percent = "".join(
        one if one in _UNRESERVED else "".join(f"%{byte:02X}" for byte in one.encode("utf-8", "surrogatepass"))
        for one in value
    )
    plus = percent.replace("%20", "+")
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    twice = [json.dumps(one)[1:-1] for one in escaped]  # JSON in JSON: the output of a tool in the output of its agent
    return [value, *escaped, *twice, percent, plus]


def literals(text: str, found: Iterable[str]) -> list[Span]:
    """Find every occurrence of the search strings, including overlapping ones."""
    return [Span(at, at + len(needle), at) for needle in found for at in places(needle, text)]


def at_edges(text: str, found: Iterable[str]) -> list[Span]:
    """Find known values that are cut off at the start or the end of the text."""
    result = []
    for needle in found:
        size = min(len(text), len(needle) - 1)
        at = text.find(needle[:_SHORTEST], len(text) - size) if size >= _SHORTEST else -1
        if at >= 0 and needle.startswith(text[at:]):
            result.append(Span(at, len(text), at))
        end = text.rfind(needle[-_SHORTEST:], 0, size) + _SHORTEST if size >= _SHORTEST else 0
        if end >= _SHORTEST and needle.endswith(text[:end]):
            result.append(Span(0, end, 0))
    return result
