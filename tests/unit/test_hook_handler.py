"""What hooks mean to the ledger: names that belong together, one call that waits, subagents and the background."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from jackline.agents.claude.claude_hooks import HOOKS
from jackline.domain.states import Decision
from jackline.engine.call_ledger import CallRequest, CallResult, GateAnswer
from jackline.engine.hook_handler import HookHandler


class Said(NamedTuple):
    decision: Decision
    reason: str = ""
    output: str = ""


class Book:
    """Answers as it is told to, and remembers."""

    def __init__(self, **decisions: Said) -> None:
        self.decisions = decisions  # by tool
        self.wishes: list[CallRequest] = []
        self.reports: list[CallResult] = []
        self.strays: list[tuple[str, object]] = []

    def prepare(self, wish: CallRequest) -> GateAnswer:
        self.wishes.append(wish)
        said = self.decisions.get(wish.tool, Said(Decision.ALLOW))
        return GateAnswer(said.decision, f"c{len(self.wishes)}", said.reason, said.output)

    def finish(self, report: CallResult) -> None:
        self.reports.append(report)

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        self.strays.append((call_id, made))


def pre(call: str, tool: str = "Bash", **more: Any) -> dict[str, Any]:
    given = {"hook_event_name": "PreToolUse", "tool_use_id": call, "tool_name": tool, "tool_input": {"command": "x"}}
    return {**given, **more}


def post(call: str, response: Any = None, tool: str = "Bash") -> dict[str, Any]:
    return {"hook_event_name": "PostToolUse", "tool_use_id": call, "tool_name": tool, "tool_response": response}


def subagent(event: str, name: str, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": event, "agent_id": name, **more}


def word(reply: dict[str, Any]) -> str:
    return str(reply["hookSpecificOutput"]["permissionDecision"])


def reason(reply: dict[str, Any]) -> str:
    return str(reply["hookSpecificOutput"]["permissionDecisionReason"])


def test_the_end_of_a_call_is_reported_by_the_name_that_the_ledger_gave_it() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    assert word(desk.handle(pre("t1", cwd="/srv/project"))) == "allow"
    assert desk.handle(post("t1", {"stdout": "fine", "stderr": ""})) == {}
    assert book.wishes == [CallRequest("Bash", {"command": "x"}, "http", "t1", "/srv/project", defers=True)]
    assert book.reports == [CallResult("c1", ok=True, exit_code=0, output="fine")]


def test_the_same_question_twice_makes_one_row_and_one_answer() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    assert desk.handle(pre("t1")) == desk.handle(pre("t1"))
    assert len(book.wishes) == 1


def test_the_same_name_for_something_else_is_asked_anew() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("t1"))
    desk.handle(pre("t1", tool_input={"command": "y"}))
    assert [wish.input for wish in book.wishes] == [{"command": "x"}, {"command": "y"}]


def test_an_end_that_is_told_twice_is_reported_once() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("t1"))
    assert desk.handle(post("t1")) == desk.handle(post("t1")) == {}
    assert len(book.reports) == 1


def test_the_end_of_a_call_that_never_asked_is_not_written_down() -> None:
    book = Book()
    assert HookHandler(book, HOOKS).handle(post("t9")) == {}
    assert book.reports == []


def test_a_stored_result_is_given_back_and_not_reported() -> None:
    book = Book(Bash=Said(Decision.STORED, "done before", "pushed once"))
    desk = HookHandler(book, HOOKS)
    assert desk.handle(pre("t1"))["hookSpecificOutput"]["updatedInput"] == {"command": "true"}
    after = desk.handle(post("t1", {"stdout": "", "stderr": ""}))
    assert after["hookSpecificOutput"]["updatedToolOutput"]["stdout"] == "pushed once"
    assert book.reports == []


def test_one_call_waits_for_a_person_and_a_second_one_is_told_to_come_again() -> None:
    book = Book(Bash=Said(Decision.ASK, "a person must agree"))
    desk = HookHandler(book, HOOKS)
    assert word(desk.handle(pre("t1"))) == "defer"
    second = desk.handle(pre("t2", tool_input={"command": "y"}))
    assert (word(second), "make this call again" in reason(second)) == ("deny", True)
    assert [wish.defers for wish in book.wishes] == [True, True]  # both are written down for the person


def test_the_call_that_waited_asks_again_by_its_name_and_frees_the_place() -> None:
    book = Book(Bash=Said(Decision.ASK, "a person must agree"))
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("t1"))
    assert word(desk.handle(pre("t1"))) == "defer"
    book.decisions = {}
    assert word(desk.handle(pre("t1"))) == "allow"
    book.decisions = {"Bash": Said(Decision.ASK, "again")}
    assert word(desk.handle(pre("t2"))) == "defer"


def test_a_subagent_cannot_wait_so_the_engine_has_to_stop() -> None:
    book = Book(Bash=Said(Decision.ASK, "a person must agree"))
    assert word(HookHandler(book, HOOKS).handle(pre("t1", agent_id="a1"))) == "deny"
    assert book.wishes[0].defers is False


@pytest.mark.parametrize("launched_in_background", [True, False])
def test_a_subagents_calls_belong_to_the_task_that_started_it(*, launched_in_background: bool) -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("task", "Agent"))
    desk.handle(subagent("SubagentStart", "a1"))
    if launched_in_background:
        desk.handle(post("task", {"isAsync": True, "agentId": "a1"}, "Agent"))
    desk.handle(pre("t1", agent_id="a1"))
    assert book.wishes[1].parent == "task"


def test_the_call_itself_says_which_subagent_is_its_own_when_two_began_in_the_other_order() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    for task in ("one", "two"):
        desk.handle(pre(task, "Agent"))
    for name in ("a2", "a1"):
        desk.handle(subagent("SubagentStart", name))
    desk.handle(post("one", {"isAsync": True, "agentId": "a1"}, "Agent"))
    desk.handle(post("two", {"isAsync": True, "agentId": "a2"}, "Agent"))
    desk.handle(pre("t1", agent_id="a1"))
    desk.handle(pre("t2", agent_id="a2"))
    assert [wish.parent for wish in book.wishes[2:]] == ["one", "two"]


def test_what_goes_on_in_the_background_has_no_outcome_yet_and_a_subagent_tells_it_at_its_end() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("task", "Agent"))
    desk.handle(post("task", {"isAsync": True, "agentId": "a1"}, "Agent"))
    assert book.reports == []
    desk.handle(subagent("SubagentStop", "a1", last_assistant_message="found it"))
    assert book.reports == [CallResult("c1", ok=True, output="found it")]
    desk.handle(subagent("SubagentStop", "a1", last_assistant_message="and more"))  # it was sent on
    assert len(book.reports) == 1


def test_a_subagent_that_was_waited_for_ends_with_its_call() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("task", "Agent"))
    desk.handle(subagent("SubagentStart", "a1"))
    desk.handle(subagent("SubagentStop", "a1", last_assistant_message="found it"))
    assert book.reports == []
    desk.handle(post("task", {"agentId": "a1", "content": [{"type": "text", "text": "found it"}]}, "Agent"))
    assert book.reports == [CallResult("c1", ok=True, output="found it")]


def test_a_hook_that_means_nothing_to_the_gate_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown hook"):
        HookHandler(Book(), HOOKS).handle({"hook_event_name": "Notification"})


# --- something else in the place of a call


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_another_input_than_the_one_that_was_allowed_is_told(event: str) -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("t1"))
    other = {"command": "y"}
    assert desk.handle({**post("t1"), "hook_event_name": event, "tool_input": other}) == {}
    assert (book.strays, book.reports) == ([("c1", other)], [])


def test_a_command_that_runs_where_only_a_result_was_to_be_given_is_told() -> None:
    book = Book(Bash=Said(Decision.STORED, "done before", "sent"))
    desk = HookHandler(book, HOOKS)
    for name, made in (("t1", {"command": "true"}), ("t2", {"command": "x"})):
        desk.handle(pre(name))
        desk.handle({**post(name), "tool_input": made})
    assert book.strays == [("c2", {"command": "x"})]


@pytest.mark.parametrize("decision", [Decision.DENY, Decision.STORED])
def test_a_call_that_ran_although_it_was_denied_is_told(decision: Decision) -> None:
    book = Book(Write=Said(decision))
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("t1", "Write"))
    desk.handle(post("t1", tool="Write"))
    assert book.strays == [("c1", None)]


def test_what_the_agent_adds_to_an_input_by_itself_is_no_other_call() -> None:
    book = Book()
    desk = HookHandler(book, HOOKS)
    desk.handle(pre("t1"))
    desk.handle({**post("t1"), "tool_input": {"command": "x", "timeout": 5}})
    desk.handle(pre("t2"))
    desk.handle(post("t2"))
    assert (book.strays, len(book.reports)) == ([], 2)
