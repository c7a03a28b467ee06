"""Installs `jackline serve` as a systemd unit of the user, shows its state, and removes it. Uses systemctl only."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

from jackline.app.agents import list_agents, load_adapter
from jackline.app.env_file import parse_env_file
from jackline.app.paths import find_config_folder, find_state_folder, find_user_home
from jackline.digests import hash_text
from jackline.engine.command_runner import run_command
from jackline.errors import AgentUnavailable, Refused, UsageError
from jackline.files import write_file
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.app.home import Home
    from jackline.engine.command_runner import CommandResult

MARK = "# Written by `jackline service install`, which writes it again: change it with `systemctl --user edit`."
_SECONDS = 90.0
_ENV_FILE = "service.env"
# Where settings and agents' own files are found; a unit starts without the shell's variables.
_KEPT = ("PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "LANG", "TZ")
_LINGER_FOLDER = "/var/lib/systemd/linger"
_STOP_MARGIN_S = 30  # to end agents and store their state, after the drain and the grace period
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./~-]+")


@stored_as("name path is_installed active enabled lingers outdated")
class UnitState(NamedTuple):
    """The unit of a home, as systemd sees it."""

    name: str
    path: str
    is_installed: bool
    active: str = ""  # systemd's word, such as active, failed or inactive
    enabled: str = ""
    lingers: bool = False  # the user's units run while the user is logged out
    outdated: str = ""  # why the unit has to be written again


def build_service_unit(home: Home, environ: Mapping[str, str], flags: Sequence[str] = ()) -> str:
    """Build the unit of this home, with the PATH of this shell; `flags` are those of `jackline serve`."""
    kept = {name: environ[name] for name in _KEPT if environ.get(name)}
    return build_unit(
        ServiceUnit(
            home=home.path,
            argv=(sys.executable, "-P", "-m", "jackline", "serve", "--home", home.path, *flags),
            environment=kept,
            env_file=find_env_file(environ),
            drain_s=home.config.get_float("drain_seconds"),
            grace_s=home.config.get_float("grace_seconds"),
        )
    )


def find_env_file(environ: Mapping[str, str]) -> str:
    """The file of the variables that the unit passes to the service."""
    return os.path.join(find_config_folder(environ), _ENV_FILE)


def describe_lost_variables(home: Home, environ: Mapping[str, str]) -> list[str]:
    """What the unit does not have of this shell, by name only: settings may be secret, and log-ins of agents are."""
    service_file = find_env_file(environ)
    env_file = home.config.get_text("env_file")
    known = _list_names(service_file)
    settings = {name for name in environ if name.startswith("JACKLINE_") and name != "JACKLINE_HOME"}
    if home.config.sources["database"] == "--database":
        settings.add("JACKLINE_DATABASE")
    logins = {name for name in _list_login_variables(home) if environ.get(name)}
    lines = []
    if lost := ", ".join(sorted(settings - known)):
        lines.append(f"the unit does not have {lost} of this shell: put them into {service_file} (chmod 600)")
    if lost := ", ".join(sorted(logins - known - (_list_names(env_file) if env_file else set()))):
        where = env_file or "a file, and name it as env_file in your config.toml"
        lines.append(f"agents of the unit do not get {lost} of this shell: put them into {where} (chmod 600)")
    return lines


def _list_names(path: str) -> set[str]:
    """The variables that a file sets; none if it cannot be read, which those who use it report."""
    try:
        with open(path, encoding="utf-8") as file:
            return set(parse_env_file(file.read()))
    except (OSError, ValueError, UsageError):
        return set()


def _list_login_variables(home: Home) -> Iterator[str]:
    """The variables with which the agents log in, as their adapters declare them."""
    for name in list_agents(home.config):
        try:
            login = load_adapter(home.config, name).declaration.login
        except (AgentUnavailable, UsageError):  # `jackline agents` says what is wrong with it
            continue
        yield from () if login is None else login.variables


def install_unit(home: Home, environ: Mapping[str, str], *, start: bool) -> UnitState:
    """Write the unit, have systemd check it, enable it, and start it. Refused if systemd does not run for this user."""
    _refuse_without_systemd(environ)
    path = _find_unit_path(home, environ)
    _refuse_foreign_unit(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        before = _read_bytes(path)
        write_file(path, build_service_unit(home, environ).encode())
    except OSError as error:
        raise Refused(f"{path} cannot be written ({error.strerror}): move away what is there, then try again") from None
    _verify_unit(path, environ, before)
    name = os.path.basename(path)
    _require(_systemctl(environ, "daemon-reload"), "systemctl --user daemon-reload")
    _require(_systemctl(environ, "enable", name), f"systemctl --user enable {name}")
    if start:  # a restart, so that a service of before takes the new unit
        next_step = f"`journalctl --user -u {name}` shows why"
        _require(_systemctl(environ, "restart", name), f"systemctl --user restart {name}", next_step)
    return read_unit_state(home, environ)


def remove_unit(home: Home, environ: Mapping[str, str]) -> UnitState:
    """Stop and disable the unit, and delete its file; the state before."""
    before = read_unit_state(home, environ)
    if not before.is_installed:
        return before
    _refuse_foreign_unit(before.path)
    _refuse_without_systemd(environ)
    _require(_systemctl(environ, "disable", "--now", before.name), f"systemctl --user disable --now {before.name}")
    os.unlink(before.path)
    _require(_systemctl(environ, "daemon-reload"), "systemctl --user daemon-reload")
    return before


def read_unit_state(home: Home, environ: Mapping[str, str]) -> UnitState:
    """Ask systemd; without one that runs for this user only the file is known."""
    path = _find_unit_path(home, environ)
    name = os.path.basename(path)
    outdated = _find_outdated(home, path)
    state = UnitState(name=name, path=path, is_installed=os.path.exists(path), lingers=_lingers(), outdated=outdated)
    if not has_systemd(environ):
        return state
    answers = [_systemctl(environ, action, name).stdout_tail for action in ("is-active", "is-enabled")]
    active, enabled = (answer.decode(errors="replace").partition("\n")[0] for answer in answers)
    return state._replace(active=active, enabled=enabled)


def _find_outdated(home: Home, path: str) -> str:
    """Why the installed unit does not fit the settings any more; empty if it does, or there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(r"^TimeoutStopSec=(\d+)$", file.read(), re.MULTILINE)
    except OSError:
        return ""
    needed = compute_stop_seconds(home.config.get_float("drain_seconds"), home.config.get_float("grace_seconds"))
    if found is None or int(found[1]) >= needed:
        return ""
    return f"systemd kills the service {found[1]} s after it stops it, and its drain needs up to {needed} s"


