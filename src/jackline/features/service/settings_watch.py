"""Notices that a person changed their settings, so that a service uses them without a restart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import config
from jackline.app.own_files import find_unconfirmed, refuse_fresh_changes
from jackline.errors import Refused, StoreError

if TYPE_CHECKING:
    from jackline.app.home import Home


class SettingsWatch:
    """The home with the settings as they were last read; `version` counts how often they were read again."""

    def __init__(self, home: Home) -> None:
        self.home, self.version = home, 0
        self._stamp = self._read_stamp()

    def reload(self) -> bool:
        """Read the settings again if their file has changed; whether they are used from now on.

        A change that a person has to confirm first is looked at again later. An invalid file, or one that names another
        home or database, raises an error once, and the settings of before stay. So they do after a StoreError, but the
        next look tries again.
        """
        stamp, before = self._read_stamp(), self._stamp
        if stamp == before or not _is_confirmed(self.home):
            return False
        self._stamp = stamp
        changed = self.home.reopen_in(os.sep, project=False)
        if changed.database != self.home.database:
            raise Refused("they name another database: restart the service")
        try:
            is_usable = _is_confirmed(changed) and not _was_changed_since(changed)  # by an agent, and back
        except StoreError:
            self._stamp = before
            raise
        if not is_usable:
            self._stamp = before
            return False
        self.home, self.version = changed, self.version + 1
        return True

    def _read_stamp(self) -> tuple[int, int, int] | None:
        """What changes when the file is written or replaced; None if there is none."""
        try:
            status = os.stat(config.find_user_file(os.environ))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _is_confirmed(home: Home) -> bool:
    with home.reopen() as own:  # this thread's own connection
        return find_unconfirmed(own) is None


def _was_changed_since(home: Home) -> bool:
    """Whether the files of the user were written since the home's settings were read."""
    try:
        refuse_fresh_changes(home, home.config.loaded_at)
    except Refused:
        return True
    return False
