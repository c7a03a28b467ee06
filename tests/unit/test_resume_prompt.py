"""The resume packet tells commits as facts."""

from __future__ import annotations

from jackline.domain.records import Call, Receipt
from jackline.domain.resume_prompt import build_resume_prompt
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
