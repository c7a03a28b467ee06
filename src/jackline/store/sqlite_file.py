"""The files of an SQLite database: itself, private and checked before use, and the lock of its writers. No SQL."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from typing import Any

from jackline.errors import Refused, StoreCorrupt, StoreError, StoreReadOnly, StoreUnavailable
from jackline.files import lock_descriptor, open_lock, unlock_descriptor

MARK = 0x6A61636B  # "jack", in the header of every jackline database
_MAGIC = b"SQLite format 3\x00"
_MARK_AT = slice(68, 72)
_HEADER_BYTES = 100
_CLUSTERED = "/* WITHOUT ROWID */"  # in the migrations that both backends read
_NETWORK = ("nfs", "cifs", "smb", "fuse.sshfs")
_PATIENCE_S = 30.0  # for the gate file

# close(2) of any descriptor of a file drops every POSIX lock that the process holds on it, SQLite's own among them:
# another process could then remove the log that we write to. So a database that is open here is never opened by hand.
_opening_lock = threading.Lock()
_open_here: dict[int, tuple[int, int]] = {}  # by connection: which file it has open


def connect(path: str, *, create: bool, read_only: bool, **settings: Any) -> sqlite3.Connection:  # noqa: ANN401
    """A connection to a file that is checked first, unless this process has it open already."""
    with _opening_lock:
        address = _prepare_file(path, create=create, read_only=read_only)
        connection: sqlite3.Connection = sqlite3.connect(address, **settings)
        _open_here[id(connection)] = _identify(path)
        return connection


def disconnect(connection: sqlite3.Connection) -> None:
    """Close a connection that `connect` returned."""
    with _opening_lock:
        connection.close()
        _open_here.pop(id(connection), None)


def is_marked(path: str) -> bool:
    """Whether the file is a jackline database, damaged or not; it is not opened if this process has it open."""
    with _opening_lock:
        if not os.path.isfile(path):
            return False
        if _identify(path) in _open_here.values():
            return True
        try:
            with open(path, "rb") as file:
                header = file.read(_HEADER_BYTES)
        except OSError:
            return False
    return header.startswith(_MAGIC) and _has_mark(header)


def is_folder_writable(path: str) -> bool:
    """Whether this process may create files beside the database, as a writer must."""
    return os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


def _identify(path: str) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_dev, about.st_ino


def _prepare_file(path: str, *, create: bool, read_only: bool) -> str:
    """The address under which SQLite may open the file; an error, and an untouched file, if it must not be opened."""
    folder = os.path.dirname(os.path.abspath(path))
    if create:
        _create_file(folder, path)
    if not (os.path.exists(path) and _identify(path) in _open_here.values()):
        _check_header(path)
    if not read_only:
        _refuse_network(folder)
        if not is_folder_writable(path):
            raise StoreReadOnly(folder)
    return _address(path, read_only=read_only)


def backup(connection: sqlite3.Connection, path: str) -> None:
    """Copy the database to a new file, which appears whole or not at all."""
    if os.path.lexists(path):
        raise Refused(f"{path} exists already: name another file for the backup")
    unfinished = f"{path}.{os.getpid()}.unfinished"
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        copy = sqlite3.connect(unfinished)
        try:
            connection.backup(copy)
            if copy.execute("PRAGMA quick_check").fetchone()[0] != "ok":
                raise StoreCorrupt("the database")  # a copy of the damage is not a backup
        finally:
            copy.close()
        descriptor = os.open(unfinished, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(unfinished, path)  # unlike a rename, it never replaces a file that appeared meanwhile
    except FileExistsError as error:
        raise Refused(f"{path} exists already: name another file for the backup") from error
    except OSError as error:
        raise StoreError(f"the backup cannot be written to {path}: {error.strerror}") from error
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


def split_statements(script: str) -> Iterator[str]:
    """The single statements of a migration; the body of a trigger belongs to its statement."""
    waiting = ""
    for line in script.replace(_CLUSTERED, "WITHOUT ROWID").splitlines(keepends=True):
        if not waiting and (line.startswith("--") or not line.strip()):
            continue
        waiting += line
        if sqlite3.complete_statement(waiting):
            yield waiting.strip()
            waiting = ""


def find_network_type(folder: str, mounts: str) -> str | None:
    """The type of the network file system that holds the folder, from the text of /proc/mounts; else None."""
    best, kind = "", ""
    for line in mounts.splitlines():
        _, point, type_, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, type_
    return kind if kind.startswith(_NETWORK) else None


def _create_file(folder: str, path: str) -> None:
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        if not os.path.exists(path):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreReadOnly(f"{path}: {error.strerror}") from error


def _check_header(path: str) -> None:
    """Read the header first: SQLite would write to a foreign file, or recover a damaged one, without asking."""
    if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would block
        raise StoreError(f"{path} is not a regular file: move it away, or name another home")
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise StoreError(f"there is no database at {path} yet: `jackline run` makes one") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}; check its permissions") from error
    if header and not (header.startswith(_MAGIC) and _MARK_AT.stop <= len(header) and _has_mark(header)):
        raise StoreCorrupt(path)


def _has_mark(header: bytes) -> bool:
    return int.from_bytes(header[_MARK_AT], "big") == MARK


def _refuse_network(folder: str) -> None:
    # A disk has a major number; network, memory and stacked file systems have none, and need a closer look.
    if sys.platform != "linux" or os.major(os.stat(folder).st_dev) != 0:
        return
    with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as file:
        kind = find_network_type(os.path.realpath(folder), file.read())
    if kind:
        raise StoreError(f"{folder} is on a network file system ({kind}), where locks fail: choose a local home")


def _address(path: str, *, read_only: bool) -> str:
    uri = "file:" + os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    if not read_only:
        return uri + "?mode=rw"
    if is_folder_writable(path) or os.path.exists(path + "-shm"):
        return uri + "?mode=ro"
    # SQLite finds no place for its shared memory here. Without a log there is no writer, and it needs none.
    log = path + "-wal"
    if os.path.exists(log) and os.path.getsize(log) > 0:
        raise StoreReadOnly(f"{log} has changes, which can be read only where {path}-shm can be created: copy the home")
    return uri + "?mode=ro&immutable=1"


class GateFile:
    """A lock file on which the writers of one SQLite database queue; this is one descriptor on it.

    SQLite's own busy handler polls, and starves writers (measured p99 1283 ms against 4.7 ms). `flock(2)` is a queue in
    the kernel, and belongs to the open file, so that it also excludes threads with other descriptors; `lockf`
    belongs to the process, and would not.
    """

    def __init__(self, path: str, patience: float = _PATIENCE_S) -> None:
        self.path = path
        self._patience = patience
        self._descriptor: int | None = None

    def enter(self) -> None:
        """Wait for the lock; StoreUnavailable if its holder does not release it."""
        if self._descriptor is None:
            try:
                self._descriptor = open_lock(self.path)
            except OSError as error:
                raise StoreReadOnly(f"{self.path}: {error.strerror}") from error
        if not lock_descriptor(self._descriptor):
            self._wait(self._descriptor)

    def leave(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            unlock_descriptor(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _wait(self, descriptor: int) -> None:
        """Wait in the kernel's queue, in another thread: flock has no timeout, and its holder may be stopped."""
        waiter = _Waiter(descriptor)
        waiter.start()
        waiter.join(self._patience)
        if waiter.is_alive() and waiter.give_up():
            self._descriptor = None  # the waiter closes it when it gets the lock
            message = f"{self.path} was held for {self._patience:g} s by a process that may be stopped"
            raise StoreUnavailable(message)


class _Waiter(threading.Thread):
    """Waits for the lock once; if the caller has given up meanwhile, releases it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="jackline-gate-file", daemon=True)
        self._descriptor = descriptor
        self._decision = threading.Lock()
        self._entered = False
        self._given_up = False

    def run(self) -> None:
        lock_descriptor(self._descriptor, wait=True)
        with self._decision:
            self._entered = True
            if self._given_up:
                os.close(self._descriptor)

    def give_up(self) -> bool:
        """False if the lock was acquired just now."""
        with self._decision:
            self._given_up = not self._entered
            return self._given_up
