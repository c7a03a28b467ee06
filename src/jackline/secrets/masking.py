"""Masks secrets in a byte stream with the same number of bytes, so that offsets and JSON lines stay valid. Pure.

A secret never spans lines, except a private key, which is masked line by line. So only the unfinished line is buffered,
at most one window of it. The result does not depend on how the stream is split into chunks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.secrets.redactor import TOKEN_BYTES, SecretClues, build_needles, find_literals, find_spans, merge_spans
from jackline.secrets.tokens import PRIVATE_KEY, Span, find_private_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW = 65_536  # bytes that are searched together
_AHEAD = 8_192  # bytes at the end of a window without a line break that are searched again with the next bytes
_BACK = 1_024  # how far back to look for a gap between words to split a long line
_OPEN, _CLOSE = "[redacted", "]"
_PRIVATE_KEY = PRIVATE_KEY.encode()
_GAPS = (b" ", b",", b'"', b"\t")


class SecretMask:
    """Masks the secrets of one stream."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are known secrets; others are recognized by shape or name."""
        # Bytes and values are decoded as Latin-1, so that each byte is one character.
        self._needles = tuple(one.encode("utf-8", "surrogatepass").decode("latin-1") for one in build_needles(values))
        self._known = tuple(needle.encode("latin-1") for needle in self._needles)
        self._held = b""
        self._in_key = False
        self._in_secret = False  # a secret that is longer than a window

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes that can be written now: finished lines, and the settled part of a long line."""
        data = self._held + chunk if self._held else chunk
        written, at = [], 0
        while len(data) > at:
            window = data[at : at + WINDOW]
            end = max(window.rfind(b"\n"), window.rfind(b"\r")) + 1
            if end:
                written.append(self._mask_lines(window[:end]))
            elif len(window) == WINDOW:
                covered = self._mask_long_line(window)
                written.append(covered)
                end = len(covered)
            else:
                break
            at += end
        self._held = data[at:]
        return written[0] if len(written) == 1 else b"".join(written)

    def end(self) -> bytes:
        """Return the last line, which has no line break."""
        held, self._held = self._held, b""
        return self._mask_lines(held) if held else b""

    def _mask_lines(self, data: bytes) -> bytes:
        return _mask_spans(data, merge_spans(self._find_spans(data)))

    def _mask_long_line(self, window: bytes) -> bytes:
        """Mask the start of a line that is longer than a window, split outside of any secret."""
        was_in_key = self._in_key
        found = merge_spans(self._find_spans(window))
        cut = _find_split(window)
        across = next((span for span in found if span.context < cut < span.end), None)
        if across is not None and across.context > 0:
            cut = across.context
        elif across is not None:
            self._in_secret = True
        self._in_key = find_private_keys(window[:cut].decode("latin-1"), inside=was_in_key)[1]
        return _mask_spans(window[:cut], [span._replace(end=min(span.end, cut)) for span in found if span.start < cut])

    def _find_spans(self, data: bytes) -> list[Span]:
        found = self._find_rest(data) if self._in_secret else []
        if self._in_key or _PRIVATE_KEY in data:
            keys, self._in_key = find_private_keys(data.decode("latin-1"), inside=self._in_key)
            found += keys
        if any(needle in data for needle in self._known):
            found += find_literals(data.decode("latin-1"), self._needles)
        clues = SecretClues.find_clues(data)._replace(keys=False)
        if any(clues):
            found += find_spans(data.decode("latin-1"), clues)
        return found

    def _find_rest(self, data: bytes) -> list[Span]:
        """Find the rest of a secret that began in an earlier window."""
        size = len(data) - len(data.lstrip(TOKEN_BYTES))
        self._in_secret = size == len(data) == WINDOW
        return [Span(start=0, end=size, context=0)] if size else []


def _find_split(window: bytes) -> int:
    """Return where to split a window without a line break, preferably between two words."""
    latest = len(window) - _AHEAD
    gap = max(window.rfind(one, latest - _BACK, latest) for one in _GAPS)
    return gap + 1 if gap > 0 else latest


def _mask_spans(data: bytes, found: list[Span]) -> bytes:
    if not found:
        return data
    pieces, at = [], 0
    for start, end, _ in found:
        pieces += [data[at:start], _build_mask(data[start:end])]
        at = end
    return b"".join([*pieces, data[at:]])


def _build_mask(secret: bytes) -> bytes:
    """Return a mask of the same length; a number stays a number, because it may be a JSON value."""
    size = len(secret)
    if secret.isdigit():
        return b"9" * size
    spare = size - len(_OPEN) - len(_CLOSE)
    if spare < 0:
        return b"*" * size
    return f"{_OPEN}{'*' * spare}{_CLOSE}".encode()
