"""The verdict of the drill: pass only when everything is as it must be, and every way to be wrong is named."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.errors import UsageError
from jackline.scenarios.drill_cases import CASES, DEMO_CASES, DrillCase, choose_cases
from jackline.scenarios.verdicts import FAIL, PASS, CaseEvidence, Expectation, judge_case

BY_NAME = {case.name: case for case in CASES}
UPLOAD, DRAIN, STREAM = BY_NAME["upload-crash"], BY_NAME["replay-drain"], BY_NAME["kill-while-streaming"]


def perfect(case: DrillCase) -> CaseEvidence:
    """What is seen when all is well."""
    origins = dict.fromkeys(case.effects, "agent") | dict(case.origins)
    return CaseEvidence(
        expectations=(Expectation("the supervisor is killed", met=True),),
        effects=dict.fromkeys(case.effects, 1),
        runs={(one.tool, one.name): (one.begun, one.ended) for one in case.runs},
        state="succeeded",
        origins=origins,
        replayed=case.replayed,
        refused=case.refused,
    )


def reasons(case: DrillCase, **changed: Any) -> tuple[str, ...]:
    verdict = judge_case(case, perfect(case)._replace(**changed), 1.0, "/evidence")
    assert verdict.result == (FAIL if verdict.reasons else PASS)
    return verdict.reasons


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_in_which_all_is_well_passes(case: DrillCase) -> None:
    verdict = judge_case(case, perfect(case), 1.5, "/evidence")
    assert (verdict.result, verdict.reasons) == (PASS, ())
    assert (verdict.effects_seen, verdict.effects_expected) == (len(case.effects), len(case.effects))
    assert (verdict.seconds, verdict.evidence) == (1.5, "/evidence")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_of_which_nothing_was_seen_fails(case: DrillCase) -> None:
    assert judge_case(case, CaseEvidence(), 0.0, "").result == FAIL


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"effects": {"first": 1, "report": 2, "last": 1}}, "the effect 'report' happened 2 times, expected once"),
        ({"effects": {"first": 1, "last": 1}}, "the effect 'report' happened 0 times, expected once"),
        (
            {"effects": {"first": 1, "report": 1, "last": 1, "strange": 1}},
            "the effect 'strange' happened once, expected 0 times",
        ),
        ({"state": "waiting"}, "the run is waiting, not succeeded"),
        ({"in_doubt": 1}, "effects in doubt at the end: 1"),
        ({"replayed": 0}, "calls replayed: 0, expected at least 1"),
        ({"still_running": ("claude --resume",)}, "still running: claude --resume"),
        ({"broken_history": "event 3 was altered"}, "the run's history does not verify: event 3 was altered"),
        ({"origins": {"first": "agent", "last": "agent"}}, "the effect 'report' has no receipt"),
        ({"expectations": (Expectation("it is killed", met=False),)}, "not met: it is killed"),
        ({"problem": "waited 120 s in vain"}, "waited 120 s in vain"),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, Any], said: str) -> None:
    assert reasons(UPLOAD, **changed) == (said,)


def test_a_tool_that_ran_once_too_often_fails_the_case() -> None:
    runs = {**perfect(UPLOAD).runs, ("upload", "first"): (2, 2)}
    assert reasons(UPLOAD, runs=runs) == (
        "`upload first` started 2 times, expected once",
        "`upload first` finished 2 times, expected once",
    )


def test_a_replay_that_refused_nothing_fails_the_drain() -> None:
    assert reasons(DRAIN, refused=0) == ("calls refused during the replay: 0, expected at least 1",)


def test_an_effect_that_did_not_wait_for_the_replay_fails_the_drain() -> None:
    order = (("one", "begun"), ("one", "ended"), ("early", "begun"), ("two", "ended"), ("report", "begun"))
    assert reasons(DRAIN, order=order) == ("the effect 'early' started before 'two' had been repeated",)


def test_effects_after_the_replay_are_as_they_must_be() -> None:
    order = (("one", "begun"), ("two", "ended"), ("one", "ended"), ("report", "begun"), ("early", "begun"))
    assert reasons(DRAIN, order=order) == ()


def test_a_receipt_from_somebody_who_could_not_know_fails_the_case() -> None:
    origins = {"report": "agent", "last": "agent"}
    assert reasons(STREAM, origins=origins) == ("the receipt of 'report' is from the agent, expected from the probe",)


def test_an_effect_that_happened_twice_is_said_even_if_the_case_was_not_played_to_its_end() -> None:
    said = reasons(UPLOAD, effects={"report": 2}, problem="waited 120 s in vain for the end")
    assert said[-1] == "waited 120 s in vain for the end"
    assert "the effect 'report' happened 2 times, expected once" in said


@pytest.mark.parametrize("case", CASES + DEMO_CASES, ids=lambda case: case.name)
def test_every_expected_effect_has_a_run_of_its_tool(case: DrillCase) -> None:
    """A case that expects what no step does could never pass; one that counts no run would see no second one."""
    uploads = {one.name for one in case.runs if one.tool == "upload"}
    assert set(case.effects) == uploads
    assert {(one.tool, one.name) for one in case.runs} == {(step.tool, step.name) for step in case.steps}


def test_the_matrix_has_every_case_of_the_issue() -> None:
    assert [case.name for case in CASES] == [
        "task-crash",
        "bash-crash",
        "upload-crash",
        "after-effect-before-ledger",
        "read-only",
        "replay-drain",
        "kill-while-streaming",
        "supervisor-killed",
        "everything-killed",
        "frozen-and-thawed",
    ]


def test_cases_are_choose_cases_by_name_in_the_order_of_the_matrix() -> None:
    assert [case.name for case in choose_cases(["read-only", "task-crash"])] == ["task-crash", "read-only"]
    assert choose_cases(None) == CASES


def test_a_case_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="no case 'bash'; choose from task-crash, bash-crash"):
        choose_cases(["bash"])