def has_systemd(environ: Mapping[str, str]) -> bool:
    """Whether a systemd of this user runs and answers."""
    if shutil.which("systemctl", path=environ.get("PATH")) is None:
        return False
    return _systemctl(environ, "show-environment").exit_code == 0


def _refuse_without_systemd(environ: Mapping[str, str]) -> None:
    if not has_systemd(environ):
        raise Refused(
            "systemd does not answer for this user (`systemctl --user status`): log in at the machine or by ssh, "
            "not by su, or start `jackline serve` another way; `jackline serve --print-service` prints the unit"
        )


def _find_unit_path(home: Home, environ: Mapping[str, str]) -> str:
    """The unit of the default home is jackline.service; other homes have the start of their path's digest in it."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(find_user_home(environ), ".config")
    is_default = os.path.realpath(home.path) == os.path.realpath(find_state_folder(environ))
    suffix = "" if is_default else f"-{hash_text(os.path.realpath(home.path))[:8]}"
    return os.path.join(config, "systemd", "user", f"jackline{suffix}.service")


def _refuse_foreign_unit(path: str) -> None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            is_ours = file.readline().rstrip("\n") == MARK
    except (FileNotFoundError, NotADirectoryError):
        return
    if not is_ours:
        raise Refused(f"{path} was not written by jackline: move it away, then try again")


def _read_bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _verify_unit(path: str, environ: Mapping[str, str], before: bytes | None) -> None:
    """Have systemd check the file; in the place of one that it does not accept, the one of before is put back."""
    program = shutil.which("systemd-analyze", path=environ.get("PATH"))
    if program is None:
        return
    done = _run(environ, program, "--user", "verify", path)
    if done.exit_code != 0:
        if before is None:
            os.unlink(path)
        else:
            write_file(path, before)
        raise Refused(f"systemd does not accept the unit: {_read_text(done) or f'exit code {done.exit_code}'}")


def _lingers() -> bool:
    import pwd

    return os.path.exists(os.path.join(_LINGER_FOLDER, pwd.getpwuid(os.getuid()).pw_name))


def _systemctl(environ: Mapping[str, str], *words: str) -> CommandResult:
    return _run(environ, "systemctl", "--user", *words)


def _run(environ: Mapping[str, str], *argv: str) -> CommandResult:
    return run_command(argv, cwd="/", env=environ, timeout_s=_SECONDS)


def _require(done: CommandResult, command: str, next_step: str = "") -> None:
    if done.exit_code != 0:
        why = _read_text(done) or f"exit code {done.exit_code}"
        raise Refused(f"`{command}` failed: {why}{f'; {next_step}' if next_step else ''}")


def _read_text(done: CommandResult) -> str:
    return " ".join((done.stderr_tail or done.stdout_tail).decode(errors="replace").split())


# the text of the unit


class ServiceUnit(NamedTuple):
    """What the unit of one home needs to know."""

    home: str
    argv: tuple[str, ...]  # the first word is an absolute path
    environment: Mapping[str, str]  # of the installing shell: PATH, and where the settings are; never a secret
    env_file: str  # where a person puts variables that the agents need; it may be missing
    drain_s: float
    grace_s: float


def build_unit(unit: ServiceUnit) -> str:
    """Build the unit file."""
    variables = (f"Environment={_quote(f'{name}={value}')}" for name, value in unit.environment.items())
    lines = [
        MARK,
        "[Unit]",
        f"Description=jackline service of {_escape(unit.home)}",
        "# Never give up: a machine that was without its disk or its database for an hour starts it again.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_quote_word(word) for word in unit.argv)}",
        *variables,
        "# Variables that the agents need, such as keys; for your eyes only (chmod 600). The - allows a missing file.",
        f"EnvironmentFile=-{_escape(unit.env_file)}",
        "Restart=always",
        "RestartSec=5",
        "# SIGTERM goes to jackline alone, which parks its runs and ends the agents; then what is left is killed.",
        "KillMode=mixed",
        f"TimeoutStopSec={compute_stop_seconds(unit.drain_s, unit.grace_s)}",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def compute_stop_seconds(drain_s: float, grace_s: float) -> int:
    """How long systemd has to wait for a service that it stops."""
    return round(drain_s + grace_s) + _STOP_MARGIN_S


def _escape(text: str) -> str:
    """Escape what systemd would expand in any value; a value has one line."""
    return text.replace("%", "%%").replace("\n", " ")


def _quote(text: str) -> str:
    """Quote a value as one word."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_escape(escaped)}"'


def _quote_word(word: str) -> str:
    """Quote a word of a command line, where `$` is expanded, too."""
    if _PLAIN.fullmatch(word):
        return _escape(word)
    return _quote(word).replace("$", "$$")
