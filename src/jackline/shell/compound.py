"""Parses compound commands: conditions, loops, groups, functions. It finds what may run, not whether it will."""

from __future__ import annotations

import re

from jackline.shell.expansions import build_unknown_assignment, find_arithmetic_assignments
from jackline.shell.grammar import ListParser
from jackline.shell.model import (
    Branch,
    Branches,
    CommandList,
    Loop,
    NotParsed,
    ShellNode,
    SimpleCommand,
    Subshells,
    Word,
)
from jackline.shell.words import WordBuilder, WordParser

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;])")
_IN = re.compile(r"in(?=[ \t\n;])")
_COPROC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=\(|\{[ \t\n])")
_PATTERN = re.compile(r"[^ \t\n\r'\"\\$`()#;&<>]+")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_EVALUATING_TEST = re.compile(r"-(?:eq|ne|lt|le|gt|ge|v|R)\b")
_ENDS = (";;&", ";;", ";&")


class ShellParser(ListParser):
    """Parses a whole script."""

    def parse_whole(self) -> ShellNode:
        node = self.parse_list("")
        if self.pending_documents:
            self.fail(f"here-document without the line {self.pending_documents[0].delimiter}")
        return node

    def parse_program(self, closer: str) -> ShellNode:
        """Parse the commands of a substitution. Its here-documents must end in it."""
        self.enter_level()
        outside, held = self.pending_documents, self.held
        self.pending_documents, self.held = [], held or bool(outside)
        node = self.parse_list(closer)
        if self.pending_documents:
            self.fail("here-document extends beyond its substitution")
        self.expect(closer)
        self.pending_documents, self.held = outside, held
        self.depth -= 1
        return node

    def parse_nested_text(self, text: str) -> ShellNode:
        self.enter_level()
        node = ShellParser(text, self.depth, posix=self.posix).parse_whole()
        self.depth -= 1
        return node

    def build_sub_parser(self, text: str) -> WordParser:
        self.enter_level()
        self.depth -= 1
        return ShellParser(text, self.depth + 1, posix=self.posix)

    def parse_compound(self) -> ShellNode | None:
        keyword = self.peek_keyword()
        if not keyword:
            return self.parse_parenthesis() if self.peek() == "(" else None
        self.enter_level()
        self.at += len(keyword)
        node = self.parse_keyword(keyword)
        self.depth -= 1
        return node

    def parse_keyword(self, keyword: str) -> ShellNode:
        match keyword:
            case "if":
                return self.parse_if()
            case "while" | "until":
                condition = self.parse_block("do")
                return Loop((condition, self.parse_block("done")))
            case "for" | "select":
                return self.parse_for(keyword)
            case "case":
                return self.parse_case()
            case "{":
                return self.parse_block("}")
            case "[[":
                return self.parse_test()
            case "function":
                return self.parse_function_keyword()
            case "coproc":
                return self.parse_coproc()
            case _:
                raise self.build_error(f"unexpected {keyword}")

    def parse_parenthesis(self) -> ShellNode:
        self.enter_level()
        if self.accept("(("):
            self.reject_in_posix("((")
            node: ShellNode = self.start_simple()
            self.parse_arithmetic()
        else:
            self.at += 1
            node = Subshells((self.parse_nonempty_list(")"),))
            self.at += 1
        self.depth -= 1
        return node

    def parse_nonempty_list(self, *closers: str) -> CommandList:
        series = self.parse_list(*closers)
        if not series.items:
            self.fail("missing command")
        return series

    def parse_block(self, closer: str) -> CommandList:
        series = self.parse_nonempty_list(closer)
        self.at += len(closer)
        return series

    def parse_if(self) -> ShellNode:
        arms: list[Branch] = []
        keyword = "elif"
        while keyword == "elif":
            condition = self.parse_block("then")
            arms.append(Branch(condition, self.parse_nonempty_list("elif", "else", "fi")))
            keyword = self.peek_keyword()
            self.at += len(keyword)
        if keyword == "else":
            arms.append(Branch(None, self.parse_block("fi")))
        return Branches(tuple(arms))

    def parse_for(self, keyword: str) -> ShellNode:
        words, name = self.start_simple(), ""
        values: tuple[Word, ...] = ()
        self.skip_blank()
        if self.accept("(("):
            self.reject_in_posix("((")
            self.parse_arithmetic()
            self.skip_blank()
        else:
            name, values = self.parse_for_words()
            words.assignments.append(build_unknown_assignment(name))
        self.accept(";")
        self.skip_newlines()
        if self.peek_keyword() != "do":
            self.fail("missing do")
        self.at += len("do")
        is_list = keyword == "for"  # `select` asks
        loop = Loop((self.parse_block("done"),), name=name if is_list else "", values=values if is_list else ())
        return CommandList((words, loop))

    def parse_for_words(self) -> tuple[str, tuple[Word, ...]]:
        """Parse `name in words`, or the name alone; return the name and the words."""
        name = _NAME.match(self.text, self.at)
        if name is None:
            self.fail("missing loop variable")
        self.at = name.end()
        self.skip_blank()
        if self.peek() == "\n":
            self.skip_newlines()
        if (found := _IN.match(self.text, self.at)) is None:
            return name.group(), ()
        self.at = found.end()
        self.skip_blank()
        values: list[Word] = []
        while self.peek() not in (";", "\n"):
            values.append(self.parse_word().word)
            self.skip_blank()
        return name.group(), tuple(values)

    def parse_case(self) -> ShellNode:
        subject = self.start_simple()
        self.skip_blank()
        self.parse_word()
        self.skip_newlines()
        if (found := _IN.match(self.text, self.at)) is None:
            self.fail("missing in")
        self.at = found.end()
        arms: list[Branch] = []
        falls = False
        self.skip_newlines()
        while self.peek_keyword() != "esac":
            patterns = self.parse_case_patterns()
            arms.append(Branch(None, CommandList((patterns, self.parse_list(";;", ";&", "esac")))))
            end = next((end for end in _ENDS if self.accept(end)), "")
            falls = falls or "&" in end
            self.skip_newlines()
        self.at += len("esac")
        branches = Branches(tuple(arms))
        return CommandList((subject, Loop((branches,)) if falls else branches))

    def parse_case_patterns(self) -> SimpleCommand:
        """Parse the patterns of one branch, up to `)`."""
        simple = self.start_simple()
        self.accept("(")
        while True:
            self.skip_blank()
            self.parse_word()
            self.skip_blank()
            if not self.accept("|"):
                break
        self.expect(")")
        return simple

    def parse_test(self) -> ShellNode:
        """Parse `[[ … ]]`, which runs only the substitutions in it."""
        self.reject_in_posix("[[")
        simple, start = self.start_simple(), self.at
        while True:
            self.skip_test_space()
            if self.peek() in ("(", ")") or self.peek(2) in ("&&", "||"):
                self.at += 1 if self.peek() in ("(", ")") else 2
            elif self.peek() in ("<", ">") and self.peek(2)[1:] != "(":
                self.at += 1
            elif self.parse_test_operand():
                written = self.text[start : self.at]
                simple.assignments.extend(find_arithmetic_assignments(written))
                if _EVALUATING_TEST.search(written) is not None:
                    simple.evaluated.append("*")
                return simple

    def parse_test_operand(self) -> bool:
        """Parse one word of a test; return True for the final `]]`."""
        read = self.parse_word()
        if read.hides_command:
            self.fail("word would run a command as arithmetic")
        if read.is_plain and read.word.text == "=~":
            self.skip_test_space()
            self.parse_regex()
        return read.is_plain and read.word.text == "]]"

    def skip_test_space(self) -> None:
        """Skip the space between the words of a test. Shells differ about comments there."""
        while True:
            if self.pending_documents and self.peek() == "\n":
                self.fail("pending here-document inside [[")
            if self.peek() in (" ", "\t", "\n"):
                self.at += 1
            elif not self.accept("\\\n"):
                break
        if self.peek() == "#":
            self.fail("# inside [[")

    def parse_regex(self) -> None:
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
                self.parse_part(WordBuilder(), arrays=False)
            else:
                self.fail(f"{letter!r} in the regular expression of a test")
            if opened < 0:
                self.fail(") in the regular expression of a test")

    def parse_function_keyword(self) -> ShellNode:
        """Parse `function name`, with or without `()`."""
        self.skip_blank()
        name = _FUNCTION.match(self.text, self.at)
        if name is None:
            self.fail("function name is not plain")
        self.at = name.end()
        self.skip_blank()
        if self.accept("("):
            self.skip_blank()
            self.expect(")")
        return self.parse_function_body(name.group())

    def parse_coproc(self) -> ShellNode:
        self.skip_blank()
        files = self.start_simple()
        if (named := _COPROC.match(self.text, self.at)) is not None:
            self.at = named.end()
            files.changed.append(named.group().strip())
        node = self.parse_command()
        if self.substituted and isinstance(node, SimpleCommand):
            self.fail("bash runs coproc differently inside a substitution")
        return CommandList((Subshells((node,)), files))


def parse_script(text: str, depth: int = 0, *, posix: bool = False) -> ShellNode:
    """Parse a script into a syntax tree, or raise NotParsed."""
    try:
        return ShellParser(text, depth, posix=posix).parse_whole()
    except RecursionError:
        raise NotParsed("the text is nested too deeply") from None
