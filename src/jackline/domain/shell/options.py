"""The options of a wrapper, read up to the command behind them. It knows no wrapper by name."""

from __future__ import annotations

import re

from jackline.domain.shell.model import Word
from jackline.named import NamedTuple

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class Options(NamedTuple):
    """How a program reads what stands before the command that it runs."""

    alone: str = ""  # letters without a value
    valued: str = ""  # letters with one, in the same word or the next
    joined: str = ""  # letters whose value, if any, stands in the same word
    long_alone: tuple[str, ...] = ()  # or with a value after `=`
    long_valued: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()  # options with which no command runs
    operands: int = 0  # words before the command that are no options
    assigns: bool = False  # NAME=value may stand before the command
    numbers: bool = False  # `-10` is an option
    plus: bool = False  # `+x` switches an option off
    text: str = ""  # the option after which a word is the text of a shell, whatever it holds


class Reading(NamedTuple):
    """What was found before the command."""

    rest: tuple[Word, ...]
    values: tuple[tuple[str, Word], ...]
    operands: tuple[Word, ...]
    assignments: tuple[Word, ...]
    sure: bool  # False: an option that is not known, or a word that only a shell knows

    def named(self, *names: str) -> Word | None:
        """The last value of an option, or None."""
        return next((value for name, value in reversed(self.values) if name in names), None)


class _Reader:
    """Reads the words one after the other."""

    def __init__(self, options: Options, words: tuple[Word, ...]) -> None:
        self.options = options
        self.words = words
        self.at = 0
        self.values: list[tuple[str, Word]] = []
        self.sure = True

    def next(self) -> Word:
        """The next word, or one that nobody knows where there is none."""
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else Word("", exact=False)

    def flags(self) -> None:
        """Pass over options."""
        while self.at < len(self.words) and self.flag(self.words[self.at]):
            pass

    def flag(self, word: Word) -> bool:
        if not word.exact and not word.text.startswith("-"):
            return self.variable(word)
        if word.text == "--":
            self.at += 1
            return False
        if not self.options.plus or not word.text.startswith("+"):
            return self.dashed(word)
        self.at += 1
        self.short(word)
        return True

    def dashed(self, word: Word) -> bool:
        if not word.text.startswith("-") or (word.text == "-" and "-" not in self.options.alone):
            return False
        self.at += 1
        if word.text.startswith("--"):
            self.long(word)
        else:
            self.short(word)
        return True

    def variable(self, word: Word) -> bool:
        """A word that may hold options, and the command too: it is passed over, for a guess at what follows."""
        if self.options.operands or _ASSIGNMENT.match(word.text) or self.options.text in dict(self.values):
            return False
        self.at += 1
        return True

    def long(self, word: Word) -> None:
        name, equals, value = word.text.partition("=")
        known = name in self.options.long_valued
        if known and not equals:
            self.values.append((name, self.next()))
            return
        self.values.append((name, Word(value, word.exact)))
        self.sure = self.sure and (known or name in self.options.long_alone or name in self.options.idle)

    def short(self, word: Word) -> None:
        letters = word.text[1:] or "-"
        if self.options.numbers and letters.isdigit():
            return
        for place, letter in enumerate(letters):
            name, value = f"-{letter}", letters[place + 1 :]
            if letter in self.options.valued:
                self.values.append((name, Word(value, word.exact) if value else self.next()))
                return
            if letter in self.options.joined:
                self.values.append((name, Word(value, word.exact)))
                return
            self.values.append((name, Word("")))
            self.sure = self.sure and (letter in self.options.alone or name in self.options.idle)


def read(options: Options, words: tuple[Word, ...]) -> Reading:
    """Split a wrapper's arguments into its own and the command; the program's name is not among `words`."""
    reader = _Reader(options, words)
    reader.flags()
    assignments = _assignments(reader) if options.assigns else ()
    operands = tuple(reader.next() for _ in range(options.operands) if reader.at < len(words))
    # A word that is not exact may become several, or none: then the command begins elsewhere.
    sure = reader.sure and all(word.exact for word in words[: reader.at])
    return Reading(words[reader.at :], tuple(reader.values), operands, assignments, sure)


def _assignments(reader: _Reader) -> tuple[Word, ...]:
    start = reader.at
    while reader.at < len(reader.words) and _ASSIGNMENT.match(reader.words[reader.at].text):
        reader.at += 1
    return reader.words[start : reader.at]
