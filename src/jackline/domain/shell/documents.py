"""Parses redirections and here-documents, whose bodies follow the line. It opens no file."""

from __future__ import annotations

import re

from jackline.domain.shell.model import Redirect, Word
from jackline.domain.shell.tree import Simple
from jackline.domain.shell.words import Read, Words
from jackline.named import NamedTuple

_REDIRECT = re.compile(r"(?:([0-9]{1,9})|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-|<<|<>|<&|<|>>|>&|>\||>)(?!\()|(&>>?)")
_COPY = re.compile(r"[0-9]+-?|-")
_DEFAULTS = {">": "1", "<": "0"}


class Here(NamedTuple):
    """A here-document whose body has not been read yet."""

    simple: Simple
    delimiter: str
    indented: bool  # `<<-`: leading tabs are removed
    quoted: bool  # its body is not expanded
    standard: bool  # it is the command's standard input


class Documents(Words):
    """Parses redirections into a simple command."""

    def __init__(self, text: str, depth: int = 0, *, posix: bool = False) -> None:
        super().__init__(text, depth, posix=posix)
        self.waiting: list[Here] = []
        self.held = False  # a here-document of an outer text is pending: shells differ about the next line

    def redirect(self, simple: Simple) -> bool:
        """Parse the redirection at the current position; return False if there is none."""
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return False
        number, operator = found.group(1) or "", found.group(2) or found.group(3)
        self.at = found.end()
        if operator.startswith("&"):
            self.bashism("&>")
        self.blank()
        read = self.word()
        if read.plain and read.word.text.startswith("!"):
            self.fail("zsh reads >! differently")
        if operator.startswith("<<"):
            self.here(simple, operator, number, read)
        else:
            self.opened(simple, operator, number, read.word)
        return True

    def opened(self, simple: Simple, operator: str, number: str, target: Word) -> None:
        if operator.endswith("&") and target.exact and _COPY.fullmatch(target.text):
            return
        if operator == ">&":
            operator = ">" if number else "&>"
        if number == _DEFAULTS.get(operator[0]):
            number = ""
        if operator[0] == "<" and not number:
            self.reads(simple, Word("", exact=False))
        simple.redirects.append(Redirect(number + operator.removesuffix("&"), target))

    def reads(self, simple: Simple, text: Word) -> None:
        """Add a source of standard input. Several sources are joined, because shells differ about which one counts."""
        simple.stdin = text if simple.stdin is None else Word(simple.stdin.text + text.text, exact=False)

    def here(self, simple: Simple, operator: str, number: str, read: Read) -> None:
        standard = number in ("", "0")
        if operator == "<<<":
            self.bashism("<<<")
            if standard:
                self.reads(simple, Word(read.word.text + "\n", read.word.exact))
            return
        if read.expanded or "\n" in read.word.text:
            self.fail("here-document delimiter is not plain")
        self.waiting.append(Here(simple, read.word.text, operator == "<<-", not read.plain, standard))

    def newline(self) -> None:
        """Consume the end of a line and the here-documents that follow it."""
        self.expect("\n")
        if self.held:
            self.fail("line break inside a substitution while a here-document is pending")
        for here in self.waiting:
            self.body(here)
        self.waiting.clear()

    def body(self, here: Here) -> None:
        lines: list[str] = []
        while True:
            if self.at > self.end:
                self.fail(f"here-document without the line {here.delimiter}")
            line, continued = self.line(here)
            if line == here.delimiter and not continued:
                break
            lines.append(line + "\n")
        self.at = min(self.at, self.end)
        self.filled(here, "".join(lines))

    def line(self, here: Here) -> tuple[str, bool]:
        """Read the next line of a body. True means that it ends with a backslash and was joined with the next ones."""
        found = self.text.find("\n", self.at)
        stop = self.end if found < 0 else found
        line = self.text[self.at : stop]
        self.at = stop + 1
        if here.indented:
            line = line.lstrip("\t")
        if here.quoted or not _is_continued(line):
            return line, False
        return self.joined(here, line), True

    def joined(self, here: Here, line: str) -> str:
        """Join continued lines. Reject them if one of them, or all together, may be the delimiter."""
        lines = [line]
        while _is_continued(lines[-1]) and self.at <= self.end:
            found = self.text.find("\n", self.at)
            stop = self.end if found < 0 else found
            lines.append(self.text[self.at : stop])
            self.at = stop + 1
        whole = "".join(part.removesuffix("\\") for part in lines)
        ends = {part.strip("\t") for part in [*lines, whole]}
        if here.delimiter in ends:
            self.fail("continued line at the end of a here-document")
        return "\n".join(lines)

    def filled(self, here: Here, body: str) -> None:
        text = Word(body)
        if not here.quoted:
            reader = self.sub_reader(body)
            text = reader.document()
            here.simple.inner.extend(reader.inner)
        if here.standard:
            self.reads(here.simple, text)

    def sub_reader(self, text: str) -> Words:
        """Build a parser for another text, one level deeper."""
        raise NotImplementedError


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
