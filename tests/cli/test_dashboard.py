"""dashboard.md: up to date after every change by any process; its commands can be pasted into a shell."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import threading
import time

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND_FAILS, Place, is_one_line
from tests.cli.test_startup_imports import HEAVY, PROGRAM
from tests.support.helpers import wait_until

ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
LAST = "## Newest learnings"
# Adds items as fast as it can, each in its own write.
WRITER = """
import sys
from jackline.app.home import open_home
from jackline.exports import rebuild
from jackline.features.work import work_queue
rebuild.rebuild_once.__defaults__ = (60.0,)  # on a busy machine a slow one is not a stopped one
name, count = sys.argv[1], int(sys.argv[2])
with open_home() as home:
    for place in range(count):
        work_queue.enqueue_item(home, f"{name}-{place}", "load")
        print(place, flush=True)
    assert home.warnings == [], home.warnings
"""
# Holds the lock for ever.
HOLD = """
import fcntl, pathlib, signal, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
pathlib.Path(sys.argv[2]).touch()
signal.pause()
"""


def board(place: Place) -> str:
    return (place.home / "dashboard.md").read_text()


def written(place: Place) -> bool:
    return (place.home / "dashboard.md").exists()


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}")[2].partition("\n## ")[0]


def commands(text: str) -> list[list[str]]:
    """Every command in the text, as a shell reads it, without the name of the program."""
    return [shlex.split(found)[1:] for found in re.findall(r"(?<!`)`(jackline [^`]+)`(?!`)", text)]


# --- what it shows -------------------------------------------------------------------------------------------


def test_a_run_that_ended_is_in_it_and_only_the_owner_may_read_it(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    assert "| `r` | `run.succeeded` |" in board(place)
    assert section(board(place), "Running").strip() == "None."
    assert (place.home / "dashboard.md").stat().st_mode & 0o777 == 0o600


def test_a_call_in_doubt_is_answered_by_the_shown_command(place: Place) -> None:
    assert place.play(SEND_FAILS, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r")).code == 14
    shown = section(board(place), "Waiting for you")
    assert "**in_doubt**" in shown
    *answers, resume = commands(shown)
    assert [words[:2] for words in answers] == [["answer", "r"]] * 4
    assert [words[3] for words in answers] == ["happened", "did-not", "retry", "skip"]
    answer = answers[0]
    assert place.type(*answer).code == 0
    assert section(board(place), "Waiting for you").strip() == "Nothing."
    assert "| `r` | queued |" in section(board(place), "Queue")
    assert place.type(*resume).code == 0
    assert section(board(place), "Queue").strip() == "None."


def test_an_approval_is_given_by_the_shown_command(place: Place) -> None:
    assert place.play(SEND_FAILS, words=("--policy", place.policy(ASK_RULE), "--run-id", "r")).code == 14
    shown = section(board(place), "Waiting for you")
    assert "**approval**" in shown
    answer, denial, _ = commands(shown)
    assert answer[-3:] == ["allow", "--home", str(place.home)]
    assert denial[-3:] == ["deny", "--home", str(place.home)]
    assert place.type(*answer).code == 0


def test_a_failed_run_is_retried_by_the_shown_command(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r", "--proof", "test -e ../there")).code == 16
    shown = section(board(place), "Failed since yesterday")
    assert "| no_progress |" in shown
    (resume,) = commands(shown)
    place.let_go("there")
    assert place.type(*resume).code == 0
    assert section(board(place), "Failed since yesterday").strip() == "None."


def test_an_item_that_waits_is_answered_by_the_shown_command(place: Place) -> None:
    name = "it's a `strange` | name"
    made = place.type("work", "enqueue", "--id", name, "--kind", "mail", "--question", "Shall I <b>send</b>?")
    assert made.code == 0, made
    shown = section(board(place), "Waiting for you")
    assert "`Shall I <b>send</b>?`" in shown
    (command,) = re.findall(r"  - ``(jackline work answer .*)``", shown)
    assert place.type(*shlex.split(command)[1:]).code == 0
    assert place.type("work", "get", name, "--json").json["answer"] == "YOUR ANSWER"
    assert "| `mail` | pending | 1 |" in section(board(place), "Queue")


@pytest.mark.parametrize("name", ["-x", "--help", "--home=/evil", "a b; touch x"])
def test_an_id_that_looks_like_something_else_is_an_id(place: Place, name: str) -> None:
    assert place.type("work", "enqueue", f"--id={name}", "--kind", "mail", "--question", "?").code == 0
    (command,) = commands(section(board(place), "Waiting for you"))
    assert place.type(*command, cwd="/", environ={"JACKLINE_HOME": ""}).code == 0
    assert place.type("work", "get", f"--id={name}", "--json").json["answer"] == "YOUR ANSWER"


def test_a_database_that_the_environment_names_is_named_in_commands(place: Place) -> None:
    place.environ["JACKLINE_DATABASE"] = str(place.folder / "else where.sqlite")
    assert place.type("work", "enqueue", "--id", "i", "--kind", "mail", "--question", "?").code == 0
    shown = section(board(place), "Waiting for you")
    (command,) = re.findall(r"  - `(env .*)`", shown)
    _, variable, program, *words = shlex.split(command)
    name, _, address = variable.partition("=")
    assert (name, program) == ("JACKLINE_DATABASE", "jackline")
    del place.environ["JACKLINE_DATABASE"]
    assert place.type(*words, environ={name: address, "JACKLINE_HOME": ""}).code == 0


def test_an_imported_run_is_shown_without_a_command(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r", "--proof", "false", "--max-iterations", "1")).code == 16
    with sqlite3.connect(place.home / "state.sqlite") as database:
        (spec,) = database.execute("SELECT spec FROM specs").fetchone()
        changed = json.loads(spec)
        changed["options"] = {**changed.get("options", {}), "imported": "agentpair"}
        database.execute("UPDATE specs SET spec = ?", (json.dumps(changed),))
    assert place.type("dashboard").code == 0
    shown = section(board(place), "Failed since yesterday")
    assert "| imported |" in shown
    assert commands(shown) == []


def test_a_home_that_everybody_finds_is_not_named_in_commands(place: Place) -> None:
    place.environ["JACKLINE_HOME"] = ""
    assert place.play(SAY, words=("--run-id", "r", "--proof", "false", "--max-iterations", "1")).code == 16
    shown = place.type("dashboard", "--print").out
    assert "`jackline resume r`" in shown


# --- when it is written --------------------------------------------------------------------------------------


def test_a_run_is_shown_while_it_runs_and_when_its_supervisor_was_killed(place: Place) -> None:
    steps = ({"call": {"tool": "wait", "run": f"touch {place.path('begun')}; sleep 60"}}, SAY)
    supervisor = place.start_playing(*steps, words=("--run-id", "r"))
    place.wait_for("begun")
    wait_until(lambda: "| `r` | working | `scripted` | `adhoc` |" in board(place) if written(place) else False)
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    assert "| `r` | working |" in section(board(place), "Running")  # the same as in the store
    assert place.type("cancel", "r").code == 0
    assert section(board(place), "Running").strip() == "None."
    assert "| `r` | `run.cancelled` |" in board(place)


def test_a_run_that_sits_out_a_backoff_is_shown_as_waiting(place: Place) -> None:
    supervisor = place.start_playing({"crash": "SIGKILL"}, words=("--run-id", "r", "--retry-seconds", "600"))
    wait_until(lambda: "| `r` | waiting: retry |" in board(place) if written(place) else False)
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(60) == 130


def test_a_run_that_was_only_written_down_is_in_the_queue(place: Place) -> None:
    crashed = place.play(SAY, words=("--run-id", "r"), environ={"JACKLINE_CRASH_AT": "run.created"})
    assert crashed.code == -signal.SIGKILL
    assert place.type("dashboard").out == f"{place.home / 'dashboard.md'}\n"
    assert "| `r` | queued |" in section(board(place), "Queue")
    assert "(1 queued)" in board(place)


def read_until(place: Place, over: threading.Event, torn: list[str]) -> None:
    while not over.is_set():
        text = board(place)
        if not (text.startswith("# Dashboard") and LAST in text and text.endswith("\n")):
            torn.append(text)


@pytest.mark.parametrize("kill", [False, True], ids=["all live", "half are killed"])
def test_eight_writers_and_the_last_change_is_in_it(place: Place, kill: bool) -> None:
    assert place.type("work", "enqueue", "--id", "first", "--kind", "load").code == 0
    over, torn = threading.Event(), list[str]()
    reader = threading.Thread(target=read_until, args=(place, over, torn))
    reader.start()
    writers = [place.python(WRITER, f"w{one}", "12") for one in range(8)]
    for one in writers[:4] if kill else []:
        assert one.stdout is not None
        one.stdout.readline()
        one.send_signal(signal.SIGKILL)
    ended = [place.end_of(one) for one in writers]
    over.set()
    reader.join()
    assert torn == []
    survived = ended[4:] if kill else ended
    assert [(one.code, one.err) for one in survived] == [(0, "")] * len(survived)
    if kill:  # a killed one may have taken others' changes along; the next change brings all of them
        assert place.type("work", "enqueue", "--id", "last", "--kind", "load").code == 0
    count = len(place.type("work", "list", "--limit", "1000", "--json").rows)
    assert count >= 1 + 12 * len(survived)
    assert f"| `load` | pending | {count} |" in section(board(place), "Queue")


def test_what_a_killed_writer_left_is_swept_away(place: Place) -> None:
    assert place.play(SAY).code == 0
    left = place.home / ".dashboard.md.0123456789ab.tmp"
    left.write_text("half")
    long_ago = time.time() - 7200
    os.utime(left, (long_ago, long_ago))
    assert place.type("dashboard").code == 0
    assert not left.exists()


def test_events_that_left_for_the_archive_leave_the_dashboard(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    assert "`run.succeeded`" in section(board(place), "Newest events")
    assert place.type("db", "archive", "--older-than", "0h").code == 0
    assert section(board(place), "Newest events").strip() == "None."


# --- when it cannot be written -------------------------------------------------------------------------------


def test_what_cannot_be_written_is_a_warning(place: Place) -> None:
    place.home.mkdir()
    (place.home / "dashboard.md").mkdir()
    ended = place.type("work", "enqueue", "--id", "i", "--kind", "load")
    assert ended.code == 0
    assert is_one_line(ended), ended
    assert "the dashboard is not up to date" in ended.err
    assert "fix that, then run `jackline dashboard`" in ended.err
    assert place.type("work", "get", "i").code == 0
    failed = place.type("dashboard")
    assert (failed.code, is_one_line(failed)) == (1, True)
    shown = place.type("dashboard", "--print")
    assert (shown.code, is_one_line(shown)) == (0, True)
    assert "| `load` | pending | 1 |" in shown.out
    assert place.type("dashboard", "--json").json["kinds"][0]["items"] == 1


def test_a_stopped_writer_is_not_waited_for(place: Place) -> None:
    assert place.play(SAY).code == 0
    lock = place.home / ".dashboard.md.lock"
    holder = place.python(HOLD, str(lock), place.path("held"))
    place.wait_for("held")
    ended = place.type("work", "enqueue", "--id", "i", "--kind", "load")
    assert ended.code == 0
    assert "makes no progress" in ended.err
    holder.kill()


def test_there_is_no_dashboard_without_a_home(place: Place) -> None:
    ended = place.type("dashboard")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert not place.home.exists()


# --- the command ---------------------------------------------------------------------------------------------


def test_it_can_be_printed_and_read_by_programs(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r", "--proof", "false", "--max-iterations", "1")).code == 16
    assert place.type("dashboard", "--print").out.startswith("# Dashboard\n")
    told = place.type("dashboard", "--json").json
    assert told["path"] == str(place.home / "dashboard.md")
    assert [run["failure"] for run in told["failed"]] == ["proof"]
    assert told["failed"][0]["finished_at"].endswith("Z")


def test_a_write_imports_nothing_heavy_for_it(place: Place) -> None:
    assert place.play(SAY).code == 0
    ended = place.end_of(place.python(PROGRAM, "dashboard"))
    assert ended.code == 0, ended
    loaded = ended.out.splitlines()[-1].split()
    assert "jackline.features.reports.dashboard" in loaded
    heavy = {*HEAVY, "dataclasses"} - {"jackline.exports"}
    assert [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in heavy)] == []


def test_it_is_listed_and_removed_with_all_that_is_jacklines(place: Place) -> None:
    assert place.play(SAY).code == 0
    assert place.type("retro", "weekly").code == 0
    retros = place.home / "retros"
    (retros / "2026-W01.md").write_text("all mine\n")
    assert place.type("uninstall", "--yes").code == 0
    assert sorted(str(one) for one in place.home.rglob("*")) == [str(retros), str(retros / "2026-W01.md")]
