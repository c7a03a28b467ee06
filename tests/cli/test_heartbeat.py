"""`jackline heartbeat` as cron starts it: almost no environment, no terminal, no service; and the logs of tasks."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from jackline import clock
from jackline.app.home import open_home
from jackline.cli.main import main
from jackline.errors import StoreError
from jackline.exports import task_log
from jackline.features.notify import after_work
from jackline.features.schedules import heartbeat_command
from jackline.features.service.presence import Presence
from jackline.features.service.service_store import ServiceRecord, ServiceStore
from jackline.store.open import open_store
from tests.cli.place import SAY, Ended, Place
from tests.support.helpers import is_alive, wait_until
from tests.support.stores import by_hand

DAYS_MS = 2 * 86_400_000


def beat(place: Place) -> Ended:
    """What cron does: a shell with these variables only."""
    environ = {"HOME": str(place.folder), "LOGNAME": "ada", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    environ["JACKLINE_HOME"] = str(place.home)
    command = f"{sys.executable} -m jackline heartbeat"
    done = subprocess.run(["/bin/sh", "-c", command], env=environ, cwd="/", capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def read_log(place: Place, task: str = "heartbeat") -> list[str]:
    return (place.home / "logs" / task / "task.log").read_text().splitlines()


def change(place: Place, sql: str) -> None:
    with closing(open_store(str(place.home / "state.sqlite"), create=False)) as store:
        by_hand(store, sql)


def test_a_heartbeat_in_a_new_home(place: Place) -> None:
    assert beat(place) == Ended(0, "", "")
    assert beat(place).code == 0
    lines = read_log(place)
    assert [line.split("  ")[1:] for line in lines] == [["idle", "ok"]] * 2
    assert oct((place.home / "logs" / "heartbeat" / "task.log").stat().st_mode)[-3:] == "600"


def test_a_heartbeat_reports_a_dead_service_until_another_one_runs(place: Place) -> None:
    service = place.start("serve", "--json")
    assert service.stdout is not None
    assert "started" in service.stdout.readline()
    assert beat(place) == Ended(0, "", "")
    service.kill()
    place.end_of(service)
    for _ in range(2):
        ended = beat(place)
        assert (ended.code, len(ended.out.splitlines())) == (1, 1)
        assert f"(pid {service.pid}) has died: start `jackline serve` again" in ended.out
    (notice,) = place.type("notices", "--json").rows
    assert notice["kind"] == "service.died"
    assert place.type("serve", "--once", "--quiet").code == 0
    assert beat(place) == Ended(0, "", "")
    assert place.type("notices", "--json").rows == [notice], "one notice for one death"


def test_a_heartbeat_fires_what_is_due_without_a_service(place: Place) -> None:
    script = place.script({"call": {"tool": "touch", "input": {}, "run": f"touch {place.path('done')}"}}, SAY)
    added = place.type("schedule", "add", "nightly", "0 3 * * *", "--script", script)
    assert added.code == 0, added
    assert beat(place).code == 0
    assert read_log(place)[-1].endswith("  idle  ok")
    change(place, f"UPDATE schedules SET checked_until = checked_until - {DAYS_MS}")
    assert beat(place) == Ended(0, "", "")  # cron would mail every word
    pid = int(read_log(place)[-1].split("started ")[1].split()[0])
    place.wait_for("done")
    wait_until(lambda: not is_alive(pid))
    newest = place.type("schedule", "history", "nightly", "--json").rows[0]
    assert (newest["state"], newest["reason"]) == ("ended", "succeeded")
    run_lines = [line.split("  ")[1:] for line in read_log(place, "adhoc")]
    assert run_lines[0] == [newest["run_id"], "scripted", "started"]
    assert run_lines[1][:3] == [newest["run_id"], "scripted", "succeeded"]


def test_a_heartbeat_reports_what_is_overdue(place: Place) -> None:
    place.type("schedule", "add", "n", "@daily", "--script", place.script(SAY), "--expect", "1h")
    fired = place.type("schedule", "run-now", "n", "--json").json
    assert place.type("hold", str(fired["run_id"])).code == 0
    assert beat(place).code == 0
    change(place, f"UPDATE schedule_fires SET due_at = due_at - {DAYS_MS}")
    for _ in range(2):
        ended = beat(place)
        assert (ended.code, ended.err) == (1, "")
        assert ended.out == "1 scheduled run overdue: jackline schedule list\n"
    notices = place.type("notices", "--json").rows
    assert [one["kind"] for one in notices] == ["schedule.overdue"]
    assert read_log(place)[-1].endswith("1 scheduled run overdue: jackline schedule list")


def test_a_heartbeat_reports_stuck_notices(place: Place) -> None:
    config = place.folder / ".config" / "jackline" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[channels.phone]\ntype = "ntfy"\nurl = "http://127.0.0.1:1"\ntopic = "mine"\n')
    assert place.play(SAY).code == 0
    ended = beat(place)
    assert ended.code == 1
    assert "1 notice not delivered: jackline notices --stuck" in ended.out
    change(place, "UPDATE deliveries SET state = 'stuck'")
    config.unlink()
    assert beat(place).out == "", "its channel was removed"


def test_a_heartbeat_without_its_log_or_a_delivery_still_reports_what_is_overdue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_home: object) -> None:
        raise StoreError("no delivery")

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(after_work, "deliver_after_work", fail)
    home = tmp_path / "home"
    with open_home(str(home)) as opened:
        at = clock.wall_ms()
        ServiceStore(opened.store(create=True)).add(
            ServiceRecord("one", clock.host_name(), clock.boot_id(), 7, 2, at, at)
        )
        (home / "services").mkdir()
        (home / "services" / "one.lock").touch()
    (home / "logs").write_text("not a folder")
    assert main(["heartbeat", "--home", str(home)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "no delivery",
        "service one (pid 7) has died: start `jackline serve` again",
        f"{home}/logs/heartbeat/task.log cannot be written: check the disk and the permissions of the home",
    ]


@pytest.mark.parametrize("wakes", [False, True])
def test_a_heartbeat_reports_a_service_that_does_not_respond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wakes: bool
) -> None:
    """After a machine slept, none has shown yet that it lives: the heartbeat wakes it, and waits a moment."""
    with open_home(str(tmp_path / "home")) as home:
        services = ServiceStore(home.store(create=True))
        at = clock.wall_ms() - DAYS_MS
        services.add(ServiceRecord("one", clock.host_name(), clock.boot_id(), 7, 2, at, at))
        living = Presence(home.path, "one")
        if wakes:
            monkeypatch.setattr("time.sleep", lambda _: services.renew("one", clock.wall_ms()))
        else:
            monkeypatch.setattr(heartbeat_command, "_ANSWER_SECONDS", 0.0)
        found = list(heartbeat_command._find_problems(home))
        living.close()
    assert found == ([] if wakes else ["service one (pid 7) does not respond: continue or restart it"])


# the logs of tasks


def test_writers_of_a_log_do_not_mix_their_lines(tmp_path: Path) -> None:
    def write(name: int) -> None:
        for number in range(200):
            task_log.append_line(str(tmp_path), "t", f"{name}-{number}-{'x' * 300}", 0)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / "logs" / "t" / "task.log").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 800
    assert all(line.startswith("1970-01-01T00:00:00Z  ") and line.endswith("x" * 300) for line in lines)


def test_a_log_is_bounded(tmp_path: Path) -> None:
    path = Path(task_log.build_task_log_path(str(tmp_path), "t"))
    task_log.append_line(str(tmp_path), "t", "first", 0)
    with path.open("ab") as file:
        file.write(b"x" * 1_000_000)
    task_log.append_line(str(tmp_path), "t", "two\nlines\x1b[31m", 0)
    assert path.read_text() == "1970-01-01T00:00:00Z  two lines [31m\n"
    assert path.with_name("task.log.1").stat().st_size > 1_000_000
    assert task_log.is_task_log(str(path))
    path.write_text("my own words")
    assert not task_log.is_task_log(str(path))


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    path = Path(task_log.build_task_log_path(str(tmp_path), "t"))
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        task_log.append_line(str(tmp_path), "t", "x", 0)
    assert not (tmp_path / "elsewhere").exists()
