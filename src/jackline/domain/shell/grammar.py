"""Shell grammar: redirections, here-documents, lists, pipelines and simple commands. It does not interpret commands."""

from __future__ import annotations

import re

from jackline.domain.shell.model import Apart, Chain, Function, Node, Redirect, Series, Simple, Word
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


_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|case|esac|do|done|function|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|\Z)"
)
_CLOSING = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])
_KEYWORDS = _CLOSING | {"if", "while", "until", "for", "select", "case", "function", "coproc", "{", "!", "[["}
_TIMED = re.compile(r"time[ \t]+(?:(?:-p|--)[ \t]+)?(?=\(|(?:if|while|until|for|select|case|\{|!|\[\[)[ \t\n])")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_PROMPT = re.compile(r"(?:PS[0-4]|PROMPT_COMMAND)\+?=")
_DECLARING = frozenset(["declare", "typeset", "local", "export", "readonly"])
# Builtins that evaluate an argument such as 'a[$(rm x)]'.
_EVALUATING = _DECLARING | {"test", "[", "let", "unset", "read", "printf", "wait", "mapfile", "readarray", "getopts"}


class Grammar(Documents):
    """Parses lists of commands. The subclass adds compound commands."""

    def compound(self) -> Node | None:
        """Parse the compound command at the current position, if there is one."""
        raise NotImplementedError

    def keyword(self) -> str:
        found = _KEYWORD.match(self.text, self.at)
        return found.group() if found is not None else ""

    def newlines(self) -> None:
        self.blank()
        while self.peek() == "\n":
            self.newline()
            self.blank()

    def series(self, *closers: str) -> Series:
        """Parse commands up to one of the closers, without consuming it; "" is the end of the text."""
        items: list[Node] = []
        self.newlines()
        while not self.closing(closers):
            node = self.chain()
            self.blank()
            separator = self.separator()
            items.append(Apart((node,)) if separator == "&" else node)
            if not separator and not self.closing(closers):
                self.fail("missing separator between two commands")
            self.newlines()
        return Series(tuple(items))

    def closing(self, closers: tuple[str, ...]) -> bool:
        following = self.peek(2)
        found = following if following in (";;", ";&") else following[:1] if following[:1] == ")" else self.keyword()
        if following and found not in _CLOSING and found not in (";;", ";&", ")"):
            return False
        if found not in closers:
            self.fail(f"unexpected {found or 'end'}")
        return True

    def separator(self) -> str:
        """Consume the end of a command: `;`, `&` or a line break."""
        following = self.peek(2)
        if following[:1] == "\n":
            self.newline()
            return "\n"
        if following[:1] in (";", "&") and following not in (";;", ";&"):
            self.at += 1
            return following[0]
        return ""

    def chain(self) -> Node:
        first, rest = self.pipeline(), list[tuple[str, Node]]()
        while (operator := self.peek(2)) in ("&&", "||"):
            self.at += 2
            self.newlines()
            rest.append((operator, self.pipeline()))
        return Chain(first, tuple(rest)) if rest else first

    def pipeline(self) -> Node:
        self.negations()
        items = [self.command()]
        self.blank()
        while self.peek() == "|" and self.peek(2) != "||":
            self.at += 2 if self.peek(2) == "|&" else 1
            self.newlines()
            items.append(self.command())
            self.blank()
        return Apart(tuple(items), pipe=True) if len(items) > 1 else items[0]

    def negations(self) -> None:
        while True:
            if (timed := _TIMED.match(self.text, self.at)) is not None:
                self.at = timed.end()
            elif self.keyword() == "!" and self.peek(2) != "!(":
                self.at += 1
            else:
                return
            self.blank()

    def command(self) -> Node:
        node = self.compound()
        if node is None:
            return self.simple()
        files = self.fresh()
        self.blank()
        while self.redirect(files):
            self.blank()
        return Series((files, node))

    def fresh(self) -> Simple:
        """Start a simple command, which collects the substitutions parsed from now on."""
        simple = Simple(self.depth)
        self.inner = simple.inner
        return simple

    def simple(self) -> Node:
        simple, start = self.fresh(), self.at
        name = ""  # the function name, if `(` follows
        while True:
            self.blank()
            if self.redirect(simple):
                name = ""
            elif self.peek() == "(" and name:
                return self.function(name)
            elif self.peek() in ("", "\n", ";", "&", "|", ")"):
                break
            else:
                name = self.argument(simple)
        if self.at == start:
            self.fail("missing command")
        return simple

    def argument(self, simple: Simple) -> str:
        """Parse one word of a command; return it if it may be the name of a function."""
        if not simple.words:
            self.plain_index()
        first = simple.words[0].text if simple.words else None
        read = self.word(arrays=first is None or first in _DECLARING)
        opens = self.peek() in ("<", ">")  # in `{a[…]}>file` the index is evaluated
        if read.hiding and (read.assignment or opens or first in _EVALUATING):
            self.fail("word would run a command as arithmetic")
        if read.assignment and _PROMPT.match(read.word.text) and ("$(" in read.word.text or "`" in read.word.text):
            self.fail("prompt would run a command")
        if first is None and read.plain and read.word.text in _KEYWORDS:
            self.fail(f"unexpected {read.word.text}")
        (simple.assignments if first is None and read.assignment else simple.words).append(read.word)
        plain = read.plain and _FUNCTION_NAME.fullmatch(read.word.text) is not None
        return read.word.text if plain and first is None and not simple.assignments else ""

    def function(self, name: str) -> Node:
        """Parse `()` after a name, and the function body."""
        self.at += 1
        self.blank()
        self.expect(")")
        return self.body_of(name)

    def body_of(self, name: str) -> Node:
        """Parse a function body, which is a compound command."""
        self.newlines()
        if self.keyword() in ("", "!", "function", "coproc") and self.peek() != "(":
            self.fail("missing function body")
        return Function(name, self.command())
