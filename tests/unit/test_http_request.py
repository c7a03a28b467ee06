"""The request of a command line, and URLs in normal form."""

from __future__ import annotations

import pytest

from jackline.policy.command_line import parse_line
from jackline.policy.http_request import HttpRequest, normalize_url, parse_request, shorten_url
from jackline.shell import list_commands


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("example.com", "http://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:0443/a", "https://example.com/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("https://example.com.:/a?", "https://example.com/a"),
        ("https://me:a@b@example.com/a#top", "https://example.com/a"),
        ("https://h/%7eme/%2F%c3%a4/./b/../c?q=%2f#x?y", "https://h/~me/%2F%C3%A4/c?q=%2F"),
        ("https://h/a/..", "https://h/"),
        ("https://h/a/b/.", "https://h/a/b/"),
        ("https://h/../../a", "https://h/a"),
        ("https://h/A//b/", "https://h/A//b/"),
        ("https://[::1]:443/", "https://[::1]/"),
        ("not a url", "not a url"),
        ("https://", "https://"),
        ("https://h:x/", "https://h:x/"),
        ("", ""),
    ],
)
def test_a_url_has_one_spelling(url: str, normal: str) -> None:
    assert normalize_url(url) == normal
    assert normalize_url(normal) == normal


def test_a_target_has_no_slash_at_its_end() -> None:
    assert shorten_url("https://h/") == "https://h"
    assert shorten_url("https://h/a/?q=/") == "https://h/a?q=/"


def read(text: str) -> HttpRequest | None:
    return parse_request(parse_line(list_commands(text)[0].words))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("curl -d a h", "curl -X POST --data-raw a http://h/"),
        ("curl -d a -d b h", "curl -d 'a&b' h"),
        ("curl --json '{\"a\": 1}' h", "curl -d '{\"a\":1}' -H 'content-type: application/json' h"),
        ('curl -d \'{"a":1,"b":2}\' h', "http h b:=2 a:=1"),
        ("wget --post-data=a h", "curl -sd a h"),
        ("wget --post-file=f h", "curl -d @f h"),
        ("curl -X DELETE h/1", "http DELETE h/1"),
        ("https h a=b", "http https://h/ a=b"),
        ("curl -H 'X-A:1' -H 'b: 2' -d a h", "curl -d a -H 'B:2' -H 'x-a: 1' h"),
    ],
)
def test_two_spellings_of_one_request_are_equal(one: str, other: str) -> None:
    assert read(one) is not None
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("curl -d a h", "curl -d b h"),
        ("curl -d a h", "curl -X PUT -d a h"),
        ("curl -d a h", "curl -d a h/x"),
        ("curl -d a h", "curl -d a h?x"),
        ("curl -d a h", "curl -d a -H 'Idempotency-Key: 2' h"),
        ("curl -d a h", "curl -d a -u me:x h"),
        ("curl -d @a h", "curl -d @b h"),
        ("curl -d @a h", "curl --data-raw @a h"),
        ('curl -d \'{"a":1,"a":2}\' h', "curl -d '{\"a\":2}' h"),
        ("http h a=1", "http h a:=1"),
    ],
)
def test_two_requests_differ(one: str, other: str) -> None:
    assert read(one) is not None
    assert read(one) != read(other)


@pytest.mark.parametrize(
    "text",
    [
        "curl", "curl a b", "curl -d a h --next h", "curl -F a=b h", "curl -T f h", "curl -K f h", "curl -d @- h",
        "curl -d a h/{1,2}", "curl -d a -G h", "curl --unknown x h", "curl -H @file -d a h", "curl -d a -d @f h",
        "wget -i list", "wget --post-data=a --post-file=f h", "http", "http -f POST h a=b", "http h a@f",
        "http h a:=@f", "http h a=@f", "http h a==b", "http h 'a\\=b'", "http --raw=x h a=b", "curl -d $X h", "curl -d",
    ],
)  # fmt: skip
def test_what_is_not_one_known_request_is_none(text: str) -> None:
    assert read(text) is None
