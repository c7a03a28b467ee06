"""What this machine gives jackline, looked at part by part: each finding says how to mend it. It mends nothing."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from jackline import clock
from jackline.errors import JacklineError, StoreError
from jackline.formatting import format_iso
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home

OK, WARN, FAIL = "ok", "warn", "fail"
_MEGABYTE = 1_000_000
_LEAST_DISK, _GOOD_DISK = 100 * _MEGABYTE, 1000 * _MEGABYTE
_QUICK = 64 * _MEGABYTE  # a database up to this size is checked whole at once
_GIT = (2, 20)
_YEAR_2026_MS = 1_767_225_600_000


@stored_as("part state found fix")
class Finding(NamedTuple):
    """One part: what was found, and what to do if it is not well."""

    part: str
    state: str
    found: str
    fix: str = ""


def examine(home: Home) -> Iterator[Finding]:
    """Everything, the quick things first."""
    yield _python()
    yield _sqlite()
    yield _git()
    yield _tmux()
    yield _folder(home)
    yield _disk(home)
    yield _database(home)
    yield _clock(home)
    yield _timezone()
    yield from _variables()
    yield from _project(home)
    yield from _policy(home)
    yield from _agents(home)


def _python() -> Finding:
    return Finding("python", OK, f"{sys.version.split()[0]} ({sys.executable})")


def _sqlite() -> Finding:
    import sqlite3

    return Finding("sqlite", OK, sqlite3.sqlite_version)


def _git() -> Finding:
    from jackline.app.versions import is_at_least

    version, why = _program("git", "--version")
    if why:
        return Finding("git", WARN, why, "install git: without it no commit of an agent is seen")
    if not is_at_least(version, _GIT):
        return Finding("git", WARN, version, f"install git {'.'.join(map(str, _GIT))} or newer")
    return Finding("git", OK, version)


def _tmux() -> Finding:
    version, why = _program("tmux", "-V")
    # Nothing that jackline does needs it: a warning would send people off to install it for nothing.
    return Finding("tmux", OK, why or version)


def _program(name: str, *arguments: str) -> tuple[str, str]:
    """The version of a program on the PATH, or why there is none."""
    from jackline.app.agents import which
    from jackline.app.versions import ask

    path = which(name, os.environ)
    return ask(path, arguments, os.environ) if path else ("", "not installed")


def _folder(home: Home) -> Finding:
    try:
        status = os.stat(home.path)
    except FileNotFoundError:
        return _not_made(home.path)
    except OSError as error:
        return Finding("home", FAIL, f"{home.path}: {error.strerror}", "name another one with --home or JACKLINE_HOME")
    if not stat.S_ISDIR(status.st_mode) or not os.access(home.path, os.W_OK | os.X_OK):
        return Finding("home", FAIL, f"{home.path} cannot be written", "make it a folder that you may write")
    if status.st_uid != os.geteuid():
        return Finding("home", WARN, f"{home.path} belongs to another user", "let each user have a home of their own")
    if status.st_mode & 0o077:
        return Finding("home", WARN, f"{home.path}: others may look into it", f"chmod 700 {home.path}")
    return Finding("home", OK, home.path)


def _not_made(path: str) -> Finding:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        return Finding("home", OK, f"{path} (not made yet: the first run makes it)")
    fix = "name another one with --home or JACKLINE_HOME"
    return Finding("home", FAIL, f"{path} cannot be made: {parent} cannot be written", fix)


def _disk(home: Home) -> Finding:
    folder = home.path
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    said = f"{free // _MEGABYTE} MB free in {folder}"
    fix = "make room: a full disk stops every run (nothing is lost)"
    if free < _LEAST_DISK or (found.f_files and not found.f_favail):
        return Finding("disk", FAIL, said, fix)
    return Finding("disk", OK if free >= _GOOD_DISK else WARN, said, "" if free >= _GOOD_DISK else fix)


def _database(home: Home) -> Finding:
    from jackline.app import upkeep

    try:
        if home.is_new:
            return Finding("database", OK, f"{home.database} (not made yet)")
        status = upkeep.status(home)
        where = f"{status.backend}, schema {status.schema} of {status.known_schema}, {status.place}"
        if status.pending:
            return Finding("database", FAIL, where, "jackline db migrate")
        store = home.store()
        if status.size is None or status.size > _QUICK or "://" in home.database:
            return Finding("database", OK, f"{where} (opens; `jackline db check` looks for damage)")
        problems = store.check()
    except JacklineError as error:
        return Finding("database", FAIL, str(error), "jackline db status, then as it says")
    if problems:
        return Finding("database", FAIL, f"{where}: {problems[0]}", "jackline db check, then restore a backup")
    return Finding("database", OK, where)


def _clock(home: Home) -> Finding:
    now = clock.wall_ms()
    fix = "set the clock, or let the system do it (timedatectl set-ntp true)"
    if now < _YEAR_2026_MS or clock.boot_ms() > now:
        return Finding("clock", FAIL, "it is before the year 2026 here", fix)
    newest = _newest(home)
    if newest > now:
        return Finding("clock", WARN, f"the newest run is {(newest - now) // 1000} s in the future", fix)
    return Finding("clock", OK, f"{format_iso(now, 'seconds')}, up for {clock.boot_ms() // 60_000} minutes")


def _newest(home: Home) -> int:
    from jackline.store.contract import RunQuery

    try:
        rows = home.list_runs(RunQuery(limit=1))
    except StoreError:  # said where the database is looked at
        return 0
    return rows[0].created_at if rows else 0


def _timezone() -> Finding:
    import time
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    named = os.environ.get("TZ", "").removeprefix(":")
    try:
        if "/" in named and not os.path.isabs(named):
            ZoneInfo(named)
    except (ZoneInfoNotFoundError, ValueError):
        fix = "mend TZ, or unset it; times are shown as UTC until then"
        return Finding("timezone", WARN, f"nobody knows TZ={named}", fix)
    return Finding("timezone", OK, f"{time.strftime('%Z')} ({time.strftime('%z')})")


def _variables() -> Iterator[Finding]:
    from jackline.app.variables import mistyped

    for name, near in mistyped(os.environ):
        yield Finding("environment", WARN, f"{name} means nothing to jackline", f"did you mean {near}?")


def _project(home: Home) -> Iterator[Finding]:
    """Only if there is something to say: most folders have no file of their own."""
    if home.config.problem:
        yield Finding("project", FAIL, home.config.problem, "until then `run` and `resume` refuse here")
    for line in home.config.held:
        yield Finding("project", WARN, line, "read its files, then `jackline trust`")


def _policy(home: Home) -> Iterator[Finding]:
    """Only if there is something to say, as of the project."""
    from jackline.app import policies

    found = policies.load(os.environ, home.path, os.getcwd())
    for problem in found.problems:
        yield Finding("policy", FAIL, problem, "until then `run` refuses here")
    for note in found.notes:
        yield Finding("policy", WARN, note, "read it, then `jackline trust`")


def _agents(home: Home) -> Iterator[Finding]:
    from jackline.app import agents

    wanted = home.config.text("agent")
    absent, usable = [], 0
    for name in agents.names(home.config):
        declaration, broken = agents.declared(home.config, name)
        if broken:
            yield Finding(f"agent {name}", WARN, broken, "mend or remove it")
            continue
        found = agents.locate(home.config, declaration)
        usable += bool(found.version) and not found.why
        if found.why and not found.binary and name != wanted:
            absent.append(name)
        elif found.why:
            yield Finding(f"agent {name}", FAIL if name == wanted else WARN, found.why, "jackline agents")
        elif found.version:
            yield Finding(f"agent {name}", OK, f"{found.version} ({found.binary})")
    if absent:
        said = f"not installed: {', '.join(absent)}"
        yield Finding("agents", OK if usable else WARN, said, "" if usable else "install one: jackline agents says how")
