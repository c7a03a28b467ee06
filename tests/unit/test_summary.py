"""The summary and the page that says how to go on."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from jackline.domain.changes import Changes
from jackline.domain.limits import Spent
from jackline.domain.records import Attempt, Call, RunStatus, Turn
from jackline.domain.run_totals import Tally
from jackline.domain.spec import AgentOptions
from jackline.domain.states import CallClass, CallState, Decision, Failure, Proof, RunState, WaitReason
from jackline.exports import resume_page
from jackline.exports.summary import Summary, build_summary, render_summary
from tests.support.view_records import AT, SPEC, call, run, turn

PREDECESSOR = [
    "run_id", "agent", "task", "start_time", "end_time", "elapsed_seconds", "exit_code", "token_count",
    "last_message", "commits", "files_changed", "insertions", "deletions", "requires_commit", "dry_run",
    "classified_error",
]  # fmt: skip
HOME = "/home/me/.local/state/jackline"
WAITING = RunStatus(RunState.WAITING, WaitReason.IN_DOUBT, detail="1 effect in doubt: call-1", attempt=1)


def told(life: RunStatus) -> Summary:
    return build_summary(run(life, started_at=AT))


def page(life: RunStatus, *calls: Call, **more: Any) -> str:
    return resume_page.render_resume_page(told(life), calls, HOME, **more)


def test_metadata_begins_with_every_field_of_the_predecessor() -> None:
    assert list(told(RunStatus()).to_dict())[: len(PREDECESSOR)] == PREDECESSOR


def test_a_run_that_ended_well() -> None:
    spent = Spent(wall_ms=2_000, tokens_input=90, tokens_output=10, usd_micros=1_234_500)
    life = RunStatus(RunState.SUCCEEDED, proof=Proof.PROVED, attempt=2, iteration=1, spent=spent)
    attempt = Attempt("run-1", 1, "o", "h", "b", 1, None, None, AT, None, None)
    found = build_summary(
        run(life, spec=SPEC._replace(requires_commit=True), started_at=AT + 1_000, finished_at=AT + 4_500),
        turns=[turn(1), turn(2), turn(3, last_message="")],
        attempts=[attempt, attempt],
        tally=Tally(calls=3, tools=2, effects=1, replayed=1, receipts=1, steps=4),
        changes=Changes(("abc mended it",), 2, 30, 4),
    ).to_dict()
    assert found.items() >= {
        "start_time": "2023-11-14T22:13:21.000Z",
        "end_time": "2023-11-14T22:13:24.500Z",
        "elapsed_seconds": 3.5,
        "worked_seconds": 2.0,
        "exit_code": 0,
        "token_count": 100,
        "last_message": "said in turn 2",
        "commits": ["abc mended it"],
        "files_changed": 2,
        "insertions": 30,
        "deletions": 4,
        "requires_commit": True,
        "dry_run": False,
        "classified_error": None,
        "state": "succeeded",
        "reason": None,
        "proof": "proved",
        "cost_usd": 1.2345,
        "attempts": 2,
        "turns": 3,
        "calls": 3,
        "effects": 1,
        "receipts": 1,
        "tools": 2,
        "failed": 0,
        "replayed": 1,
        "abandoned": 0,
        "denied": 0,
        "steps": 4,
    }.items()  # fmt: skip


# What a run cost, and which sessions it lost on the way

SILENT = SPEC._replace(agent_options={"claude": AgentOptions(), "codex": AgentOptions(tells_cost=False)})


@pytest.mark.parametrize(
    ("agents", "told", "cost", "words"),
    [
        (["codex"], 0, None, "unknown"),
        (["claude", "codex"], 0, None, "unknown"),
        (["claude", "codex"], 2_000, 0.002, "0.0020 USD"),
        (["claude"], 0, 0.0, "0.0000 USD"),
        ([], 0, 0.0, "0.0000 USD"),
    ],
)
def test_a_cost_that_nobody_tells_is_not_nothing(agents: list[str], told: int, cost: float | None, words: str) -> None:
    life = RunStatus(RunState.FAILED, spent=Spent(usd_micros=told, tokens_input=9))
    turns = [turn(number, agent=agent) for number, agent in enumerate(agents, 1)]
    found = build_summary(run(life, spec=SILENT), turns=turns)
    assert found.to_dict()["cost_usd"] == cost
    assert any(line.split() == ["cost", *words.split()] for line in render_summary(found))
    assert f"cost {words}" in resume_page.render_resume_page(found, [], "/h")


LOST = turn(1, session="old", failure="agent_error")


@pytest.mark.parametrize(
    ("second", "lost"),
    [
        (turn(2, session="new"), True),
        (turn(2, session=None), True),
        (turn(2, session="old"), False),
        (turn(2, session="new", agent="codex"), False),
        (turn(2, session="new", attempt=2), False),
    ],
)
def test_a_session_that_was_lost_has_a_line(second: Turn, lost: bool) -> None:
    found = build_summary(run(), turns=[LOST, second])
    line = "session old was not known to claude; a fresh one was begun"
    assert found.lost_sessions == ((line,) if lost else ())
    assert any(line in one for one in render_summary(found)) is lost


def test_an_agent_that_begins_a_session_each_turn_has_lost_none() -> None:
    assert build_summary(run(), turns=[turn(1, session="one"), turn(2, session="two")]).lost_sessions == ()


@pytest.mark.parametrize(
    ("life", "code", "error"),
    [
        (RunStatus(RunState.QUEUED), None, None),
        (RunStatus(RunState.RUNNING), None, None),
        (RunStatus(RunState.FAILED, failure=Failure.TIMEOUT), 11, "timeout"),
        (RunStatus(RunState.FAILED, failure=Failure.AGENT_ERROR), 1, "agent_error"),
        (RunStatus(RunState.WAITING, WaitReason.LIMIT), 10, "limit"),
        (RunStatus(RunState.WAITING, WaitReason.BUDGET), 15, "budget"),
        (RunStatus(RunState.WAITING, WaitReason.RETRY, failure=Failure.OVERLOADED), 12, "overloaded"),
        (WAITING, 14, None),
        (RunStatus(RunState.CANCELLED), 17, None),
    ],
)
def test_exit_code_and_class_of_error(life: RunStatus, code: int | None, error: str | None) -> None:
    found = told(life)
    assert (found.exit_code, found.classified_error) == (code, error)


def test_a_run_that_never_started_took_no_time() -> None:
    assert build_summary(run()).elapsed_seconds == 0.0


def test_the_lines_tell_every_fact_and_the_command_that_goes_on() -> None:
    life = RunStatus(RunState.FAILED, failure=Failure.PROOF, detail="proof failed\n(exit 1)", proof=Proof.REFUTED)
    text = render_summary(build_summary(run(life, started_at=AT), turns=[turn(last_message="I am\n\ndone")]))
    assert text[0] == "run run-1 (#12) failed (refuted)"
    facts = {line[:15].strip(): line[15:].strip() for line in text[1:] if line.startswith("  ")}
    assert facts["detail"] == "proof failed (exit 1)"
    assert facts["exit code"] == "16"
    assert facts["proof"] == "refuted by: make test"
    assert facts["commits"] == "0 (not required)"
    assert facts["dry run"] == "no"
    assert text[-6:] == ["last message", "  I am", "", "  done", "", "next: jackline resume run-1"]


def test_commits_stand_under_their_number() -> None:
    text = render_summary(build_summary(run(), changes=Changes(("abc one", "def two"))))
    at = next(number for number, line in enumerate(text) if line.startswith("  commits"))
    assert [line.strip() for line in text[at + 1 : at + 3]] == ["abc one", "def two"]


def test_nothing_that_an_agent_wrote_steers_the_terminal() -> None:
    hostile = SPEC._replace(task="\x1b]0;title\x07")
    text = render_summary(build_summary(run(spec=hostile), turns=[turn(last_message="\x1b[2J\x00ok")]))
    assert not any(ord(letter) < 32 for line in text for letter in line)


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.CANCELLED, RunState.RUNNING])
def test_what_cannot_be_resumed_names_no_command(state: RunState) -> None:
    assert told(RunStatus(state)).next_command == ""


def test_the_summary_tells_how_the_calls_came_out() -> None:
    found = build_summary(run(), tally=Tally(calls=9, tools=5, failed=1, replayed=2, denied=3, steps=1))
    words = "5 tool calls, 1 failed, 2 replayed, 3 denied, 1 step"
    assert any(line.split(maxsplit=1) == ["completion", words] for line in render_summary(found))
    assert f"- calls: {words}\n" in resume_page.render_resume_page(found, [], "/h")


# RESUME.md


@pytest.mark.parametrize("reason", WaitReason)
def test_every_wait_has_a_page(reason: WaitReason) -> None:
    text = page(RunStatus(RunState.WAITING, reason, detail="why"))
    assert text.startswith(f"# Run run-1 waiting: {reason}\n\n> why\n")
    assert text.endswith(
        f"## Continue\n\n    cd {told(RunStatus()).workspace} && jackline resume run-1 --home {HOME}\n"
    )


def test_the_commands_hold_in_any_shell() -> None:
    """Of another folder, another JACKLINE_HOME; only the database's address is nothing to write down."""
    life = RunStatus(RunState.WAITING, WaitReason.IN_DOUBT)
    found = told(life)._replace(workspace="/my work/it's")
    text = resume_page.render_resume_page(
        found, [call(state=CallState.IN_DOUBT)], "/my home", database="JACKLINE_DATABASE"
    )
    assert """\n    cd '/my work/it'"'"'s' && jackline resume run-1 --home '/my home'\n""" in text
    assert "\n    jackline answer run-1 call-1 skip     --home '/my home'  # it did not" in text
    assert "- database: the one that `JACKLINE_DATABASE` named; set it before you continue\n" in text
    assert "database" not in page(life)


