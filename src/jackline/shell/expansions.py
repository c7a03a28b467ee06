"""Parses quotes and expansions (`$…`, backticks), collects the commands and assignments in them. It expands nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from jackline.shell.model import Piece, ShellNode, SimpleCommand, Subshells, Word, build_template, join_words
from jackline.shell.scanner import Scanner, decode_ansi_quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The context of an expansion: unquoted, in double quotes, or in a here-document.
ExpansionMode: TypeAlias = Literal["bare", "quoted", "document"]

_QUOTED = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_PARAMETER = re.compile(r"\$\{[#!]?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_DEFAULT = re.compile(r"(?:\[[^]'\"$`\\]*\])?:?[-=+?]")
_ASSIGNING = re.compile(r":{0,2}=")
_EVALUATED = re.compile(r"(?:\[[0-9@*]+\])?:(?![-=+?])|\[(?![0-9@*]+\])")  # an index or offset is an expression
_PLAIN_PARAMETER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])(?::-([A-Za-z0-9_@%+=:,./-]*))?\}")
_CONTINUED = re.compile(r"\[|:[A-Za-z]")  # zsh reads `$name[1]` and `$name:h` as one expansion
_INSIDE = re.compile(r"[^}\\'\"$`{<>@]+")
_NUMBERS = re.compile(r"[^()'\"\\$`]+")
_PLAIN_QUOTES = re.compile(r"\"[^\"'`()\\]*\"|'[^\"'`()\\]*'")
_PARENTHESES = re.compile(r"[()'\"\\]")
_TICKED = re.compile(r"[^`\\]*(?:\\.[^`\\]*)*", re.DOTALL)
_UNTICKED = re.compile(r"\\([`\\$])")
_ZSH_ONLY = "=~^+"  # zsh expands `$~name`, bash does not


class ExpansionParser(Scanner):
    """Parses one expansion at a time and adds the commands that it would run to `inner`."""

    def parse_program(self, closer: str) -> ShellNode:
        """Parse the commands up to `closer`. The grammar implements it."""
        raise NotImplementedError

    def parse_nested_text(self, text: str) -> ShellNode:
        """Parse another text, one level deeper."""
        raise NotImplementedError

    def parse_double_quotes(self) -> Word:
        """Parse a text in double quotes, starting at the opening quote."""
        self.at += 1
        words: list[Word] = []
        while not self.accept('"'):
            if (run := _QUOTED.match(self.text, self.at)) is not None:
                self.at = run.end()
                words.append(Word(run.group()))
            else:
                words.append(self.parse_special("quoted", '$`"\\'))
        return join_words(words)

    def parse_special(self, mode: ExpansionMode, escapable: str) -> Word:
        """Parse a backslash, a `$` or a backtick in a context where other characters are literal."""
        match self.peek():
            case "\\":
                return Word(self.parse_escape(escapable))
            case "$":
                return self.parse_dollar(mode)
            case "`":
                return self.parse_backtick(mode)
            case _:
                raise self.build_error("unclosed quote or brace")

    def parse_escape(self, escapable: str) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        if not letter:
            self.fail("backslash at the end")
        self.reject_quoted_expansion(letter)
        self.at += 2
        if letter == "\n":
            return ""
        return letter if letter in escapable else "\\" + letter

    def parse_dollar(self, mode: ExpansionMode) -> Word:
        """Parse what starts with a `$`. An expansion is returned as written, and is not exact."""
        start, following = self.at, self.text[self.at + 1 : self.at + 3]
        match following[:1]:
            case "(" if following == "((":
                self.at += 3
                self.parse_arithmetic()
            case "(":
                self.at += 2
                self.parse_substitution()
            case "{":
                self.parse_parameter(mode)
            case "'" | '"' if mode == "bare":
                return self.parse_dollar_quote()
            case "[":
                self.fail("old arithmetic syntax $[")
            case "\\" if following == "\\\n":
                self.fail("line continuation after $")
            case _:
                return self.parse_variable(following[:1], mode)
        written = self.text[start : self.at]
        plain = _PLAIN_PARAMETER.fullmatch(written)
        if plain is None:
            return Word(written, exact=False)
        piece = Piece(written, name=plain[1], quoted=mode != "bare", default=plain[2])
        return build_template(written, (piece,))

    def parse_variable(self, letter: str, mode: ExpansionMode) -> Word:
        found = _NAME.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at + 1
        if found is not None:
            name = "" if _CONTINUED.match(self.text, self.at) is not None else found.group()[1:]
            if name.isdigit() and self.peek().isdigit():
                name = ""
            return build_template(found.group(), (Piece(found.group(), name=name, quoted=mode != "bare"),))
        self.reject_quoted_expansion("$")
        return Word("$", exact=not letter or letter not in _ZSH_ONLY)

    def parse_dollar_quote(self) -> Word:
        self.at += 1
        if self.peek() == '"':  # bash translates it; other shells read a literal `$`
            return Word(self.parse_double_quotes().text, exact=False)
        self.reject_in_posix("$'…'")
        start = self.at + 1
        self.at = start
        while (letter := self.peek()) != "'":
            if not letter:
                self.fail("unclosed quote")
            self.at += 2 if letter == "\\" else 1
        self.at += 1
        word = decode_ansi_quote(self.text[start : self.at - 1])
        if self.braces and not word.exact:
            self.fail("shell-dependent character in ${…}")
        self.reject_quoted_expansion(word.text)
        return word

    def reject_quoted_expansion(self, text: str) -> None:
        """Reject a quoted `$` or backtick in `${…}`: bash unquotes an index or offset, then expands it."""
        if self.braces and ("$" in text or "`" in text):
            self.fail("quoted $ or backtick in ${…}")

    def parse_substitution(self) -> None:
        """Parse the commands up to `)`; the opening parenthesis is already consumed."""
        outside, self.inner = self.inner, []
        braces, self.braces = self.braces, 0
        self.substituted += 1
        node = self.parse_program(")")
        self.substituted -= 1
        self.is_document_substituted = self.is_document_substituted and self.substituted > 0
        self.inner, self.braces = outside, braces
        self.inner.append(Subshells((node,)))

    def parse_backtick(self, mode: ExpansionMode) -> Word:
        start = self.at
        found = _TICKED.match(self.text, start + 1)
        self.at = self.end if found is None else found.end()
        body = self.text[start + 1 : self.at]
        self.expect("`")
        if mode != "bare" and '\\"' in body:  # unspecified by POSIX; shells differ
            self.fail("escaped quote between backticks inside quotes")
        shown = _UNTICKED.sub(r"\1", body)
        self.inner.append(Subshells((self.parse_nested_text(shown),)))
        return Word(self.text[start : self.at], exact=False)

    def parse_arithmetic(self) -> None:
        """Parse arithmetic up to the matching `))`. Reject other endings, because they may be a subshell."""
        self.enter_level()
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
                    self.parse_double_quotes()
                case _:
                    self.parse_special("quoted", "")
        numbers = self.text[start : self.at - 2]
        self.check_balanced(numbers)
        self.add_assignments(find_arithmetic_assignments(numbers), numbers)
        self.depth -= 1

    def add_assignments(self, assignments: Iterable[Word], evaluated: str = "") -> None:
        """Record the assignments and the arithmetic of an expansion as a separate command that runs first."""
        simple = SimpleCommand(self.depth)
        simple.assignments.extend(assignments)
        if evaluated:
            simple.evaluated.append(evaluated)
        if simple.assignments or evaluated:
            self.inner.append(simple)

    def check_balanced(self, numbers: str) -> None:
        """Require balanced parentheses: shells search for `))` before they parse the expression."""
        rest = _PLAIN_QUOTES.sub("", numbers)
        opened = 0
        for letter in _PARENTHESES.findall(rest):
            opened += 1 if letter == "(" else -1
            if opened < 0 or letter in "'\"\\":
                self.fail("arithmetic that may be a subshell")
        if opened:
            self.fail("arithmetic that may be a subshell")

    def parse_parameter(self, mode: ExpansionMode) -> None:
        """Parse `${…}`: a name and an operand, which may contain commands."""
        found = _PARAMETER.match(self.text, self.at)
        if found is None:
            self.fail("${…} has no plain name")
        self.at = found.end()
        if _ASSIGNING.match(self.text, self.at) is not None:
            self.add_assignments([build_unknown_assignment(found.group().lstrip("${#!"))])
        if found.group()[2] == "!" or _EVALUATED.match(self.text, self.at) is not None:
            self.add_assignments((), "*")
        literal = mode == "quoted" and _DEFAULT.match(self.text, self.at) is not None
        self.enter_level()
        self.braces += 1
        odd = False
        while (letter := self.skip_to_special()) != "}":
            if letter != "'":
                self.parse_inside_braces(letter, mode)
            elif mode == "bare":
                self.at += 1
                self.reject_quoted_expansion(self.read_until("'"))
            elif literal:
                self.at += 1
                odd = not odd
            else:
                self.fail("single quote in ${…} inside quotes")
        if odd:
            self.fail("} after a single quote in ${…}")
        self.at += 1
        self.braces -= 1
        self.depth -= 1

    def skip_to_special(self) -> str:
        """Skip to the next special character of `${…}` and return it."""
        if (run := _INSIDE.match(self.text, self.at)) is not None:
            self.at = run.end()
        return self.peek()

    def parse_inside_braces(self, letter: str, mode: ExpansionMode) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if letter == '"' and mode != "document":
            self.parse_double_quotes()
        elif (letter in "<>" and letter and following != "(") or (letter == "@" and following != "P"):
            self.at += 1
        else:
            self.parse_special(mode, "")


# --- assignments

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_COUNTED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*+)\s*+(?:[-+*/%&^|]|<<|>>)?=(?!=)")
_DECLARING = frozenset(["export", "declare", "typeset", "local", "readonly"])
_NAMING = frozenset(["read", "mapfile", "readarray", "getopts", "unset"])  # their arguments are variable names


def build_unknown_assignment(name: str) -> Word:
    """Build an assignment whose value is only known at run time."""
    return Word(f"{name}=", exact=False)


def find_assignments(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the assignments that a shell builtin makes by its arguments."""
    program, given = words[0].text, words[1:]
    if program in _DECLARING:
        found = tuple(word for word in given if _ASSIGNMENT.match(word.text))
        is_reference = any(word.text[:1] == "-" and "n" in word.text for word in given)
        # With `declare -n`, the referenced variable may be assigned later.
        return (*found, *(build_unknown_assignment(word.text.partition("=")[2]) for word in found if is_reference))
    if program == "let":
        return tuple(name for word in given for name in find_arithmetic_assignments(word.text))
    names = [word.text for word in given] if program in _NAMING else []
    if program == "printf":  # `printf -v NAME`, or `-vNAME`
        names += [after.text for flag, after in pairwise(given) if flag.text == "-v"]
        names += [word.text[2:] for word in given[:1] if word.text.startswith("-v")]
    return tuple(build_unknown_assignment(name) for name in names if _VARIABLE_NAME.fullmatch(name))


def find_arithmetic_assignments(numbers: str) -> Iterator[Word]:
    """Return the assignments inside `((…))`."""
    return (build_unknown_assignment(found[1]) for found in _COUNTED.finditer(numbers))
