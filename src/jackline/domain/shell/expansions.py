"""Quotes, and what a `$` or a backtick begins, read to its end for what it would run. It expands nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from jackline.domain.shell.escapes import ansi
from jackline.domain.shell.model import Word
from jackline.domain.shell.scan import Scanner
from jackline.domain.shell.tree import Apart, Node, Simple
from jackline.domain.shell.variables import counted, unknown_value

if TYPE_CHECKING:
    from collections.abc import Iterable

# Where an expansion stands: outside of quotes, inside of double quotes, or in a here-document.
Mode: TypeAlias = Literal["bare", "quoted", "document"]

_QUOTED = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_PARAMETER = re.compile(r"\$\{[#!]?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_DEFAULT = re.compile(r"(?:\[[^]'\"$`\\]*\])?:?[-=+?]")
_ASSIGNING = re.compile(r":{0,2}=")
_INSIDE = re.compile(r"[^}\\'\"$`{<>@]+")
_NUMBERS = re.compile(r"[^()'\"\\$`]+")
_PLAIN_QUOTES = re.compile(r"\"[^\"'`()\\]*\"|'[^\"'`()\\]*'")
_PARENTHESES = re.compile(r"[()'\"\\]")
_TICKED = re.compile(r"[^`\\]*(?:\\.[^`\\]*)*", re.DOTALL)
_UNTICKED = re.compile(r"\\([`\\$])")
_ZSH_ONLY = "=~^+"  # `$~name` is an expansion to zsh and plain letters to bash


class Expansions(Scanner):
    """Reads one expansion at a time; what it would run is added to `inner`."""

    def program(self, closer: str) -> Node:
        """Everything up to `closer`; the grammar says how."""
        raise NotImplementedError

    def text_program(self, text: str) -> Node:
        """The shape of another text, one level deeper."""
        raise NotImplementedError

    def double(self) -> Word:
        """A text in double quotes; the reader stands on the first one."""
        self.at += 1
        parts, exact = [], True
        while not self.take('"'):
            if (run := _QUOTED.match(self.text, self.at)) is not None:
                self.at = run.end()
                parts.append(run.group())
                continue
            word = self.special("quoted", '$`"\\')
            parts.append(word.text)
            exact = exact and word.exact
        return Word("".join(parts), exact)

    def special(self, mode: Mode, escapable: str) -> Word:
        """A backslash, a `$` or a backtick where most letters stand for themselves."""
        match self.peek():
            case "\\":
                return Word(self.escaped(escapable))
            case "$":
                return self.dollar(mode)
            case "`":
                return self.backtick(mode)
            case _:
                raise self.wrong("a quote or a brace is not closed")

    def escaped(self, escapable: str) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        if not letter:
            self.fail("a backslash at the end")
        self.refuse_literal(letter)
        self.at += 2
        if letter == "\n":
            return ""
        return letter if letter in escapable else "\\" + letter

    def dollar(self, mode: Mode) -> Word:
        """The word that begins with a `$`; as written, and not exact, where a shell would replace it."""
        start, following = self.at, self.text[self.at + 1 : self.at + 3]
        match following[:1]:
            case "(" if following == "((":
                self.at += 3
                self.arithmetic()
            case "(":
                self.at += 2
                self.substitution()
            case "{":
                self.parameter(mode)
            case "'" | '"' if mode == "bare":
                return self.dollar_quote()
            case "[":
                self.fail("old arithmetic: $[")
            case "\\" if following == "\\\n":
                self.fail("a line that goes on after a $")
            case _:
                return self.named(following[:1])
        return Word(self.text[start : self.at], exact=False)

    def named(self, letter: str) -> Word:
        found = _NAME.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at + 1
        if found is not None:
            return Word(found.group(), exact=False)
        self.refuse_literal("$")
        return Word("$", exact=not letter or letter not in _ZSH_ONLY)

    def dollar_quote(self) -> Word:
        self.at += 1
        if self.peek() == '"':  # translated by bash, and a `$` before a text to others
            return self.double()._replace(exact=False)
        self.bashism("$'…'")
        start = self.at + 1
        self.at = start
        while (letter := self.peek()) != "'":
            if not letter:
                self.fail("a quote is not closed")
            self.at += 2 if letter == "\\" else 1
        self.at += 1
        word = ansi(self.text[start : self.at - 1])
        if self.braces and not word.exact:
            self.fail("a letter that depends on the shell in ${…}")
        self.refuse_literal(word.text)
        return word

    def refuse_literal(self, text: str) -> None:
        """Reject a quoted `$` or backtick in `${…}`: bash removes the quotes of an index or offset, then expands it."""
        if self.braces and ("$" in text or "`" in text):
            self.fail("a quoted $ or backtick in ${…}")

    def substitution(self) -> None:
        """What stands between `(` and `)`; the reader is past the first."""
        outside, self.inner = self.inner, []
        braces, self.braces = self.braces, 0
        self.substituted += 1
        node = self.program(")")
        self.substituted -= 1
        self.inner, self.braces = outside, braces
        self.inner.append(Apart((node,)))

    def backtick(self, mode: Mode) -> Word:
        start = self.at
        found = _TICKED.match(self.text, start + 1)
        self.at = self.end if found is None else found.end()
        body = self.text[start + 1 : self.at]
        self.expect("`")
        if mode != "bare" and '\\"' in body:  # POSIX leaves open what it means, and shells differ
            self.fail("an escaped quote between backticks inside of quotes")
        shown = _UNTICKED.sub(r"\1", body)
        self.inner.append(Apart((self.text_program(shown),)))
        return Word(self.text[start : self.at], exact=False)

    def arithmetic(self) -> None:
        """Numbers up to the matching `))`. What ends otherwise may be a subshell: nobody has to guess."""
        self.deeper()
        start, opened = self.at, 0
        while True:
            if (run := _NUMBERS.match(self.text, self.at)) is not None:
                self.at = run.end()
            match self.peek():
                case "(":
                    opened += 1
                    self.at += 1
                case ")" if opened:
                    opened -= 1
                    self.at += 1
                case ")":
                    self.expect("))")
                    break
                case '"':
                    self.double()
                case _:
                    self.special("quoted", "")
        self.balanced(self.text[start : self.at - 2])
        self.sets(counted(self.text[start : self.at - 2]))
        self.depth -= 1

    def sets(self, assignments: Iterable[Word]) -> None:
        """Note what an expansion assigns, as a command of its own before the one that it stands in."""
        simple = Simple(self.depth)
        simple.assignments.extend(assignments)
        if simple.assignments:
            self.inner.append(simple)

    def balanced(self, numbers: str) -> None:
        """Shells first look for the `))` without understanding what is between: it must be plain to them, too."""
        rest = _PLAIN_QUOTES.sub("", numbers)
        opened = 0
        for letter in _PARENTHESES.findall(rest):
            opened += 1 if letter == "(" else -1
            if opened < 0 or letter in "'\"\\":
                self.fail("arithmetic that may be a subshell")
        if opened:
            self.fail("arithmetic that may be a subshell")

    def parameter(self, mode: Mode) -> None:
        """`${…}`: its name, and the text after it, which may run commands."""
        found = _PARAMETER.match(self.text, self.at)
        if found is None:
            self.fail("${…} without a plain name")
        self.at = found.end()
        if _ASSIGNING.match(self.text, self.at) is not None:
            self.sets([unknown_value(found.group().lstrip("${#!"))])
        literal = mode == "quoted" and _DEFAULT.match(self.text, self.at) is not None
        self.deeper()
        self.braces += 1
        odd = False
        while (letter := self.inside()) != "}":
            if letter != "'":
                self.within(letter, mode)
            elif mode == "bare":
                self.at += 1
                self.refuse_literal(self.upto("'"))
            elif literal:
                self.at += 1
                odd = not odd
            else:
                self.fail("a single quote in ${…} inside of quotes")
        if odd:
            self.fail("} behind a single quote in ${…}")
        self.at += 1
        self.braces -= 1
        self.depth -= 1

    def inside(self) -> str:
        """The next letter of `${…}` that matters."""
        if (run := _INSIDE.match(self.text, self.at)) is not None:
            self.at = run.end()
        return self.peek()

    def within(self, letter: str, mode: Mode) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if letter == '"' and mode != "document":
            self.double()
        elif (letter in "<>" and letter and following != "(") or (letter == "@" and following != "P"):
            self.at += 1
        else:
            self.special(mode, "")