@pytest.mark.parametrize(
    ("state", "wanted"),
    [(state, state in {RunState.WAITING, RunState.FAILED}) for state in RunState],
)
def test_only_a_run_that_stopped_needs_a_page(state: RunState, wanted: bool) -> None:
    assert resume_page.needs_resume_page(told(RunStatus(state))) is wanted


def test_a_call_in_doubt_comes_with_the_exact_commands() -> None:
    text = page(WAITING, call(state=CallState.IN_DOUBT, reason="cut off"), call("call-2"))
    assert '### mail on mail:bob\n\n> cut off\n\n    mail\n    {\n      "to": "bob"\n    }\n' in text
    commands = [line.split("#")[0].strip() for line in text.splitlines() if line.startswith("    jackline answer")]
    words = ("happened", "did-not", "retry", "skip")
    assert [shlex.split(one) for one in commands] == [
        ["jackline", "answer", "run-1", "call-1", word, "--home", HOME] for word in words
    ]
    assert "call-2" not in text


def test_a_call_that_was_asked_about_comes_with_the_exact_commands_once() -> None:
    asked = call(state=CallState.DENIED, decision=Decision.ASK, key="k")
    again = asked._replace(id="call-2")
    answered = asked._replace(id="call-3", key="other", answer="allow")
    text = page(RunStatus(RunState.WAITING, WaitReason.APPROVAL), asked, again, answered)
    commands = [line.split("#")[0].strip() for line in text.splitlines() if line.startswith("    jackline answer")]
    assert [shlex.split(one)[:5] for one in commands] == [
        ["jackline", "answer", "run-1", "call-2", word] for word in ("allow", "deny")
    ]


