"""The words of one command, read as a program, its subcommands, its flags and the rest. Pure; it decides nothing."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.builtin import flags
from jackline.domain.judging import requests, scripts
from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.domain.rule import Rule
    from jackline.domain.shell import Word

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
_STEERING_SETTING = re.compile(
    r"(?is)(alias|credential|filter|url|includeif|(merge|diff)tool|man|browser|protocol|pager|sendemail|guitool"
    r"|instaweb|imap)\..+|include\.path|init\.templatedir|diff\.external|web\.browser|sequence\.editor"
    r"|core\.(hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy|attributesfile|worktree"
    r"|alternaterefscommand)|diff\..+\.(command|textconv)|merge\..+\.driver|gpg\.(.+\.)?(program|defaultkeycommand)"
    r"|interactive\.difffilter|remote\..+\.(uploadpack|receivepack|vcs|proxy)|http\.(.+\.)?proxy"
    r"|submodule\..+\.update|uploadpack\.packobjectshook|(trailer|tar)\..+\.(command|cmd)|.+::.+"
)
_HELPER = re.compile(r"(?:^|=)[A-Za-z0-9]+::")
_SETS_CLOCK = re.compile(r"-[uR]*s|--s")
_TOOLCHAINS = frozenset({"cargo", "rustc", "rustfmt", "rustdoc"})  # `cargo +nightly test`
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
    program = posixpath.basename(path).removesuffix(".exe")
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
            if index or not text.startswith("+") or program not in _TOOLCHAINS:
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
    if rule.having and not (_surely_has(rule, line) if strict else any(_has(line, token) for token in rule.having)):
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


def _surely_has(rule: Rule, line: Line) -> bool:
    """A letter that makes it harmless stands alone, or among others that do: in `-Uvalerie` there is no `-l`."""
    sure = _sure(line)
    letters = frozenset(token[1] for token in rule.having if _is_letter(token))
    pure = tuple(word for word in _looked_at(sure) if word.text[:1] != "-" or letters.issuperset(word.text[1:]))
    plain = sure._replace(flags=pure)
    return any(_has(plain if _is_letter(token) else sure, token) for token in rule.having)


def _is_letter(token: str) -> bool:
    return len(token) == _SHORT and token[0] in "-+" and token[1] != "*"


def _looked_at(line: Line) -> tuple[Word, ...]:
    """The words that may be flags; the first one of tar is, also without its dash."""
    words = line.words if line.flags is None else line.flags
    if line.program != "tar" or not words or words[0].text.startswith("-"):
        return words
    return (*words, words[0]._replace(text=f"-{words[0].text}"))


def _has(line: Line, token: str) -> bool:
    kind, colon, value = token.partition(":")
    if colon and kind in _CHECKS:
        return _CHECKS[kind](line, value)
    words = _looked_at(line)
    if token.startswith("--"):
        return any(_is_long(word.text, token) for word in words)
    if _is_letter(token):
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


def _steers(line: Line, _: str) -> bool:
    """`git config NAME value` with a name that makes git run something, or ask somebody else, from then on."""
    names = line.names[1:-1]
    if names and names[0].text in {"get", "list", "get-color", "get-colorbool"}:
        return False
    return any(_STEERING_SETTING.fullmatch(name.text) or not name.exact for name in names)


def _has_helper(line: Line, _: str) -> bool:
    """`ext::sh -c …` instead of an address: git runs what stands there."""
    return any(_HELPER.search(word.text) for word in line.words)


def _is_looked_up(line: Line, _: str) -> bool:
    """`date` with a format, or a date to show: a word without a sign would set the clock."""
    left = iter(line.words)
    for word in left:
        text = word.text
        if not text.startswith(("-", "+")) or not (word.exact or text.startswith("+")) or _SETS_CLOCK.match(text):
            return False
        if text in {"-d", "-r", "-f", "--date", "--reference", "--file"} or re.fullmatch(r"-[uR]+[drf]", text):
            next(left, None)
    return True


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
    "setting": _steers,
    "helper": _has_helper,
    "clock": _is_looked_up,
    "before": lambda line, value: any(w.text == value for w in line.words[: line.named[0] if line.named else None]),
    "holds": lambda line, value: any(value in word.text for word in line.words),
}


def asks_for_help(line: Line) -> bool:
    """`git push --help` pushes nothing; a flag before it might take the word for its value."""
    if line.program not in flags.VALUED or not line.words or line.words[-1].text != "--help" or not line.is_certain:
        return False
    return all(word.exact for word in line.words) and not any(word.text.startswith("-") for word in line.words[:-1])
