"""What must not be written down, and how a text is freed of it. Pure: known values are handed in.

Keys of calls are made before this, from the whole input. Nothing is compiled until a text gives a reason to.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.domain.secrets.literals import at_edges, literals, needles
from jackline.domain.secrets.tokens import PRIVATE_KEY, Span, has_run
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED = "[redacted]"
_SHORTEST_TEXT = 6
_SHORTEST_COMMAND = 2  # words
_LONGEST_PROGRAM = 40  # characters of its path that are looked at
_MOST_ROUNDS = 5  # what stands between two secrets may look like one when both are gone

TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+/=\\"
# As in `names`, which is not loaded until one of them is seen. Each costs a pass over every text.
_STEMS = (b"pass", b"secret", b"token", b"key", b"auth", b"cookie")
_OTHER_STEMS = (b"pwd", b"credential")  # for the names of JSON objects, which are short
_BEARER = "earer "  # with and without a capital
_URL, _AT, _PRIVATE_KEY = b"://", b"@", PRIVATE_KEY.encode()
_SIGNATURES = (b"sig=", b"nature=")  # of a URL that opens what it names
# As in `commands`: what has secrets behind it, or behind its flags. Some of them need a flag, some have a stem.
_PROGRAMS = (b"curl", b"mysql", b"mariadb", b"redis-cli", b" login")
_FLAGLESS = (b"machine ", b"asic ")
_STEMMED = (b"sshpass", b"openssl")


class Clues(NamedTuple):
    """What in some bytes gives reason to look closer."""

    names: bool
    runs: bool
    urls: bool
    keys: bool
    flags: bool = False

    @classmethod
    def of(cls, data: bytes) -> Clues:
        """A few passes of the fastest kind; false only where there is nothing to find."""
        names = _has_joint(data) and _has(_STEMS, data.lower())
        urls = _URL in data and (_AT in data or _has(_SIGNATURES, data))
        flags = (b"-" in data and _has(_PROGRAMS, data)) or _has(_FLAGLESS, data) or (names and _has(_STEMMED, data))
        return cls(names, has_run(data), urls, _PRIVATE_KEY in data, flags)


def _has_joint(data: bytes) -> bool:
    """Whether a name could have a value here: to look for one character costs nearly nothing."""
    return b"=" in data or b":" in data or b"-" in data or b">" in data


def _has(pieces: tuple[bytes, ...], data: bytes) -> bool:
    for piece in pieces:  # noqa: SIM110 - any() costs twice as much, and every text comes by here
        if piece in data:
            return True
    return False


class Redactor:
    """Frees texts of secrets: of those whose values are known, and of those that their shape or their name betrays."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are found as they are, and as JSON or a URL would spell them."""
        self.values = tuple(dict.fromkeys(values))
        self._needles = needles(self.values)

    def redact(self, text: str) -> str:
        """The text with `[redacted]` in the place of each secret; what was redacted before is left alone."""
        for _ in range(_MOST_ROUNDS):
            found = self._find(text)
            if not found:
                break
            text = _replaced(text, found)
        return text

    def finds(self, text: str) -> bool:
        """Whether there is anything to redact."""
        return bool(self._find(text))

    def value(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Nested data without its secrets, also those that stand under a name that says so."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            named = value.get("name") if "value" in value else None  # one of a list of variables
            return {
                self._name(name): self._under(named if name == "value" and named else name, one)
                for name, one in value.items()
            }
        if isinstance(value, list | tuple):
            return self._words(value)
        return value

    def json(self, text: str) -> str:
        """JSON as text, which stays JSON; what is none is redacted as it stands."""
        clues = Clues.of(text.encode("utf-8", "surrogatepass"))
        may_have_names = clues.names or any(stem.decode() in text.lower() for stem in _OTHER_STEMS)
        if not may_have_names and not spans(text, clues) and not self._knows(text):
            return text
        try:
            value = json.loads(text)
            clean = self.value(value)
        except (ValueError, RecursionError):
            return self.redact(text)
        return text if clean == value else canonical(clean)

    def _find(self, text: str) -> list[Span]:
        if len(text) < _SHORTEST_TEXT:
            return []
        known = [*literals(text, self._needles), *at_edges(text, self._needles)]
        clues = Clues.of(text.encode("utf-8", "surrogatepass"))
        return joined([*known, *spans(text, clues)]) if any(clues) else joined(known)

    def _knows(self, text: str) -> bool:
        return any(needle in text for needle in self._needles)

    def _name(self, name: object) -> object:
        return self.redact(name) if isinstance(name, str) else name

    def _under(self, name: object, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(name, str) and isinstance(value, str | int | list) and is_named_secret(name):
            return self._emptied(name, value)
        return REDACTED if isinstance(value, str) and _is_basic_auth(name, value) else self.value(value)

    def _emptied(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
        from jackline.domain.secrets.names import is_place_holder

        if isinstance(value, str):
            return self.redact(value) if not value or is_place_holder(value) else REDACTED
        if isinstance(value, list):
            return [self._under(name, one) for one in value]
        # The number of an attempt is called its token; a password may be a number, too.
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return REDACTED if is_number and "pass" in name.lower() else value

    def _words(self, words: list[Any] | tuple[Any, ...]) -> list[Any]:
        """A list may be a command: the word behind `--api-key` is its value."""
        clean, before = [], ""
        program = _program_of(words)
        for word in words:
            behind_flag = before.startswith("-") and "=" not in before and isinstance(word, str)
            is_value = behind_flag and not word.startswith("-") and is_named_secret(before.lstrip("-"))
            if is_value:
                clean.append(self._emptied(before, word))
            elif program and isinstance(word, str):
                clean.append(self.redact(_replaced(word, _told_by_flag([program, before, word]))))
            else:
                clean.append(self.value(word))
            before = word if isinstance(word, str) else ""
        return clean


def _program_of(words: list[Any] | tuple[Any, ...]) -> str:
    """The beginning of a command whose flags have secrets behind them; empty for every other list."""
    if len(words) < _SHORTEST_COMMAND or not (isinstance(words[0], str) and isinstance(words[1], str)):
        return ""
    begun = f"{words[0][-_LONGEST_PROGRAM:]} {words[1] if words[1] == 'login' else ''}"
    return begun if _has(_PROGRAMS + _STEMMED, begun.encode("utf-8", "surrogatepass")) else ""


def _told_by_flag(words: list[str]) -> list[Span]:
    from jackline.domain.secrets.commands import told_by_flag

    return told_by_flag(words)


def spans(text: str, clues: Clues) -> list[Span]:
    """Every secret that its shape or its name betrays."""
    from jackline.domain.secrets import tokens

    found = tokens.tokens(text) if clues.runs else []
    is_borne = clues.runs and _BEARER in text
    if is_borne or clues.names or clues.urls:  # not for the sake of an id, which is as long as a token
        found += _told_by_words(text, clues)
    if clues.flags:
        from jackline.domain.secrets.commands import told_by_flags

        found += told_by_flags(text)
    if clues.keys:
        found += _as_one(text, tokens.private_keys(text)[0])
    return found


def _told_by_words(text: str, clues: Clues) -> list[Span]:
    from jackline.domain.secrets import names

    found = names.bearers(text) if clues.runs else []
    if clues.names:
        found += names.named(text, _ascii_lower(text))
    if clues.urls:
        from jackline.domain.secrets.urls import in_urls

        found += in_urls(text)
    return found


def _as_one(text: str, lines: list[Span]) -> list[Span]:
    """The lines of a private key, which are one secret."""
    result: list[Span] = []
    for line in lines:
        if result and not any(one.isalnum() for one in text[result[-1].end : line.start]):
            result[-1] = result[-1]._replace(end=line.end)
        else:
            result.append(line)
    return result


def _ascii_lower(text: str) -> str:
    """As long as the text: the lower case of a letter elsewhere may be two."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def joined(found: list[Span]) -> list[Span]:
    """In their order, overlapping ones as one."""
    result: list[Span] = []
    for span in sorted(found):
        if result and span.start <= result[-1].end:
            last = result[-1]
            result[-1] = Span(last.start, max(last.end, span.end), min(last.context, span.context))
        else:
            result.append(span)
    return result


def _replaced(text: str, found: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, _ in found:
        pieces += [text[at:start], REDACTED]
        at = end
    return "".join([*pieces, text[at:]])


def is_named_secret(name: str) -> bool:
    """Whether what stands under this name is a secret; cheap for the names that are none."""
    lower = name.lower().encode("utf-8", "surrogatepass")
    if not _has(_STEMS, lower) and not _has(_OTHER_STEMS, lower):
        return False
    from jackline.domain.secrets.names import is_secret_name

    return is_secret_name(name)


def _is_basic_auth(name: object, value: str) -> bool:
    """As the files of docker and npm have it."""
    if not isinstance(name, str) or not name.lower().endswith("auth"):
        return False
    from jackline.domain.secrets.commands import is_basic

    return is_basic(value)