def test_an_unknown_call_that_was_cut_off_stops_nobody() -> None:
    assert resume_page.find_doubtful_calls([call(state=CallState.IN_DOUBT, call_class=CallClass.UNKNOWN)]) == []


def test_a_strict_run_asks_about_an_unknown_call_that_was_cut_off() -> None:
    cut_off = call(state=CallState.IN_DOUBT, call_class=CallClass.UNKNOWN)
    assert "## In doubt" not in page(WAITING, cut_off)
    assert "jackline answer run-1 call-1 skip" in page(WAITING, cut_off, strict=True)


def test_the_page_has_the_packet_that_the_agent_will_get() -> None:
    text = page(WAITING, packet="It goes on.\n\n# Already done:\n- mails → mail:bob\x1b[2J")
    told = "## The agent's prompt when it continues\n\n    It goes on.\n\n    # Already done:\n    - mails → mail:bob"
    assert told in text
    assert "\x1b" not in text
    assert "prompt when it continues" not in page(WAITING)


def test_nothing_in_a_page_is_read_as_markdown_or_by_the_terminal() -> None:
    life = WAITING._replace(detail="# not\n## a title\x1b[31m")
    found = build_summary(run(life), turns=[turn(last_message="# neither\n- this")])
    text = resume_page.render_resume_page(found, [], "/h")
    assert "> # not\n> ## a title\ufffd[31m" in text
    assert "    # neither\n    - this" in text


def test_a_thousand_questions_do_not_fill_the_page() -> None:
    text = page(WAITING, *(call(f"call-{n}", state=CallState.IN_DOUBT) for n in range(60)))
    assert text.count("### mail") == 50
    assert f"And 10 more: `jackline show run-1 --home {HOME}` lists them." in text
