"""Scanner over a shell script: position, lookahead, escapes. It does not know the grammar."""

from __future__ import annotations

import re
from typing import NoReturn

from jackline.shell.model import NotParsed, ShellNode, Word

MAX_DEPTH = 24  # people use four or five levels; more is an attack on the parser's stack
MAX_LENGTH = 100_000

_BLANK = re.compile(r"(?:[ \t]+|\\\n)*(?:#[^\n]*)?")


class Scanner:
    """The current position in a script, and the basic moves."""

    def __init__(self, text: str, depth: int = 0, *, posix: bool = False) -> None:
        """`posix`: the shell that reads the text may not support bash syntax."""
        self.text = text
        self.end = len(text)
        self.at = 0
        self.depth = depth
        self.posix = posix
        self.substituted = 0  # number of open `$(`
        self.is_document_substituted = False  # an open `$(` contains a here-document
        self.braces = 0  # number of open `${`
        self.inner: list[ShellNode] = []  # substitutions found in the current word
        if self.end > MAX_LENGTH:
            self.fail(f"the text is longer than {MAX_LENGTH} characters")
        if "\0" in text:
            self.fail("the text contains a NUL character")

    def build_error(self, reason: str) -> NotParsed:
        return NotParsed(f"{reason} (at character {self.at + 1})")

    def fail(self, reason: str) -> NoReturn:
        raise self.build_error(reason)

    def enter_level(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail("the text is nested too deeply")

    def reject_in_posix(self, what: str) -> None:
        """Reject syntax that a plain POSIX shell would read differently from bash and zsh."""
        if self.posix:
            self.fail(f"sh reads {what} differently")

    def skip_blank(self) -> None:
        """Skip spaces, continued lines and a comment, up to the next token or the end of the line."""
        found = _BLANK.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def accept(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"missing {token}")

    def read_until(self, token: str) -> str:
        """Return everything before the next `token`, and skip the token."""
        found = self.text.find(token, self.at)
        if found < 0:
            self.fail(f"unclosed {token}")
        passed = self.text[self.at : found]
        self.at = found + len(token)
        return passed


# --- characters of words

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(c.)|(.))",
    re.DOTALL,
)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASCII = 0x7F
_INDEXED = re.compile(r"[A-Za-z0-9_]\[")
_TILDE = re.compile(r"(?:^|[=:])~")


def decode_ansi_quote(body: str) -> Word:
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


def may_expand(bare: str) -> bool:
    """Check whether a shell may expand these unquoted characters: a glob, a tilde or a brace list.

    False positives are allowed, false negatives are not. It runs in linear time.
    """
    if "*" in bare or "?" in bare or ("~" in bare and _TILDE.search(bare) is not None):
        return True
    if "[" in bare and bare.rfind("]") > bare.find("["):
        return True
    opened, closed = bare.find("{"), bare.rfind("}")
    return 0 <= opened < closed and ("," in bare[opened:closed] or ".." in bare[opened:closed])


def hides_command(literal: str) -> bool:
    """Check for a literal such as 'a[$(rm x)]', which shells run when they evaluate a name as arithmetic."""
    found = _INDEXED.search(literal)
    return found is not None and ("$(" in literal[found.end() :] or "`" in literal[found.end() :])
