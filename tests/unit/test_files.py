"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from jackline.errors import JacklineError
from jackline.files import (
    NotWritten,
    link_file,
    make_private_folder,
    sweep_folder,
    write_file,
    write_pieces,
    write_symlink,
)
from tests.support.skips import obey_permissions


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_file_is_replaced_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("old")
    write_file(str(path), b"new\0\xff")
    assert path.read_bytes() == b"new\0\xff"
    assert mode(path) == 0o600
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_the_bytes_are_on_the_disk_before_the_name_is_and_then_the_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("folder" if is_folder else f"{os.fstat(descriptor).st_size} bytes")
        sync(descriptor)

    def noted_replace(source: str, path: str) -> None:
        done.append("name")
        replace(source, path)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_file(str(tmp_path / "manifest.json"), b"12345")
    assert done == ["5 bytes", "name", "folder"]


def test_when_the_content_fails_half_way_the_old_file_stays_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_text("old")

    def pieces() -> list[bytes]:
        raise JacklineError("the store is gone")

    with pytest.raises(JacklineError, match="the store is gone"):
        write_pieces(str(path), (piece for _ in range(2) for piece in pieces()))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["transcript.jsonl"]


def test_a_reader_that_has_the_old_file_open_reads_it_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "summary.txt"
    path.write_bytes(b"old " * 1000)
    with path.open("rb") as reader:
        reader.read(4)
        write_file(str(path), b"new")
        assert reader.read() == b"old " * 999


def test_what_cannot_be_written_is_told_in_one_line_with_the_file_s_name(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.mkdir()
    with pytest.raises(NotWritten) as caught:
        write_file(str(path), b"x")
    assert str(caught.value).startswith(f"{path} cannot be written (Is a directory)")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_a_folder_without_permission_is_told_in_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    program = "import sys; from jackline.files import write_file; write_file(sys.argv[1], b'x')"
    command = [sys.executable, "-c", program, str(tmp_path / "manifest.json")]
    ended = subprocess.run(command, preexec_fn=obey_permissions, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert re.search(r"NotWritten: .*manifest\.json cannot be written \(Permission denied\)", ended.stderr), ended


def test_folders_are_private_all_the_way_down(tmp_path: Path) -> None:
    make_private_folder(str(tmp_path / "runs" / "run-1"))
    assert mode(tmp_path / "runs") == mode(tmp_path / "runs" / "run-1") == 0o700
    make_private_folder(str(tmp_path / "runs" / "run-1"))


def test_a_file_where_a_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(NotWritten, match="run-1 cannot be written"):
        make_private_folder(str(tmp_path / "runs" / "run-1"))


def test_a_link_is_a_second_name_and_linking_twice_leaves_nothing_behind(tmp_path: Path) -> None:
    source, path = tmp_path / "raw", tmp_path / "stdout.log"
    source.write_bytes(b"bytes")
    path.write_bytes(b"an older copy")
    assert link_file(str(source), str(path))
    assert link_file(str(source), str(path))
    assert path.samefile(source)
    assert sorted(os.listdir(tmp_path)) == ["raw", "stdout.log"]


def test_where_links_are_impossible_link_says_so(tmp_path: Path) -> None:
    assert not link_file(str(tmp_path / "missing"), str(tmp_path / "stdout.log"))
    assert os.listdir(tmp_path) == []


def test_replacing_a_linked_file_leaves_the_other_name_alone(tmp_path: Path) -> None:
    source, path = tmp_path / "raw", tmp_path / "stdout.log"
    source.write_bytes(b"the only raw bytes")
    assert link_file(str(source), str(path))
    write_file(str(path), b"two turns by now")
    assert source.read_bytes() == b"the only raw bytes"


def test_a_symbolic_link_is_moved_to_a_new_target(tmp_path: Path) -> None:
    path = tmp_path / "run-1"
    for target in ("../a", "../b", "../b"):
        write_symlink(target, str(path))
        assert os.readlink(path) == target
    assert os.listdir(tmp_path) == ["run-1"]


def test_what_a_killed_writer_left_is_swept_but_not_what_is_being_written(tmp_path: Path) -> None:
    for name in (".old.json.abc.tmp", ".fresh.json.def.tmp", "old.tmp", ".hidden"):
        (tmp_path / name).write_text("half")
        if "fresh" not in name:
            os.utime(tmp_path / name, (1, 1))
    sweep_folder(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [".fresh.json.def.tmp", ".hidden", "old.tmp"]


def test_many_pieces_are_written_with_flat_memory(tmp_path: Path) -> None:
    piece = b"x" * 65_536
    tracemalloc.start()
    try:
        write_pieces(str(tmp_path / "big"), (piece for _ in range(320)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "big").stat().st_size == 320 * 65_536
    assert peak < 1_000_000
