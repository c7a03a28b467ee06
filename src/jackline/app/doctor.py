"""Checks the installation part by part; each finding says how to fix it. It fixes nothing itself."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from jackline import clock
from jackline.errors import JacklineError, StoreError
from jackline.extensions import call_hook
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
class DoctorFinding(NamedTuple):
    """The state of one part, and how to fix it."""

    part: str
    state: str
    found: str
    fix: str = ""


def check_installation(home: Home) -> Iterator[DoctorFinding]:
    """Check everything, the quick parts first."""
    import sqlite3

    yield DoctorFinding(part="python", state=OK, found=f"{sys.version.split()[0]} ({sys.executable})")
    yield DoctorFinding(part="sqlite", state=OK, found=sqlite3.sqlite_version)
    yield _check_git()
    yield _check_tmux()
    yield _check_folder(home)
    yield _check_disk(home)
    yield _check_database(home)
    yield _check_clock(home)
    yield _check_timezone()
    yield from _check_keep_awake(home)
    yield from _check_variables()
    yield from _check_project(home)
    yield from _check_policy(home)
    yield from _check_own_files(home)
    yield from _check_env_file(home)
    yield from _check_agents(home)
    for findings in call_hook("doctor_findings", home):
        yield from findings


def _check_git() -> DoctorFinding:
    from jackline.app.agent_versions import is_at_least

    version, why = _find_program("git", "--version")
    if why:
        return DoctorFinding(
            part="git", state=WARN, found=why, fix="install git: without it jackline sees no commits of agents"
        )
    if not is_at_least(version, _GIT_VERSION):
        return DoctorFinding(
            part="git", state=WARN, found=version, fix=f"install git {'.'.join(map(str, _GIT_VERSION))} or newer"
        )
    return DoctorFinding(part="git", state=OK, found=version)


def _check_tmux() -> DoctorFinding:
    version, why = _find_program("tmux", "-V")
    # jackline does not need it: a warning would make people install it for nothing.
    return DoctorFinding(part="tmux", state=OK, found=why or version)


def _check_keep_awake(home: Home) -> Iterator[DoctorFinding]:
    """Whether the machine can be kept awake, if that is wanted."""
    if home.config.get_text("keep_awake") != "true":
        return
    from jackline.engine.keep_awake import try_inhibitor

    why = try_inhibitor(os.environ)
    if why:
        fix = "it works in a login session with systemd, or on macOS; without it the machine may go to sleep"
        yield DoctorFinding(part="keep_awake", state=WARN, found=why, fix=fix)
    else:
        yield DoctorFinding(part="keep_awake", state=OK, found="no sleep while a run is active")


def _find_program(name: str, *arguments: str) -> tuple[str, str]:
    """The version of a program on the PATH, or the reason why it has none."""
    from jackline.app.agent_versions import ask_version
    from jackline.app.agents import find_executable

    path = find_executable(name, os.environ)
    return ask_version(path, arguments, os.environ) if path else ("", "not installed")


def _check_folder(home: Home) -> DoctorFinding:
    try:
        status = os.stat(home.path)
    except FileNotFoundError:
        return _check_missing_folder(home.path)
    except OSError as error:
        return DoctorFinding(
            part="home",
            state=FAIL,
            found=f"{home.path}: {error.strerror}",
            fix="name another one with --home or JACKLINE_HOME",
        )
    if not stat.S_ISDIR(status.st_mode) or not os.access(home.path, os.W_OK | os.X_OK):
        return DoctorFinding(
            part="home",
            state=FAIL,
            found=f"{home.path} cannot be written",
            fix="make it a folder that you can write to",
        )
    if status.st_uid != os.geteuid():
        return DoctorFinding(
            part="home", state=WARN, found=f"{home.path} belongs to another user", fix="give each user their own home"
        )
    if status.st_mode & 0o077:
        return DoctorFinding(
            part="home", state=WARN, found=f"{home.path} can be read by others", fix=f"chmod 700 {home.path}"
        )
    return DoctorFinding(part="home", state=OK, found=home.path)


def _check_missing_folder(path: str) -> DoctorFinding:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        return DoctorFinding(part="home", state=OK, found=f"{path} (does not exist yet: the first run creates it)")
    fix = "name another one with --home or JACKLINE_HOME"
    return DoctorFinding(
        part="home", state=FAIL, found=f"{path} cannot be created: {parent} cannot be written", fix=fix
    )


def _check_disk(home: Home) -> DoctorFinding:
    folder = home.path
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    text = f"{free // _MEGABYTE} MB free in {folder}"
    fix = "free some space: a full disk stops every run (nothing is lost)"
    if free < _MINIMUM_DISK or (found.f_files and not found.f_favail):
        return DoctorFinding(part="disk", state=FAIL, found=text, fix=fix)
    return DoctorFinding(
        part="disk", state=OK if free >= _GOOD_DISK else WARN, found=text, fix="" if free >= _GOOD_DISK else fix
    )


def _check_database(home: Home) -> DoctorFinding:
    from jackline.app import maintenance

    try:
        if home.is_new:
            return DoctorFinding(part="database", state=OK, found=f"{home.database} (does not exist yet)")
        status = maintenance.read_status(home)
        where = f"{status.backend}, schema {status.schema} of {status.known_schema}, {status.place}"
        if status.pending:
            return DoctorFinding(part="database", state=FAIL, found=where, fix="jackline db migrate")
        store = home.store()
        if status.size is None or status.size > _QUICK_CHECK or home.has_database_server:
            return DoctorFinding(
                part="database", state=OK, found=f"{where} (opens; `jackline db check` checks it for damage)"
            )
        problems = store.verify.check_all()
    except JacklineError as error:
        return DoctorFinding(
            part="database", state=FAIL, found=str(error), fix="run `jackline db status` and follow its advice"
        )
    if problems:
        return DoctorFinding(
            part="database",
            state=FAIL,
            found=f"{where}: {problems[0]}",
            fix="run `jackline db check`, then restore a backup",
        )
    return DoctorFinding(part="database", state=OK, found=where)


def _check_clock(home: Home) -> DoctorFinding:
    now = clock.wall_ms()
    fix = "set the clock, or let the system do it (timedatectl set-ntp true)"
    if now < _YEAR_2026_MS or clock.boot_ms() > now:
        return DoctorFinding(part="clock", state=FAIL, found="the clock is set before 2026", fix=fix)
    newest = _find_newest_run(home)
    if newest > now:
        return DoctorFinding(
            part="clock", state=WARN, found=f"the newest run is {(newest - now) // 1000} s in the future", fix=fix
        )
    return DoctorFinding(
        part="clock", state=OK, found=f"{format_iso(now, 'seconds')}, up for {clock.boot_ms() // 60_000} minutes"
    )


def _find_newest_run(home: Home) -> int:
    from jackline.store.models import RunQuery

    try:
        rows = home.list_runs(RunQuery(limit=1))
    except StoreError:  # reported by the check of the database
        return 0
    return rows[0].created_at if rows else 0


def _check_timezone() -> DoctorFinding:
    import time
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    named = os.environ.get("TZ", "").removeprefix(":")
    try:
        if "/" in named and not os.path.isabs(named):
            ZoneInfo(named)
    except (ZoneInfoNotFoundError, ValueError):
        fix = "fix TZ, or unset it; times are shown as UTC until then"
        return DoctorFinding(part="timezone", state=WARN, found=f"TZ={named} is not a known time zone", fix=fix)
    return DoctorFinding(part="timezone", state=OK, found=f"{time.strftime('%Z')} ({time.strftime('%z')})")


def _check_variables() -> Iterator[DoctorFinding]:
    from jackline.app.setting_keys import find_mistyped_variables

    for name, near in find_mistyped_variables(os.environ):
        yield DoctorFinding(
            part="environment", state=WARN, found=f"{name} is not a setting of jackline", fix=f"did you mean {near}?"
        )


def _check_project(home: Home) -> Iterator[DoctorFinding]:
    """Report only problems: most folders have no project file."""
    if home.config.problem:
        yield DoctorFinding(
            part="project",
            state=FAIL,
            found=home.config.problem,
            fix="until then `run` and `resume` refuse to work here",
        )
    for line in home.config.held:
        yield DoctorFinding(part="project", state=WARN, found=line, fix="read its files, then `jackline trust`")


def _check_policy(home: Home) -> Iterator[DoctorFinding]:
    """Report only problems, as for the project."""
    from jackline.app import policy_files

    found = policy_files.load_layers(os.environ, home.path, home.config.get_text("database"), os.getcwd())
    for problem in found.problems:
        yield DoctorFinding(part="policy", state=FAIL, found=problem, fix="until then `run` refuses to work here")
    for note in found.notes:
        yield DoctorFinding(part="policy", state=WARN, found=note, fix="read it, then `jackline trust`")


def _check_own_files(home: Home) -> Iterator[DoctorFinding]:
    """Report only a change that a person has not confirmed."""
    from jackline.app.own_files import find_unconfirmed

    try:
        change = find_unconfirmed(home)
    except StoreError:  # reported with the database
        return
    if change is not None:
        fix = "review this, then type `jackline trust`; until then no run starts"
        yield DoctorFinding(part="settings", state=FAIL, found=f"changed since you started a run: {change}", fix=fix)


def _check_env_file(home: Home) -> Iterator[DoctorFinding]:
    """Report only problems; those of an agent's or an account's file are reported with the agent."""
    from jackline.app.environment import read_home_environ
    from jackline.errors import ConfigError

    try:
        read_home_environ(home.config)
    except ConfigError as error:
        yield DoctorFinding(part="env_file", state=FAIL, found=str(error), fix="until then `run` refuses to work")


def _check_agents(home: Home) -> Iterator[DoctorFinding]:
    from jackline.app import agents

    if next(_check_env_file(home), None) is not None:  # the reason would be the same for all of them
        return
    wanted = home.config.get_text("agent")
    absent, usable = [], 0
    for name in agents.list_references(home.config):
        declaration, broken = agents.load_declaration(home.config, name)
        if broken:
            yield DoctorFinding(part=f"agent {name}", state=WARN, found=broken, fix="fix or remove it")
            continue
        found = agents.locate_program(home.config, declaration)
        usable += bool(found.version) and not found.why
        if found.why and not found.binary and name != wanted:
            absent += [name] if name == declaration.agent else []
        elif found.why:
            yield DoctorFinding(
                part=f"agent {name}", state=FAIL if name == wanted else WARN, found=found.why, fix="jackline agents"
            )
        elif found.login:
            fix = found.login.partition(": ")[2]
            yield DoctorFinding(part=f"agent {name}", state=WARN, found=f"{found.version}, not logged in", fix=fix)
        elif found.version:
            yield DoctorFinding(part=f"agent {name}", state=OK, found=f"{found.version} ({found.binary})")
    if absent:
        text = f"not installed: {', '.join(absent)}"
        yield DoctorFinding(
            part="agents",
            state=OK if usable else WARN,
            found=text,
            fix="" if usable else "install one: see `jackline agents`",
        )
