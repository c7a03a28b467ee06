"""What a run shows while it works: the order of words and calls, each result in a line, and the live line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from jackline.cli.live_view import HOLD_MS, LiveView, Note, ViewItem, Words, render_item
from jackline.domain.events import Fact, place
from jackline.domain.limits import Spent
from jackline.domain.records import Call, RunStatus
from jackline.domain.states import CallClass
from jackline.formatting import measure_width
from tests.support import view_records

Happening = tuple[str, Mapping[str, Any]]


def plain(text: str, _style: str | None) -> str:
    return text


def shell(call_id: str, command: str, **more: Any) -> Call:
    given = {"tool": "Bash", "input": json.dumps({"command": command}), "call_class": CallClass.LOCAL, **more}
    return view_records.call(call_id, agent_call=f"agents-{call_id}", **given)


class Watcher:
    """Feeds a view with events, as the thread does, and keeps what it shows."""

    def __init__(self, *calls: Call, spent: Spent | None = None) -> None:
        run = view_records.run(RunStatus(spent=spent or Spent()))
        self.view = LiveView(run, lambda text: text.replace("hunter2", "[redacted]"))
        self.ledger = {call.id: call for call in calls}
        self.items: list[ViewItem] = []
        self.now = 0
        self.seq = 0
        self.asked: list[str] = []

    def take(self, *happenings: Happening, actor: str = "agent") -> None:
        for kind, data in happenings:
            self.seq += 1
            event = place(Fact(kind, data), "run-1", self.seq, self.seq * 1000, actor, "")
            needed = self.view.needs_call(event)
            self.asked += [needed] if needed else []
            self.items += self.view.take_event(event, self.now, self.ledger.get(needed))

    def lines(self, columns: int | None = None) -> list[str]:
        return [line for item in self.items for line in render_item(item, columns, plain)]


def prepared(call: Call) -> Happening:
    return "call.prepared", {"call": call.id, "class": str(call.call_class), "tool": call.tool}


def done(call: Call, **more: Any) -> Happening:
    return "call.done", {"call": call.id, "origin": "agent", "exit_code": 0, "duration_ms": 2100, **more}


def says(text: str, **more: Any) -> Happening:
    return "agent.message", {"text": text, **more}


def starts(call: Call) -> Happening:
    return "agent.call.started", {"call": call.agent_call, "tool": call.tool}


def ends(call: Call) -> Happening:
    return "agent.call.finished", {"call": call.agent_call, "ok": True}


def test_words_and_calls_in_the_order_in_which_they_happened() -> None:
    first, second = shell("c1", "pytest -q"), shell("c2", "git diff")
    watcher = Watcher(first, second)
    # The ledger is written at once, the agent's output a moment later.
    watcher.take(prepared(first), done(first), prepared(second), done(second, duration_ms=7))
    assert watcher.lines() == []
    watcher.take(says("I run the tests."), starts(first), ends(first), says("Now the diff."), starts(second))
    assert watcher.lines() == [
        "  I run the tests.",
        "$ pytest -q   local ✓ 2.1s",
        "  Now the diff.",
        "$ git diff   local ✓ 7ms",
    ]
    assert watcher.asked == ["c1", "c2"]  # each call is read once


def test_a_call_that_the_output_mentioned_before_the_ledger_is_shown_at_its_end() -> None:
    call = shell("c1", "make")
    watcher = Watcher(call)
    watcher.take(says("Building."), starts(call), prepared(call))
    assert watcher.lines() == ["  Building."]
    watcher.take(done(call))
    assert watcher.lines()[-1] == "$ make   local ✓ 2.1s"


def test_a_call_that_the_output_never_mentions_is_shown_after_a_while() -> None:
    call = shell("c1", "make")
    watcher = Watcher(call)
    watcher.take(prepared(call), done(call))
    assert watcher.view.release(HOLD_MS - 1) == []
    assert len(watcher.view.release(HOLD_MS)) == 1
    assert watcher.view.release(HOLD_MS) == []


@pytest.mark.parametrize("kind", ["agent.end", "run.succeeded", "turn.started"])
def test_nothing_is_held_beyond_the_end_of_a_turn(kind: str) -> None:
    call = shell("c1", "make")
    watcher = Watcher(call)
    watcher.take(prepared(call), done(call), (kind, {"turn": 2}))
    assert watcher.lines()[0] == "$ make   local ✓ 2.1s"


def test_the_end_shows_the_rest() -> None:
    held, open_call = shell("c1", "make"), shell("c2", "sleep 9")
    watcher = Watcher(held, open_call)
    watcher.take(prepared(held), done(held), prepared(open_call), says("unfinis", delta=True))
    watcher.items += watcher.view.finish()
    assert watcher.lines() == ["$ make   local ✓ 2.1s", "  unfinis", "$ sleep 9   local no outcome"]
    assert watcher.view.finish() == []


OUTCOMES = [
    ("call.done", {"origin": "agent", "exit_code": 0, "duration_ms": 61_000}, "✓ 1m 01s"),
    ("call.done", {"origin": "agent", "exit_code": 1, "duration_ms": 100}, "✓ exit 1 0.1s"),
    ("call.failed", {"origin": "agent", "exit_code": 1, "duration_ms": 2100}, "✗ exit 1 2.1s"),
    ("call.failed", {"origin": "agent"}, "✗ failed"),
    ("call.denied", {"class": "effect", "reason": "rule 'x' denies it"}, "✗ denied: rule 'x' denies it"),
    ("call.denied", {"origin": "agent", "reason": "the agent did not run it"}, "✗ not run: the agent did not run it"),
    ("call.asked", {"class": "effect", "reason": "rule 'x' asks"}, "needs approval: rule 'x' asks"),
    ("call.stored", {"class": "effect", "reason": "it was made before"}, "✓ stored result"),
    ("call.in_doubt", {"origin": "agent", "exit_code": 7, "duration_ms": 100}, "in doubt, exit 7 0.1s"),
    ("call.done", {"origin": "probe"}, "✓ confirmed by a probe"),
    ("call.void", {"origin": "person", "reason": "a person says so"}, "did not happen: a person says so"),
    ("call.abandoned", {"origin": "recovery"}, "interrupted"),
    ("call.answered", {"answer": "allow", "by": "person"}, "answered: allow"),
    ("call.rescheduled", {}, "rescheduled"),
]


@pytest.mark.parametrize(("kind", "data", "shown"), OUTCOMES)
def test_every_outcome_of_a_call(kind: str, data: Mapping[str, Any], shown: str) -> None:
    call = shell("c1", "git push")
    watcher = Watcher(call)
    watcher.take((kind, {"call": "c1", **data}), ends(call))
    assert watcher.lines() == [f"$ git push   local {shown}"]


def test_an_observed_call_does_not_repeat_how_it_became_known() -> None:
    call = shell("c1", "make", door="stream", reason="seen in the agent's output")
    watcher = Watcher(call)
    watcher.take(prepared(call), ("call.failed", {"call": "c1", "exit_code": 2, "reason": call.reason}), ends(call))
    assert watcher.lines() == ["$ make   local ✗ exit 2"]


def test_the_calls_of_a_subagent_are_marked_below_its_task() -> None:
    task = view_records.call("t", tool="Task", input='{"description":"explore"}', agent_call="T")
    inner = shell("c1", "ls", parent_id="t")
    deeper = shell("c2", "pwd", parent_id="c1")
    watcher = Watcher(task, inner, deeper)
    watcher.take(starts(task), prepared(task), starts(inner), prepared(inner), starts(deeper), prepared(deeper))
    watcher.take(done(deeper), done(inner), done(task))
    assert watcher.lines() == [
        "task: explore   effect",
        "↳ $ ls   local",
        "↳ ↳ $ pwd   local ✓ 2.1s",
        "↳ $ ls   local ✓ 2.1s",
        "task: explore   effect ✓ 2.1s",
    ]


def test_words_in_pieces_are_joined_and_redacted() -> None:
    call = shell("c1", "ls")
    watcher = Watcher(call)
    watcher.take(
        says("the password is hunt", delta=True), ("agent.usage", {}), prepared(call), says("er2\n", delta=True)
    )
    assert watcher.lines() == []
    watcher.take(starts(call))
    assert watcher.lines() == ["  the password is [redacted]"]
    assert watcher.view.last == Words("the password is [redacted]\n")


def test_the_last_thing_shown() -> None:
    watcher = Watcher()
    watcher.take(says("done"), ("agent.usage", {}), ("agent.end", {}), ("run.succeeded", {}))
    assert watcher.view.last == Words("done")
    watcher.take(("agent.error", {"text": "oops"}))
    assert watcher.lines()[-1] == "error: oops"
    assert isinstance(watcher.view.last, Note)


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (("run.succeeded", {"proof": "proved"}), "proof: make test   ✓ 2.0s"),
        (("turn.started", {"turn": 2}), "proof: make test   ✗ 2.0s"),
        (("run.failed", {"proof": "refuted"}), "proof: make test   ✗ 2.0s"),
        (("run.waiting", {"reason": "paused"}), "proof: make test   interrupted 2.0s"),
        (("run.failed", {"failure": "proof", "proof": "unverified"}), "proof: make test   ✗ 2.0s"),
    ],
)
def test_the_result_of_the_proof(after: Happening, shown: str) -> None:
    watcher = Watcher()
    watcher.take(("check.started", {"command": "make test"}), ("check.launched", {}), after, actor="engine")
    assert watcher.lines()[0] == shown


def test_a_check_that_is_no_proof_has_its_name() -> None:
    watcher = Watcher()
    watcher.take(("check.started", {"command": "git commit", "check": "commit"}), ("run.succeeded", {}), actor="engine")
    assert watcher.lines()[0].startswith("commit: git commit   ✓")


def test_why_a_call_waits_is_not_said_twice() -> None:
    watcher = Watcher()
    watcher.take(("stop.wanted", {"why": "approval", "detail": "call c1"}), actor="engine")
    watcher.take(("stop.wanted", {"why": "cancel", "detail": "by ada"}), actor="engine")
    assert watcher.lines() == ["stopping: by ada"]


HOSTILE = "a\x1b[2J\u202eb\x9bc\u2066d\u200be\rf\u2028g\udcff"
FORBIDDEN = set("\x1b\u202e\x9b\u2066\u200b\r\u2028\udcff")


@pytest.mark.parametrize("columns", [None, 40, 100])
def test_nothing_that_an_agent_writes_steers_the_terminal_or_imitates_a_line(columns: int | None) -> None:
    call = shell("c1", f"echo {HOSTILE}\n$ rm -rf /   local ✓ 1s")
    watcher = Watcher(call)
    watcher.take(
        says(f"ok {HOSTILE}\n$ rm -rf /   local ✓ 1s\rrun r (#1) succeeded, proved"),
        ("call.denied", {"call": "c1", "class": "local", "reason": f"no {HOSTILE}\nproof: x   ✓"}),
        starts(call),
        ("agent.error", {"text": f"{HOSTILE}\nrun r"}),
        ("check.started", {"command": f"x {HOSTILE}"}),
        ("run.failed", {}),
    )
    lines = watcher.lines(columns)
    assert not FORBIDDEN & set("".join(lines))
    assert not any(one.startswith(("$ rm", "run r", "proof: x ✓")) for one in lines)
    status = watcher.view.format_status(0, 0, None, 60)
    assert status.isprintable()


@pytest.mark.parametrize("columns", [40, 60, 119])
def test_every_line_fits(columns: int) -> None:
    call = shell("c1", "pytest -q " + "漢字 very long arguments " * 20)
    watcher = Watcher(call)
    watcher.take(
        says("long words " * 50 + "漢字" * 100 + "\n    indented " + "more " * 40),
        starts(call),
        ("call.denied", {"call": "c1", "class": "local", "reason": "because " * 40}),
        ("agent.error", {"text": "error " * 100}),
    )
    lines = watcher.lines(columns)
    assert max(map(measure_width, lines)) <= columns
    assert any(line.endswith("   local ✗ denied") for line in lines)


def test_the_layout_of_words_is_kept() -> None:
    watcher = Watcher()
    watcher.take(says("\n| a | b  |\n\n\tcode  x\r\n- item that is long enough to wrap here\n"))
    assert watcher.lines(30) == ["  | a | b  |", "", "      code  x", "  - item that is long enough", "  to wrap here"]


def status(watcher: Watcher, columns: int = 100, limit: int | None = 20_000_000) -> str:
    return watcher.view.format_status(watcher.now, 65_000, limit, columns)


def test_the_live_line() -> None:
    first, second = shell("c1", "pytest -q"), shell("c2", "make")
    watcher = Watcher(first, second, spent=Spent(tokens_input=12_000, usd_micros=1_000_000))
    assert status(watcher) == "1m 05s · $1.00 · $19.00 left · 12.0k tokens · starting"
    watcher.take(("turn.started", {"turn": 1}), ("agent.usage", {"tokens_output": 500, "usd_micros": 500_000}))
    assert status(watcher) == "1m 05s · $1.50 · $18.50 left · 12.5k tokens · working"
    watcher.take(prepared(first))
    watcher.now = 2_000
    assert status(watcher).endswith(" · 2.0s $ pytest -q")
    watcher.take(prepared(second))
    assert status(watcher).endswith(" · 0.0s +1 $ make")
    watcher.take(done(first), done(second), says("wri", delta=True))
    assert status(watcher, limit=None) == "1m 05s · $1.50 · 12.5k tokens · writing"
    watcher.take(("check.started", {"command": "make test"}))
    assert status(watcher).endswith(" · 0.0s proof: make test")
    assert status(watcher, limit=1).startswith("1m 05s · $1.50 · $0.00 left")
    watcher.take(("agent.usage", {"usd_micros": 250_000, "usd_estimated": 250_000}))
    assert status(watcher).startswith("1m 05s · ≈$1.75 · $18.25 left")


def test_a_narrow_live_line_keeps_what_matters_most() -> None:
    call = shell("c1", "pytest -q tests/unit/test_with_a_long_name.py")
    watcher = Watcher(call, spent=Spent(tokens_input=12_000, usd_micros=1_000_000))
    watcher.take(prepared(call))
    shown = {columns: status(watcher, columns) for columns in (80, 50, 40, 20)}
    assert shown[80].startswith("1m 05s · $1.00 · $19.00 left · 12.0k tokens · 0.0s $ pytest -q")
    assert shown[50] == "1m 05s · $1.00 · $19.00 left · 0.0s $ pytest -q t…"
    assert shown[40] == "1m 05s · $1.00 · 0.0s $ pytest -q tests…"
    assert shown[20] == "1m 05s · 0.0s $ pyt…"
    assert all(measure_width(text) <= columns for columns, text in shown.items())


def test_events_of_a_later_version_are_ignored() -> None:
    watcher = Watcher()
    watcher.take(
        ("brand.new", {}), ("agent.new", {"call": 3}), ("call.new", {}), ("agent.usage", {"tokens_input": "x"})
    )
    assert watcher.items == []


def test_a_long_note_is_wrapped_and_only_its_first_line_is_at_the_margin() -> None:
    note = Note("codex runs without its sandbox and its questions before a call")
    assert render_item(note, 40, plain) == ["codex runs without its sandbox and", "    its questions before a call"]
