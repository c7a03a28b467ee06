"""Raw transcripts: finding, following and copying them with flat memory."""

from __future__ import annotations

import errno
import os
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.exports import raw

BIG = 50 * 1024 * 1024


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "run-1" / "turns"
    folder.mkdir(parents=True)
    return folder


def test_turns_are_found_by_number_and_nothing_else_is(tmp_path: Path, turns: Path) -> None:
    for name in ("0002-review.stdout", "10000-work.stdout", "0001-work.stdout", "0001-work.stderr"):
        (turns / name).write_bytes(b"x")
    for name in ("notes.txt", ".0003-work.stdout.tmp", "0003-work.stdout.gz"):
        (turns / name).write_bytes(b"x")
    os.mkfifo(turns / "0004-work.stdout")
    found = raw.find_raw_turns(str(tmp_path), "run-1")
    assert [(one.number, one.role) for one in found] == [(1, "work"), (2, "review"), (10_000, "work")]
    assert found[1].stderr == str(turns / "0002-review.stderr")


def test_a_missing_folder_has_no_turns_and_no_bytes(tmp_path: Path) -> None:
    assert raw.find_raw_turns(str(tmp_path), "run-1") == []
    assert list(raw.read_chunks(str(tmp_path), "run-1", "all", None)) == []


@pytest.mark.parametrize(
    ("stream", "expected"), [("stdout", b"o1\0\xffo2"), ("stderr", b"e1"), ("all", b"o1\0\xffe1o2")]
)
def test_bytes_come_in_order_and_without_decoration(tmp_path: Path, turns: Path, stream: str, expected: bytes) -> None:
    (turns / "0001-work.stdout").write_bytes(b"o1\0\xff")
    (turns / "0001-work.stderr").write_bytes(b"e1")
    (turns / "0002-work.stdout").write_bytes(b"o2")
    assert b"".join(raw.read_chunks(str(tmp_path), "run-1", stream)) == expected


def test_a_follower_gets_what_is_added_new_turns_and_the_last_words(tmp_path: Path, turns: Path) -> None:
    """Every answer of `follow` is a step of the run: no time is waited for."""
    first, second = turns / "0001-work.stdout", turns / "0002-work.stdout"
    first.write_bytes(b"a")

    def steps() -> Iterator[bool]:
        yield True  # the first reading sees "a"
        with first.open("ab") as file:
            file.write(b"b")
        yield True
        second.write_bytes(b"c")
        yield True
        second.write_bytes(b"cd")
        yield False  # the run is over, and its last words are still read

    going = steps()
    assert list(raw.read_chunks(str(tmp_path), "run-1", "stdout", lambda: next(going))) == [b"a", b"b", b"c", b"d"]


def test_a_follower_may_come_before_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "run-1" / "turns"

    def steps() -> Iterator[bool]:
        yield True
        folder.mkdir(parents=True)
        (folder / "0001-work.stdout").write_bytes(b"late")
        yield False

    going = steps()
    assert list(raw.read_chunks(str(tmp_path), "run-1", "stdout", lambda: next(going))) == [b"late"]


def test_a_follower_sees_a_live_writer_s_bytes_once_each(tmp_path: Path, turns: Path) -> None:
    over, seen_some = threading.Event(), threading.Event()
    expected = b"".join(b"%d\n" % number for number in range(2_000))

    def write() -> None:
        with (turns / "0001-work.stdout").open("ab", buffering=0) as file:
            file.write(expected[:1_000])
            assert seen_some.wait(10)
            for at in range(1_000, len(expected), 100):
                file.write(expected[at : at + 100])
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    got = b""
    for chunk in raw.read_chunks(str(tmp_path), "run-1", "stdout", lambda: not over.is_set()):
        got += chunk
        seen_some.set()
    writer.join()
    assert got == expected


def big_file(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"head")
        file.seek(BIG - 4)
        file.write(b"tail")


@pytest.mark.parametrize("kernel", [True, False])
def test_fifty_megabytes_are_copied_with_flat_memory(
    tmp_path: Path, turns: Path, monkeypatch: pytest.MonkeyPatch, kernel: bool
) -> None:
    if not kernel:
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    source, end, copied = turns / "0001-work.stdout", turns / "0001-work.stderr", tmp_path / "transcript.log"
    big_file(source)
    end.write_bytes(b"the end")
    tracemalloc.start()
    try:
        with copied.open("wb", buffering=0) as file:
            raw.copy_files([str(source), str(end)], file.fileno())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    assert copied.stat().st_size == BIG + 7
    with copied.open("rb") as file:
        assert file.read(5) == b"head\0"
        file.seek(BIG - 5)
        assert file.read() == b"\0tailthe end"


def test_fifty_megabytes_are_read_with_flat_memory(tmp_path: Path, turns: Path) -> None:
    big_file(turns / "0001-work.stdout")
    tracemalloc.start()
    try:
        size = sum(len(chunk) for chunk in raw.read_chunks(str(tmp_path), "run-1", "stdout"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (size, peak < 2_000_000) == (BIG, True)


@pytest.mark.parametrize("stops_with", [errno.EXDEV, None])
def test_where_the_kernel_stops_half_way_the_rest_is_copied_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops_with: int | None
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"0123456789")
    told: list[int] = []

    def half(source: int, target: int, count: int) -> int:
        told.append(count)
        if len(told) == 1:
            return os.write(target, os.read(source, 4))
        if stops_with is None:
            return 0  # as some file systems say, although there is more
        raise OSError(stops_with, "no")

    monkeypatch.setattr(os, "copy_file_range", half, raising=False)
    with target.open("wb", buffering=0) as file:
        raw.copy_files([str(source)], file.fileno())
    assert target.read_bytes() == b"0123456789"


def test_a_full_disk_is_not_taken_for_a_missing_feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(b"x")

    def full(*_: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", full, raising=False)
    with (tmp_path / "target").open("wb") as file, pytest.raises(OSError, match="No space left"):
        raw.copy_files([str(tmp_path / "source")], file.fileno())
