"""Finds session files of the CLIs, newest first, and reads the beginning of each. It writes nothing.

Only session files are opened: no settings, no credentials, no links. What cannot be read is skipped and counted.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import quote

from jackline.agents.registry import load_adapter
from jackline.app.paths import find_user_home
from jackline.errors import UsageError
from jackline.features.sessions.session_formats import FORMATS, SessionHead, decode_lines
from jackline.named import NamedTuple
from jackline.store.driver import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.config import Config

_HEAD_BYTES = 256 * 1024
_MOST_FILES = 20_000
_NAMED_BY_ID = ("claude", "qwen")
_DATABASES = {"opencode": "opencode/opencode.db", "kilo": "kilo/kilo.db"}
_MOST_ROWS = 1000
_BUSY_SECONDS = 0.2
_PROJECT_ROOT = ".project_root"  # gemini's, beside the folder with its chats
# Only these tables: others of the same file have credentials.
_SESSION_QUERY = """
SELECT session.id, session.directory, session.time_updated, (
    SELECT json_extract(part.data, '$.text') FROM part JOIN message ON message.id = part.message_id
    WHERE part.session_id = session.id AND json_extract(message.data, '$.role') = 'user'
        AND json_extract(part.data, '$.type') = 'text'
    ORDER BY part.time_created, part.id LIMIT 1
) FROM session WHERE session.parent_id IS NULL ORDER BY session.time_updated DESC LIMIT ?
"""


class FoundSession(NamedTuple):
    """A session of a CLI."""

    agent: str  # with its account
    id: str
    folder: str
    at: int  # milliseconds; when it was last written
    prompt: str
    path: str


class SessionSearch:
    """Looks for sessions; `unreadable` counts what could not be read."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._config, self._environ = config, environ
        self.unreadable = 0

    def find_sessions(self, agent: str | None = None) -> Iterator[FoundSession]:
        """The sessions of all CLIs, or of one, newest first; a file is read only when its session is asked for."""
        known = (*FORMATS, *_DATABASES)
        name = (agent or "").partition("@")[0]
        if agent is not None and name not in known:
            raise UsageError(f"the sessions of '{agent}' cannot be listed: use one of {', '.join(known)}")
        found: list[tuple[int, str, str, str, FoundSession | None]] = []
        for one in [name] if name else known:
            if one in FORMATS:
                for reference, root in self._list_roots(one):
                    if agent in {None, one, reference}:
                        found += [(at, reference, one, path, None) for at, path in self._list_files(one, root)]
            else:
                found += [(row.at, one, one, row.path, row) for row in self._read_database(one)]
        for at, reference, one, path, row in sorted(found, key=lambda item: (-item[0], item[3])):
            session = row or self._read_file(reference, one, path, at)
            if session is not None:
                yield session

    def list_folders(self, reference: str, session: str) -> list[str]:
        """The folders of the sessions with this id; empty if no file of the agent or account tells one."""
        agent = reference.partition("@")[0]
        paths = [
            (path, at)
            for name, root in (self._list_roots(agent) if agent in FORMATS else ())
            for at, path in (self._list_files(agent, root) if name == reference else ())
            if agent not in _NAMED_BY_ID or os.path.basename(path) == f"{session}.jsonl"
        ]
        found = (self._read_file(reference, agent, path, at) for path, at in paths)
        return [one.folder for one in found if one is not None and one.id == session and one.folder]

    def _list_roots(self, agent: str) -> Iterator[tuple[str, str]]:
        """The folders of the CLI: the user's own, and those of its accounts. No file of an account is read."""
        login = load_adapter(agent).declaration.login
        if login is None:
            return
        named = self._environ.get(login.home_variable)
        roots = {agent: os.path.join(named, login.below) if named else self._below_home(login.folder)}
        for account, lines in self._config.accounts.get(agent, {}).items():
            folder = lines.get(login.home_variable)
            if isinstance(folder, str):
                roots[f"{agent}@{account}"] = os.path.join(folder, login.below)
        seen: set[str] = set()
        for reference, root in roots.items():
            real = os.path.realpath(root)
            if real not in seen:
                seen.add(real)
                yield reference, real

    def _below_home(self, *parts: str) -> str:
        return os.path.join(find_user_home(self._environ), *parts)

    def _list_files(self, agent: str, root: str) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        folders = [root]
        *levels, last = FORMATS[agent].folders
        for pattern in levels:
            entries = (entry for folder in folders for entry in self._scan(folder))
            folders = [
                entry.path
                for entry in entries
                if fnmatchcase(entry.name, pattern) and entry.is_dir(follow_symlinks=False)
            ]
        for folder in folders:
            for entry in self._scan(folder):
                if not fnmatchcase(entry.name, last) or entry.name.startswith("agent-"):  # of a subagent
                    continue
                with contextlib.suppress(OSError):  # removed meanwhile
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append((status.st_mtime_ns // 1_000_000, entry.path))
        return sorted(found, reverse=True)[:_MOST_FILES]

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except FileNotFoundError:
            return []
        except OSError:
            self.unreadable += 1
            return []

    def _read_file(self, reference: str, agent: str, path: str, at: int) -> FoundSession | None:
        data = self._read_head(path)
        if data is None:
            return None
        is_whole = len(data) < _HEAD_BYTES
        head = FORMATS[agent].parse(decode_lines(data, whole=is_whole))
        if agent == "gemini":
            head = self._complete_gemini(head, path)
        if not head.id:
            self.unreadable += 1
            return None
        if agent in _NAMED_BY_ID:  # the lines of a session that was forked may have the id of the first one
            head = head._replace(id=os.path.basename(path).removesuffix(".jsonl"))
        folder = clean(head.folder)  # a path with a NUL or half a character cannot be compared with another one
        return FoundSession(agent=reference, id=head.id, folder=folder, at=at, prompt=head.prompt, path=path)

    def _complete_gemini(self, head: SessionHead, path: str) -> SessionHead:
        project = os.path.dirname(os.path.dirname(path))
        data = self._read_head(os.path.join(project, _PROJECT_ROOT), missing=b"") or b""
        return head._replace(folder=data.decode("utf-8", "replace").strip())

    def _read_head(self, path: str, missing: bytes | None = None) -> bytes | None:
        """The beginning of a regular file; `missing` if there is none, None if it cannot be read."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(_HEAD_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        except FileNotFoundError:
            return missing
        except OSError:
            self.unreadable += 1
            return None

    def _read_database(self, agent: str) -> list[FoundSession]:
        base = self._environ.get("XDG_DATA_HOME") or self._below_home(".local", "share")
        path = os.path.join(base, _DATABASES[agent])
        if not os.path.isfile(path):
            return []
        try:
            uri = f"file:{quote(path)}?mode=ro"
            with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as database:
                rows = database.execute(_SESSION_QUERY, (_MOST_ROWS,)).fetchall()
        except sqlite3.Error:
            self.unreadable += 1
            return []
        return [
            FoundSession(
                agent=agent,
                id=str(session),
                folder=clean(str(folder or "")),
                at=int(at or 0),
                prompt=str(text or ""),
                path=path,
            )
            for session, folder, at, text in rows
        ]


def list_session_folders(config: Config, environ: Mapping[str, str], agent: str, session: str) -> list[str]:
    """The folders in which sessions with this id were started, as far as the files of the CLI tell."""
    return SessionSearch(config, environ).list_folders(agent, session)
