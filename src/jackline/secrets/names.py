"""Finds secrets by the name before them: `PASSWORD=…`, `"api_key": "…"`, `--token …`, headers, URLs. Pure.

Code is full of `token: str` and `password=password`, so names of values, types and placeholders are not secrets.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.secrets.command_flags import is_basic_credential
from jackline.secrets.tokens import Span, find_positions

if TYPE_CHECKING:
    from collections.abc import Callable

# Lower case; a text without any of them has no secret with a name.
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
# Not secret despite the ending: pagination, counts, public values.
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
_LONGEST_JUDGED = 512  # characters of a value that are examined, to stay linear
_FAR = 2 * _LONGEST_JUDGED
_LONGEST_QUOTE = 4  # characters, including escapes
_SHORTEST = 4
_SHORTEST_GUESSED = 6
_SHORTEST_STRONG = 16
_WORDS_OF_A_PHRASE = 4  # more words are a sentence


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
def _compile_patterns() -> _Patterns:
    flags = re.ASCII | re.IGNORECASE
    # The closing quote of the name, and the separator between name and value.
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
        # An entry of a list of variables, as in Kubernetes.
        listed=re.compile(
            rf"{_QUOTE}[ \t]*,[ \t]*{_QUOTE}value{_QUOTE}[ \t]*:[ \t]*{_QUOTE}(?P<value>{_BARE}{{4,512}}+)", flags
        ),
    )


@cache
def _compile_name() -> re.Pattern[str]:
    """Compile separately: variable names are checked before an agent starts, texts are not."""
    return re.compile(rf"(?:.*?(?:{_ENDINGS})){_AFTER}\Z", re.ASCII | re.IGNORECASE | re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Check whether this name of a JSON field or variable denotes a secret."""
    snake = _CAMEL.sub("_", name)
    return _compile_name().match(snake) is not None and not _HARMLESS.search(snake.lower())


def is_placeholder(value: str) -> bool:
    """Check for a placeholder instead of a value."""
    return value.lower() in _NOT_SECRET or not value.strip("*.xX-_ ") or _REFERENCE.fullmatch(value) is not None


def _is_bare_placeholder(value: str) -> bool:
    return value.startswith(_BARE_REFERENCE) or is_placeholder(value)


def find_named_secrets(text: str, lower: str) -> list[Span]:
    """Find values after a secret name; `lower` is the text with ASCII in lower case, of the same length."""
    patterns, found = _compile_patterns(), []
    for stem in STEMS:
        found += _match_positions(text, find_positions(stem, lower), patterns.named, _find_value)
    found += _match_positions(text, find_positions("authorization", lower), patterns.header, _find_credential)
    return found + _match_positions(text, find_positions("cookie", lower), patterns.cookie, _find_cookie)


def _match_positions(
    text: str, starts: list[int], pattern: re.Pattern[str], find: Callable[[str, re.Match[str]], list[Span]]
) -> list[Span]:
    """Match the pattern at these positions; skip positions deep inside a secret, to stay linear."""
    found: list[Span] = []
    end = 0
    for at in starts:
        match = pattern.match(text, at) if end - at < _FAR else None
        spans = find(text, match) if match is not None else []
        found += spans
        end = max(end, *(span.end for span in spans)) if spans else end
    return found


def find_bearer_tokens(text: str) -> list[Span]:
    """Find tokens after the word `Bearer` or `bearer`."""
    matches = (
        _compile_patterns().bearer.match(text, at)
        for word in ("Bearer ", "bearer ")
        for at in find_positions(word, text)
    )
    return [build_span(match) for match in matches if match is not None and has_digit(match["value"])]


def build_span(match: re.Match[str]) -> Span:
    return Span(*match.span("value"), match.start())


def _find_credential(text: str, match: re.Match[str]) -> list[Span]:
    value = match["value"]
    if _is_bare_placeholder(value) or _CODE.search(value):
        return []
    is_certain = match["scheme"] is not None or (len(value) >= _SHORTEST_GUESSED and has_digit(value))
    return [_extend_span(text, build_span(match))] if is_certain else []


def _find_cookie(_text: str, match: re.Match[str]) -> list[Span]:
    return [] if is_placeholder(match["value"]) else [build_span(match)]


def _extend_span(text: str, span: Span) -> Span:
    """Extend a span to the end of the word; only its beginning was examined."""
    if span.end - span.start < _LONGEST_JUDGED:
        return span
    rest = _compile_patterns().rest.match(text, span.end)
    return span if rest is None else span._replace(end=rest.end())


def _find_value(text: str, match: re.Match[str]) -> list[Span]:
    """Find the value of a name, if name, separator and value look like a secret."""
    kind = match.lastgroup or "bare"
    value, (start, end) = match[kind], match.span(kind)
    context = _find_name_start(text, match.start())
    name = text[context : match.start("joint")].rstrip("\\\"'`]")
    if kind == "bare":
        is_element = match["joint"].strip() == ">"
        value = (value.partition("<")[0] if is_element else value).rstrip(",).]}>")
        end = start + len(value)
    is_nothing = _is_bare_placeholder(value) if kind == "bare" else is_placeholder(value)
    if is_nothing or _HARMLESS.search(_CAMEL.sub("_", name.lstrip("-.")).lower()):
        return []
    if value == "value" and is_secret_name(name):
        return _find_listed_value(text, match.start("joint"), context)
    if not _is_secret_value(text, context, name, match["joint"], value, kind):
        return []
    span = Span(start=start, end=end, context=context)
    return [_extend_span(text, span) if kind == "bare" else span]


