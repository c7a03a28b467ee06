"""Decodes the escapes of `$'…'` and detects unquoted characters that a shell expands."""

from __future__ import annotations

import re

from jackline.domain.shell.model import NotParsed, Word

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(c.)|(.))",
    re.DOTALL,
)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASCII = 0x7F
_INDEXED = re.compile(r"[A-Za-z0-9_]\[")
_TILDE = re.compile(r"(?:^|[=:])~")


def ansi(body: str) -> Word:
    """Decode `$'body'`. The word is not exact if a character depends on the shell or its locale."""
    exact = True

    def decode_escape(found: re.Match[str]) -> str:
        nonlocal exact
        letter, octal, byte, short, long, control, other = found.groups()
        if letter is not None:
            return _LETTERS.get(letter, letter)
        if control is not None or other is not None:
            exact = False
            return found.group()
        code = int(octal, 8) if octal is not None else int(byte or short or long, 16)
        if code == 0:
            raise NotParsed("$'…' contains a NUL character")
        if code > _ASCII:  # a byte of a multi-byte character, or a character that the locale may lack
            exact = False
            return found.group()
        return chr(code)

    text = _ESCAPE.sub(decode_escape, body)
    return Word(text, exact)


def replaced(bare: str) -> bool:
    """Check whether a shell may expand these unquoted characters: a glob, a tilde or a brace list.

    False positives are allowed, false negatives are not. It runs in linear time.
    """
    if "*" in bare or "?" in bare or ("~" in bare and _TILDE.search(bare) is not None):
        return True
    if "[" in bare and bare.rfind("]") > bare.find("["):
        return True
    opened, closed = bare.find("{"), bare.rfind("}")
    return 0 <= opened < closed and ("," in bare[opened:closed] or ".." in bare[opened:closed])


def hides(literal: str) -> bool:
    """Check for a literal such as 'a[$(rm x)]', which shells run when they evaluate a name as arithmetic."""
    found = _INDEXED.search(literal)
    return found is not None and ("$(" in literal[found.end() :] or "`" in literal[found.end() :])
