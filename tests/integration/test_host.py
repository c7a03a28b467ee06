"""examples/host.py for real: killed, frozen and failing in the middle of an item, it loses no message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import Ended, Place
from tests.docs.pages import ROOT, blocks

HOST = ROOT / "examples" / "host.py"
# It says what it was told, or first waits for somebody to let it go on.
SAYS = 'echo "$JACKLINE_HOST $JACKLINE_ACTOR $JACKLINE_TRIGGER $JACKLINE_TRIGGER_PAYLOAD" >> said'
HANGS = "echo $$ > pid.new; mv pid.new pid; exec sleep 600"


class Played:
    """The host in a place of its own."""

    def __init__(self, place: Place) -> None:
        self.place = place
        place.environ["PATH"] = os.pathsep.join((os.path.join(sys.prefix, "bin"), os.environ["PATH"]))
        self.instance = place.folder / "forge"

    def start(self, *words: str) -> subprocess.Popen[str]:
        argv = [sys.executable, str(HOST), str(self.instance), *words]
        return self.place.execute(argv, cwd=self.place.folder)

    def type(self, *words: str) -> Ended:
        return self.place.end_of(self.start(*words))

    def work(self, program: str) -> Ended:
        return self.type("start", "sh", "-c", program)

    def item(self, name: str) -> dict[str, Any]:
        return self.place.type("work", "get", name, "--home", str(self.instance), "--json").json

    def kinds(self, name: str) -> list[str]:
        words = ("events", "tail", "--work-item", name, "--limit", "100", "--home", str(self.instance), "--json")
        return [row["type"] for row in self.place.type(*words).rows]

    @property
    def said(self) -> list[str]:
        path = self.place.folder / "said"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def program(self) -> int:
        """The process that handles an item, as soon as it has begun."""
        self.place.wait_for("pid")
        return int((self.place.folder / "pid").read_text())


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    place = Place(tmp_path)
    place.repository.mkdir()
    made = Played(place)
    assert made.type("scaffold").code == 0
    yield made
    place.close()
    if (tmp_path / "pid").exists():
        end(made.program)


def end(program: int) -> None:
    """What a host that was killed left behind goes on by itself; unless it has ended, it is ended here."""
    try:
        with open(f"/proc/{program}/cmdline", "rb") as file:
            if file.read().startswith(b"sleep\x00600"):
                os.kill(program, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return


def test_a_message_is_handled_once(played: Played) -> None:
    for _ in range(2):  # delivered twice
        assert played.type("message", "m1", "hello").code == 0
    assert played.work(SAYS).code == 0
    assert played.work(SAYS).code == 0
    assert played.said == ['grove forge message {"text": "hello"}']
    assert played.item("m1")["status"] == "done"
    assert played.kinds("m1") == ["work.created", "work.claimed", "work.resolved"]


def test_a_host_that_is_killed_in_the_middle_replays_and_finishes(played: Played) -> None:
    played.type("message", "m1", "first")
    played.type("message", "m2", "second")
    host = played.start("start", "sh", "-c", HANGS)
    program = played.program
    host.kill()
    assert host.wait() == -signal.SIGKILL
    assert played.item("m1")["status"] == "in_flight"
    end(program)

    ended = played.work(SAYS)
    assert ended.code == 0, ended
    assert "replayed m1 (1 attempts so far)" in ended.out
    assert [line.partition("{")[2] for line in played.said] == ['"text": "first"}', '"text": "second"}']
    assert [played.item(name)["status"] for name in ("m1", "m2")] == ["done", "done"]
    assert played.kinds("m1").count("work.claimed") == 2
    assert played.kinds("m1").count("work.resolved") == 1
    assert played.kinds("m2").count("work.claimed") == 1
    board = (played.instance / "dashboard.md").read_text()
    assert "`work:m1` | `work.resolved` | `forge`" in board
    assert played.place.type("db", "check", "--home", str(played.instance)).out == "no problems found\n"


def test_a_host_that_was_only_frozen_cannot_end_what_another_one_ended(played: Played) -> None:
    played.type("message", "m1", "hello")
    frozen = played.start("start", "sh", "-c", HANGS)
    program = played.program
    frozen.send_signal(signal.SIGSTOP)
    assert played.work(SAYS).code == 0
    end(program)
    frozen.send_signal(signal.SIGCONT)
    ended = played.place.end_of(frozen)
    assert ended.code != 0  # it was refused: its token is an old one
    assert "m1" in ended.err
    assert played.item("m1")["status"] == "done"
    assert played.kinds("m1").count("work.resolved") == 1
    assert "work.released" not in played.kinds("m1")[-1:]


def test_a_name_that_looks_like_a_flag_is_a_name(played: Played) -> None:
    assert played.type("message", "--json", "hello").code == 0
    assert played.work("[ -e tried ] || { touch tried; exit 3; }").code == 0
    (row,) = played.place.type("work", "list", "--home", str(played.instance), "--json").rows
    assert (row["id"], row["status"], row["attempts"]) == ("--json", "done", 2)


@pytest.mark.full
def test_what_fails_is_told_and_tried_again_until_its_attempts_are_used_up(played: Played) -> None:
    played.type("message", "m1", "hello")
    assert played.work(f"{SAYS}; exit 7").code == 0
    item = played.item("m1")
    assert (item["status"], item["dead"], item["attempts"]) == ("failed", True, item["max_attempts"])
    assert len(played.said) == item["max_attempts"]
    assert played.kinds("m1").count("handling.failed") == item["max_attempts"]


def test_a_message_that_no_environment_can_hold_is_handled(played: Played) -> None:
    told = f"import host; host.Host({str(played.instance)!r}).on_message_accepted('m1', 'long ' * 50_000)"
    accepted = played.place.execute([sys.executable, "-B", "-c", told], cwd=HOST.parent)
    assert played.place.end_of(accepted).code == 0
    assert played.work(f"{SAYS}; jackline work get m1 --json > item").code == 0
    assert played.said == ['grove forge message {"work_item": "m1"}']
    assert '{"text": "long long ' in (played.place.folder / "item").read_text()
    assert played.item("m1")["status"] == "done"


def test_a_host_that_lost_its_item_ends_the_program(played: Played) -> None:
    played.type("message", "m1", "hello")
    quick = "import sys, host; host.RENEW_SECONDS = 0.05; host.main(*sys.argv[1:])"
    hangs = f"cd {played.place.folder}; {HANGS}"
    argv = [sys.executable, "-B", "-c", quick, str(played.instance), "start", "sh", "-c", hangs]
    host = played.place.execute(argv, cwd=HOST.parent)
    program = played.program
    words = ("work", "replay", "--older-than", "0s", "--requeue", "--home", str(played.instance))
    while played.item("m1")["status"] == "in_flight" and host.poll() is None:  # it may have renewed this instant
        assert played.place.type(*words).code == 0
    ended = played.place.end_of(host)
    assert ended.code != 0
    assert "m1" in ended.err
    assert not os.path.exists(f"/proc/{program}")
    assert played.item("m1")["status"] == "pending"


@pytest.mark.parametrize("words", [(), ("start",), ("start", "no-such-program"), ("message", "m1"), ("dance",)])
def test_words_that_mean_nothing_change_nothing(played: Played, words: tuple[str, ...]) -> None:
    played.type("message", "m1", "hello")
    ended = played.type(*words)
    assert ended.code != 0
    assert "Traceback" not in ended.err
    assert played.item("m1")["attempts"] == 0


def test_the_page_shows_this_very_file() -> None:
    (shown,) = (block for block in blocks("docs/host.md") if block.language == "python")
    assert shown.text == HOST.read_text()