def _find_listed_value(text: str, joint: int, context: int) -> list[Span]:
    """Find the value of an entry such as `{"name": "DB_PASSWORD", "value": "…"}`."""
    name = text[max(0, joint - _LONGEST_QUOTE) : joint]
    match = _compile_patterns().listed.match(text, joint - len(name) + len(name.rstrip("\\\"'`")))
    if match is None or _is_bare_placeholder(match["value"]):
        return []
    return [_extend_span(text, Span(*match.span("value"), context))]


def _find_name_start(text: str, start: int) -> int:
    """Return the start of the whole name; the pattern matches only its end."""
    begun = _NAME_CHARACTERS.search(text[max(0, start - _LONGEST_NAME) : start])
    first = start - (len(begun[0]) if begun else 0)
    is_escape = first < start and text[first - 1 : first] == "\\" and text[first] in "nrtbf"
    return first + is_escape


def _is_secret_value(text: str, context: int, name: str, joint: str, value: str, kind: str) -> bool:
    sign = joint.strip()
    is_flag = name.startswith("-")
    if not sign:  # only a flag has its value after a space
        return is_flag and len(value) >= _SHORTEST and not value.startswith("-") and not _CODE.search(value)
    if sign == ",":  # a command as a list
        return is_flag and kind != "bare" and len(value) >= _SHORTEST and not value.startswith("-")
    if sign == ">" and (joint != sign or text[max(0, context - 1) : context] != "<"):
        return False
    lower = name.lower()
    # Names such as `SORT_KEY`, `key` and `SERVER_AUTH` are less specific than `API_KEY`.
    if ("key" in lower and not is_secret_name(name)) or lower.rstrip("0123456789").endswith("auth"):
        is_query = lower == "key" and text[context - 1 : context] in {"?", "&"}
        in_query = is_query and not _HEXADECIMAL.fullmatch(value)
        return ((name.isupper() or in_query) and is_strong(value)) or is_basic_credential(value)
    if kind != "bare":
        # A sentence such as `"token": "the token that the server gave"` documents a field.
        is_sentence = len(value.split()) > _WORDS_OF_A_PHRASE and not has_digit(value)
        return len(value) >= _SHORTEST and not is_sentence and not _is_word(name, sign, value)
    if is_flag or (name.isupper() and joint == "="):
        return len(value) >= _SHORTEST and not _CODE.search(value)
    return _may_be_secret(name, value)


def _is_word(name: str, sign: str, value: str) -> bool:
    """Check for a mere identifier, as in `"input_token": "next_token"`; a password may be any word."""
    if _is_explicit(name) or not _IDENTIFIER.match(value):
        return False
    return sign == "==" or _WORDS_OF_NAMES.search(value) is not None


def _is_explicit(name: str) -> bool:
    return "pass" in name.lower() or "secret" in name.lower()


def _may_be_secret(name: str, value: str) -> bool:
    """Guess whether an unquoted value is a secret; the text may be code."""
    if len(value) < _SHORTEST_GUESSED or _CODE.search(value):
        return False
    explicit = _is_explicit(name)
    if value.isdigit():  # a count of tokens, or the number of an attempt
        return explicit
    if _IDENTIFIER.match(value):  # only for a password, and not if it looks like a name itself
        return explicit and "." not in value and not _WORDS_OF_NAMES.search(value)
    is_base64 = explicit and value.endswith("=")
    return has_digit(value) or is_base64 or not value.isascii() or len(value) >= _SHORTEST_STRONG


def is_strong(value: str) -> bool:
    """Check for a long mix of letters and digits that is not a word or code."""
    mixed = has_digit(value) and any(one.isalpha() for one in value)
    return len(value) >= _SHORTEST_STRONG and mixed and not _CODE.search(value) and "/" not in value[:2]


def has_digit(value: str) -> bool:
    return any("0" <= one <= "9" for one in value)


# --- URLs

_HOST = r"(?=[A-Za-z0-9\[._-])"  # after the @


class _UrlPatterns(NamedTuple):
    password: re.Pattern[str]
    token: re.Pattern[str]
    signature: re.Pattern[str]


@cache
def _compile_url_patterns() -> _UrlPatterns:
    flags = re.ASCII | re.IGNORECASE
    return _UrlPatterns(
        password=re.compile(rf"""://[^\s/:@"'`\\<>]{{0,256}}:(?P<value>[^\s/"'`\\<>]{{1,512}})@{_HOST}""", flags),
        token=re.compile(rf"://(?P<value>[A-Za-z0-9_.~-]{{16,256}})@{_HOST}", flags),
        signature=re.compile(r"(?:(?<=[?&;])sig|signature)=(?P<value>[A-Za-z0-9%+/_-]{20,}+=*)", flags),
    )


def find_url_secrets(text: str) -> list[Span]:
    """Find passwords, tokens and signatures in URLs."""
    patterns, found = _compile_url_patterns(), []
    for at in find_positions("://", text):
        password, token = patterns.password.match(text, at), patterns.token.match(text, at)
        if password is not None and not is_placeholder(password["value"]):
            found.append(build_span(password))
        elif token is not None and is_strong(token["value"]):
            found.append(build_span(token))
    signatures = patterns.signature.finditer(text)
    return [*found, *(build_span(match) for match in signatures if has_digit(match["value"]))]
