"""Secrets that a program's own flag tells: `curl -u ada:…`, `sshpass -p …`, `mysql -p…`. Pure; compiled on first use.

`-u` and `-p` mean something else everywhere else: they count only behind the name of their program, on the same line.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from functools import cache

from jackline.domain.secrets.tokens import Span
from jackline.named import NamedTuple

_BACK = 2_000  # characters in which the program has to stand: a line may be endless
_BETWEEN = r"""(?:\\*["'])?(?:[ \t]*,[ \t]*|[ \t]+|=)(?:\\*["'])?"""  # as a shell or as JSON has it
_VALUE = r"""(?P<value>[^\s"'`\\;|&]{2,512})"""
_SHORTEST_BASIC = 8
_HARMLESS = re.compile(r"[0-9.:/]*")  # ports, and the numbers of users and groups
_NO_SECRET = ("-", "$", "<", "{", "%", "(", "[", "*", "@")  # other flags, references, place holders


class _Flag(NamedTuple):
    programs: tuple[str, ...]
    pattern: re.Pattern[str]


@cache
def _flags() -> tuple[_Flag, ...]:
    def flag(pattern: str, *programs: str) -> _Flag:
        return _Flag(programs, re.compile(rf"(?<![\w-]){pattern}", re.ASCII))

    user = (
        rf"""(?:-[A-Za-z]{{0,8}}[uU](?:{_BETWEEN})?+|--(?:proxy-)?user{_BETWEEN})(?:\\*["'])?[^\s:"'`\\,]{{1,128}}:"""
    )
    return (
        flag(user + _VALUE, "curl"),
        flag(rf"""-p(?:{_BETWEEN})?+(?:\\*["'])?{_VALUE}""", "sshpass"),
        flag(rf"""-p(?:\\*["'])?{_VALUE}""", "mysql", "mariadb"),
        flag(rf"-p{_BETWEEN}{_VALUE}", "docker login", "podman login", "registry login"),
        flag(rf"-a{_BETWEEN}{_VALUE}", "redis-cli"),
        flag(rf"pass:{_VALUE}", "openssl"),
        flag(rf"password[ \t]+{_VALUE}", "machine "),  # a line of .netrc
    )


def told_by_flags(text: str) -> list[Span]:
    """Where values stand that a flag calls secret, or the scheme of HTTP that begins with a name."""
    basics = (match for match in _basic().finditer(text) if is_basic(match["value"]))
    return [Span(*match.span("value"), match.start()) for match in basics] + [
        Span(*match.span("value"), program)
        for flag in _flags()
        if any(program in text for program in flag.programs)
        for match in flag.pattern.finditer(text)
        if (program := _program(text, match.start(), flag.programs)) >= 0 and _is_secret(match["value"])
    ]


@cache
def _basic() -> re.Pattern[str]:
    return re.compile(r"\b[Bb]asic[ \t]+(?P<value>[A-Za-z0-9+/]{6,}+=*)", re.ASCII)


def is_basic(value: str) -> bool:
    """Whether it is a name and a password, as HTTP and the files of its clients spell them in base64."""
    if len(value) < _SHORTEST_BASIC or len(value) % 4:
        return False
    try:
        told = a2b_base64(value, strict_mode=True)
    except ValueError:
        return False
    return b":" in told and told.isascii() and told.decode().isprintable()


def told_by_flag(words: list[str]) -> list[Span]:
    """The same of a command as a list, for its last word."""
    before = len(" ".join(words[:-1])) + 1
    found = (span for span in told_by_flags(" ".join(words)) if span.start >= before)
    return [Span(span.start - before, span.end - before, 0) for span in found]


def _program(text: str, before: int, programs: tuple[str, ...]) -> int:
    """Where the program of a flag stands on its line; -1 if it does not."""
    first = max(0, before - _BACK)
    first = max(first, text.rfind("\n", first, before) + 1, text.rfind("\r", first, before) + 1)
    return max(text.rfind(program, first, before) for program in programs)


def _is_secret(value: str) -> bool:
    return not value.startswith(_NO_SECRET) and _HARMLESS.fullmatch(value) is None
