"""What a shell knows about its variables while it runs a text, and how words expand with them. It runs nothing.

A value counts as known only if bash and zsh would both use it; everything else stays unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.shell.model import Template, Word
from jackline.shell.scanner import may_expand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.shell.model import Piece, ShellNode

EVERYTHING = "*"  # among changed names: any variable may have changed
FREEZE = "!"  # among changed names: code that is not known may have run
POSITIONAL = "@"  # among changed names: the positional parameters
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?(\+?)=")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")  # neither split nor expanded again, whatever the shell
_SPLIT_VALUE = re.compile(r"[A-Za-z0-9_@%+=:,./ \t\n-]*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE_ARITHMETIC = re.compile(r"[A-Za-z0-9_+*/%<>=!&|^~?:;,. \t\n()$-]*")
_BRACES = re.compile(r"([^{}]*)\{([^{},]*(?:,[^{},]*)+)\}([^{}]*)")
_LONGEST_VALUE = 4096
_MOST_EXPANDED = 200_000
_MOST_WORDS = 64  # of one brace list, or pieces of one word
# The shell changes these itself, or they mean something else in zsh.
_SPECIAL_NAMES = """
_ RANDOM SRANDOM SECONDS LINENO BASHPID PPID UID EUID OPTARG OPTIND OPTERR REPLY MAPFILE PWD OLDPWD EPOCHSECONDS
EPOCHREALTIME DIRSTACK FUNCNAME GROUPS HISTCMD PIPESTATUS COPROC COLUMNS LINES SHELLOPTS BASHOPTS BASH GID EGID
USERNAME TTYIDLE TRY_BLOCK_ERROR argv status pipestatus options aliases functions commands parameters path cdpath
fpath mailpath manpath signals prompt errnos psvar watch histchars
"""
_SPECIAL = frozenset(_SPECIAL_NAMES.split())


class ShellState:
    """The variables, parameters and functions of one shell whose values are known at this point of the text."""

    __slots__ = ("braces", "exported", "fixed", "frozen", "functions", "positional", "spent", "splits", "values")

    def __init__(self, *, frozen: bool = False, braces: bool = True) -> None:
        self.values: dict[str, str] = {}
        self.exported: frozenset[str] = frozenset()
        self.positional: tuple[Word, ...] | None = None  # ends with an inexact word if there may be more
        self.functions: dict[str, ShellNode] = {}  # defined for certain
        self.frozen = frozen  # nothing is known any more
        self.fixed: set[str] = set()  # read-only variables; copies share it
        self.spent = [0]  # characters of all expanded words; copies share it
        self.splits = True  # IFS is the default
        self.braces = braces  # brace lists are expanded

    def copy(self) -> ShellState:
        made = ShellState(frozen=self.frozen, braces=self.braces)
        made.fixed, made.spent = self.fixed, self.spent
        if not self.frozen:
            made.values, made.functions = dict(self.values), dict(self.functions)
            made.exported, made.positional, made.splits = self.exported, self.positional, self.splits
        return made

    def join(self, other: ShellState) -> None:
        """Keep what is known in both states."""
        if self.frozen or other.frozen:
            self.freeze()
            return
        self.values = {name: value for name, value in self.values.items() if other.values.get(name) == value}
        self.functions = {name: body for name, body in self.functions.items() if other.functions.get(name) is body}
        self.exported &= other.exported
        self.positional = self.positional if self.positional == other.positional else None
        self.splits = self.splits and other.splits
        self.braces = self.braces and other.braces

    def freeze(self) -> None:
        """Forget everything for good: code that is not known may have changed the shell."""
        self.forget_values()
        self.functions = {}
        self.frozen = True

    def forget_values(self) -> None:
        self.values, self.exported, self.positional = {}, frozenset(), None

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            if name == EVERYTHING:
                self.forget_values()
            elif name == FREEZE:
                self.freeze()
            elif name == POSITIONAL:
                self.positional = None
            elif name == "IFS":
                self.splits = False
            elif name == "POSIXLY_CORRECT":
                self.freeze()
            elif name.endswith("()"):
                self.functions.pop(name[:-2], None)
            self.values.pop(name, None)

    def assign(self, word: Word, exported: frozenset[str] = frozenset()) -> None:
        """Apply `name=value`; `exported` are names that become exported."""
        found = _ASSIGNMENT.match(word.text)
        if found is None or (found[2] and not found[2][1:-1].isdigit()):
            self.forget_values()
            return
        name, value = found[1], self.find_value(word)
        if "=(" in word.text and "[" in word.text:
            self.forget_values()  # an index is an expression
        if value is not None:
            value = value[found.end() :]
        if found[3]:
            value = None if value is None or name not in self.values else self.values[name] + value
        self.forget([name])
        if value is None or found[2] or self.frozen or name in self.fixed or name == "IFS":
            return
        if name in _SPECIAL or name.startswith(("BASH_", "COMP_")):
            return
        if len(value) <= _LONGEST_VALUE:
            self.values[name] = value
            self.exported |= exported

    def evaluate(self, expression: str) -> None:
        """Apply the assignments of an arithmetic expression; the value of a variable in it is an expression, too."""
        names = set(_IDENTIFIER.findall(expression))
        simple = _SIMPLE_ARITHMETIC.fullmatch(expression) is not None and "$(" not in expression
        if not simple or expression == EVERYTHING:
            self.forget_values()
        elif names:
            known = (self.values.get(name) for name in names)
            if all(value is not None and _INTEGER.fullmatch(value) for value in known):
                self.forget(names if re.search(r"(?<![=<>!])=(?!=)|\+\+|--|<<=|>>=", expression) else ())
            else:
                self.forget_values()
        elif "$" in expression:
            self.forget_values()

    # --- words

    def find_value(self, word: Word) -> str | None:
        """Return the value of a word where a shell neither splits nor globs: an assignment, a here-document."""
        if word.exact:
            return word.text
        pieces = word.pieces if isinstance(word, Template) else ()
        if not pieces or self.frozen or self.spent[0] > _MOST_EXPANDED:
            return None
        values = [piece.text if piece.name is None else self.find_piece(piece) for piece in pieces]
        bare = "".join("\0" if piece.quoted or piece.name is not None else piece.text for piece in pieces)
        whole = "".join(value for value in values if value is not None)
        if "~" in bare or any(value is None for value in values) or not self.can_spend(len(whole)):
            return None
        return whole

    def can_spend(self, length: int) -> bool:
        """Check that all expansions together stay small: `$a$a` in a loop would double without end."""
        self.spent[0] += length
        return self.spent[0] <= _MOST_EXPANDED

    def find_piece(self, piece: Piece) -> str | None:
        """Return the value of an expansion, or None."""
        name = piece.name or ""
        if name.isdigit():
            given, at = self.positional or (), int(name)
            known = 0 < at <= len(given) and all(word.exact for word in given[:at])
            return given[at - 1].text if known else None
        value = self.values.get(name)
        if value == "" and piece.default is not None:
            return piece.default
        return value

    def expand(self, word: Word) -> tuple[Word, ...]:
        """Return the words to which a shell expands this word; the word itself if they are not known."""
        if word.exact or not isinstance(word, Template) or self.frozen:
            return (word,)
        made = self.expand_pieces(word)
        return made if self.can_spend(sum(len(one.text) + 1 for one in made)) else (word,)

    def expand_pieces(self, word: Template) -> tuple[Word, ...]:
        pieces = word.pieces
        if len(pieces) == 1 and pieces[0].name in {"@", "*"}:
            return self.expand_parameters(word, pieces[0])
        text, bare, unsplit, quoted = [], [], True, False
        for piece in pieces:
            quoted = quoted or piece.quoted
            if piece.name is None:
                text.append(piece.text)
                bare.append("\0" if piece.quoted else piece.text)
                continue
            value = self.find_piece(piece)
            if value is None:
                return (word,)
            text.append(value)
            bare.append("\0" if value or piece.quoted else "")
            unsplit = unsplit and (piece.quoted or (self.splits and _PLAIN_VALUE.fullmatch(value) is not None))
        if len(text) > _MOST_WORDS:
            return (word,)
        whole = "".join(text)
        if not unsplit:
            split = self.splits and len(pieces) == 1 and _SPLIT_VALUE.fullmatch(whole) is not None
            return tuple(Word(part, exact=False) for part in whole.split()) if split else (word,)
        if may_expand("".join(bare)):
            return self.expand_braces(word, whole, "".join(bare))
        return (Word(whole),) if whole or quoted else ()

    def expand_parameters(self, word: Word, piece: Piece) -> tuple[Word, ...]:
        """Expand a lone `$@`, `$*`, `"$@"` or `"$*"`."""
        given = self.positional
        if given is None or self.spent[0] > _MOST_EXPANDED:
            return (word,)
        if piece.quoted and piece.name == "*":
            joined = self.splits and all(one.exact for one in given)
            return (Word(" ".join(one.text for one in given)),) if joined else (word,)
        if piece.quoted:
            return given
        if not self.splits or not all(one.exact and _PLAIN_VALUE.fullmatch(one.text) for one in given):
            return (word,)
        return tuple(one for one in given if one.text)

    def expand_braces(self, word: Word, whole: str, bare: str) -> tuple[Word, ...]:
        """Expand a plain word with one brace list, such as `E{1,2}`."""
        found = _BRACES.fullmatch(whole)
        if found is None or whole != bare or not self.braces or not _PLAIN_VALUE.fullmatch(re.sub("[{}]", "", whole)):
            return (word,)
        parts = found[2].split(",")
        if len(parts) > _MOST_WORDS or "\0" in whole:
            return (word,)
        return tuple(Word(made) for part in parts if (made := found[1] + part + found[3]))
