"""Parses the options of a wrapper such as `sudo`, up to the command that follows them."""

from __future__ import annotations

import re

from jackline.named import NamedTuple
from jackline.shell.model import Word

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class WrapperOptions(NamedTuple):
    """The options that a wrapper accepts before its command."""

    alone: str = ""  # letters without a value
    valued: str = ""  # letters with a value, in the same word or the next
    joined: str = ""  # letters with an optional value in the same word
    long_alone: tuple[str, ...] = ()  # a value is possible only after `=`
    long_valued: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()  # options with which no command runs
    operands: int = 0  # number of operands before the command
    assigns: bool = False  # NAME=value may precede the command
    numbers: bool = False  # `-10` is an option
    plus: bool = False  # `+x` turns an option off
    text: str = ""  # the option whose argument is shell text


class ParsedOptions(NamedTuple):
    """The parsed options of a wrapper, and the command after them."""

    rest: tuple[Word, ...]
    values: tuple[tuple[str, Word], ...]
    operands: tuple[Word, ...]
    assignments: tuple[Word, ...]
    sure: bool  # False if an option is unknown or a word is not exact

    def find_value(self, *names: str) -> Word | None:
        """Return the last value of an option, or None."""
        return next((value for name, value in reversed(self.values) if name in names), None)


class _OptionParser:
    """Parses the words in order."""

    def __init__(self, options: WrapperOptions, words: tuple[Word, ...]) -> None:
        self.options = options
        self.words = words
        self.at = 0
        self.values: list[tuple[str, Word]] = []
        self.sure = True

    def next_word(self) -> Word:
        """Return the next word, or an inexact empty word at the end."""
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else Word("", exact=False)

    def parse_options(self) -> None:
        """Parse all options."""
        while self.at < len(self.words) and self.parse_option(self.words[self.at]):
            pass

    def parse_option(self, word: Word) -> bool:
        if not word.exact and not word.text.startswith("-"):
            return self.skip_inexact(word)
        if word.text == "--":
            self.at += 1
            return False
        is_plus = self.options.plus and word.text.startswith("+")
        is_lone_dash = word.text == "-" and "-" not in self.options.alone
        if not is_plus and (not word.text.startswith("-") or is_lone_dash):
            return False
        self.at += 1
        if word.text.startswith("--"):
            self.parse_long(word)
        else:
            self.parse_short(word)
        return True

    def skip_inexact(self, word: Word) -> bool:
        """Skip a word that may expand to options or to the command, to guess what follows."""
        if self.options.operands or _ASSIGNMENT.match(word.text) or self.options.text in dict(self.values):
            return False
        self.at += 1
        return True

    def parse_long(self, word: Word) -> None:
        name, equals, value = word.text.partition("=")
        known = name in self.options.long_valued
        if known and not equals:
            self.values.append((name, self.next_word()))
            return
        self.values.append((name, Word(value, word.exact)))
        self.sure = self.sure and (known or name in self.options.long_alone or name in self.options.idle)

    def parse_short(self, word: Word) -> None:
        letters = word.text[1:] or "-"
        if self.options.numbers and letters.isdigit():
            return
        for place, letter in enumerate(letters):
            name, value = f"-{letter}", letters[place + 1 :]
            if letter in self.options.valued:
                self.values.append((name, Word(value, word.exact) if value else self.next_word()))
                return
            if letter in self.options.joined:
                self.values.append((name, Word(value, word.exact)))
                return
            self.values.append((name, Word("")))
            self.sure = self.sure and (letter in self.options.alone or name in self.options.idle)


def parse_options(options: WrapperOptions, words: tuple[Word, ...]) -> ParsedOptions:
    """Split the arguments of a wrapper into its options and the command; `words` excludes the program name."""
    reader = _OptionParser(options, words)
    reader.parse_options()
    start = reader.at
    while options.assigns and reader.at < len(words) and _ASSIGNMENT.match(words[reader.at].text):
        reader.at += 1
    assignments = words[start : reader.at]
    operands = tuple(reader.next_word() for _ in range(options.operands) if reader.at < len(words))
    # An inexact word may expand to several words or none, so the command may start elsewhere.
    sure = reader.sure and all(word.exact for word in words[: reader.at])
    return ParsedOptions(
        rest=words[reader.at :], values=tuple(reader.values), operands=operands, assignments=assignments, sure=sure
    )
