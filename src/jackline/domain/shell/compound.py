"""Parses compound commands: conditions, loops, groups, functions. It finds what may run, not whether it will."""

from __future__ import annotations

import re

from jackline.domain.shell.expansions import counted, unknown_value
from jackline.domain.shell.grammar import Grammar
from jackline.domain.shell.model import Apart, Arm, Branches, Loop, Node, NotParsed, Series, Simple
from jackline.domain.shell.words import Building, Words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;])")
_IN = re.compile(r"in(?=[ \t\n;])")
_COPROC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=\(|\{[ \t\n])")
_PATTERN = re.compile(r"[^ \t\n\r'\"\\$`()#;&<>]+")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_ENDS = (";;&", ";;", ";&")


class Parser(Grammar):
    """Parses a whole script."""

    def whole(self) -> Node:
        node = self.series("")
        if self.waiting:
            self.fail(f"here-document without the line {self.waiting[0].delimiter}")
        return node

    def program(self, closer: str) -> Node:
        """Parse the commands of a substitution. Its here-documents must end in it."""
        self.deeper()
        outside, held = self.waiting, self.held
        self.waiting, self.held = [], held or bool(outside)
        node = self.series(closer)
        if self.waiting:
            self.fail("here-document extends beyond its substitution")
        self.expect(closer)
        self.waiting, self.held = outside, held
        self.depth -= 1
        return node

    def text_program(self, text: str) -> Node:
        self.deeper()
        node = Parser(text, self.depth, posix=self.posix).whole()
        self.depth -= 1
        return node

    def sub_reader(self, text: str) -> Words:
        self.deeper()
        self.depth -= 1
        return Parser(text, self.depth + 1, posix=self.posix)

    def compound(self) -> Node | None:
        keyword = self.keyword()
        if not keyword:
            return self.parenthesis() if self.peek() == "(" else None
        self.deeper()
        self.at += len(keyword)
        node = self.begun(keyword)
        self.depth -= 1
        return node

    def begun(self, keyword: str) -> Node:
        match keyword:
            case "if":
                return self.conditional()
            case "while" | "until":
                condition = self.block("do")
                return Loop((condition, self.block("done")))
            case "for" | "select":
                return self.counted()
            case "case":
                return self.choice()
            case "{":
                return self.block("}")
            case "[[":
                return self.test()
            case "function":
                return self.declared()
            case "coproc":
                return self.coprocess()
            case _:
                raise self.wrong(f"unexpected {keyword}")

    def parenthesis(self) -> Node:
        self.deeper()
        if self.take("(("):
            self.bashism("((")
            node: Node = self.fresh()
            self.arithmetic()
        else:
            self.at += 1
            node = Apart((self.filled_series(")"),))
            self.at += 1
        self.depth -= 1
        return node

    def filled_series(self, *closers: str) -> Series:
        series = self.series(*closers)
        if not series.items:
            self.fail("missing command")
        return series

    def block(self, closer: str) -> Series:
        series = self.filled_series(closer)
        self.at += len(closer)
        return series

    def conditional(self) -> Node:
        arms: list[Arm] = []
        keyword = "elif"
        while keyword == "elif":
            condition = self.block("then")
            arms.append(Arm(condition, self.filled_series("elif", "else", "fi")))
            keyword = self.keyword()
            self.at += len(keyword)
        if keyword == "else":
            arms.append(Arm(None, self.block("fi")))
        return Branches(tuple(arms))

    def counted(self) -> Node:
        words = self.fresh()
        self.blank()
        if self.take("(("):
            self.bashism("((")
            self.arithmetic()
            self.blank()
        else:
            words.assignments.append(unknown_value(self.listed()))
        self.take(";")
        self.newlines()
        if self.keyword() != "do":
            self.fail("missing do")
        self.at += len("do")
        return Series((words, Loop((self.block("done"),))))

    def listed(self) -> str:
        """Parse `name in words`, or the name alone; return the name."""
        name = _NAME.match(self.text, self.at)
        if name is None:
            self.fail("missing loop variable")
        self.at = name.end()
        self.blank()
        if self.peek() == "\n":
            self.newlines()
        if (found := _IN.match(self.text, self.at)) is None:
            return name.group()
        self.at = found.end()
        self.blank()
        while self.peek() not in (";", "\n"):
            self.word()
            self.blank()
        return name.group()

    def choice(self) -> Node:
        subject = self.fresh()
        self.blank()
        self.word()
        self.newlines()
        if (found := _IN.match(self.text, self.at)) is None:
            self.fail("missing in")
        self.at = found.end()
        arms: list[Arm] = []
        falls = False
        self.newlines()
        while self.keyword() != "esac":
            patterns = self.patterns()
            arms.append(Arm(None, Series((patterns, self.series(";;", ";&", "esac")))))
            end = next((end for end in _ENDS if self.take(end)), "")
            falls = falls or "&" in end
            self.newlines()
        self.at += len("esac")
        branches = Branches(tuple(arms))
        return Series((subject, Loop((branches,)) if falls else branches))

    def patterns(self) -> Simple:
        """Parse the patterns of one branch, up to `)`."""
        simple = self.fresh()
        self.take("(")
        while True:
            self.blank()
            self.word()
            self.blank()
            if not self.take("|"):
                break
        self.expect(")")
        return simple

    def test(self) -> Node:
        """Parse `[[ … ]]`, which runs only the substitutions in it."""
        self.bashism("[[")
        simple, start = self.fresh(), self.at
        while True:
            self.gap()
            if self.peek() in ("(", ")") or self.peek(2) in ("&&", "||"):
                self.at += 1 if self.peek() in ("(", ")") else 2
            elif self.peek() in ("<", ">") and self.peek(2)[1:] != "(":
                self.at += 1
            elif self.operand():
                simple.assignments.extend(counted(self.text[start : self.at]))
                return simple

    def operand(self) -> bool:
        """Parse one word of a test; return True for the final `]]`."""
        read = self.word()
        if read.hiding:
            self.fail("word would run a command as arithmetic")
        if read.plain and read.word.text == "=~":
            self.gap()
            self.pattern()
        return read.plain and read.word.text == "]]"

    def gap(self) -> None:
        """Skip the space between the words of a test. Shells differ about comments there."""
        while True:
            if self.waiting and self.peek() == "\n":
                self.fail("pending here-document inside [[")
            if self.peek() in (" ", "\t", "\n"):
                self.at += 1
            elif not self.take("\\\n"):
                break
        if self.peek() == "#":
            self.fail("# inside [[")

    def pattern(self) -> None:
        """Parse the regular expression after `=~`, which may contain `|`, and spaces inside parentheses."""
        opened = 0
        while (letter := self.peek()) and (opened or letter not in " \t\n"):
            if (run := _PATTERN.match(self.text, self.at)) is not None:
                self.at = run.end()
            elif letter in "()":
                opened += 1 if letter == "(" else -1
                self.at += 1
            elif letter == " " or (letter == "#" and not opened):
                self.at += 1
            elif letter in "'\"\\$`":
                self.part(Building(), arrays=False)
            else:
                self.fail(f"{letter!r} in the regular expression of a test")
            if opened < 0:
                self.fail(") in the regular expression of a test")

    def declared(self) -> Node:
        """Parse `function name`, with or without `()`."""
        self.blank()
        name = _FUNCTION.match(self.text, self.at)
        if name is None:
            self.fail("function name is not plain")
        self.at = name.end()
        self.blank()
        if self.take("("):
            self.blank()
            self.expect(")")
        return self.body_of(name.group())

    def coprocess(self) -> Node:
        self.blank()
        if (named := _COPROC.match(self.text, self.at)) is not None:
            self.at = named.end()
        return Apart((self.command(),))


def parse(text: str, depth: int = 0, *, posix: bool = False) -> Node:
    """Parse a script into a syntax tree, or raise NotParsed."""
    try:
        return Parser(text, depth, posix=posix).whole()
    except RecursionError:
        raise NotParsed("the text is nested too deeply") from None
