"""Ids: in the order of time, unique in parallel, and safe as the name of a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jackline
from jackline.domain import ids

UNHURRIED = settings(deadline=None)  # a busy machine is no reason to fail

MOMENTS = st.integers(min_value=0, max_value=(1 << 48) - 1)
RANDOM = st.binary(min_size=ids.RANDOM_BYTES, max_size=ids.RANDOM_BYTES)
MANY = "import os; from jackline.domain import ids\nfor _ in range(2000): print(ids.make(7, os.urandom(10)))"


@UNHURRIED
@given(MOMENTS, RANDOM)
def test_an_id_is_26_letters_that_may_name_a_folder(moment: int, randomness: bytes) -> None:
    made = ids.make(moment, randomness)
    assert len(made) == 26
    assert set(made) <= set("0123456789abcdefghjkmnpqrstvwxyz")
    assert ids.is_chosen(made)


@UNHURRIED
@given(MOMENTS, RANDOM, MOMENTS, RANDOM)
def test_ids_sort_by_time_and_then_by_chance(first: int, one: bytes, second: int, other: bytes) -> None:
    ordered = (first, one) < (second, other)
    assert (ids.make(first, one) < ids.make(second, other)) == ordered


@UNHURRIED
@given(MOMENTS, RANDOM, MOMENTS, RANDOM)
def test_ids_are_equal_only_when_everything_is(first: int, one: bytes, second: int, other: bytes) -> None:
    assert (ids.make(first, one) == ids.make(second, other)) == ((first, one) == (second, other))


def test_threads_never_make_the_same_id_in_the_same_millisecond() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ids.make(1, os.urandom(ids.RANDOM_BYTES)), range(20_000)))
    assert len(set(made)) == len(made)


def test_processes_never_make_the_same_id_in_the_same_millisecond() -> None:
    source = os.path.dirname(os.path.dirname(str(jackline.__file__)))
    env = {**os.environ, "PYTHONPATH": source}
    argv = [sys.executable, "-c", MANY]
    started = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    made = [line for process in started for line in process.communicate(timeout=30)[0].split()]
    assert len(made) == 6_000
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("text", ["a", "nightly-2026.01.31_b", "0", "A" * 64, "a.b"])
def test_a_caller_may_choose(text: str) -> None:
    assert ids.is_chosen(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "../x", "a/b", "/etc", "a\\b", ".hidden", "-rf", "_x", "a..b", "a b", "a\n", "a\0"),
        *("A" * 65, "é", "~", "#12", "a:b", "*", "$HOME", "٣"),
    ],
)
def test_a_caller_may_not_choose(text: str) -> None:
    assert not ids.is_chosen(text)


@UNHURRIED
@given(st.text())
def test_a_chosen_id_stays_inside_its_folder(text: str) -> None:
    if ids.is_chosen(text):
        assert os.path.normpath(os.path.join("/runs", text)) == f"/runs/{text}"


@pytest.mark.parametrize(
    ("text", "number"),
    [("#12", 12), ("12", 12), ("#0", 0), ("007", 7), ("999999999", 999_999_999)]
    + [(text, None) for text in ("", "#", "##1", "1a", "-1", " 1", "1\n", "1234567890", "٣", "1.0")],
)
def test_short_numbers(text: str, number: int | None) -> None:
    assert ids.as_number(text) == number
