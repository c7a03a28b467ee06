"""Shows other processes of this home which services run: a locked file for each, and a pipe that wakes it.

A flock ends with its process, so a killed service is seen at once. A service that is being stopped keeps its lock and
removes its pipe: it takes nothing new. One that could not record its end, because the database was away, leaves a mark.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from jackline.app.paths import SERVICES_FOLDER
from jackline.errors import StoreError, disk_error
from jackline.files import is_unlocked, lock_descriptor, open_lock
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.doctor import DoctorFinding
    from jackline.app.home import Home

_LOCK, _PIPE, _STOPPED = ".lock", ".wake", ".stopped"
_LOCK_BYTES = 32


class LivingService(NamedTuple):
    """A service of this home that takes new work."""

    id: str
    pid: int


class Presence:
    """The lock and the pipe of a service, for as long as it runs."""

    def __init__(self, home_path: str, service_id: str) -> None:
        """Take the lock, and create the pipe."""
        self._folder = build_folder(home_path)
        self._lock_path, self.pipe_path = (os.path.join(self._folder, service_id + end) for end in (_LOCK, _PIPE))
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._lock = open_lock(self._lock_path)
            lock_descriptor(self._lock, wait=True)  # a process that only looks holds it for an instant
            os.write(self._lock, f"{os.getpid()}\n".encode())
            with contextlib.suppress(OSError):  # a file system without pipes: the service looks for work by itself
                os.mkfifo(self.pipe_path, 0o600)
        except OSError as error:
            raise disk_error(error, self._folder) from error

    def refuse_work(self) -> None:
        """Show that this service takes nothing new."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.pipe_path)
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock, 0)

    def close(self, *, leaves_mark: bool = False) -> None:
        """Remove both, after the service has ended; or leave a mark for the next service, which records that end."""
        self.refuse_work()
        if leaves_mark:
            with contextlib.suppress(OSError):
                os.rename(self._lock_path, self._lock_path.removesuffix(_LOCK) + _STOPPED)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._lock_path)
        os.close(self._lock)


def build_folder(home_path: str) -> str:
    """The folder of the services of a home."""
    return os.path.join(home_path, SERVICES_FOLDER)


def find_living_service(home: Home) -> LivingService | None:
    """A running service of this home that takes new work; None if there is none."""
    for service_id in list_known(home.path):
        path = _build_lock_path(home.path, service_id)
        with contextlib.suppress(FileNotFoundError):  # it ends at this very moment
            if is_unlocked(path):
                continue
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
            if text.isdigit():  # empty: it is being stopped
                return LivingService(id=service_id, pid=int(text))
    return None


def check_service(home: Home) -> Iterator[DoctorFinding]:
    """For `jackline doctor`: something waits for a service, and none runs."""
    from jackline.app.doctor import OK, WARN, DoctorFinding
    from jackline.features.service.service_store import ServiceStore
    from jackline.formatting import pluralize

    try:
        if home.is_new or home.has_database_server:  # there another host may run one
            return
        needs = ServiceStore(home.store()).count_waiting()
    except StoreError:  # another finding reports it
        return
    living = find_living_service(home)
    if living is not None:
        yield DoctorFinding(part="service", state=OK, found=f"running, process {living.pid}")
        return
    found = [pluralize(count, name) for name, count in needs.items() if count]
    if found:
        fix = "run `jackline serve`, or `jackline service install`"
        yield DoctorFinding(part="service", state=WARN, found=f"none is running, for {', '.join(found)}", fix=fix)


def is_dead(home_path: str, service_id: str) -> bool | None:
    """Whether the process of a service has died; None if its lock is not in this home."""
    try:
        return is_unlocked(_build_lock_path(home_path, service_id))
    except FileNotFoundError:
        return None


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """For `jackline uninstall`: the folder of the services, or only what is theirs in it."""
    folder = build_folder(home.path)
    if not os.path.isdir(folder) or os.path.islink(folder):
        return
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    own = tuple(path for path in paths if _is_own_file(path))
    yield folder, "services", (folder,) if len(own) == len(paths) else own


def _is_own_file(path: str) -> bool:
    """Whether it is a pipe, or the lock or the mark of a service: a process id or nothing."""
    mode = os.lstat(path).st_mode
    if path.endswith(_PIPE) or not stat.S_ISREG(mode):
        return path.endswith(_PIPE) and stat.S_ISFIFO(mode)
    with open(path, "rb") as file:
        return path.endswith((_LOCK, _STOPPED)) and (file.read(_LOCK_BYTES).strip() or b"0").isdigit()


def list_known(home_path: str) -> list[str]:
    """The ids of the services with a lock file, dead or alive."""
    return _list_ids(home_path, _LOCK)


def list_stopped(home_path: str) -> list[str]:
    """The ids of the services that were stopped, but could not record it."""
    return _list_ids(home_path, _STOPPED)


def _list_ids(home_path: str, end: str) -> list[str]:
    try:
        names = os.listdir(build_folder(home_path))
    except OSError:
        return []
    return sorted(name.removesuffix(end) for name in names if name.endswith(end))


def list_pipes(home_path: str) -> Iterator[str]:
    """The pipes of the services of this home; a killed one has left its own."""
    try:
        names = os.listdir(build_folder(home_path))
    except OSError:
        return
    yield from (os.path.join(build_folder(home_path), name) for name in names if name.endswith(_PIPE))


def remove_dead(home_path: str, service_id: str) -> None:
    """Remove what a killed or stopped service has left, once that is recorded."""
    for end in (_PIPE, _LOCK, _STOPPED):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(build_folder(home_path), service_id + end))


def _build_lock_path(home_path: str, service_id: str) -> str:
    return os.path.join(build_folder(home_path), service_id + _LOCK)
