"""Shell grammar: redirections, here-documents, lists, pipelines and simple commands. It does not interpret commands."""

from __future__ import annotations

import re

from jackline.named import NamedTuple
from jackline.shell.model import (
    AndOrList,
    CommandList,
    FunctionDefinition,
    Redirect,
    ShellNode,
    SimpleCommand,
    Subshells,
    Word,
    join_words,
)
from jackline.shell.words import ParsedWord, WordParser

_REDIRECT = re.compile(r"(?:([0-9]{1,9})|\{([A-Za-z_][A-Za-z0-9_]*)\})?(<<<|<<-|<<|<>|<&|<|>>|>&|>\||>)(?!\()|(&>>?)")
_COPY = re.compile(r"[0-9]+-?|-")
_DEFAULTS = {">": "1", "<": "0"}


class HereDocument(NamedTuple):
    """A here-document whose body has not been read yet."""

    simple: SimpleCommand
    delimiter: str
    indented: bool  # `<<-`: leading tabs are removed
    quoted: bool  # its body is not expanded
    standard: bool  # it is the command's standard input


class RedirectParser(WordParser):
    """Parses redirections into a simple command."""

    def __init__(self, text: str, depth: int = 0, *, posix: bool = False) -> None:
        super().__init__(text, depth, posix=posix)
        self.pending_documents: list[HereDocument] = []
        self.held = False  # a here-document of an outer text is pending: shells differ about the next line

    def parse_redirect(self, simple: SimpleCommand) -> bool:
        """Parse the redirection at the current position; return False if there is none."""
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return False
        number, variable, operator = found.group(1) or "", found.group(2), found.group(3) or found.group(4)
        self.at = found.end()
        if variable:
            simple.changed.append(variable)
        if operator.startswith("&"):
            self.reject_in_posix("&>")
        self.skip_blank()
        read = self.parse_word()
        if read.is_plain and read.word.text.startswith("!"):
            self.fail("zsh reads >! differently")
        if operator.startswith("<<"):
            self.parse_here_document(simple, operator, number, read)
        else:
            self.add_redirect(simple, operator, number, read.word)
        return True

    def add_redirect(self, simple: SimpleCommand, operator: str, number: str, target: Word) -> None:
        if operator.endswith("&") and target.exact and _COPY.fullmatch(target.text):
            return
        if operator == ">&":
            operator = ">" if number else "&>"
        if number == _DEFAULTS.get(operator[0]):
            number = ""
        if operator[0] == "<" and not number:
            self.add_stdin(simple, Word("", exact=False))
        simple.redirects.append(Redirect(number + operator.removesuffix("&"), target))

    def add_stdin(self, simple: SimpleCommand, text: Word) -> None:
        """Add a source of standard input. Several sources are joined, because shells differ about which one counts."""
        simple.stdin = text if simple.stdin is None else Word(simple.stdin.text + text.text, exact=False)

    def parse_here_document(self, simple: SimpleCommand, operator: str, number: str, read: ParsedWord) -> None:
        standard = number in ("", "0")
        if operator == "<<<":
            self.reject_in_posix("<<<")
            if standard:
                self.add_stdin(simple, join_words([read.word, Word("\n")]))
            return
        if read.has_expansion or "\n" in read.word.text:
            self.fail("here-document delimiter is not plain")
        self.is_document_substituted = self.substituted > 0
        self.pending_documents.append(
            HereDocument(
                simple=simple,
                delimiter=read.word.text,
                indented=operator == "<<-",
                quoted=not read.is_plain,
                standard=standard,
            )
        )

    def parse_newline(self) -> None:
        """Consume the end of a line and the here-documents that follow it."""
        self.expect("\n")
        if self.held:
            self.fail("line break inside a substitution while a here-document is pending")
        for here in self.pending_documents:
            self.parse_body(here)
        self.pending_documents.clear()

    def parse_body(self, here: HereDocument) -> None:
        lines: list[str] = []
        while True:
            if self.at > self.end:
                self.fail(f"here-document without the line {here.delimiter}")
            line, continued = self.read_line(here)
            if line == here.delimiter and not continued:
                break
            lines.append(line + "\n")
        self.at = min(self.at, self.end)
        self.attach_body(here, "".join(lines))

    def read_line(self, here: HereDocument) -> tuple[str, bool]:
        """Read the next line of a body. True means that it ends with a backslash and was joined with the next ones."""
        found = self.text.find("\n", self.at)
        stop = self.end if found < 0 else found
        line = self.text[self.at : stop]
        self.at = stop + 1
        if here.indented:
            line = line.lstrip("\t")
        if here.quoted or not _is_continued(line):
            return line, False
        return self.join_continued(here, line), True

    def join_continued(self, here: HereDocument, line: str) -> str:
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

    def attach_body(self, here: HereDocument, body: str) -> None:
        text = Word(body)
        if not here.quoted:
            reader = self.build_sub_parser(body)
            text = reader.parse_document()
            here.simple.inner.extend(reader.inner)
        if here.standard:
            self.add_stdin(here.simple, text)

    def build_sub_parser(self, text: str) -> WordParser:
        """Build a parser for another text, one level deeper."""
        raise NotImplementedError


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


