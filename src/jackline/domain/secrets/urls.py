"""Finds secrets in URLs: passwords, tokens before the host, signatures. Pure; compiled on first use."""

from __future__ import annotations

import re
from functools import cache

from jackline.domain.secrets.names import has_digit, is_place_holder, is_strong, span_of
from jackline.domain.secrets.tokens import Span, places
from jackline.named import NamedTuple

_HOST = r"(?=[A-Za-z0-9\[._-])"  # after the @


class _UrlPatterns(NamedTuple):
    password: re.Pattern[str]
    token: re.Pattern[str]
    signature: re.Pattern[str]


@cache
def _compile_url_patterns() -> _UrlPatterns:
    flags = re.ASCII | re.IGNORECASE
    return _UrlPatterns(
        re.compile(rf"""://[^\s/:@"'`\\<>]{{0,256}}:(?P<value>[^\s/"'`\\<>]{{1,512}})@{_HOST}""", flags),
        re.compile(rf"://(?P<value>[A-Za-z0-9_.~-]{{16,256}})@{_HOST}", flags),
        re.compile(r"(?:(?<=[?&;])sig|signature)=(?P<value>[A-Za-z0-9%+/_-]{20,}+=*)", flags),
    )


def in_urls(text: str) -> list[Span]:
    """Find passwords, tokens and signatures in URLs."""
    patterns, found = _compile_url_patterns(), []
    for at in places("://", text):
        password, token = patterns.password.match(text, at), patterns.token.match(text, at)
        if password is not None and not is_place_holder(password["value"]):
            found.append(span_of(password))
        elif token is not None and is_strong(token["value"]):
            found.append(span_of(token))
    signatures = patterns.signature.finditer(text)
    return [*found, *(span_of(match) for match in signatures if has_digit(match["value"]))]
