"""The systemd unit of `jackline serve`: accepted by systemd whatever the paths are, and run by a real systemd."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jackline.features.service.user_units import ServiceUnit, build_unit
from tests.cli.place import Place, is_one_line
from tests.support.skips import NOT_POSSIBLE

SYSTEMD = "/lib/systemd/systemd"
needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
ODD = 'odd "home" 100% $HOME \\ with spaces\nand a line'

# A systemd of a user, apart from the machine's own: it only runs where it believes that systemd started the machine.
BOOTED = """
set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
"{systemd}" --user >"$HOME/systemd.log" 2>&1 &
until systemctl --user show-environment >/dev/null 2>&1; do kill -0 $! || exit 77; sleep 0.1; done
trap 'kill $!; wait $! || true' EXIT
"""


def verify(unit: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "jackline.service"
    path.write_text(unit)
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder)}
    argv = ["systemd-analyze", "--user", "verify", str(path)]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


@needs_analyze
def test_systemd_accepts_the_unit_of_any_home(place: Place, tmp_path: Path) -> None:
    home = tmp_path / ODD
    printed = place.type("serve", "--print-service", "--home", str(home), environ={"XDG_DATA_HOME": str(home)})
    assert printed.code == 0, printed
    checked = verify(printed.out, tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert not home.exists()


@needs_analyze
def test_systemd_finds_a_mistake_in_a_unit(tmp_path: Path) -> None:
    unit = ServiceUnit(home="/h", argv=("relative",), environment={}, env_file="/e", drain_s=1, grace_s=1)
    assert verify(build_unit(unit), tmp_path).returncode != 0


def test_the_unit_has_what_a_service_needs(place: Place) -> None:
    printed = place.type("serve", "--print-service", environ={"JACKLINE_DRAIN_SECONDS": "120", "AWS_SECRET": "hidden"})
    lines = dict(line.split("=", 1) for line in printed.out.splitlines() if "=" in line and line[0] != "#")
    assert lines["ExecStart"].startswith("/")
    assert (lines["Restart"], lines["KillMode"]) == ("always", "mixed")
    assert int(lines["TimeoutStopSec"]) > 120
    assert lines["EnvironmentFile"].startswith("-/")
    assert f'Environment="PATH={place.environment()["PATH"]}"' in printed.out
    assert "hidden" not in printed.out


def test_the_unit_has_the_flags_of_the_service(place: Place) -> None:
    flags = ("--slots", "5", "--drain", "600", "--env-file", "keys.env", "--quiet")
    printed = place.type("serve", *flags, "--print-service")
    assert printed.code == 0, printed
    (line,) = (line for line in printed.out.splitlines() if line.startswith("ExecStart="))
    assert line.endswith(f"--slots 5 --drain 600 --env-file {place.repository}/keys.env --quiet")
    assert "TimeoutStopSec=635" in printed.out
    assert place.type("serve", "--once", "--print-service").code == 2


def test_what_the_unit_does_not_get_from_the_shell_is_named(place: Place) -> None:
    environ = {"JACKLINE_DATABASE": "postgresql://ada:hidden@127.0.0.1/x", "ANTHROPIC_API_KEY": "hidden"}
    printed = place.type("serve", "--print-service", environ=environ)
    assert printed.code == 0, printed
    assert "the unit does not have JACKLINE_DATABASE of this shell" in printed.err
    assert "agents of the unit do not get ANTHROPIC_API_KEY of this shell" in printed.err
    assert "hidden" not in printed.out + printed.err
    folder = place.folder / ".config" / "jackline"
    folder.mkdir(parents=True)
    (folder / "service.env").write_text("JACKLINE_DATABASE=x\n")
    (folder / "keys.env").write_text("ANTHROPIC_API_KEY=hidden\n")
    (folder / "keys.env").chmod(0o600)
    (folder / "config.toml").write_text(f'env_file = "{folder}/keys.env"\n')
    assert place.type("serve", "--print-service", environ=environ).err == ""


def fake_systemd(place: Place, failing: str = "never") -> dict[str, str]:
    """A systemctl that does nothing, and fails at one action."""
    folder = place.folder / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\ncase "$2" in {failing}) echo "it broke" >&2; exit 1;; esac\necho active\n')
    program.chmod(0o755)
    (folder / "systemd-analyze").symlink_to(program)
    return {"PATH": f"{folder}:/usr/bin:/bin", "XDG_CONFIG_HOME": str(place.folder / "config")}


def test_a_unit_that_does_not_start_names_the_next_step(place: Place) -> None:
    refused = place.type("service", "install", environ=fake_systemd(place, "restart"))
    assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert "it broke; `journalctl --user -u jackline-" in refused.err


def test_a_unit_that_systemd_does_not_accept_changes_nothing(place: Place) -> None:
    environ = fake_systemd(place)
    assert place.type("service", "install", environ=environ).code == 0
    (unit,) = (place.folder / "config" / "systemd" / "user").iterdir()
    installed = unit.read_bytes() + b"# as it was\n"
    unit.write_bytes(installed)
    (place.folder / "bin" / "systemctl").write_text('#!/bin/sh\n[ "$2" != verify ]\n')
    refused = place.type("service", "install", environ=environ)
    assert (refused.code, "systemd does not accept the unit" in refused.err) == (2, True), refused
    assert unit.read_bytes() == installed
    unit.unlink()
    assert place.type("service", "install", environ=environ).code == 2
    assert not unit.exists()


def test_a_folder_of_units_that_is_a_file_is_one_line(place: Place) -> None:
    environ = fake_systemd(place)
    (place.folder / "config").mkdir()
    (place.folder / "config" / "systemd").write_text("")
    refused = place.type("service", "install", environ=environ)
    assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert "cannot be written (Not a directory)" in refused.err


def test_a_unit_that_ends_a_longer_drain_is_outdated(place: Place) -> None:
    environ = fake_systemd(place)
    assert place.type("service", "install", environ=environ).code == 0
    assert "outdated" not in place.type("service", "status", environ=environ).err
    (place.folder / "config" / "jackline").mkdir()
    (place.folder / "config" / "jackline" / "config.toml").write_text("drain_seconds = 600\n")
    status = place.type("service", "status", environ=environ)
    assert "the unit is outdated: systemd kills the service 35 s after" in status.err
    assert place.type("service", "status", "--json", environ=environ).json["outdated"]
    assert place.type("service", "install", environ=environ).code == 0
    assert "outdated" not in place.type("service", "status", environ=environ).err


def test_without_systemd_one_line_says_what_to_do(place: Place) -> None:
    environ = {"PATH": str(place.folder), "XDG_RUNTIME_DIR": str(place.folder)}
    refused = place.type("service", "install", environ=environ)
    assert refused.code == 2, refused
    assert is_one_line(refused)
    assert "--print-service" in refused.err
    status = place.type("service", "status", environ=environ)
    assert (status.code, "not installed" in status.out) == (1, True)
    assert place.type("service", "remove", environ=environ).code == 0


def test_a_unit_of_somebody_else_is_not_touched(place: Place) -> None:
    """Checked before systemd is asked, so that this is also true where there is none."""
    unit = place.folder / "config" / "systemd" / "user"
    unit.mkdir(parents=True)
    status = place.type("service", "status", "--json", environ={"XDG_CONFIG_HOME": str(place.folder / "config")})
    path = Path(status.json["path"])
    path.write_text("[Service]\nExecStart=/bin/true\n")
    refused = place.type("service", "remove", environ={"XDG_CONFIG_HOME": str(place.folder / "config")})
    assert refused.code == 2
    assert "was not written by jackline" in refused.err
    assert path.exists()


def test_a_real_systemd_runs_it_restarts_it_and_removes_it(place: Place) -> None:
    """Install, queue a run, kill the service: systemd starts it again; remove."""
    if os.geteuid() != 0 or not os.path.exists(SYSTEMD) or shutil.which("unshare") is None:
        pytest.skip(f"{NOT_POSSIBLE}a second systemd needs root and unshare")
    home = place.environment()["JACKLINE_HOME"]
    script = place.script({"say": "hello"})
    python = place.type("serve", "--print-service").out.partition("ExecStart=")[2].split()[0]
    jackline = f"{python} -P -m jackline"
    steps = f"""
{jackline} service install
{jackline} enqueue x --agent scripted --script {script} --run-id one
for n in $(seq 300); do {jackline} show one --json | grep -q '"succeeded"' && break; sleep 0.2; done
{jackline} show one --json | grep -q '"succeeded"'
pid=$(systemctl --user show -p MainPID --value 'jackline*.service')
kill -KILL $pid
for n in $(seq 300); do
    now=$(systemctl --user show -p MainPID --value 'jackline*.service')
    [ "$now" != "$pid" ] && [ "$now" != 0 ] && break
    sleep 0.2
done
[ "$now" != "$pid" ]
{jackline} service status
{jackline} service remove
! kill -0 $now 2>/dev/null
{jackline} service status && exit 1
test -d {home}
"""
    environ = {
        **place.environment(),
        "XDG_RUNTIME_DIR": "/run/user-of-test",
        "XDG_CONFIG_HOME": str(place.folder / "config"),
        "HOME": str(place.folder),
    }
    argv = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "/bin/sh",
        "-c",
        BOOTED.format(systemd=SYSTEMD) + steps,
    ]
    done = subprocess.run(argv, env=environ, cwd=place.folder, capture_output=True, text=True, timeout=150, check=False)
    if done.returncode == 77 or "Operation not permitted" in done.stderr:
        pytest.skip(f"{NOT_POSSIBLE}this machine lets no second systemd run: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stdout + done.stderr