# --- lists, pipelines and simple commands

_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|case|esac|do|done|function|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|\Z)"
)
_CLOSING = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])
KEYWORDS = _CLOSING | {"if", "while", "until", "for", "select", "case", "function", "coproc", "{", "!", "[["}
_TIMED = re.compile(
    r"time[ \t]+(?:(?:-p|--)[ \t]+)?(?=\(|(?:if|while|until|for|select|case|function|coproc|\{|!|\[\[)[ \t\n])"
)
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_PROMPT = re.compile(r"(?:PS[0-4]|PROMPT_COMMAND)\+?=")
_DECLARING = frozenset(["declare", "typeset", "local", "export", "readonly"])
# Builtins that evaluate an argument such as 'a[$(rm x)]'.
EVALUATING = _DECLARING | {"test", "[", "let", "unset", "read", "printf", "wait", "mapfile", "readarray", "getopts"}


class ListParser(RedirectParser):
    """Parses lists of commands. The subclass adds compound commands."""

    def parse_compound(self) -> ShellNode | None:
        """Parse the compound command at the current position, if there is one."""
        raise NotImplementedError

    def peek_keyword(self) -> str:
        found = _KEYWORD.match(self.text, self.at)
        return found.group() if found is not None else ""

    def skip_newlines(self) -> None:
        self.skip_blank()
        while self.peek() == "\n":
            self.parse_newline()
            self.skip_blank()

    def parse_list(self, *closers: str) -> CommandList:
        """Parse commands up to one of the closers, without consuming it; "" is the end of the text."""
        items: list[ShellNode] = []
        self.skip_newlines()
        while not self.is_at_closer(closers):
            node = self.parse_and_or()
            self.skip_blank()
            separator = self.parse_separator()
            items.append(Subshells((node,)) if separator == "&" else node)
            if not separator and not self.is_at_closer(closers):
                self.fail("missing separator between two commands")
            self.skip_newlines()
        return CommandList(tuple(items))

    def is_at_closer(self, closers: tuple[str, ...]) -> bool:
        following = self.peek(2)
        found = (
            following if following in (";;", ";&") else following[:1] if following[:1] == ")" else self.peek_keyword()
        )
        if following and found not in _CLOSING and found not in (";;", ";&", ")"):
            return False
        if found not in closers:
            self.fail(f"unexpected {found or 'end'}")
        return True

    def parse_separator(self) -> str:
        """Consume the end of a command: `;`, `&` or a line break."""
        following = self.peek(2)
        if following[:1] == "\n":
            self.parse_newline()
            return "\n"
        if following[:1] in (";", "&") and following not in (";;", ";&"):
            if following[0] == ";" and self.is_document_substituted:
                self.fail("bash may drop a ; after a here-document inside a substitution")
            self.at += 1
            return following[0]
        return ""

    def parse_and_or(self) -> ShellNode:
        first, rest = self.parse_pipeline(), list[tuple[str, ShellNode]]()
        while (operator := self.peek(2)) in ("&&", "||"):
            self.at += 2
            self.skip_newlines()
            rest.append((operator, self.parse_pipeline()))
        return AndOrList(first, tuple(rest)) if rest else first

    def parse_pipeline(self) -> ShellNode:
        self.skip_negations()
        items = [self.parse_command()]
        self.skip_blank()
        while self.peek() == "|" and self.peek(2) != "||":
            self.at += 2 if self.peek(2) == "|&" else 1
            self.skip_newlines()
            items.append(self.parse_command())
            self.skip_blank()
        return Subshells(tuple(items), pipe=True) if len(items) > 1 else items[0]

    def skip_negations(self) -> None:
        while True:
            if (timed := _TIMED.match(self.text, self.at)) is not None:
                self.at = timed.end()
            elif self.peek_keyword() == "!" and self.peek(2) != "!(":
                self.at += 1
            else:
                return
            self.skip_blank()

    def parse_command(self) -> ShellNode:
        node = self.parse_compound()
        if node is None:
            return self.parse_simple()
        files = self.start_simple()
        self.skip_blank()
        while self.parse_redirect(files):
            self.skip_blank()
        return CommandList((files, node))

    def start_simple(self) -> SimpleCommand:
        """Start a simple command, which collects the substitutions parsed from now on."""
        simple = SimpleCommand(self.depth)
        self.inner = simple.inner
        return simple

    def parse_simple(self) -> ShellNode:
        simple, start = self.start_simple(), self.at
        name = ""  # the function name, if `(` follows
        while True:
            self.skip_blank()
            if self.parse_redirect(simple):
                name = ""
            elif self.peek() == "(" and name:
                return self.parse_function(name)
            elif self.peek() in ("", "\n", ";", "&", "|", ")"):
                break
            else:
                name = self.parse_argument(simple)
        if self.at == start:
            self.fail("missing command")
        return simple

    def parse_argument(self, simple: SimpleCommand) -> str:
        """Parse one word of a command; return it if it may be the name of a function."""
        if not simple.words:
            self.check_plain_index()
        first = simple.words[0].text if simple.words else None
        read = self.parse_word(arrays=first is None or first in _DECLARING)
        opens = self.peek() in ("<", ">")  # in `{a[…]}>file` the index is evaluated
        if read.hides_command and (read.is_assignment or opens or first in EVALUATING):
            self.fail("word would run a command as arithmetic")
        if read.is_assignment and _PROMPT.match(read.word.text) and ("$(" in read.word.text or "`" in read.word.text):
            self.fail("prompt would run a command")
        if first is None and read.is_plain and read.word.text in KEYWORDS:
            self.fail(f"unexpected {read.word.text}")
        (simple.assignments if first is None and read.is_assignment else simple.words).append(read.word)
        plain = read.is_plain and _FUNCTION_NAME.fullmatch(read.word.text) is not None
        return read.word.text if plain and first is None and not simple.assignments else ""

    def parse_function(self, name: str) -> ShellNode:
        """Parse `()` after a name, and the function body."""
        self.at += 1
        self.skip_blank()
        self.expect(")")
        return self.parse_function_body(name)

    def parse_function_body(self, name: str) -> ShellNode:
        """Parse a function body, which is a compound command."""
        self.skip_newlines()
        if self.peek_keyword() in ("", "!", "function", "coproc") and self.peek() != "(":
            self.fail("missing function body")
        return FunctionDefinition(name, self.parse_command())
