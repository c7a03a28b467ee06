"""Checks the installation part by part; each finding says how to fix it. It fixes nothing itself."""

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
_MINIMUM_DISK, _GOOD_DISK = 100 * _MEGABYTE, 1000 * _MEGABYTE
_QUICK_CHECK = 64 * _MEGABYTE  # a database up to this size is checked completely
_GIT_VERSION = (2, 20)
_YEAR_2026_MS = 1_767_225_600_000


@stored_as("part state found fix")
class Finding(NamedTuple):
    """The state of one part, and how to fix it."""

    part: str
    state: str
    found: str
    fix: str = ""


def examine(home: Home) -> Iterator[Finding]:
    """Check everything, the quick parts first."""
    yield Finding("python", OK, f"{sys.version.split()[0]} ({sys.executable})")
    yield _check_sqlite()
    yield _check_git()
    yield _check_tmux()
    yield _check_folder(home)
    yield _check_disk(home)
    yield _check_database(home)
    yield _check_clock(home)
    yield _check_timezone()
    yield from _check_variables()
    yield from _check_project(home)
    yield from _check_policy(home)
    yield from _check_agents(home)


def _check_sqlite() -> Finding:
    import sqlite3

    return Finding("sqlite", OK, sqlite3.sqlite_version)


def _check_git() -> Finding:
    from jackline.app.versions import is_at_least

    version, why = _find_program("git", "--version")
    if why:
        return Finding("git", WARN, why, "install git: without it jackline sees no commits of agents")
    if not is_at_least(version, _GIT_VERSION):
        return Finding("git", WARN, version, f"install git {'.'.join(map(str, _GIT_VERSION))} or newer")
    return Finding("git", OK, version)


def _check_tmux() -> Finding:
    version, why = _find_program("tmux", "-V")
    # jackline does not need it: a warning would make people install it for nothing.
    return Finding("tmux", OK, why or version)


def _find_program(name: str, *arguments: str) -> tuple[str, str]:
    """The version of a program on the PATH, or the reason why it has none."""
    from jackline.app.agents import which
    from jackline.app.versions import ask

    path = which(name, os.environ)
    return ask(path, arguments, os.environ) if path else ("", "not installed")


def _check_folder(home: Home) -> Finding:
    try:
        status = os.stat(home.path)
    except FileNotFoundError:
        return _check_missing_folder(home.path)
    except OSError as error:
        return Finding("home", FAIL, f"{home.path}: {error.strerror}", "name another one with --home or JACKLINE_HOME")
    if not stat.S_ISDIR(status.st_mode) or not os.access(home.path, os.W_OK | os.X_OK):
        return Finding("home", FAIL, f"{home.path} cannot be written", "make it a folder that you can write to")
    if status.st_uid != os.geteuid():
        return Finding("home", WARN, f"{home.path} belongs to another user", "give each user their own home")
    if status.st_mode & 0o077:
        return Finding("home", WARN, f"{home.path} can be read by others", f"chmod 700 {home.path}")
    return Finding("home", OK, home.path)


def _check_missing_folder(path: str) -> Finding:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        return Finding("home", OK, f"{path} (does not exist yet: the first run creates it)")
    fix = "name another one with --home or JACKLINE_HOME"
    return Finding("home", FAIL, f"{path} cannot be created: {parent} cannot be written", fix)


def _check_disk(home: Home) -> Finding:
    folder = home.path
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    text = f"{free // _MEGABYTE} MB free in {folder}"
    fix = "free some space: a full disk stops every run (nothing is lost)"
    if free < _MINIMUM_DISK or (found.f_files and not found.f_favail):
        return Finding("disk", FAIL, text, fix)
    return Finding("disk", OK if free >= _GOOD_DISK else WARN, text, "" if free >= _GOOD_DISK else fix)


def _check_database(home: Home) -> Finding:
    from jackline.app import upkeep

    try:
        if home.is_new:
            return Finding("database", OK, f"{home.database} (does not exist yet)")
        status = upkeep.status(home)
        where = f"{status.backend}, schema {status.schema} of {status.known_schema}, {status.place}"
        if status.pending:
            return Finding("database", FAIL, where, "jackline db migrate")
        store = home.store()
        if status.size is None or status.size > _QUICK_CHECK or "://" in home.database:
            return Finding("database", OK, f"{where} (opens; `jackline db check` checks it for damage)")
        problems = store.check()
    except JacklineError as error:
        return Finding("database", FAIL, str(error), "run `jackline db status` and follow its advice")
    if problems:
        return Finding("database", FAIL, f"{where}: {problems[0]}", "run `jackline db check`, then restore a backup")
    return Finding("database", OK, where)


def _check_clock(home: Home) -> Finding:
    now = clock.wall_ms()
    fix = "set the clock, or let the system do it (timedatectl set-ntp true)"
    if now < _YEAR_2026_MS or clock.boot_ms() > now:
        return Finding("clock", FAIL, "the clock is set before 2026", fix)
    newest = _find_newest_run(home)
    if newest > now:
        return Finding("clock", WARN, f"the newest run is {(newest - now) // 1000} s in the future", fix)
    return Finding("clock", OK, f"{format_iso(now, 'seconds')}, up for {clock.boot_ms() // 60_000} minutes")


def _find_newest_run(home: Home) -> int:
    from jackline.store.contract import RunQuery

    try:
        rows = home.list_runs(RunQuery(limit=1))
    except StoreError:  # reported by the check of the database
        return 0
    return rows[0].created_at if rows else 0


def _check_timezone() -> Finding:
    import time
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    named = os.environ.get("TZ", "").removeprefix(":")
    try:
        if "/" in named and not os.path.isabs(named):
            ZoneInfo(named)
    except (ZoneInfoNotFoundError, ValueError):
        fix = "fix TZ, or unset it; times are shown as UTC until then"
        return Finding("timezone", WARN, f"TZ={named} is not a known time zone", fix)
    return Finding("timezone", OK, f"{time.strftime('%Z')} ({time.strftime('%z')})")


def _check_variables() -> Iterator[Finding]:
    from jackline.app.variables import mistyped

    for name, near in mistyped(os.environ):
        yield Finding("environment", WARN, f"{name} is not a setting of jackline", f"did you mean {near}?")


def _check_project(home: Home) -> Iterator[Finding]:
    """Report only problems: most folders have no project file."""
    if home.config.problem:
        yield Finding("project", FAIL, home.config.problem, "until then `run` and `resume` refuse to work here")
    for line in home.config.held:
        yield Finding("project", WARN, line, "read its files, then `jackline trust`")


def _check_policy(home: Home) -> Iterator[Finding]:
    """Report only problems, as for the project."""
    from jackline.app import policies

    found = policies.load(os.environ, home.path, os.getcwd())
    for problem in found.problems:
        yield Finding("policy", FAIL, problem, "until then `run` refuses to work here")
    for note in found.notes:
        yield Finding("policy", WARN, note, "read it, then `jackline trust`")


def _check_agents(home: Home) -> Iterator[Finding]:
    from jackline.app import agents

    wanted = home.config.text("agent")
    absent, usable = [], 0
    for name in agents.names(home.config):
        declaration, broken = agents.declared(home.config, name)
        if broken:
            yield Finding(f"agent {name}", WARN, broken, "fix or remove it")
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
        text = f"not installed: {', '.join(absent)}"
        yield Finding("agents", OK if usable else WARN, text, "" if usable else "install one: see `jackline agents`")
