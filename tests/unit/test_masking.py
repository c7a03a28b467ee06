"""A stream is covered byte for byte, whatever its chunks; nothing secret comes through, and no finished line waits."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackline.secrets.masking import WINDOW, SecretMask
from tests.support.secrets import HARMLESS, NAMED, PEM, PEM_LINES, TELEGRAM, TOKENS

KNOWN = "known-value-of-ours"


def masked(data: bytes, *cuts: int, values: tuple[str, ...] = (KNOWN,)) -> bytes:
    mask = SecretMask(values)
    edges = [0, *sorted(cuts), len(data)]
    return b"".join(mask.feed(data[start:end]) for start, end in pairwise(edges)) + mask.end()


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_covered_by_as_many_bytes(kind: str) -> None:
    line = json.dumps({"text": f"first\n{TOKENS[kind]} é", "n": 1}, ensure_ascii=False).encode() + b"\n"
    covered = masked(line)
    assert TOKENS[kind].encode() not in covered
    assert len(covered) == len(line)
    assert json.loads(covered)["n"] == 1
    assert b"[redacted***" in covered


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_what_a_name_tells_is_covered(text: str, secret: str) -> None:
    for line in (text.encode(), json.dumps({"text": f"a\n{text}"}).encode()):
        covered = masked(line + b"\n")
        assert secret.encode() not in covered
        assert len(covered) == len(line) + 1


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_passes(text: str) -> None:
    data = f"{text}\n".encode()
    assert masked(data) == data


def test_a_number_stays_a_number_of_json() -> None:
    line = b'{"password":12345678,"token":1234567}\n'
    assert json.loads(masked(line)) == {"password": 99999999, "token": 1234567}


def test_a_short_secret_is_covered_whole() -> None:
    assert masked(b"PASSWORD=abcd\n") == b"PASSWORD=****\n"


@pytest.mark.parametrize("value", ["größer-als", 'with "quotes"', "with spaces in it", "a/b?c=d&e"])
def test_a_known_value_is_covered_in_every_spelling(value: str) -> None:
    from urllib.parse import quote

    for text in (value, json.dumps(value), json.dumps(value, ensure_ascii=False), quote(value, safe="")):
        data = f"x{text}y\n".encode()
        covered = masked(data, values=(value,))
        assert text.strip('"').encode() not in covered
        assert len(covered) == len(data)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_private_key_is_covered_line_by_line_as_it_comes(newline: str) -> None:
    mask = SecretMask()
    for number, line in enumerate(PEM.splitlines()):
        data = (line + newline).encode()
        covered = mask.feed(data)
        assert len(covered) == len(data)
        assert covered.endswith(newline.encode())
        assert (covered == data) is (number in {0, 6})
    assert mask.feed(b"the next line passes\n") == b"the next line passes\n"


def test_a_private_key_without_an_end_does_not_hide_what_follows() -> None:
    data = f"{PEM.split('-----END')[0]}and so on\n{PEM_LINES[0]}\n".encode()
    covered = masked(data)
    assert covered.endswith(f"and so on\n{PEM_LINES[0]}\n".encode())
    assert not [line for line in PEM_LINES[1:] if line.encode() in covered]


def test_a_finished_line_never_waits() -> None:
    mask = SecretMask()
    assert mask.feed(b"one\ntwo") == b"one\n"
    assert mask.feed(b"\rthree") == b"two\r"
    assert mask.end() == b"three"


def test_of_a_long_line_only_a_window_is_held() -> None:
    mask, given_, got = SecretMask([KNOWN]), 0, 0
    piece = b"x" * 10_000
    for _ in range(100):
        given_ += len(piece)
        got += len(mask.feed(piece))
        assert given_ - got <= WINDOW
    assert got + len(mask.end()) == given_


@pytest.mark.parametrize(
    "secret", [TOKENS["anthropic"], f"DB_PASSWORD={TOKENS['jwt']}x1", KNOWN, PEM.replace("\n", "\\n")]
)
def test_a_secret_at_any_place_of_a_long_line_is_covered(secret: str) -> None:
    chance = random.Random(4)
    for shift in range(0, 20_000, 997):
        before = "word " * ((WINDOW - 12_000 + shift) // 5) + "y" * (shift % 5)
        data = f"{before} {secret} {'word ' * 20_000}".encode()
        whole = masked(data)
        assert len(whole) == len(data)
        assert not [part for part in secret.split("\\n") if part and "-----" not in part and part.encode() in whole]
        assert masked(data, *(chance.randrange(len(data)) for _ in range(5))) == whole


def test_a_secret_longer_than_a_window_is_covered_to_its_end() -> None:
    token = f"{TOKENS['anthropic']}{'aB3d' * WINDOW}"
    data = f"{token} after it\n".encode()
    covered = masked(data)
    assert covered.endswith(b" after it\n")
    assert b"aB3daB3d" not in covered
    assert masked(data, 1, 70_000, 70_001, 200_000) == covered


texts = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")),
        st.sampled_from([b"\n", b"\r", b" ", b'"', b"=", b"\\n", b"--token ", b"password: ", KNOWN.encode()]),
        st.sampled_from([*TOKENS.values(), TELEGRAM, PEM, *PEM_LINES, *(text for text, _ in NAMED)]).map(str.encode),
    ),
    max_size=12,
).map(b"".join)


@given(texts, st.lists(st.integers(0, 2_000), max_size=6))
@example(PEM.encode(), list(range(400)))
def test_chunks_make_no_difference_and_nothing_comes_through(data: bytes, cuts: list[int]) -> None:
    whole = masked(data)
    assert masked(data, *(min(cut, len(data)) for cut in cuts)) == whole
    assert len(whole) == len(data)
    assert [one for one in whole if one in b"\r\n"] == [one for one in data if one in b"\r\n"]
    assert KNOWN.encode() not in whole


@given(st.sampled_from([*TOKENS.values()]), texts, texts, st.integers(0, 400))
def test_no_token_comes_through_at_any_border(token: str, before: bytes, after: bytes, cut: int) -> None:
    data = before + b"\n" + token.encode() + b" " + after
    covered = masked(data, min(len(before) + cut % (len(token) + 2), len(data)))
    place = slice(len(before) + 1, len(before) + 1 + len(token))
    assert token.encode() not in covered[place]
    assert token[-16:].encode() not in covered[place]
