"""`unmatched`: the decision for calls that no rule matches, in the settings and on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.cli.test_agent_edges import END, describe, says
from tests.cli.test_approval import calls, resume, show
from tests.cli.test_config import user_settings
from tests.cli.test_on_ask import anywhere

__all__ = ["anywhere"]
WAITS = 14


def spin(place: Place, what: str = "a") -> dict[str, Any]:
    return {
        "call": {"tool": "Bash", "input": {"command": f"acme {what}"}, "run": f"echo {what} >> {place.path('made')}"}
    }


def made(place: Place) -> list[str]:
    path = place.folder / "made"
    return path.read_text().split() if path.exists() else []


def play(place: Place, *words: str, steps: tuple[dict[str, Any], ...] = ()) -> Ended:
    return place.play(*(steps or (spin(place), SAY)), words=("--run-id", "r", *words))


def open_call(place: Place) -> str:
    return str(next(call["id"] for call in show(place)["calls"] if call["decision"] == "ask" and not call["answer"]))


def test_by_default_they_run(place: Place) -> None:
    assert (play(place).code, made(place)) == (0, ["a"])


def test_ask_waits_for_an_answer_that_covers_every_repeat(anywhere: Place) -> None:
    steps = (spin(anywhere), spin(anywhere), SAY)
    assert play(anywhere, "--unmatched", "ask", steps=steps).code == WAITS
    assert made(anywhere) == []
    assert anywhere.type("answer", "r", open_call(anywhere), "allow").code == 0
    assert (resume(anywhere).code, made(anywhere)) == (0, ["a", "a"])


def test_always_covers_the_program_with_other_words(anywhere: Place) -> None:
    other = {
        "call": {"tool": "Bash", "input": {"command": "acme a --fast"}, "run": f"echo b >> {anywhere.path('made')}"}
    }
    assert play(anywhere, "--unmatched", "ask", steps=(spin(anywhere), other, SAY)).code == WAITS
    assert anywhere.type("answer", "r", open_call(anywhere), "always").code == 0
    assert (resume(anywhere).code, made(anywhere)) == (0, ["a", "b"])


def test_deny_denies_and_the_run_continues(place: Place) -> None:
    assert (play(place, "--unmatched", "deny").code, made(place)) == (0, [])
    (found,) = calls(place, "decision", "call_class", "rule", "reason")
    assert found[:3] == ("deny", "unknown", "unmatched")
    assert "no rule matches it" in found[3]


def test_without_anybody_to_ask_the_call_is_denied_for_now(place: Place) -> None:
    assert (play(place, "--unmatched", "ask", "--on-ask", "deny").code, made(place)) == (0, [])


def test_a_begun_run_keeps_its_value(place: Place) -> None:
    assert play(place, "--unmatched", "ask").code == WAITS
    assert resume(place).code == WAITS
    assert place.type("answer", "r", open_call(place), "deny").code == 0
    assert (resume(place).code, made(place)) == (0, [])


def value(place: Place, *words: str, **environ: str) -> str:
    return str(place.type("config", "--json", *words, environ=environ).json["unmatched"]["value"])


@pytest.mark.parametrize("trusted", [False, True])
def test_a_project_can_only_tighten_it(place: Place, trusted: bool) -> None:
    user_settings(place, 'unmatched = "ask"\n')
    (place.repository / "jackline.toml").write_text('unmatched = "allow"\n')
    if trusted:
        assert place.trust().code == 0
    ended = place.type("config")
    assert "unmatched stays ask, not allow" in ended.err
    assert value(place) == "ask"
    assert play(place).code == WAITS
    (place.repository / "jackline.toml").write_text('unmatched = "deny"\n')
    assert value(place) == "deny"


@pytest.mark.parametrize("trusted", [False, True])
def test_a_task_of_a_project_can_only_tighten_it(place: Place, trusted: bool) -> None:
    user_settings(place, 'unmatched = "ask"\n')
    place.task("loose", "---\nunmatched: allow\n---\nx")
    place.task("firm", "---\nunmatched: deny\n---\nx")
    if trusted:
        assert place.trust().code == 0
    ended = play(place, "--task", "loose")
    assert (ended.code, "unmatched stays ask, not allow" in ended.err) == (WAITS, True)
    assert place.play(spin(place), SAY, words=("--task", "firm")).code == 0
    assert made(place) == []


def test_a_job_of_the_user_sets_it(place: Place) -> None:
    job = place.folder / "job.toml"
    job.write_text('[settings]\nunmatched = "deny"\n')
    assert (play(place, "--job", str(job)).code, made(place)) == (0, [])


def test_an_agent_without_a_gate_is_stopped(place: Place) -> None:
    call = {"type": "call.started", "call": "1", "tool": "spin", "input": {}}
    agent = describe(place, "spinner", says(call, {"type": "call.finished", "call": "1", "ok": True}, END))
    words = ("run", "x", "--agent", agent, "--json", "--unmatched")
    assert place.type(*words, "allow").code == 0
    denied = place.type(*words, "deny")
    assert (denied.code, denied.json["failure"]) == (18, "ungated")
    asked = place.type(*words, "ask", "--run-id", "r")
    assert (asked.code, "without the approval of rule 'unmatched'" in asked.json["detail"]) == (18, True)
    assert place.type("resume", "r", "--allow", "unmatched").code == 0


def test_explain_shows_it(place: Place) -> None:
    user_settings(place, 'unmatched = "ask"\n')
    ended = place.type("policy", "explain", "acme", "deploy")
    assert "decision  ask\nagree     --allow unmatched\nunmatched ask: the setting for calls" in ended.out
    assert "unmatched" not in place.type("policy", "explain", "ls", "-l").out
    assert place.type("policy", "explain", "acme", "--json").json["unmatched"] == "ask"


def test_a_wrong_value_is_one_line(place: Place) -> None:
    user_settings(place, 'unmatched = "perhaps"\n')
    ended = play(place)
    assert (ended.code, is_one_line(ended), "deny, ask or allow" in ended.err) == (2, True, True)
