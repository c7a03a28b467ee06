"""The look back at a week: each fold by itself, with the cases that are easy to get wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.features.cases.learning import REVIEW_COMMAND
from jackline.features.reports import retro, retro_findings, retro_page, retro_proposals, retro_report
from jackline.features.reports.lines import CheckLine, Learning, Move, RunLine, Spending, TurnLine
from jackline.features.reports.retro_report import WeekData, WeekReport, build_report
from tests.unit.test_dashboard_page import EVIL, run

W46 = retro_report.Week("2026-W46", 1_794_182_400_000, 1_794_787_200_000)
START, UNTIL = W46.start, W46.until
HOUR = 3_600_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- weeks ---------------------------------------------------------------------------------------------------


@given(st.integers(-62_000_000_000_000, 253_300_000_000_000))
def test_the_week_of_a_moment_is_that_of_the_calendar(now: int) -> None:
    known = (EPOCH + timedelta(milliseconds=now)).isocalendar()
    found = retro_report.get_current_week(now)
    assert found.name == f"{known.year:04}-W{known.week:02}"
    assert found.start <= now < found.until
    assert retro_report.parse_week(found.name) == found
    assert retro_report.get_last_full_week(now).until == found.start


@given(st.integers(1, 9998), st.integers(0, 99))
def test_a_name_is_a_week_if_the_calendar_has_it(year: int, number: int) -> None:
    try:
        date.fromisocalendar(year, number, 1)
    except ValueError:
        assert retro_report.parse_week(f"{year:04}-W{number:02}") is None
    else:
        assert retro_report.parse_week(f"{year:04}-W{number:02}") is not None


@pytest.mark.parametrize(
    "name", ["", "2026", "2026-46", "2026-W6", "2026-W046", "2026-w46", "\uff12026-W46", "2026-W46 "]
)
def test_what_only_looks_like_a_week_is_none(name: str) -> None:
    assert retro_report.parse_week(name) is None


def test_the_days_of_a_week() -> None:
    assert retro_report.parse_week("2026-W46") == W46
    assert W46.days == (
        "2026-11-09", "2026-11-10", "2026-11-11", "2026-11-12", "2026-11-13", "2026-11-14", "2026-11-15",
    )  # fmt: skip
    assert retro_report.parse_week("2026-W01") is not None
    assert retro_report.get_week_before(W46, 46).name == "2025-W52"


def test_the_weeks_around_a_new_year() -> None:
    last, first = retro_report.parse_week("2026-W53"), retro_report.parse_week("2027-W01")
    assert last is not None
    assert first is not None
    assert (last.days[0], last.days[-1], first.days[0]) == ("2026-12-28", "2027-01-03", "2027-01-04")
    assert (last.until, retro_report.get_week_before(first, 1)) == (first.start, last)
    assert retro_report.parse_week("2027-W53") is None


# --- where time went -----------------------------------------------------------------------------------------


def moves(*told: tuple[int, str] | tuple[int, str, str], run_id: str = "r", seq: int = 1) -> list[Move]:
    return [
        Move(run_id, seq + place, START + at * HOUR, f"run.{kind}", *more)
        for place, (at, kind, *more) in enumerate(told)
    ]


def times(*told: list[Move], before: dict[str, Move] | None = None, until: int = UNTIL) -> retro_report.TimeSpent:
    return retro_report.measure_times([one for of_run in told for one in of_run], before or {}, START, until)


def test_each_state_is_counted_for_as_long_as_it_lasted() -> None:
    found = times(
        moves(
            (0, "created"), (1, "claimed"), (3, "waiting", "limit"), (8, "claimed"), (9, "waiting", "approval"),
            (10, "queued"), (14, "claimed"), (15, "succeeded"),
        )
    )  # fmt: skip
    assert (found.running, found.queued) == (4 * HOUR, 5 * HOUR)
    assert found.waits == (retro_report.WaitTime("limit", 1, 5 * HOUR), retro_report.WaitTime("approval", 1, HOUR))
    assert [found.of(bucket) // HOUR for bucket in retro_report.BUCKETS] == [4, 5, 5, 1, 0]
    assert found.lost == 11 * HOUR


def test_after_its_end_no_time_is_counted_until_it_is_taken_up_again() -> None:
    found = times(moves((0, "claimed"), (1, "failed"), (10, "claimed"), (12, "cancelled")))
    assert (found.running, found.lost) == (3 * HOUR, 0)


def test_what_began_before_the_week_or_did_not_end_in_it_is_cut() -> None:
    before = {"r": Move("r", 1, START - 50 * HOUR, "run.waiting", "human")}
    found = times(moves((2, "claimed"), seq=2), before=before)
    assert found.waits == (retro_report.WaitTime("human", 0, 2 * HOUR),)
    assert found.running == UNTIL - START - 2 * HOUR
    assert times(before=before, until=START + HOUR).of(retro_report.PEOPLE) == HOUR


def test_a_takeover_goes_on_running() -> None:
    assert times(moves((0, "claimed"), (1, "claimed"), (2, "succeeded"))).running == 2 * HOUR


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    found = times(moves((5, "claimed"), (4, "waiting", "retry"), (6, "claimed"), (7, "succeeded")))
    assert (found.running, found.of(retro_report.OTHER)) == (HOUR, 2 * HOUR)


def test_an_imported_run_was_at_work_though_nobody_claimed_it() -> None:
    found = times(moves((0, "created"), (2, "succeeded"), (9, "imported")))
    assert (found.running, found.queued) == (2 * HOUR, 0)
    found = times(moves((0, "created"), (2, "cancelled")))
    assert (found.running, found.queued) == (0, 2 * HOUR)


def test_runs_are_not_mixed_up() -> None:
    found = times(moves((0, "claimed"), (1, "failed")), moves((0, "claimed"), (2, "failed"), run_id="s"))
    assert found.running == 3 * HOUR


# --- learnings -----------------------------------------------------------------------------------------------


def learned(case: str, summary: str, at: int = START, **more: Any) -> Learning:
    known: dict[str, Any] = {"number": 1, "kind": "test-gap", "action": "none", "reason": "later"} | more
    return Learning(case_id=case, at=at, summary=summary, **known)


SAME = (
    "The cache test needs a fixed clock",
    "cache test needs a fixed clock!",
    "the cache test needs a clock, fixed (2)",
)


def test_the_same_learning_in_several_cases_is_repeated() -> None:
    found = retro_findings.find_repeated_learnings(
        [learned(f"c{place}", one, START + place) for place, one in enumerate(SAME)], START
    )
    assert [one.cases for one in found] == [("c0", "c1", "c2")]
    assert found[0].summary == SAME[0]


@pytest.mark.parametrize(
    "others",
    [
        (learned("c1", SAME[1]),),  # the same case twice
        (learned("c2", SAME[1], kind="doc-gap"),),
        (learned("c2", "The cache test needs more memory than there is"),),
        (learned("c2", "…"),),
        (),
    ],
)
def test_what_is_not_repeated(others: tuple[Learning, ...]) -> None:
    assert retro_findings.find_repeated_learnings([learned("c1", SAME[0]), *others], START) == []


def test_what_came_to_something_since_is_not_told() -> None:
    first, second = learned("c1", SAME[0], START - 2), learned("c2", SAME[1], START + 1)
    artifact = learned("c3", SAME[2], START + 2, action="test", path="tests/x.py", reason="")
    assert retro_findings.find_repeated_learnings([first, second, artifact], START) == []
    again = [learned(f"c{place}", SAME[0], START + place) for place in (4, 5)]
    assert [one.cases for one in retro_findings.find_repeated_learnings([first, second, artifact, *again], START)] == [
        ("c4", "c5")
    ]


def test_only_what_was_learned_again_in_this_week_is_told() -> None:
    old = [learned(f"c{place}", SAME[0], START - 10 + place) for place in range(3)]
    assert retro_findings.find_repeated_learnings(old, START) == []
    assert len(retro_findings.find_repeated_learnings([*old, learned("c9", SAME[0], START)], START)) == 1


def test_many_different_learnings_repeat_nothing() -> None:
    many = [learned(f"c{place}", f"word{place} other{place} third{place}") for place in range(1500)]
    assert retro_findings.find_repeated_learnings(many, START) == []


# --- proofs --------------------------------------------------------------------------------------------------


def check(step: int, code: int | None, tree: str = "", command: str = "make test") -> CheckLine:
    return CheckLine(step, command, START + step, code, tree)


def turn(step: int, agent: str = "claude", failure: str | None = None) -> TurnLine:
    return TurnLine(step, agent, START + step, START + step + 1, failure)


@pytest.mark.parametrize(
    ("checks", "turns", "why"),
    [
        ({"a": [check(1, 0, "t")], "b": [check(1, 1, "t")]}, {}, retro_findings.SAME_TREE),
        ({"a": [check(1, 0, "t"), check(3, 2, "u")]}, {"a": [turn(2)]}, ""),
        ({"a": [check(1, 1), check(3, 0)]}, {"a": [turn(2)]}, ""),  # the agent has mended it
        ({"a": [check(1, 1), check(2, 0)]}, {"a": [turn(0)]}, retro_findings.NO_TURN),
        ({"a": [check(1, 1), check(2, 0)._replace(attempt=2)]}, {}, ""),  # a person may have mended it in between
        (
            {"a": [check(1, 1, command=REVIEW_COMMAND), check(2, 0, command=REVIEW_COMMAND)]},
            {},
            "",
        ),  # it looks at cases, not at trees
        ({"a": [check(1, 1), check(3, 0), check(5, 1)]}, {"a": [turn(2), turn(4)]}, retro_findings.TO_AND_FRO),
        ({"a": [check(1, None), check(2, 0)]}, {}, ""),  # killed: it said nothing
        ({"a": [check(1, 1), check(2, 0, command="other")]}, {}, ""),
        ({"a": [check(1, 1), check(2, 2)]}, {}, ""),  # failed twice, with different codes
        ({"a": [check(1, 1)], "b": [check(1, 0)]}, {}, ""),  # nobody knows the trees
    ],
)
def test_flaky_proofs(checks: dict[str, list[CheckLine]], turns: dict[str, list[TurnLine]], why: str) -> None:
    found = retro_findings.find_flaky_proofs(checks, turns)
    assert [one.why for one in found] == ([why] if why else [])


def test_a_flaky_proof_is_told_once_with_its_strongest_reason() -> None:
    checks = {"a": [check(1, 0, "t"), check(2, 1, "t")], "b": [check(1, 0), check(2, 1)]}
    assert retro_findings.find_flaky_proofs(checks, {}) == [
        retro_findings.FlakyProof("make test", retro_findings.SAME_TREE, ("a",))
    ]


# --- counts --------------------------------------------------------------------------------------------------


def finished(state: str, **more: Any) -> RunLine:
    return run(state=state, finished_at=START + HOUR, **more)


RUNS = [
    finished("succeeded", proof="proved", usd_micros=10, tokens=1),
    finished("succeeded", usd_micros=5),
    finished("failed", failure="timeout"),
    finished("cancelled"),
    finished("failed", agent="codex", failure="limit"),
]


def test_success_by_agent_and_task() -> None:
    claude, codex = retro_findings.count_successes(RUNS)
    assert claude == retro_findings.TaskSuccess("claude", "mend", 2, 1, 1, 1, 15, 1)
    assert (claude.ended, claude.rate) == (4, 2 / 3)
    assert (codex.ended, codex.rate) == (1, 0)
    assert retro_findings.count_successes([finished("cancelled")])[0].rate is None


def test_failures_and_limits() -> None:
    turns = [
        turn(1, failure="limit"),
        turn(2, failure="limit"),
        turn(3, "codex", "limit"),
        turn(4, failure="crashed"),
        turn(5),
    ]
    assert retro_findings.count_failures(RUNS, turns) == [
        retro_findings.FailureCount("limit", 1, 3),
        retro_findings.FailureCount("timeout", 1, 0),
        retro_findings.FailureCount("crashed", 0, 1),
    ]
    assert retro_findings.count_limits(turns) == [
        retro_findings.LimitHits("claude", 2),
        retro_findings.LimitHits("codex", 1),
    ]


# --- the whole -----------------------------------------------------------------------------------------------

NOW = UNTIL + 10 * HOUR
FULL = WeekData(
    runs=[*RUNS, *(finished("failed", agent="codex", failure="limit") for _ in range(3))],
    moves=moves((0, "claimed"), (1, "waiting", "approval"), (5, "claimed"), (6, "succeeded")),
    turns={"r": [turn(place, "codex", "limit") for place in range(3)]},
    checks={"r": [check(1, 0), check(2, 1)]},
    spending=[Spending("2026-11-09", "claude", 2_000_000, 5), Spending("2026-11-10", "codex", 500_000, 5)],
    learnings=[learned(f"c{place}", one, START + place) for place, one in enumerate(SAME)],
)


def test_a_full_week_proposes_each_kind_of_thing_once() -> None:
    report = build_report(W46, FULL, NOW)
    asked = retro_proposals.build_proposals(report)
    findings = [one.subject["finding"] for one in asked]
    assert findings == ["learning", "flaky", "success", "limit", "failure", "people"]
    assert len({one.slug for one in asked}) == 6
    assert all(retro_proposals.build_item_id(W46.name, one.slug).startswith("retro:2026-W46:") for one in asked)
    assert asked[-1].slug == "people"
    # More of the same changes what is asked, not which question it is.
    more = build_report(W46, FULL._replace(runs=[*FULL.runs, *FULL.runs]), NOW)
    again = retro_proposals.build_proposals(more)
    assert [(one.slug, one.subject) for one in again] == [(one.slug, one.subject) for one in asked]
    assert [one.question for one in again] != [one.question for one in asked]


def test_nobody_is_asked_a_hundred_things() -> None:
    said = [learned(f"c{case}", f"word{one} thing{one} matter{one}") for case in range(2) for one in range(100)]
    report = build_report(W46, WeekData(learnings=said), NOW)
    assert len(report.repeated) == 100
    assert len(retro_proposals.build_proposals(report)) == 10


def test_a_week_that_is_not_over_proposes_nothing() -> None:
    report = build_report(W46, FULL, START + 5 * HOUR)
    assert (report.is_over, retro_proposals.build_proposals(report)) == (False, [])


def test_names_that_differ_only_in_signs_are_different_proposals() -> None:
    runs = [finished("failed", agent=agent, failure=None) for agent in ("a b", "a-b", "ä b") for _ in range(3)]
    report = build_report(W46, WeekData(runs=runs), NOW)
    slugs = [one.slug for one in retro_proposals.build_proposals(report) if one.subject["finding"] == "success"]
    assert len(set(slugs)) == 3
    assert all(slug.isascii() for slug in slugs)


def test_the_text_has_every_part() -> None:
    report = build_report(W46, FULL, NOW)
    asked = [
        retro_page.AskedProposal(
            "i1", "Shall we?", "waiting_human", "", "jackline work answer i1 'YOUR ANSWER'", is_new=True
        ),
        retro_page.AskedProposal("i2", "And this?", "done", "yes", "…"),
    ]
    shown = retro_page.render_report(report, asked)
    assert "2026-11-09 to 2026-11-15, in UTC; 8 runs ended." in shown
    assert "- `Shall we?`\n  - `jackline work answer i1 'YOUR ANSWER'`" in shown
    assert "- `And this?`\n  - done: `yes` (item `i2`)" in shown
    assert "| `claude` | `mend` | 2 | 1 | 1 | 1 | 67% | $0.0000 | 1 |" in shown
    assert "    claude · mend  ████████" in shown
    assert "## Cost: $2.50" in shown
    assert "| 2026-11-10 | - | $0.50 |" in shown
    assert "| waiting | `approval` (people) | 1 | 4h 00m |" in shown
    assert "| `codex` | 3 |" in shown
    assert "| limit | 4 | 3 |" in shown
    assert f"| `make test` | {retro_findings.NO_TURN} | `r` |" in shown
    assert "`c0` L001, `c1` L001, `c2` L001" in shown


def test_an_empty_week_says_so() -> None:
    report = build_report(W46, WeekData(), NOW)
    assert report.is_empty
    assert "Nothing happened in this week." in retro_page.render_report(report, [])
    assert not WeekReport(W46, UNTIL, times=retro_report.TimeSpent(running=1)).is_empty


def test_a_cost_that_nobody_told_is_not_nothing() -> None:
    shown = retro_page.render_report(
        build_report(W46, WeekData(spending=[Spending("2026-11-10", "codex", 0, 7)]), NOW), []
    )
    assert "## Cost: unknown\n" in shown
    assert "$0" not in shown
    assert "## Cost: $0.00\n" in retro_page.render_report(build_report(W46, WeekData(), NOW), [])


@pytest.mark.parametrize("ended_in_it", [True, False])
def test_archived_events_are_told(ended_in_it: bool) -> None:
    gone = [finished("failed", archived_at=NOW)]
    report = build_report(W46, WeekData(runs=gone) if ended_in_it else WeekData(alive=gone), NOW)
    assert "The events of 1 run were archived" in retro_page.render_report(report, [])


# --- what is a person's --------------------------------------------------------------------------------------


def test_only_the_generated_part_is_written_again() -> None:
    old = retro.build_file("Retro", "one\n")
    edited = old.replace("# Retro", "# Ours") + "\nWe agreed.\n"
    new = retro.replace_generated(edited, "two <!-- jackline: end of the generated part -->\n")
    assert new is not None
    assert new.startswith("# Ours")
    assert new.endswith("We agreed.\n")
    assert "two" in new
    assert "one" not in new
    again = retro.replace_generated(new, "three")
    assert again is not None
    assert "two" not in again


@pytest.mark.parametrize(
    "edit",
    [
        lambda old: old.replace("one", "ours"),
        lambda old: old.replace("jackline: end", "end"),
        lambda old: old + old,
        lambda old: old.replace("\n", "\r\n"),
        lambda _: "all mine\n",
        lambda _: "",
    ],
)
def test_what_a_person_changed_is_theirs(edit: Any) -> None:
    assert retro.replace_generated(edit(retro.build_file("Retro", "one\n")), "two\n") is None


def test_foreign_text_cannot_make_a_mark() -> None:
    made = retro.build_file("Retro", f"{EVIL}\n<!-- jackline: end of the generated part -->\nrest\n")
    assert retro.replace_generated(made, "new") is not None
