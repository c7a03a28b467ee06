"""How a large text is kept: any text, and all of it unless it is enormous."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.store import blobs
from jackline.store.blobs import StoredText, split_text

CHARACTERS = st.characters(codec="utf-8")


@settings(deadline=None, max_examples=100)
@given(piece=st.text(CHARACTERS, min_size=1, max_size=9), times=st.integers(0, 6_000))
def test_a_text_is_kept_whole_in_one_place_or_the_other(piece: str, times: int) -> None:
    text = piece * times
    kept = split_text(text)
    if len(text.encode()) <= blobs.LARGE:
        assert kept == StoredText(text)
        return
    assert kept.whole == text
    assert kept.ref == hashlib.sha256(text.encode()).hexdigest()
    assert text.startswith(kept.shown)
    assert blobs.SHOWN - 4 < len(kept.shown.encode()) <= blobs.SHOWN


@settings(deadline=None, max_examples=50)
@given(piece=st.text(CHARACTERS.filter(lambda one: one not in "[]"), min_size=1, max_size=7))
def test_an_enormous_text_keeps_both_ends_and_says_how_much_is_gone(piece: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blobs, "MOST", 20_000)
        text = piece * 20_001
        kept = split_text(text)
    first, note, last = (
        kept.whole.rpartition("\n[")[0],
        kept.whole.rpartition("\n[")[2],
        kept.whole.rpartition("]\n")[2],
    )
    gone, total = int(note.split()[0]), int(note.split()[2])
    assert len(kept.whole.encode()) <= 20_000
    assert text.startswith(first)
    assert text.endswith(last)
    assert total == len(text.encode()) == gone + len(first.encode()) + len(last.encode())
