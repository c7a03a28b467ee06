"""Secrets in a stream of bytes, covered by as many bytes: offsets stay true, and a line of JSON stays JSON. Pure.

A secret never reaches beyond a line, apart from a private key, which is covered line by line. So only the line that is
not finished is held back, of a long one no more than a window. How the stream was cut into chunks makes no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain import secrets
from jackline.domain.secrets import Clues, joined
from jackline.domain.secrets.literals import literals, needles
from jackline.domain.secrets.tokens import PRIVATE_KEY, Span, private_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW = 65_536  # bytes that are looked at together
_AHEAD = 8_192  # of a window without a line's end: so much is looked at again with what follows
_BACK = 1_024  # how far back a long line is cut between two words, if there is a place
_OPEN, _CLOSE = "[redacted", "]"
_PRIVATE_KEY = PRIVATE_KEY.encode()
_GAPS = (b" ", b",", b'"', b"\t")


class Mask:
    """Covers the secrets of one stream."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are known to be secret; the rest is known by its shape or its name."""
        # Bytes are read as Latin-1, one character for each: so are the values.
        self._needles = tuple(one.encode("utf-8", "surrogatepass").decode("latin-1") for one in needles(values))
        self._known = tuple(needle.encode("latin-1") for needle in self._needles)
        self._held = b""
        self._in_key = False
        self._in_secret = False  # one that is longer than a window

    def feed(self, chunk: bytes) -> bytes:
        """What can be written now: every line that is finished, and of a long one all that is sure."""
        data = self._held + chunk if self._held else chunk
        written, at = [], 0
        while len(data) > at:
            window = data[at : at + WINDOW]
            end = max(window.rfind(b"\n"), window.rfind(b"\r")) + 1
            if end:
                written.append(self._lines(window[:end]))
            elif len(window) == WINDOW:
                covered = self._long(window)
                written.append(covered)
                end = len(covered)
            else:
                break
            at += end
        self._held = data[at:]
        return written[0] if len(written) == 1 else b"".join(written)

    def end(self) -> bytes:
        """The last line, which has no end."""
        held, self._held = self._held, b""
        return self._lines(held) if held else b""

    def _lines(self, data: bytes) -> bytes:
        return _covered(data, joined(self._find(data)))

    def _long(self, window: bytes) -> bytes:
        """The beginning of a line that is longer than a window, cut where no secret is."""
        was_in_key = self._in_key
        found = joined(self._find(window))
        cut = _cut(window)
        across = next((span for span in found if span.context < cut < span.end), None)
        if across is not None and across.context > 0:
            cut = across.context
        elif across is not None:
            self._in_secret = True
        self._in_key = private_keys(window[:cut].decode("latin-1"), inside=was_in_key)[1]
        return _covered(window[:cut], [span._replace(end=min(span.end, cut)) for span in found if span.start < cut])

    def _find(self, data: bytes) -> list[Span]:
        found = self._rest(data) if self._in_secret else []
        if self._in_key or _PRIVATE_KEY in data:
            keys, self._in_key = private_keys(data.decode("latin-1"), inside=self._in_key)
            found += keys
        if any(needle in data for needle in self._known):
            found += literals(data.decode("latin-1"), self._needles)
        clues = Clues.of(data)._replace(keys=False)
        if any(clues):
            found += secrets.spans(data.decode("latin-1"), clues)
        return found

    def _rest(self, data: bytes) -> list[Span]:
        """What is left of a secret that began windows ago."""
        size = len(data) - len(data.lstrip(secrets.TOKEN_BYTES))
        self._in_secret = size == len(data) == WINDOW
        return [Span(0, size, 0)] if size else []


def _cut(window: bytes) -> int:
    """Where to cut a window without a line's end: between two words if there are any."""
    latest = len(window) - _AHEAD
    gap = max(window.rfind(one, latest - _BACK, latest) for one in _GAPS)
    return gap + 1 if gap > 0 else latest


def _covered(data: bytes, found: list[Span]) -> bytes:
    if not found:
        return data
    pieces, at = [], 0
    for start, end, _ in found:
        pieces += [data[at:start], _cover(data[start:end])]
        at = end
    return b"".join([*pieces, data[at:]])


def _cover(secret: bytes) -> bytes:
    """As many bytes; a number stays one, because it may be a number of JSON."""
    size = len(secret)
    if secret.isdigit():
        return b"9" * size
    spare = size - len(_OPEN) - len(_CLOSE)
    if spare < 0:
        return b"*" * size
    return f"{_OPEN}{'*' * spare}{_CLOSE}".encode()
