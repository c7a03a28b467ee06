"""The model that plays the drill for a real CLI: what it asks for before the kill, and what after it."""

from __future__ import annotations

import pytest

from jackline.domain.resume_prompt import RESUME_HEADING
from jackline.fake_model.script import Reply
from jackline.fake_model.tool_resolver import build_answer, resolve_calls
from jackline.fake_model.wire import ModelRequest, OfferedTool
from jackline.fake_model.wires.anthropic_messages import WIRE
from jackline.scenarios.drill_cases import CASES, PROMPT
from jackline.scenarios.model_player import CaseModel

BY_NAME = {case.name: case for case in CASES}
TOOLS = (OfferedTool("Agent"), OfferedTool("Bash"), OfferedTool("Write"))


def asked(text: str = PROMPT, tools: tuple[OfferedTool, ...] = TOOLS, results: int = 0) -> ModelRequest:
    return ModelRequest("anthropic", "m", stream=True, text=text, tools=tools, results=results)


def wants(reply: Reply) -> list[str]:
    """The calls of a reply as short words."""
    calls = resolve_calls(reply, asked())
    return [str(call.input.get("command") or call.input.get("description") or call.tool) for call in calls]


def life(model: CaseModel, text: str, count: int) -> list[list[str]]:
    return [wants(model.next_reply(asked(text))) for _ in range(count)]


def test_after_the_kill_it_goes_on_with_the_step_that_was_cut_off() -> None:
    model = CaseModel(BY_NAME["upload-crash"], "/work")
    assert life(model, PROMPT, 2) == [["upload first"], ["upload report"]]
    assert life(model, RESUME_HEADING, 2) == [["upload report"], ["upload last"]]
    assert model.next_reply(asked(RESUME_HEADING)).say


def test_one_that_forgets_begins_again_from_the_top() -> None:
    model = CaseModel(BY_NAME["task-crash"], "/work")
    assert life(model, PROMPT, 2) == [["Task one"], ["Task two"]]
    assert life(model, RESUME_HEADING, 3) == [["Task one"], ["Task two"], ["upload report"]]


def test_a_cli_that_asks_once_more_before_it_dies_gets_no_answer_and_uses_nothing_up() -> None:
    model = CaseModel(BY_NAME["after-effect-before-ledger"], "/work")
    assert life(model, PROMPT, 2) == [["build main"], ["upload report"]]
    assert [model.next_reply(asked()).hang for _ in range(3)] == ["before"] * 3
    assert life(model, RESUME_HEADING, 2) == [["upload report"], ["upload last"]]


def test_tasks_that_are_to_be_in_flight_at_once_stand_in_one_message() -> None:
    model = CaseModel(BY_NAME["replay-drain"], "/work")
    assert life(model, PROMPT, 1) == [["Task one", "Task two"]]
    assert life(model, RESUME_HEADING, 4) == [
        ["upload early"],
        ["Task one", "Task two"],
        ["upload report"],
        ["upload early"],
    ]


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_subagent_does_its_task_and_says_so(name: str) -> None:
    model = CaseModel(BY_NAME["task-crash"], "/work")
    prompt = f"Run the task named {name}."
    assert wants(model.next_reply(asked(prompt))) == [f"task {name}"]
    assert model.next_reply(asked(prompt, results=1)).say == f"{name} is done"
    assert life(model, PROMPT, 1) == [["Task one"]], "a subagent's requests use up no step"


def test_a_request_without_tools_uses_up_no_step() -> None:
    model = CaseModel(BY_NAME["upload-crash"], "/work")
    assert model.next_reply(asked(tools=())).say == "ok"
    assert life(model, PROMPT, 1) == [["upload first"]]


def test_while_the_message_streams_the_first_call_is_whole_and_the_second_is_not() -> None:
    """Where the server stops in the middle is counted in pieces; the upload must lie wholly before it."""
    reply = CaseModel(BY_NAME["kill-while-streaming"], "/work").next_reply(asked())
    pieces = list(WIRE.stream_response(build_answer(reply, asked())))
    sent = b"".join(pieces[: len(pieces) // 2]).decode()
    assert reply.hang == "middle"
    assert (sent.count("content_block_stop"), sent.count("message_stop")) == (2, 0)  # the event's name and its type
    assert CaseModel(BY_NAME["kill-while-streaming"], "/work").next_reply(asked(RESUME_HEADING)) == Reply(
        shell="upload report"
    )
