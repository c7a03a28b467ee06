"""A place in a shell's text, and the few moves that every reader of it needs. It knows no grammar."""

from __future__ import annotations

import re
from typing import NoReturn

from jackline.domain.shell.model import NotParsed
from jackline.domain.shell.tree import Node

DEEPEST = 24  # a person's text has four or five levels; more is an attack on the reader's stack
LONGEST = 100_000

_BLANK = re.compile(r"(?:[ \t]+|\\\n)*(?:#[^\n]*)?")


class Scanner:
    """Where the reader stands."""

    def __init__(self, text: str, depth: int = 0, *, posix: bool = False) -> None:
        """`posix`: the text may be read by a shell that does not know bash's own syntax."""
        self.text = text
        self.end = len(text)
        self.at = 0
        self.depth = depth
        self.posix = posix
        self.substituted = 0  # how many `$(` are open
        self.braces = 0  # how many `${` are open
        self.inner: list[Node] = []  # what the substitutions of the word being read would run
        if self.end > LONGEST:
            self.fail(f"longer than {LONGEST} characters")
        if "\0" in text:
            self.fail("a NUL character in it")

    def wrong(self, reason: str) -> NotParsed:
        return NotParsed(f"{reason} (at character {self.at + 1})")

    def fail(self, reason: str) -> NoReturn:
        raise self.wrong(reason)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail("nested too deep")

    def bashism(self, what: str) -> None:
        """Syntax that plain shells read as something else: certain only where the shell is bash or zsh."""
        if self.posix:
            self.fail(f"{what} means something else to sh")

    def blank(self) -> None:
        """Pass over spaces, continued lines and a comment, up to the next token or the end of the line."""
        found = _BLANK.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            self.fail(f"{token} is missing")

    def upto(self, token: str) -> str:
        """Everything before the next `token`, which is passed over."""
        found = self.text.find(token, self.at)
        if found < 0:
            self.fail(f"{token} is not closed")
        passed = self.text[self.at : found]
        self.at = found + len(token)
        return passed
