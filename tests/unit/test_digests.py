"""Digests are those of the standard library: stored ones must not change."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from jackline import digests

TEXTS = ("", "a", "ü€\N{SNOWMAN}", "half a pair \ud800", "x" * 1_000)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_has_the_digest_of_hashlib(text: str) -> None:
    assert digests.hash_text(text) == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("length", [0, 1, 32, 63, 64, 65, 200])
def test_a_text_is_signed_as_hmac_does_it(text: str, length: int) -> None:
    secret = bytes(number % 256 for number in range(length))
    expected = hmac.new(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    assert digests.sign_text(secret, text) == expected
