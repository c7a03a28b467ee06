"""Shell grammar: redirections, here-documents, lists, pipelines and simple commands. It does not interpret commands."""

from __future__ import annotations

import re

from jackline.domain.shell.documents import Documents
from jackline.domain.shell.tree import Apart, Chain, Function, Node, Series, Simple

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
