"""The words of one command, read as a program, its subcommands, its flags and the rest. Pure; it decides nothing."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jackline.domain.builtin import flags
from jackline.domain.judging import requests, scripts
from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.domain.rule import Rule
    from jackline.domain.shell import Command, Word

_SYSTEM = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
_OWN = re.compile(r"(?:^|/)(?:\.?v?env|node_modules/\.bin|vendor/bin)(?:/|$)")
_VERSIONED = re.compile(r"(python|pip|pypy|ruby|node|php|gcc|g\+\+|clang|clang\+\+|lua)[0-9][0-9.]*$")
_HARMLESS_SETTING = re.compile(
    r"(?i)(user|author|committer|color|advice|safe|push|pull|fetch|commit)\.[a-z]+(=|$)"
    r"|(init\.defaultbranch|merge\.(ff|conflictstyle)|diff\.(algorithm|context|renames|noprefix)|log\.date)(=|$)"
    r"|core\.(quotepath=|autocrlf=|filemode=|ignorecase=|pager=(cat|less)?$|editor=(true|:|cat)$)"
)
_MOST_SHIFTS = 6
_SHORT = 2


class Line(NamedTuple):
    """One command, read as far as it can be without knowing the program."""

    program: str  # its bare name
    path: str  # as it was written
    is_certain: bool  # the program is the one that its name says
    words: tuple[Word, ...]  # everything after it
    named: tuple[int, ...]  # which of the words are neither flags nor their values
    names: tuple[Word, ...]  # these words
    doubtful: int  # from this one of `named` on nobody knows which is which: a flag that no table has
    flags: tuple[Word, ...] | None = None  # of the words those that may be flags, where that was looked at


def read(words: Sequence[Word]) -> Line:
    """The first word as the program, the others by what is known of its flags."""
    path = words[0].text
    program = posixpath.basename(path)
    versioned = _VERSIONED.match(program)
    program = versioned[1] if versioned else program
    program = flags.ALIASES.get(program, program)
    rest = tuple(words[1:])
    named, doubtful = _sorted(program, rest)
    names = tuple(rest[index] for index in named)
    before = rest[: named[0]] if named else rest
    is_certain = words[0].exact and program not in flags.WRAPPERS and not _is_configured(program, before)
    return Line(program, path, is_certain, rest, named, names, doubtful)


def _is_configured(program: str, words: tuple[Word, ...]) -> bool:
    """A git that is told, before its subcommand, to run something else: an alias, a pager, a hook."""
    if program != "git":
        return False
    given = (after.text for word, after in pairwise(words) if word.text in {"-c", "--config-env"})
    return any(not _HARMLESS_SETTING.match(setting) for setting in given) or any(
        word.text.startswith(("--exec-path=", "--config-env=")) for word in words
    )


def shifted(words: Sequence[Word]) -> Iterator[Line]:
    """Every place where the real program may stand, if the first word is something that only the shell knows."""
    for start in range(min(len(words), _MOST_SHIFTS)):
        yield read(words[start:])


def _sorted(program: str, words: tuple[Word, ...]) -> tuple[tuple[int, ...], int]:
    named: list[int] = []
    valued, switches = flags.VALUED.get(program, flags.NONE), flags.SWITCHES.get(program, flags.NONE)
    doubtful, skip, ended = len(words), False, False
    for index, word in enumerate(words):
        text = word.text
        if skip:
            skip = False
        elif ended or not text.startswith("-") or text == "-":
            named.append(index)
        elif text == "--":
            ended = True
        elif "=" not in text and text in valued:
            skip = True
        elif text.partition("=")[0] not in valued and text not in switches:
            doubtful = min(doubtful, len(named))
    return tuple(named), doubtful


def fits(rule: Rule, line: Line) -> bool:
    """Whether a rule speaks of this command. What makes a call look harmless has to fit without a doubt."""
    if not is_called(rule.command[0], line.program):
        return False
    strict = not is_lenient(rule)
    if strict and not _is_sure(line, rule):
        return False
    if len(rule.command) > 1 and not _has_subcommands(rule.command[1:], line, strict=strict):
        return False
    if rule.having and not any(_has(_sure(line) if strict else line, token) for token in rule.having):
        return False
    return not (rule.lacking and _lacks_nothing(rule, line, strict=strict))


def is_lenient(rule: Rule) -> bool:
    """Whether a rule makes a call look harmful: then it is better to find it too often."""
    return rule.call_class in {CallClass.EFFECT, CallClass.UNKNOWN} or rule.decision is not Decision.ALLOW


def _is_sure(line: Line, rule: Rule) -> bool:
    if not line.is_certain:
        return False
    folder = posixpath.dirname(line.path)
    # A program of the workspace may have any name; one of a virtual environment is what it is called.
    return not folder or folder in _SYSTEM or (rule.call_class is CallClass.LOCAL and bool(_OWN.search(folder)))


def is_called(pattern: str, text: str) -> bool:
    """Whether a word of a rule's command means this word."""
    exact, beginnings = _spellings(pattern)
    return text in exact or (bool(beginnings) and text.startswith(beginnings))


