"""The dashboard's text: what it says, what it leaves out, and what cannot get out of its cell."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jackline.features.reports.dashboard_page import (
    KINDS,
    SHOWN,
    CallQuestion,
    Dashboard,
    KindCount,
    WaitingRun,
    render_dashboard,
)
from jackline.features.reports.lines import EventLine, ItemLine, Learning, RunLine, Spending
from jackline.features.reports.unattended_page import (
    LimitLine,
    ScheduleLine,
    ServiceLine,
    StuckNotice,
    TriggerLine,
    UnattendedStatus,
)

AT = 1_794_819_600_000  # 2026-11-16 09:00:00
HOUR = 3_600_000
EVIL = "x | y\n## z <script>alert(1)</script> [l](http://evil.example) ![i](u) `tick` <!-- c -->"


def run(**more: Any) -> RunLine:
    known: dict[str, Any] = {
        "id": "run-1", "number": 7, "path": "/srv", "agent": "claude", "task": "mend", "prompt": "mend it",
        "state": "running", "reason": None, "wake_at": None, "phase": "working", "failure": None, "detail": "",
        "proof": "unverified", "tokens": 0, "usd_micros": 0, "created_at": AT - 2 * HOUR, "started_at": AT - HOUR,
        "finished_at": None, "event_seq": 3, "archived_at": None,
    }  # fmt: skip
    return RunLine(**(known | more))


def item(**more: Any) -> ItemLine:
    known: dict[str, Any] = {
        "id": "i-1", "kind": "mail", "status": "in_flight", "owner": "ada", "priority": 0, "attempts": 2,
        "max_attempts": 5, "question": "", "notes": "", "created_at": AT, "updated_at": AT, "finished_at": None,
    }  # fmt: skip
    return ItemLine(**(known | more))


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {title}.*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def test_an_empty_one_says_so_in_each_part() -> None:
    text = render_dashboard(Dashboard(AT))
    assert "As of 2026-11-16 09:00:00 UTC" in text
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles == [
        "Waiting for you", "Running", "Failed since yesterday", "Queue", "Services", "Schedules",
        "Agents that rest", "Spend", "Work items",
        "Newest events", "Newest learnings",
    ]  # fmt: skip
    assert section(text, "Waiting for you").strip() == "Nothing."
    for title in ("Running", "Failed since yesterday", "Spend", "Work items", "Newest events"):
        assert section(text, title).strip() == "None."


def test_what_waits_for_a_person_has_the_command_to_type() -> None:
    question = CallQuestion("call-9", "send", "mail:ada", "wants your word", ("allow", "deny"))
    waits = WaitingRun(run(state="waiting", reason="approval", detail="ask first"), (question,))
    asks = item(id="a b", status="waiting_human", question="Shall I?")
    text = render_dashboard(Dashboard(AT, ("--home", "/h"), waiting=[waits], items_waiting=[asks]))
    shown = section(text, "Waiting for you")
    assert "`jackline answer run-1 call-9 allow --home /h`\n" in shown
    assert "`jackline answer run-1 call-9 deny --home /h`\n" in shown
    assert "`jackline resume run-1 --home /h`" in shown
    assert "`jackline work answer 'a b' 'YOUR ANSWER' --home /h`" in shown
    assert "`Shall I?`" in shown


def test_a_run_in_doubt_without_a_call_can_be_gone_on_with() -> None:
    text = render_dashboard(Dashboard(AT, waiting=[WaitingRun(run(state="waiting", reason="human"), ())]))
    assert "resume: `jackline resume run-1`" in section(text, "Waiting for you")


def test_a_running_one_has_phase_agent_task_elapsed_and_cost() -> None:
    text = section(render_dashboard(Dashboard(AT, running=[run(usd_micros=250_000)])), "Running")
    assert "| `run-1` | working | `claude` | `mend` | 2026-11-16 08:00:00 | 1h 00m | $0.25 | `mend it` |" in text


def test_a_failed_one_has_its_class_and_the_command() -> None:
    failed = run(state="failed", failure="timeout", detail="too long", finished_at=AT)
    shown = section(render_dashboard(Dashboard(AT, failed=[failed])), "Failed since yesterday")
    assert "| timeout | `too long` | `jackline resume run-1` |" in shown


def test_the_queue_has_runs_those_that_are_parked_and_counts_of_items() -> None:
    board = Dashboard(
        AT,
        queued=[run(state="queued")],
        queued_count=100,
        parked=[run(id="run-2", state="waiting", reason="limit", wake_at=AT + HOUR)],
        kinds=[KindCount("mail", "pending", 3), KindCount("post", "pending", 100)],
    )
    text = render_dashboard(board)
    assert "## Queue (100 or more queued)" in text
    shown = section(text, "Queue")
    assert "| `run-1` | queued |" in shown
    assert "| `run-2` | waiting: limit | `claude` | `mend` | 2026-11-16 07:00:00 | 2026-11-16 10:00:00 |" in shown
    assert "| `mail` | pending | 3 |" in shown
    assert "| `post` | pending | 100 or more |" in shown


def test_spend_is_told_by_agent_for_today_and_seven_days() -> None:
    spending = [
        Spending("2026-11-10", "claude", 1_000_000, 10),
        Spending("2026-11-16", "claude", 500_000, 5),
        Spending("2026-11-16", "codex", 2_000_000, 7),
    ]
    shown = section(render_dashboard(Dashboard(AT, spending=spending, today="2026-11-16")), "Spend")
    assert "| `claude` | $0.50 | $1.50 | 5 | 15 |" in shown
    assert "| `codex` | $2.00 | $2.00 | 7 | 7 |" in shown
    assert "| all | $2.50 | $3.50 | 12 | 22 |" in shown


def test_an_agent_that_tells_no_cost_is_not_said_to_cost_nothing() -> None:
    spending = [Spending("2026-11-16", "codex", 0, 7)]
    shown = section(render_dashboard(Dashboard(AT, spending=spending, today="2026-11-16")), "Spend")
    assert "| `codex` | - | - | 7 | 7 |" in shown


def test_work_in_flight_has_its_owner_and_dead_letters_stand_below() -> None:
    dead = item(id="i-2", status="failed", attempts=5, finished_at=AT)
    shown = section(render_dashboard(Dashboard(AT, in_flight=[item()], dead=[dead])), "Work items")
    assert "| `i-1` | `mail` | in flight, attempt 2 of 5 | `ada` |" in shown
    assert "| `i-2` | `mail` | **dead** after 5 attempts |" in shown


def test_learnings_are_marked_until_they_came_to_something() -> None:
    learnings = [
        Learning("c", 1, AT, "test-gap", "no test", "test", path="tests/x.py"),
        Learning("c", 2, AT, "doc-gap", "no page", "docs"),
        Learning("c", 3, AT, "doc-gap", "no use", "none", reason="not ours"),
    ]
    shown = section(render_dashboard(Dashboard(AT, learnings=learnings)), "Newest learnings")
    assert "L001 | `test-gap` | `no test` | `test` `tests/x.py` |" in shown
    assert "L002 | `doc-gap` | `no page` | **unresolved** |" in shown
    assert "L003 | `doc-gap` | `no use` | `none` `not ours` |" in shown


def test_no_more_is_shown_than_fits_and_it_says_where_the_rest_is() -> None:
    text = render_dashboard(Dashboard(AT, running=[run(id=f"run-{one}") for one in range(SHOWN + 1)]))
    assert f"`run-{SHOWN - 1}`" in text
    assert f"`run-{SHOWN}`" not in text
    assert "More: `jackline list --state running --all-repos`" in text


def test_what_others_wrote_cannot_get_out_of_its_place() -> None:
    evil = run(agent=EVIL, task=EVIL, prompt=EVIL, detail=EVIL, failure="timeout", finished_at=AT)
    question = CallQuestion(EVIL, EVIL, EVIL, "wants your word", ("allow",))
    wrote = item(id=EVIL.replace("\n", " "), kind=EVIL, owner=EVIL, question=EVIL, notes=EVIL)
    board = Dashboard(
        AT,
        waiting=[WaitingRun(evil._replace(state="waiting", reason="approval"), (question,))],
        items_waiting=[wrote],
        running=[evil],
        failed=[evil],
        queued=[evil],
        kinds=[KindCount(EVIL, "pending", 1)],
        spending=[Spending("2026-11-16", EVIL, 1, 1)],
        in_flight=[wrote],
        dead=[wrote],
        events=[EventLine(EVIL, 1, AT, EVIL, EVIL, EVIL)],
        learnings=[Learning(EVIL, 1, AT, EVIL, EVIL, EVIL, EVIL, EVIL)],
    )
    text = render_dashboard(board)
    titles = re.findall(r"^#+ .*$", text, re.MULTILINE)
    assert len(titles) == 12
    bare = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    for sign in ("<", "](", "evil", "script", "!["):
        assert sign not in bare, bare
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


@pytest.mark.parametrize("blanks", [" ", "\n", "\u2003"])
def test_blanks_at_the_beginning_do_not_open_a_span(blanks: str) -> None:
    """An empty span is two marks, which would be the beginning of one that ends where the next one begins."""
    wrote = item(kind=blanks * 900 + "x", question="<b>bold</b> ` y")
    shown = section(render_dashboard(Dashboard(AT, items_waiting=[wrote])), "Waiting for you")
    assert "- item `i-1` (`x`) asks: ``<b>bold</b> ` y``" in shown


def test_a_bar_behind_a_backslash_ends_no_column() -> None:
    shown = section(render_dashboard(Dashboard(AT, running=[run(prompt="a\\|b \\\\|")])), "Running")
    assert "| `a\\ \\|b \\\\ \\|` |" in shown


def test_an_id_that_looks_like_a_flag_does_not_become_one() -> None:
    asks = item(id="--home=/evil", status="waiting_human", question="?")
    shown = section(render_dashboard(Dashboard(AT, items_waiting=[asks])), "Waiting for you")
    assert "`jackline work answer --id=--home=/evil 'YOUR ANSWER'`" in shown


def test_a_word_that_zsh_would_look_up_is_quoted() -> None:
    shown = render_dashboard(Dashboard(AT, items_waiting=[item(id="=ls", question="?")]))
    assert "`jackline work answer '=ls' 'YOUR ANSWER'`" in shown


def test_a_run_that_was_imported_cannot_be_tried_again() -> None:
    failed = [run(state="failed", failure="timeout", finished_at=AT), run(id="run-2", state="failed", finished_at=AT)]
    shown = section(render_dashboard(Dashboard(AT, failed=failed, imported=["run-2"])), "Failed since yesterday")
    assert "jackline resume run-1" in shown
    assert "jackline resume run-2" not in shown
    assert "| imported |" in shown


def test_a_run_that_waits_for_older_calls_says_where_they_are() -> None:
    waits = WaitingRun(run(state="waiting", reason="approval"), (), older=True)
    assert "for older calls: `jackline show run-1`" in render_dashboard(Dashboard(AT, waiting=[waits]))


def test_kinds_that_have_no_room_are_not_passed_over_in_silence() -> None:
    kinds = [KindCount(f"kind-{one:02}", "pending", 1) for one in range(KINDS + 1)]
    shown = section(render_dashboard(Dashboard(AT, kinds=[*kinds, KindCount("last", "in_flight", 1)])), "Queue")
    assert f"`kind-{KINDS - 1}`" in shown
    assert f"`kind-{KINDS}`" not in shown
    assert "| `last` | in_flight | 1 |" in shown
    assert "More kinds: `jackline work list`" in shown


def test_commands_begin_and_end_as_they_must_and_say_what_else_they_need() -> None:
    board = Dashboard(AT, ("--home", "/h"), ("env", "A=b c", "jackline"), "They need more.", failed=[run()])
    text = render_dashboard(board)
    assert "`env 'A=b c' jackline resume run-1 --home /h`" in text
    assert "\n\nThey need more.\n\n" in text


def test_what_works_unattended() -> None:
    shown = UnattendedStatus(
        services=[ServiceLine("s1", EVIL, 77, 2, AT - HOUR), ServiceLine("s2", "host", 78, 2, AT - HOUR, died=True)],
        schedules=[
            ScheduleLine("nightly", "0 3 * * *", "Europe/Berlin", AT + HOUR, AT - HOUR, "ended"),
            ScheduleLine(EVIL, "0 4 * * *", "UTC", AT + HOUR, paused=True),
        ],
        triggers=[TriggerLine("bugs", EVIL, "watching")],
        limits=[LimitLine("claude@work", "limit", AT + HOUR, EVIL)],
        stuck=[StuckNotice("n1", "run.failed", EVIL, "phone", 3, None, EVIL)],
        waits={"run-1": "after run-0"},
        accounts=["claude@work"],
    )
    text = render_dashboard(Dashboard(AT, queued=[run(state="queued")], unattended=shown))
    assert "| `nightly` | `0 3 * * * Europe/Berlin` | 2026-11-16 10:00:00 | 2026-11-16 08:00:00 | ended |" in text
    assert "| 77 | 2 | 2026-11-16 08:00:00 | running |" in section(text, "Services")
    assert "| 78 | 2 | 2026-11-16 08:00:00 | **died** |" in section(text, "Services")
    assert "None runs" not in text
    alone = UnattendedStatus(services=[ServiceLine("s2", "host", 78, 2, AT - HOUR, died=True)])
    assert "None is running: nothing starts queued" in render_dashboard(Dashboard(AT, unattended=alone))
    assert "| paused |" in section(text, "Schedules")
    assert "| `claude@work` | limit | 2026-11-16 10:00:00 |" in text
    assert "| 3 attempts | gave up |" in section(text, "Notices that were not delivered")
    assert "after run-0" in section(text, "Queue")
    assert len(re.findall("^#", text, re.MULTILINE)) == 13
