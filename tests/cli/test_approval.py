"""A call that needs approval: asked once, then it waits until a person answers or the timeout decides."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, Ended, Place

WAITS = 14
CANCELLED = 17
ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')


def send(place: Place, to: str = "ada") -> dict[str, Any]:
    """A call that leaves a line outside of any database."""
    run = f"echo {to} >> {place.path('outbox')}"
    return {"call": {"tool": "send", "input": {"to": to}, "run": run}}


def outbox(place: Place) -> list[str]:
    path = place.folder / "outbox"
    return path.read_text().splitlines() if path.exists() else []


def ask(place: Place, *words: str, rule: str = ASK_RULE, steps: tuple[dict[str, Any], ...] = ()) -> str:
    """Start a run that waits for approval; returns the call in question."""
    ended = place.play(*(steps or (send(place), SAY)), words=("--policy", place.policy(rule), "--run-id", "r", *words))
    assert (ended.code, "waiting: approval" in ended.out) == (WAITS, True), ended
    (call,) = re.findall(r"jackline answer r (\S+) allow\n", ended.out)
    return str(call)


def show(place: Place) -> dict[str, Any]:
    return place.type("show", "r", "--json").json


def calls(place: Place, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(call[name] for name in names) for call in show(place)["calls"]]


def resume(place: Place, *words: str) -> Ended:
    return place.type("resume", "r", *words)


def told(place: Place) -> str:
    prompt: str = show(place)["turns"][-1]["prompt"]
    return prompt


def test_a_resume_before_the_answer_parks_again_and_asks_nothing_twice(place: Place) -> None:
    call = ask(place)
    for _ in range(2):
        ended = resume(place)
        assert (ended.code, f"jackline answer r {call} allow\n" in ended.out) == (WAITS, True), ended
    assert calls(place, "id", "decision", "state") == [(call, "ask", "denied")]
    assert len(show(place)["turns"]) == 1
    assert outbox(place) == []


def test_allowed_it_is_done_once(place: Place) -> None:
    call = ask(place)
    assert place.type("answer", "r", call, "allow").code == 0
    assert resume(place).code == 0
    assert "Approved since you asked; make the call now if it is still needed:\n- send" in told(place)
    assert resume(place).code == 0  # it has ended: nothing is repeated
    rows = calls(place, "state", "decision", "original")
    assert rows == [("denied", "ask", None), ("done", "allow", call)]
    assert outbox(place) == ["ada"]


def test_a_denied_call_is_not_made_and_the_agent_learns_it(place: Place) -> None:
    call = ask(place)
    assert place.type("answer", "r", call, "deny").code == 0
    assert resume(place).code == 0
    assert calls(place, "state", "reason")[1] == ("denied", f"approval was denied (call {call})")
    assert "Approval was denied; do not do:\n- send" in told(place)
    assert outbox(place) == []


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def wait_until(moment: datetime) -> None:
    """The clock is what is waited for: nothing else happens at that time."""
    while datetime.now(UTC) <= moment:
        time.sleep(0.01)


def test_until_the_time_has_come_the_run_shows_it_and_waits(place: Place) -> None:
    ask(place, "--approval-timeout", "3600")
    shown = show(place)
    asked = at(shown["calls"][0]["prepared_at"])
    assert timedelta(0) <= at(shown["wake_at"]) - asked - timedelta(hours=1) < timedelta(seconds=30)
    assert "wakes: 20" in (place.home / "runs" / "r" / "RESUME.md").read_text()
    assert resume(place).code == WAITS
    assert at(show(place)["wake_at"]) == asked + timedelta(hours=1)
    assert outbox(place) == []


@pytest.mark.parametrize(("answer", "sent"), [("deny", []), ("allow", ["ada"])])
def test_silence_is_an_answer_after_the_time(place: Place, answer: str, sent: list[str]) -> None:
    call = ask(place, "--approval-timeout", "0.05", "--approval-answer", answer)
    wait_until(at(show(place)["wake_at"]))
    assert resume(place).code == 0
    assert outbox(place) == sent
    assert calls(place, "answer")[0] == (answer,)
    assert "person" not in f"{told(place)} {calls(place, 'reason')[1]}"  # none has answered
    events = place.type("logs", "r", "--events", "--json").rows
    assert [row["data"]["by"] for row in events if row["kind"] == "call.answered"] == ["timeout"]
    late = place.type("answer", "r", call, "allow")
    assert (late.code, f"was answered already, with '{answer}'" in late.err) == (2, True)


def test_an_answer_after_the_timeout_and_before_a_resume_counts(place: Place) -> None:
    call = ask(place, "--approval-timeout", "0.05")
    wait_until(at(show(place)["wake_at"]))
    assert place.type("answer", "r", call, "allow", "--resume").code == 0
    assert outbox(place) == ["ada"]


def test_a_cancelled_run_asks_no_more(place: Place) -> None:
    call = ask(place)
    assert place.type("cancel", "r").code in {0, CANCELLED}
    assert show(place)["state"] == "cancelled"
    assert "jackline answer" not in place.type("show", "r").out
    place.type("answer", "r", call, "allow")
    assert show(place)["state"] == "cancelled"
    assert resume(place).code == 2
    assert outbox(place) == []


def test_a_rule_with_max_allows_only_one_of_two_approved_calls(place: Place) -> None:
    steps = (send(place, "ada"), send(place, "bob"))
    first = ask(place, rule=f"{ASK_RULE}max = 1\n", steps=steps)
    assert place.type("answer", "r", first, "allow").code == 0
    ended = resume(place)
    assert ended.code == 0, ended
    assert outbox(place) == ["ada"]
    assert "rule 'send' allows 1 per run" in calls(place, "reason")[-1][0]


def test_other_commands_in_the_same_line_do_not_bypass_max(place: Place) -> None:
    """Each company makes another name of the rule, and the same command twice in one call is twice."""
    rule = '[[rule]]\nname = "ship"\ncommand = "ship"\nclass = "effect"\ndecision = "allow"\nmax = 2\n'
    commands = ("ship a; ship b; ship c", "ship a", "touch x && ship b", "ls; ship c", "git push; ship d")
    steps = tuple({"call": {"tool": "Bash", "input": {"command": one}, "run": "true"}} for one in commands)
    place.play(*steps, SAY, words=("--policy", place.policy(rule), "--run-id", "r", "--allow", "effects"))
    assert [decision for (decision,) in calls(place, "decision")] == ["deny", "allow", "allow", "deny", "deny"]


def test_two_asked_calls_are_answered_one_after_the_other(place: Place) -> None:
    steps = (send(place, "ada"), send(place, "bob"))
    first = ask(place, steps=steps)
    assert place.type("answer", "r", first, "allow").code == 0
    ended = resume(place)
    assert (ended.code, "waiting: approval" in ended.out) == (WAITS, True), ended
    (second,) = re.findall(r"jackline answer r (\S+) allow\n", ended.out)
    assert second != first
    assert place.type("answer", "r", second, "deny", "--resume").code == 0
    assert outbox(place) == ["ada"]