@lru_cache(maxsize=4096)
def _spellings(pattern: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """`status|diff-*`: the words that are meant, and the beginnings of words."""
    pieces = pattern.split("|")
    beginnings = tuple(piece[:-1] for piece in pieces if piece.endswith("*"))
    return frozenset(piece for piece in pieces if not piece.endswith("*")), beginnings


def _has_subcommands(wanted: Sequence[str], line: Line, *, strict: bool) -> bool:
    found = line.names
    if len(found) >= len(wanted) and all(
        is_called(pattern, word.text) and (word.exact or not strict)
        for pattern, word in zip(wanted, found, strict=False)
    ):
        return not strict or line.doubtful >= len(wanted)
    return not strict and _may_have(wanted, [word.text for word in found], line.doubtful)


def _may_have(wanted: Sequence[str], texts: Sequence[str], sure: int) -> bool:
    """Whether the subcommands stand there, if some of the words after the first ones belong to an unknown flag."""
    rest = wanted[sure:]
    if not rest or not all(map(is_called, wanted[:sure], texts[:sure])):
        return False
    last = len(texts) - len(rest) + 1
    return any(all(map(is_called, rest, texts[start : start + len(rest)])) for start in range(sure, last))


def _lacks_nothing(rule: Rule, line: Line, *, strict: bool) -> bool:
    if any(_has(line if strict else _sure(line), token) for token in rule.lacking):
        return True
    # Nobody knows which flags such a word may hold.
    return strict and any(not word.exact and word.text[:1] in {"$", "`", "{"} for word in line.words)


def _sure(line: Line) -> Line:
    """The line for looking at flags that make it harmless: `git push -o --dry-run` has none, it is the value of -o."""
    spelled = " ".join((line.program, *(word.text for word in line.names[:1])))
    valued = flags.VALUED.get(line.program, flags.NONE) | flags.ARGUMENTS.get(spelled, flags.NONE)
    valued |= flags.ARGUMENTS.get(line.program, flags.NONE)
    end = next((index for index, word in enumerate(line.words) if word.text == "--"), len(line.words))
    values = {index for index, word in enumerate(line.words[:end], 1) if word.text in valued}
    return line._replace(flags=tuple(word for index, word in enumerate(line.words[:end]) if index not in values))


def _has(line: Line, token: str) -> bool:
    kind, colon, value = token.partition(":")
    if colon and kind in {"alone", "word", "method", "remote", "script", "refspec"}:
        return _CHECKS[kind](line, value)
    words = line.words if line.flags is None else line.flags
    if token.startswith("--"):
        return any(_is_long(word.text, token) for word in words)
    if len(token) == _SHORT and token[0] in "-+" and token[1] != "*":
        letter = token[1]
        return any(text[:1] == token[0] and text[1:2] != "-" and letter in text[1:] for text, _ in words)
    if token.endswith("*"):
        return any(text.startswith(token[:-1]) for text, _ in words)
    return any(text == token or (token[0] == "-" and text.startswith(f"{token}=")) for text, _ in words)


def _is_long(text: str, flag: str) -> bool:
    """A long flag, also with its value, or shortened as many programs allow."""
    if not text.startswith("--"):
        return False
    name = text.partition("=")[0]
    return name == flag or (len(name) > len("--x") and flag.startswith(name))


def _is_alone(line: Line, value: str) -> bool:
    """Nothing but this one word, or nothing at all where it is the program's own name."""
    if value == line.program:
        return not line.words
    if value.startswith("-"):
        return [word.text for word in line.words] == [value]
    return [word.text for word in line.names] == [value] and line.doubtful >= len(line.words)


def _is_forced(line: Line, _: str) -> bool:
    """`+branch` overwrites what is there, `:branch` deletes it."""
    return any(text.startswith("+") or (text.startswith(":") and text != ":") for text, _ in line.names[1:])


def _is_here(line: Line, _: str) -> bool:
    """No word that could name another machine."""
    return all(word.exact and ":" not in word.text for word in line.names)


# What flags alone cannot tell, by the word before the colon.
_CHECKS: Mapping[str, Callable[[Line, str], bool]] = {
    "alone": _is_alone,
    "word": lambda line, value: any(w.text == value for w in (line.words if line.flags is None else line.flags)),
    "method": lambda line, value: requests.kind(line.program, line.words, line.names) == value,
    "script": lambda line, _: scripts.is_plain(line.program, line.words),
    "remote": _is_here,
    "refspec": _is_forced,
}


def asks_for_help(line: Line) -> bool:
    """`git push --help` pushes nothing; a flag before it might take the word for its value."""
    if line.program not in flags.VALUED or not line.words or line.words[-1].text != "--help" or not line.is_certain:
        return False
    return all(word.exact for word in line.words) and not any(word.text.startswith("-") for word in line.words[:-1])


def fields(rule: Rule, line: Line, command: Command) -> dict[str, Any]:
    """What `key` and `target` may name of a command: its program, arguments, flags and the words between them."""
    told: dict[str, Any] = {"program": line.program, "arguments": [word.text for word in line.words]}
    told |= _flags_and_words(line.words[_after(rule, line) :], _valued(rule, line))
    told |= _flags_and_words(line.words[: _after(rule, line)], _valued(rule, line), numbered=False)
    told |= fed_by(command)
    if (url := requests.address(line.words)) and "url" in rule.target:
        told["url"] = url
    files = (_sent_file(text) for text in told["arguments"])
    return told | {f"@{number}": path for number, path in enumerate(filter(None, files), 1)}


def fed_by(command: Command) -> dict[str, str]:
    """What comes through the standard input: a text that stands in the command, or a file."""
    told = {"stdin": command.stdin} if command.stdin else {}
    source = next((redirect.target for redirect in command.redirects if redirect.operator.endswith("<")), None)
    return told if source is None else told | {"<": source.text}


def _sent_file(text: str) -> str:
    """The file that `@name` or `field=@name` stands for, as curl and others have it."""
    before, at, path = text.partition("@")
    return path if at and (not before or before.endswith("=")) and path != "-" else ""


def _after(rule: Rule, line: Line) -> int:
    depth = len(rule.command) - 1
    if depth <= 0:
        return 0
    return line.named[depth - 1] + 1 if len(line.named) >= depth else len(line.words)


def _valued(rule: Rule, line: Line) -> frozenset[str]:
    named = {piece for text in (*rule.key, rule.target) for piece in re.split(r"[{}|]", text) if piece.startswith("-")}
    spelled = " ".join((line.program, *(word.text for word in line.names[: len(rule.command) - 1])))
    return flags.VALUED.get(line.program, flags.NONE) | flags.ARGUMENTS.get(spelled, flags.NONE) | named


def _flags_and_words(
    words: Sequence[Word], valued: frozenset[str], *, numbered: bool = True
) -> Mapping[str, str | bool]:
    told: dict[str, str | bool] = {}
    count, ended = 0, False
    left = iter(words)
    for word in left:
        text = word.text
        if text == "--" and not ended:
            ended = True
        elif ended or not text.startswith("-") or text == "-":
            count += 1
            if numbered:
                told[str(count)] = text
        elif text.startswith("--") or text in valued:
            name, equals, value = text.partition("=")
            following = next(left, None) if not equals and name in valued else None
            told[name] = value if equals else following.text if following else True
        else:
            told |= _cluster(text, valued)
            if f"-{text[-1]}" in valued and told.get(f"-{text[-1]}") == "":
                told[f"-{text[-1]}"] = next(left, word).text
    return told


def _cluster(text: str, valued: frozenset[str]) -> Mapping[str, str | bool]:
    """`-uf` is `-u -f`, and `-mtext` is `-m text`."""
    told: dict[str, str | bool] = {text: True}
    for position, letter in enumerate(text[1:], 1):
        if f"-{letter}" in valued:
            return told | {f"-{letter}": text[position + 1 :]}
        told[f"-{letter}"] = True
    return told
