"""Parses shell words: removes quotes and records whether a shell would still expand them. It expands nothing."""

from __future__ import annotations

import re

from jackline.named import NamedTuple
from jackline.shell.expansions import ExpansionParser
from jackline.shell.model import Piece, Word, build_template, join_words, split_pieces
from jackline.shell.scanner import hides_command, may_expand

_PLAIN = re.compile(r"[^ \t\n\r;&|()<>'\"\\$`]+")
_DOCUMENT = re.compile(r"[^\\$`]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^]]*\])?\+?=")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_SPACE = re.compile(r"(?:[ \t\n]+|\\\n|(?<=[ \t\n(])#[^\n]*)*")
_INDEX = re.compile(r"\[(?:[A-Za-z0-9_@*.+$/:-]*|\"[A-Za-z0-9_@*.+$/: -]*\"|'[A-Za-z0-9_@*.+$/: -]*')\]")
_INDEXED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=\[)")
_AFTER = ("", " ", "\t", "\n", ";", "&", "|", ")", "<", ">")
_GONE = "\0"  # replaces quoted or substituted text; scripts cannot contain it


class ParsedWord(NamedTuple):
    """A word, and facts about its spelling that the grammar needs."""

    word: Word
    is_plain: bool  # nothing is quoted or substituted: it may be a keyword or a name
    is_assignment: bool
    has_expansion: bool  # it contains a `$…` or backticks
    hides_command: bool  # it contains a literal that runs a command when evaluated as arithmetic


class WordBuilder:
    """Collects the parts of a word during parsing."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.bare: list[str] = []
        self.literal: list[str] = []
        self.pieces: list[Piece] = []
        self.exact = True
        self.expanded = False

    def add_literal(self, text: str, *, quoted: bool) -> None:
        self.parts.append(text)
        self.literal.append(text)
        self.bare.append(_GONE if quoted else text)
        self.pieces.append(Piece(text, quoted=quoted))

    def add_expansion(self, word: Word) -> None:
        """Add a part that a shell may expand. A lone `$` and `$'…'` also come here, and are exact."""
        self.parts.append(word.text)
        self.literal.append(word.text if word.exact else _GONE)
        self.bare.append(_GONE)
        self.pieces.extend(split_pieces(word))
        self.exact = self.exact and word.exact
        self.expanded = True

    def build_word(self) -> ParsedWord:
        bare = "".join(self.bare)
        text = "".join(self.parts)
        exact = self.exact and not may_expand(bare)
        word = Word(text) if exact else build_template(text, tuple(self.pieces))
        assignment = _ASSIGNMENT.match(bare) is not None
        return ParsedWord(
            word=word,
            is_plain=_GONE not in bare,
            is_assignment=assignment,
            has_expansion=self.expanded,
            hides_command=hides_command("".join(self.literal)),
        )


class WordParser(ExpansionParser):
    """Parses one word at a time."""

    def parse_word(self, *, arrays: bool = False) -> ParsedWord:
        """Parse the word at the current position; with `arrays`, it may be `name=(…)`."""
        start, building = self.at, WordBuilder()
        while True:
            if (run := _PLAIN.match(self.text, self.at)) is not None:
                self.at = run.end()
                building.add_literal(run.group(), quoted=False)
            if not self.parse_part(building, arrays=arrays):
                break
        if self.at == start:
            self.fail("missing word")
        return building.build_word()

    def parse_part(self, building: WordBuilder, *, arrays: bool) -> bool:
        """Parse one part that starts with a special character; return False at the end of the word."""
        start, letter = self.at, self.peek()
        match letter:
            case "'":
                self.at += 1
                building.add_literal(self.read_until("'"), quoted=True)
            case '"':
                self.parse_quoted(building)
            case "\\":
                self.parse_backslash(building)
            case "$":
                building.add_expansion(self.parse_dollar("bare"))
            case "`":
                building.add_expansion(self.parse_backtick("bare"))
            case "<" | ">" if self.text.startswith("(", self.at + 1):
                self.reject_in_posix("<(…)")
                self.at += 2
                self.parse_substitution()
                building.add_expansion(Word(self.text[start : self.at], exact=False))
            case "(" if arrays and _ARRAY.fullmatch("".join(building.bare)) is not None:
                self.parse_array(building)
            case "\r":
                self.fail("carriage return outside quotes")
            case _:
                return False
        return True

    def parse_quoted(self, building: WordBuilder) -> None:
        word = self.parse_double_quotes()
        if word.exact:
            building.add_literal(word.text, quoted=True)
        else:
            building.add_expansion(word)

    def parse_backslash(self, building: WordBuilder) -> None:
        letter = self.text[self.at + 1 : self.at + 2]
        if letter in ("", "\r"):
            self.fail("backslash before the end of the line")
        self.at += 2
        if letter != "\n":
            building.add_literal(letter, quoted=True)
        elif building.bare and building.bare[-1].endswith("}"):
            self.fail("zsh ends a command at a } before a continued line")

    def parse_array(self, building: WordBuilder) -> None:
        """Parse `(…)` right after `name=`. Elsewhere `(` ends the word: it may be a pattern, or code in zsh."""
        start = self.at
        if self.substituted:  # bash 5.2 mishandles quotes and here-documents after such a substitution
            self.fail("array inside a substitution")
        self.at += 1
        self.skip_array_space()
        while not self.accept(")"):
            if self.peek() == "[" and _INDEX.match(self.text, self.at) is None:
                self.fail("array index is not plain")
            if self.parse_word().hides_command:
                self.fail("value would run a command as arithmetic")
            self.skip_array_space()
        if self.peek() not in _AFTER:
            self.fail("text directly after an array")
        building.add_expansion(Word(self.text[start : self.at], exact=False))

    def skip_array_space(self) -> None:
        """Skip spaces, line breaks and comments between the words of an array."""
        found = _SPACE.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def check_plain_index(self) -> None:
        """Reject a `name[index]=…` assignment whose index is not plain: spaces and `#` in it do not end the word."""
        found = _INDEXED.match(self.text, self.at)
        if found is not None and _INDEX.match(self.text, found.end()) is None:
            self.fail("array index is not plain")

    def parse_document(self) -> Word:
        """Parse the whole text as the body of a here-document with an unquoted delimiter."""
        words: list[Word] = []
        while self.at < self.end:
            if (run := _DOCUMENT.match(self.text, self.at)) is not None:
                self.at = run.end()
                words.append(Word(run.group()))
            else:
                words.append(self.parse_special("document", "$`\\"))
        return join_words(words)
