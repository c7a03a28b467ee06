"""Secrets that are known by their names: `PASSWORD=…`, `"api_key": "…"`, `--token …`, headers. Pure.

Agents read and write code all day, and code is full of `token: str` and `password=password`: what is only the name of a
value, its type or a place holder is no secret.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from jackline.domain.secrets.commands import is_basic
from jackline.domain.secrets.tokens import Span, places
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

# Lower case; a text with none of them holds no secret that a name tells.
STEMS = ("pass", "secret", "token", "key", "auth", "cookie")

_KEYS = (
    "api|access|secret|private|encryption|signing|auth|account|master|service|license|storage|deploy|ssh|app"
    "|subscription"
)
_ENDINGS = (
    r"pass(?:word|wd|phrase|code)|(?<=_)pass|(?<=_)pwd|secret|token"
    rf"|(?:{_KEYS})[_-]?key(?:[_-]id)?|credentials?|authorization|(?<=_)auth|cookie"
)
_AFTER = r"(?:[_-]?(?:\d{1,3}|base|value|old|new))?"
# Not secret, although they end so: what pages through lists, counts, or is public.
_HARMLESS = re.compile(
    r"(?:^|[_.-])(?:public|page|next|continuation|sync|cancel|cancellation|max|min|num|total|idempotency|primary|foreign"
    r"|stop|eos|bos|pad|unk|mask|sep|cls)[_-]?(?:\w*[_-])?(?:token|key|secret)s?$"
)
_NAME_CHARACTERS = re.compile(r"[A-Za-z0-9_.-]*\Z")
_LONGEST_NAME = 64
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_BARE_REFERENCE = ("$", "<", "{", "%", "(", "[", "*", "@{", "#{", "process.", "os.", "env.", "var.", "secrets.")
_REFERENCE = re.compile(
    r"\$\{?\w+\}?|\$\{\{.*\}\}|<[^<>]*>|\{\{.*\}\}|\{\w*\}|%\(?\w*\)?[sd]?|\[redacted\**\]", re.DOTALL
)
_NOT_SECRET = frozenset(
    {
        *("none", "null", "nil", "undefined", "true", "false", "yes", "no", "on", "off", "empty", "unset", "missing"),
        *("str", "string", "bytes", "int", "integer", "bool", "boolean", "number", "object", "any", "text", "optional"),
        *("required", "invalid", "expired", "incorrect", "failed", "denied", "accepted", "redacted", "hidden"),
        *("...", "…", "secretstr", "const", "let", "await", "self", "this"),
    }
)
_WORDS_OF_NAMES = re.compile(r"pass|secret|token|key|cred|auth|cookie", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")
_CODE = re.compile(r"[()\[\]{}]|->|=>|::")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F-]+")  # hashes and UUIDs
_LONGEST_JUDGED = 512  # characters of a value that are looked at: more would be looked at again and again
_FAR = 2 * _LONGEST_JUDGED
_LONGEST_QUOTE = 4  # characters, with what escapes it
_SHORTEST = 4
_SHORTEST_GUESSED = 6
_SHORTEST_STRONG = 16
_WORDS_OF_A_PHRASE = 4  # or so; more is a sentence


class _Patterns(NamedTuple):
    named: re.Pattern[str]
    header: re.Pattern[str]
    rest: re.Pattern[str]
    bearer: re.Pattern[str]
    cookie: re.Pattern[str]
    listed: re.Pattern[str]


_QUOTE = r"""\\*["'`]"""
_BARE = r"""[^\s"'`\\&;]"""


@cache
def _patterns() -> _Patterns:
    flags = re.ASCII | re.IGNORECASE
    # What a name has behind it: the end of its own quotes, and what stands between a name and a value.
    joint = rf"(?:{_QUOTE})?\]?(?P<joint>[ \t]{{0,4}}(?::=|=>|==?|:|>|,)[ \t]{{0,4}}|[ \t]{{1,4}})"
    value = (
        r"""(?:"(?P<double>(?:[^"\\\r\n]|\\[^\r\n])*+)"|'(?P<single>(?:[^'\\\r\n]|\\[^\r\n])*+)'"""
        r"""|\\"(?P<escaped>(?:[^"\\\r\n]|\\(?!")[^\r\n])*+)\\"|(?:\\*["'`])?(?P<bare>[^\s"'`\\&;]{1,512}+))"""
    )
    return _Patterns(
        named=re.compile(
            r"(?:pass(?:word|wd|phrase|code)|(?<=_)pass|secret|token|key(?:[_-]id)?|auth(?:orization)?|cookie)"
            rf"{_AFTER}{joint}{value}",
            flags,
        ),
        header=re.compile(
            rf"authorization(?:{_QUOTE})?[ \t]*[:=][ \t]*(?:{_QUOTE})?"
            rf"(?:(?P<scheme>bearer|basic|token|digest|negotiate|bot|apikey)[ \t]+)?(?P<value>{_BARE}{{4,512}}+)",
            flags,
        ),
        rest=re.compile(rf"{_BARE}*+", flags),
        bearer=re.compile(r"\bbearer[ \t]+(?P<value>[A-Za-z0-9._~+/=-]{16,}+)", flags),
        cookie=re.compile(
            rf"cookie(?:{_QUOTE})?[ \t]*:[ \t]*(?:{_QUOTE})?"
            rf"(?P<value>[\w.-]++={_BARE}++(?:;[ \t]*[\w.-]++(?:={_BARE}*+)?)*+)",
            flags,
        ),
        # One of a list of variables, as Kubernetes and many others write them.
        listed=re.compile(
            rf"{_QUOTE}[ \t]*,[ \t]*{_QUOTE}value{_QUOTE}[ \t]*:[ \t]*{_QUOTE}(?P<value>{_BARE}{{4,512}}+)", flags
        ),
    )


@cache
def _whole() -> re.Pattern[str]:
    """Apart from the others: the names of variables are looked at before an agent starts, and no text is."""
    return re.compile(rf"(?:.*?(?:{_ENDINGS})){_AFTER}\Z", re.ASCII | re.IGNORECASE | re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Whether the value under this name, of a JSON object or a variable, is a secret."""
    snake = _CAMEL.sub("_", name)
    return _whole().match(snake) is not None and not _HARMLESS.search(snake.lower())


def is_place_holder(value: str) -> bool:
    """Whether it stands for a value, and is none."""
    return value.lower() in _NOT_SECRET or not value.strip("*.xX-_ ") or _REFERENCE.fullmatch(value) is not None


def _is_bare_place_holder(value: str) -> bool:
    return value.startswith(_BARE_REFERENCE) or is_place_holder(value)


def named(text: str, lower: str) -> list[Span]:
    """Where values stand that a name before them calls secret; `lower` is as long, with ASCII in lower case."""
    patterns, found = _patterns(), []
    for stem in STEMS:
        found += _spans(text, places(stem, lower), patterns.named, _value)
    found += _spans(text, places("authorization", lower), patterns.header, _credential)
    return found + _spans(text, places("cookie", lower), patterns.cookie, _cookie)


def _spans(
    text: str, starts: list[int], pattern: re.Pattern[str], judge: Callable[[str, re.Match[str]], list[Span]]
) -> list[Span]:
    """What the pattern finds at these places, but for those deep inside of a secret: they would be read again each."""
    found: list[Span] = []
    end = 0
    for at in starts:
        match = pattern.match(text, at) if end - at < _FAR else None
        told = judge(text, match) if match is not None else []
        found += told
        end = max(end, *(span.end for span in told)) if told else end
    return found


def bearers(text: str) -> list[Span]:
    """Tokens that only the word before them tells; HTTP writes it with a capital, people also without."""
    matches = (_patterns().bearer.match(text, at) for word in ("Bearer ", "bearer ") for at in places(word, text))
    return [span_of(match) for match in matches if match is not None and has_digit(match["value"])]


def span_of(match: re.Match[str]) -> Span:
    return Span(*match.span("value"), match.start())


def _credential(text: str, match: re.Match[str]) -> list[Span]:
    value = match["value"]
    if _is_bare_place_holder(value) or _CODE.search(value):
        return []
    is_told = match["scheme"] is not None or (len(value) >= _SHORTEST_GUESSED and has_digit(value))
    return [_whole_word(text, span_of(match))] if is_told else []


def _cookie(_text: str, match: re.Match[str]) -> list[Span]:
    return [] if is_place_holder(match["value"]) else [span_of(match)]


def _whole_word(text: str, span: Span) -> Span:
    """A value is judged by its beginning; it goes to its end."""
    if span.end - span.start < _LONGEST_JUDGED:
        return span
    rest = _patterns().rest.match(text, span.end)
    return span if rest is None else span._replace(end=rest.end())


def _value(text: str, match: re.Match[str]) -> list[Span]:
    """The value of a name, if name, joint and value together look like a secret."""
    kind = match.lastgroup or "bare"
    value, (start, end) = match[kind], match.span(kind)
    context = _name_start(text, match.start())
    name = text[context : match.start("joint")].rstrip("\\\"'`]")
    if kind == "bare":
        is_element = match["joint"].strip() == ">"
        value = (value.partition("<")[0] if is_element else value).rstrip(",).]}>")
        end = start + len(value)
    is_nothing = _is_bare_place_holder(value) if kind == "bare" else is_place_holder(value)
    if is_nothing or _HARMLESS.search(_CAMEL.sub("_", name.lstrip("-.")).lower()):
        return []
    if value == "value" and is_secret_name(name):
        return _listed(text, match.start("joint"), context)
    if not _fits(text, context, name, match["joint"], value, kind):
        return []
    return [_whole_word(text, Span(start, end, context)) if kind == "bare" else Span(start, end, context)]


def _listed(text: str, joint: int, context: int) -> list[Span]:
    """The value of a variable in a list of them: `{"name": "DB_PASSWORD", "value": "…"}`."""
    name = text[max(0, joint - _LONGEST_QUOTE) : joint]
    match = _patterns().listed.match(text, joint - len(name) + len(name.rstrip("\\\"'`")))
    if match is None or _is_bare_place_holder(match["value"]):
        return []
    return [_whole_word(text, Span(*match.span("value"), context))]


def _name_start(text: str, start: int) -> int:
    """Where the whole name begins of which the pattern found the end."""
    begun = _NAME_CHARACTERS.search(text[max(0, start - _LONGEST_NAME) : start])
    first = start - (len(begun[0]) if begun else 0)
    is_escape = first < start and text[first - 1 : first] == "\\" and text[first] in "nrtbf"
    return first + is_escape


def _fits(text: str, context: int, name: str, joint: str, value: str, kind: str) -> bool:
    sign = joint.strip()
    is_flag = name.startswith("-")
    if not sign:  # only a flag is followed by its value
        return is_flag and len(value) >= _SHORTEST and not value.startswith("-") and not _CODE.search(value)
    if sign == ",":  # a command as a list
        return is_flag and kind != "bare" and len(value) >= _SHORTEST and not value.startswith("-")
    if sign == ">" and (joint != sign or text[max(0, context - 1) : context] != "<"):
        return False
    if _is_vague(name):
        is_query = name.lower() == "key" and text[context - 1 : context] in {"?", "&"}
        in_query = is_query and not _HEXADECIMAL.fullmatch(value)
        return ((name.isupper() or in_query) and is_strong(value)) or is_basic(value)
    if kind != "bare":
        return len(value) >= _SHORTEST and not _is_sentence(value) and not _is_word(name, sign, value)
    if is_flag or (name.isupper() and joint == "="):
        return len(value) >= _SHORTEST and not _CODE.search(value)
    return _is_guessed(name, value)


def _is_vague(name: str) -> bool:
    """`SORT_KEY`, `key` and `SERVER_AUTH` say less than `API_KEY`."""
    lower = name.lower()
    return ("key" in lower and not is_secret_name(name)) or lower.rstrip("0123456789").endswith("auth")


def _is_sentence(value: str) -> bool:
    """`"token": "the token that the server gave"` documents a field."""
    return len(value.split()) > _WORDS_OF_A_PHRASE and not has_digit(value)


def _is_word(name: str, sign: str, value: str) -> bool:
    """`if token == "lambda"` and `"input_token": "next_token"` name things; of a password nothing is a mere word."""
    if _is_told(name) or not _IDENTIFIER.match(value):
        return False
    return sign == "==" or _WORDS_OF_NAMES.search(value) is not None


def _is_told(name: str) -> bool:
    return "pass" in name.lower() or "secret" in name.lower()


def _is_guessed(name: str, value: str) -> bool:
    """A bare value in a text that may be code."""
    if len(value) < _SHORTEST_GUESSED or _CODE.search(value):
        return False
    told = _is_told(name)
    if value.isdigit():  # the number of a token, or of an attempt
        return told
    if _IDENTIFIER.match(value):  # of a password only, and not if it looks like a name itself
        return told and "." not in value and not _WORDS_OF_NAMES.search(value)
    is_base64 = told and value.endswith("=")
    return has_digit(value) or is_base64 or not value.isascii() or len(value) >= _SHORTEST_STRONG


def is_strong(value: str) -> bool:
    """So mixed that nobody would have written it as a word."""
    mixed = has_digit(value) and any(one.isalpha() for one in value)
    return len(value) >= _SHORTEST_STRONG and mixed and not _CODE.search(value) and "/" not in value[:2]


def has_digit(value: str) -> bool:
    return any("0" <= one <= "9" for one in value)
