"""An agent that prints nothing: its session continues twice, and a call that runs is no silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.place import Place


def kinds(place: Place, run: str = "1") -> list[str]:
    return [row.get("kind", "") for row in place.type("logs", run, "--events", "--json").rows]


def test_the_session_continues_twice_and_then_the_run_fails(place: Place) -> None:
    ended = place.play({"hang": True}, words=("--idle-seconds", "1", "--json"))
    assert (ended.code, ended.json["failure"]) == (11, "idle")
    turns = place.type("show", "1", "--json").json["turns"]
    assert [turn["failure"] for turn in turns] == ["idle"] * 3
    assert len({turn["session"] for turn in turns}) == 1
    assert kinds(place).count("turn.idle") == 2


def test_a_session_that_wakes_up_finishes_its_work(place: Place) -> None:
    waits = {"wait_for": {"file": place.path("go"), "seconds": 60}}
    running = place.start_playing(waits, {"say": "done"}, words=("--idle-seconds", "2", "--json"))
    while "turn.idle" not in kinds(place) and running.poll() is None:
        pass  # each look is a process of its own, and the agent waits for a minute
    place.let_go("go")
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, (out, err)


# While a call runs, the idle timeout is short, and the call ends after it has passed a few times.
IMPATIENT = """
import sys
from jackline.cli.main import main
from jackline.engine import timeouts
real, looks = timeouts.Timeouts.find_next, []

def find_next(self):
    if self._calls_until() <= timeouts.boot_ms():
        found = real(self)
        return found and (min(found[0], 0.02), found[1])  # look again soon: a call may have started
    spec, self._spec = self._spec, self._spec._replace(idle_timeout_ms=20)
    looks.append(real(self))
    self._spec = spec
    if len(looks) == 10:
        open(sys.argv[1], "w").close()
    return looks[-1]

timeouts.Timeouts.find_next = find_next
sys.exit(main(sys.argv[2:]))
"""


def test_a_call_that_runs_is_not_silence(place: Place) -> None:
    waits = f"until [ -e '{place.path('go')}' ]; do sleep 0.02; done"
    script = place.script({"call": {"tool": "look", "run": waits}}, {"say": "done"})
    words = ("run", "--agent", "scripted", "--script", script, "--idle-seconds", "60", "--json")
    ended = place.end_of(place.python(IMPATIENT, place.path("go"), *words))
    assert ended.code == 0, ended
    assert [call["state"] for call in place.type("show", "1", "--json").json["calls"]] == ["done"]
