"""Lines out of chunks, with flat memory; and the raw transcript."""

from __future__ import annotations

import os
import stat
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.engine.streams import HEAD_LIMIT, LineSplitter, OutputLine, TranscriptFile
from jackline.errors import StoreError, StoreFull

streams = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r", b"\0", b"\xff\xfe", b"long" * 5])).map(b"".join)


def feed_all(splitter: LineSplitter, chunks: list[bytes]) -> list[OutputLine]:
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.end()


def expected(stream: bytes, limit: int) -> list[OutputLine]:
    """The same by the plainest means: split all at once, and count."""
    lines, offset = [], 0
    *whole, rest = stream.split(b"\n")
    for data, terminated in [*((data, True) for data in whole), (rest, False)]:
        if data or terminated:
            kept = data if len(data) <= limit else data[: min(limit, HEAD_LIMIT)]
            lines.append(OutputLine(kept, offset, len(data), len(data) > limit, terminated))
        offset += len(data) + terminated
    return lines


@given(streams, st.lists(st.integers(0, 300)), st.integers(1, 30))
def test_any_chunking_gives_the_lines_of_the_whole(stream: bytes, cuts: list[int], limit: int) -> None:
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[begin:end] for begin, end in pairwise(edges)]
    lines = feed_all(LineSplitter(limit), chunks)
    assert lines == expected(stream, limit)
    for line in lines:
        assert stream[line.offset : line.offset + len(line.data)] == line.data


@given(streams)
def test_byte_by_byte_is_no_different(stream: bytes) -> None:
    chunks = [stream[at : at + 1] for at in range(len(stream))]
    assert feed_all(LineSplitter(7), chunks) == expected(stream, 7)


def test_empty_chunks_and_empty_streams_give_nothing() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"") == []
    assert splitter.end() == []


def test_a_line_is_given_as_soon_as_its_newline_is_there() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [OutputLine(b"one", 0, 3, truncated=False, terminated=True)]
    assert splitter.feed(b"o\n") == [OutputLine(b"two", 4, 3, truncated=False, terminated=True)]


def test_the_end_is_given_once() -> None:
    splitter = LineSplitter()
    splitter.feed(b"torn")
    assert splitter.end() == [OutputLine(b"torn", 0, 4, truncated=False, terminated=False)]
    assert splitter.end() == []


def test_a_line_over_the_limit_keeps_its_head_and_its_real_length() -> None:
    splitter = LineSplitter(limit=1 << 20)
    chunks = [b"h" * 40_000, *[b"x" * 100_000] * 30, b"\nnext\n"]
    long, following = feed_all(splitter, chunks)
    assert (long.length, long.truncated, long.terminated) == (3_040_000, True, True)
    assert long.data == (b"h" * 40_000 + b"x" * 100_000)[:HEAD_LIMIT]
    assert following == OutputLine(b"next", 3_040_001, 4, truncated=False, terminated=True)


def test_a_line_at_the_limit_is_whole() -> None:
    (line,) = feed_all(LineSplitter(limit=1 << 20), [b"x" * (1 << 20), b"\n"])
    assert (line.length, line.truncated, len(line.data)) == (1 << 20, False, 1 << 20)


@pytest.mark.parametrize("newline_every", [None, 50])
def test_memory_is_bounded_by_the_limit_and_one_chunk(newline_every: int | None) -> None:
    chunk = b"z" * 65536
    splitter = LineSplitter(limit=1 << 20)
    tracemalloc.start()
    try:
        for number in range(1600):  # 100 MB
            splitter.feed(chunk + b"\n" if newline_every and number % newline_every == 0 else chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (1 << 20) * 5 // 4 + 2 * len(chunk)  # a growing buffer is a little larger than its content


def test_a_raw_file_is_private_and_only_grows(tmp_path: Path) -> None:
    path = str(tmp_path / "turn.stdout")
    with TranscriptFile(path) as raw:
        assert raw.write(b"one") == 0
        assert raw.write(b"\0\xff\n") == 3
        raw.sync()
        assert raw.size == 6
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with TranscriptFile(path) as raw:
        assert raw.size == 6
        assert raw.write(b"two") == 6
    assert (tmp_path / "turn.stdout").read_bytes() == b"one\0\xff\ntwo"


def test_a_raw_file_may_be_closed_twice(tmp_path: Path) -> None:
    raw = TranscriptFile(str(tmp_path / "raw"))
    raw.close()
    raw.close()
    with pytest.raises(StoreError, match="Bad file descriptor"):
        raw.write(b"late")


def test_a_full_disk_is_an_error_and_the_size_stays_true() -> None:
    with TranscriptFile("/dev/full") as raw:
        with pytest.raises(StoreFull, match="/dev/full"):
            raw.write(b"x")
        assert raw.size == 0
