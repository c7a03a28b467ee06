"""The resume packet tells commits as facts."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.domain.records import Call, Receipt, Turn
from jackline.domain.resume_prompt import build_interrupted_section, build_resume_prompt, find_interrupted_calls
from jackline.domain.states import CallClass, CallState, Decision, Replay


def cut_off(input: str) -> Call:
    kinds = (CallClass.LOCAL, Replay.EXACT, Decision.ALLOW)
    return Call("c1", "run", 1, 1, 1, 0, "Bash", *kinds, "tests", "socket", "k", "", input, CallState.ABANDONED, 1)


def test_commits_are_told_as_facts() -> None:
    told = build_resume_prompt((), (), ("abc one", "def two"))
    assert "Commits you already made:\n- abc one\n- def two" in told
    assert "Commits" not in build_resume_prompt((), ())


def test_what_was_cut_off_is_told_first_and_whole_with_a_note_not_to_repeat_it() -> None:
    text = '{"command":"' + "x" * 500 + '"}'
    told = build_resume_prompt((), (), ("abc one",), (cut_off(input=text),))
    assert text in told
    assert told.index("Make each of them again now") < told.index("do not repeat it")
    assert told.index("do not repeat it") < told.index("Commits")


def test_who_cannot_be_refused_anything_is_not_told_so() -> None:
    told = build_resume_prompt((), (), (), (cut_off("{}"),), held=False)
    assert "do not repeat it" in told
    assert "denied" not in told


def test_what_was_done_since_or_is_to_be_made_again_is_not_told_as_not_happened() -> None:
    void = cut_off("{}")._replace(state=CallState.VOID, call_class=CallClass.EFFECT)
    proof = Receipt("c2", "run", void.key, "mail:ada", "mail", "sent", "", "agent", 2)
    assert "Known not to have happened:\n- Bash {}" in build_resume_prompt((void,), ())
    assert "Known not" not in build_resume_prompt((void,), (proof,))
    assert "Known not" not in build_resume_prompt((void,), (), (), (void,))


def test_of_what_repeats_freely_only_a_persons_word_is_told() -> None:
    void = cut_off("{}")._replace(state=CallState.VOID)
    assert "Known not" not in build_resume_prompt((void,), ())
    assert "Known not to have happened:\n- Bash {}" in build_resume_prompt((void._replace(answer="did-not"),), ())
    assert "a person decided: do it again" in build_resume_prompt((void._replace(answer="retry"),), ())


def test_what_was_agreed_to_is_told_once_until_it_is_made() -> None:
    asked = cut_off("{}")._replace(state=CallState.DENIED, decision=Decision.ASK)
    allowed = (asked._replace(answer="allow"), asked._replace(id="c2", answer="allow"))
    told = build_resume_prompt(allowed, ())
    assert told.endswith("\n\nApproved since you asked; make the call now if it is still needed:\n- Bash {}")
    assert "Approved" not in build_resume_prompt((asked,), ())
    assert "Approved" not in build_resume_prompt((*allowed, cut_off("{}")._replace(id="c3")), ())


def test_an_interrupted_call_is_reported_until_a_turn_has_read_of_it() -> None:
    call = cut_off("")._replace(turn=1, replay=Replay.REPORT)
    turn = Turn("run", 2, 4, 2, "work", "claude", None, "", 0)
    assert find_interrupted_calls((call,), (turn,)) == [call]  # the turn was stored, and its agent never started
    for begun in (turn._replace(stdout_bytes=1), turn._replace(exit_code=0)):
        assert find_interrupted_calls((call,), (begun,)) == []
    other = call._replace(id="other", turn=2, state=CallState.DONE)
    assert find_interrupted_calls((call, other), (turn,)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"answer": "skip"},
        {"parent_id": "task"},
        {"state": CallState.DONE},
        {"call_class": CallClass.EFFECT},
    ],
)
def test_what_needs_no_report(change: dict[str, Any]) -> None:
    call = cut_off("")._replace(turn=1, **change)
    assert find_interrupted_calls((call,), ()) == []


def test_a_call_that_was_made_again_or_must_be_is_not_reported() -> None:
    call = cut_off("")._replace(turn=1)
    assert find_interrupted_calls((call,), (), forced=(call,)) == []
    again = call._replace(id="again", original=call.id, state=CallState.DONE)
    assert find_interrupted_calls((call, again), ()) == []


def test_the_report_leaves_the_decision_to_the_agent() -> None:
    section = build_interrupted_section((cut_off(input="{}"),))
    told = build_resume_prompt((), (), sections=(section,))
    assert "Interrupted, outcome unknown; repeat a call only if you still need it:\n- " in told


def test_what_was_done_or_may_have_been_is_named_by_its_command() -> None:
    text = '{"command":"send E1\\n\\u001b[2J --now ' + "x" * 500 + '"}'
    call = cut_off(text)._replace(call_class=CallClass.EFFECT, state=CallState.DONE, target="message:E1", rule="send")
    proof = Receipt("c1", "run", call.key, call.target, "send", "sent", "id-7", "agent", 2)
    told = build_resume_prompt((call,), (proof,)).splitlines()
    done = next(line for line in told if line.startswith("- send"))
    assert done.startswith("- send → message:E1 (id-7): $ send E1 ⏎ ")
    assert "\x1b" not in done
    assert len(done) < 300
    told = build_resume_prompt((call._replace(state=CallState.IN_DOUBT),), ()).splitlines()
    assert any(line.startswith("- $ send E1 ⏎ ") and line.endswith(" → message:E1 (rule send)") for line in told)


def test_kept_work_is_told_with_the_command_that_brings_it_back() -> None:
    made = cut_off('{"command":"git reset --hard"}')._replace(external='{"kept":"refs/jackline/run/1"}')
    told = build_resume_prompt((made,), ())
    assert "git restore --source=REF" in told
    assert "refs/jackline/run/1 (before " in told
    assert "refs/jackline" not in build_resume_prompt((cut_off("{}"),), ())
