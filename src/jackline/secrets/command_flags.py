"""Finds secrets in command flags: `curl -u ada:…`, `sshpass -p …`, `mysql -p…`. Pure; compiled on first use.

`-u` and `-p` mean something else for other programs, so they count only after the program name on the same line.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from functools import cache

from jackline.named import NamedTuple
from jackline.secrets.tokens import Span

_BACK = 2_000  # characters to search for the program; a line may be very long
_BETWEEN = r"""(?:\\*["'])?(?:[ \t]*,[ \t]*|[ \t]+|=)(?:\\*["'])?"""  # in shell or JSON syntax
_VALUE = r"""(?P<value>[^\s"'`\\;|&]{2,512})"""
_SHORTEST_BASIC = 8
_HARMLESS = re.compile(r"[0-9.:/]*")  # ports, user ids and group ids
_NO_SECRET = ("-", "$", "<", "{", "%", "(", "[", "*", "@")  # other flags, references, placeholders


class _Flag(NamedTuple):
    programs: tuple[str, ...]
    pattern: re.Pattern[str]


@cache
def _compile_flags() -> tuple[_Flag, ...]:
    def build_flag(pattern: str, *programs: str) -> _Flag:
        return _Flag(programs, re.compile(rf"(?<![\w-]){pattern}", re.ASCII))

    user = (
        rf"""(?:-[A-Za-z]{{0,8}}[uU](?:{_BETWEEN})?+|--(?:proxy-)?user{_BETWEEN})(?:\\*["'])?[^\s:"'`\\,]{{1,128}}:"""
    )
    return (
        build_flag(user + _VALUE, "curl"),
        build_flag(rf"""-p(?:{_BETWEEN})?+(?:\\*["'])?{_VALUE}""", "sshpass"),
        build_flag(rf"""-p(?:\\*["'])?{_VALUE}""", "mysql", "mariadb"),
        build_flag(rf"-p{_BETWEEN}{_VALUE}", "docker login", "podman login", "registry login"),
        build_flag(rf"-a{_BETWEEN}{_VALUE}", "redis-cli"),
        build_flag(rf"pass:{_VALUE}", "openssl"),
        build_flag(rf"password[ \t]+{_VALUE}", "machine "),  # a line of .netrc
    )


def find_flag_secrets(text: str) -> list[Span]:
    """Find values of secret flags, and credentials of HTTP basic authentication."""
    basics = (match for match in _compile_basic().finditer(text) if is_basic_credential(match["value"]))
    return [Span(*match.span("value"), match.start()) for match in basics] + [
        Span(*match.span("value"), program)
        for flag in _compile_flags()
        if any(program in text for program in flag.programs)
        for match in flag.pattern.finditer(text)
        if (program := _find_program(text, match.start(), flag.programs)) >= 0
        and not match["value"].startswith(_NO_SECRET)
        and not _HARMLESS.fullmatch(match["value"])
    ]


@cache
def _compile_basic() -> re.Pattern[str]:
    return re.compile(r"\b[Bb]asic[ \t]+(?P<value>[A-Za-z0-9+/]{6,}+=*)", re.ASCII)


def is_basic_credential(value: str) -> bool:
    """Check for a base64-encoded name and password, as in HTTP basic authentication."""
    if len(value) < _SHORTEST_BASIC or len(value) % 4:
        return False
    try:
        decoded = a2b_base64(value, strict_mode=True)
    except ValueError:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()


def find_word_secrets(words: list[str]) -> list[Span]:
    """Find the secrets in the last word of a command given as a list."""
    before = len(" ".join(words[:-1])) + 1
    found = (span for span in find_flag_secrets(" ".join(words)) if span.start >= before)
    return [Span(start=span.start - before, end=span.end - before, context=0) for span in found]


def _find_program(text: str, before: int, programs: tuple[str, ...]) -> int:
    """Return the position of the flag's program on the same line, or -1."""
    first = max(0, before - _BACK)
    first = max(first, text.rfind("\n", first, before) + 1, text.rfind("\r", first, before) + 1)
    return max(text.rfind(program, first, before) for program in programs)
