"""Neutral wishes become calls of the tools that an agent offers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from jackline.errors import ScriptError
from jackline.fake_model.script import Reply
from jackline.fake_model.tool_resolver import build_answer, resolve_calls
from jackline.fake_model.wire import ModelRequest, OfferedTool

TEXT = {"type": "string"}
BASH = OfferedTool("Bash", {"properties": {"command": TEXT, "timeout": {"type": "number"}}, "required": ["command"]})
READ = OfferedTool("Read", {"properties": {"file_path": TEXT}})


def asked(*tools: OfferedTool) -> ModelRequest:
    return ModelRequest("anthropic", "m", stream=True, text="", tools=tools)


def only_call(reply: Reply, *tools: OfferedTool) -> tuple[str, Any]:
    (call,) = resolve_calls(reply, asked(*tools))
    return call.tool, dict(call.input)


def tool(name: str, required: list[str], **properties: dict[str, Any]) -> OfferedTool:
    return OfferedTool(name, {"type": "object", "properties": properties, "required": required})


# --- a shell ---------------------------------------------------------------------------------------------------


def test_the_shell_is_found_among_other_tools() -> None:
    assert only_call(Reply(shell="ls -l"), READ, BASH) == ("Bash", {"command": "ls -l"})


@pytest.mark.parametrize(
    ("offered", "input"),
    [
        (tool("shell", ["command"], command={"type": "array"}), {"command": ["bash", "-lc", "ls"]}),
        (tool("exec_command", ["cmd"], cmd=TEXT, workdir=TEXT), {"cmd": "ls"}),
        (tool("run_shell_command", ["command"], command={"type": "STRING"}), {"command": "ls"}),
        (tool("shell_command", [], command={"type": ["array", "null"]}), {"command": ["bash", "-lc", "ls"]}),
        (
            tool("bash", [], command={"anyOf": [{"type": "array"}, {"type": "null"}]}),
            {"command": ["bash", "-lc", "ls"]},
        ),
        (OfferedTool("local_shell"), {"command": "ls"}),
        (OfferedTool("execute_command", {"properties": None, "required": None}), {"command": "ls"}),
    ],
    ids=lambda value: value.name if isinstance(value, OfferedTool) else "",
)
def test_the_command_stands_where_the_schema_wants_it(offered: OfferedTool, input: dict[str, Any]) -> None:
    assert only_call(Reply(shell="ls"), offered) == (offered.name, input)


def test_what_else_is_required_is_filled_with_something_valid() -> None:
    required = ["command", "description", "timeout", "count", "background", "paths", "options", "mode", "depth"]
    offered = tool(
        "bash",
        required,
        command=TEXT,
        description=TEXT,
        timeout={"type": "integer"},
        count={"type": "number"},
        background={"type": "BOOLEAN"},
        paths={"type": "array"},
        options={"type": "object"},
        mode={"type": "string", "enum": ["fast", "slow"]},
        depth={"type": "integer", "default": 3},
        optional=TEXT,
    )
    name, input = only_call(Reply(shell="ls"), offered)
    assert name == "bash"
    assert list(input) == required
    assert isinstance(input.pop("description"), str)
    assert input.pop("timeout") > 1000
    assert input == {
        "command": "ls",
        "count": 0,
        "background": False,
        "paths": [],
        "options": {},
        "mode": "fast",
        "depth": 3,
    }


@pytest.mark.parametrize(("tools", "words"), [((READ,), "Read"), ((), "no tools at all")])
def test_without_a_shell_the_error_names_what_there_is(tools: tuple[OfferedTool, ...], words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        resolve_calls(Reply(shell="ls"), asked(*tools))


# --- a file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "input"),
    [
        (tool("Write", [], file_path=TEXT, content=TEXT), {"file_path": "a", "content": "b"}),
        (tool("write", [], filePath=TEXT, content=TEXT), {"filePath": "a", "content": "b"}),
        (tool("write_file", [], absolute_path=TEXT, text=TEXT), {"absolute_path": "a", "text": "b"}),
        (tool("create_file", ["path", "note"], path=TEXT, content=TEXT, note={"enum": ["n"]}),
         {"path": "a", "content": "b", "note": "n"}),
    ],
    ids=lambda value: value.name if isinstance(value, OfferedTool) else "",
)  # fmt: skip
def test_a_file_is_written_by_the_tool_for_it(offered: OfferedTool, input: dict[str, Any]) -> None:
    assert only_call(Reply(write=("a", "b")), BASH, offered) == (offered.name, input)


@pytest.mark.parametrize("content", ["", "plain\n", 'it\'s "quoted" $HOME `id`\n\n%s \\n é', "no end"])
def test_without_one_the_shell_writes_exactly_the_same(content: str, tmp_path: Path) -> None:
    place = tmp_path / "new folder" / "it's.txt"
    name, input = only_call(Reply(write=(str(place), content)), BASH)
    assert name == "Bash"
    subprocess.run(["sh", "-c", input["command"]], check=True, timeout=30)
    assert place.read_bytes() == content.encode()


# --- all of a reply --------------------------------------------------------------------------------------------


def test_an_exact_call_is_not_looked_up() -> None:
    reply = Reply(call={"tool": "Anything", "input": {"x": 1}})
    assert only_call(reply) == ("Anything", {"x": 1})
    assert only_call(Reply(call={"tool": "Anything"})) == ("Anything", {})


def test_exact_calls_stand_in_one_answer_in_their_order() -> None:
    reply = Reply(call={"tool": "Read"}, calls=({"tool": "Task", "input": {"name": "a"}}, {"tool": "Task"}))
    found = resolve_calls(reply, asked())
    assert [(one.tool, dict(one.input)) for one in found] == [("Read", {}), ("Task", {"name": "a"}), ("Task", {})]
    assert len({one.id for one in found}) == 3


def test_several_calls_of_one_reply_have_ids_of_their_own() -> None:
    calls = resolve_calls(Reply(shell="ls", write=("a", "b"), call={"tool": "Read"}), asked(BASH))
    assert [call.tool for call in calls] == ["Bash", "Bash", "Read"]
    assert len({call.id for call in calls}) == 3


def test_words_are_filled_up_to_so_many_bytes() -> None:
    assert len(build_answer(Reply(say="é", pad=10_000_000), asked()).say.encode()) == 10_000_000
    assert build_answer(Reply(say="longer", pad=3), asked()).say == "longer"


def test_an_answer_claims_what_the_reply_says() -> None:
    said = build_answer(Reply(thinking="hm", tokens_input=5, tokens_output=4, tokens_cached=3), asked())
    assert (said.model, said.thinking, said.tokens_input, said.tokens_output, said.tokens_cached) == (
        "m",
        "hm",
        5,
        4,
        3,
    )
    assert said.id != build_answer(Reply(), asked()).id
