"""Inputs of well-known tools: what fits passes, what does not is told in one sentence that says what is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.schemas import find_input_mistake

GOOD: list[tuple[str, object]] = [
    ("Bash", {"command": "ls", "timeout": 1000, "description": "look", "run_in_background": True}),
    ("Bash", {"command": "ls", "timeout": "1000"}),
    ("Bash", {"command": "ls", "timeout": None}),
    ("Bash", {"command": "ls", "a_field_of_tomorrow": [1]}),
    ("Read", {"file_path": "a", "offset": 1, "limit": 2}),
    ("Write", {"file_path": "a", "content": ""}),
    ("Edit", {"file_path": "a", "old_string": "", "new_string": "x"}),
    ("Task", {"prompt": "look", "subagent_type": "explore", "description": "x"}),
    ("Agent", {"prompt": "look", "description": "x"}),
    ("WebFetch", {"url": "https://example.org", "prompt": "what"}),
    ("exec_command", {"cmd": "ls"}),
    ("local_shell", {"command": ["bash", "-lc", "ls"]}),
    ("run_shell_command", {"command": "ls"}),
    ("write_file", {"file_path": "a", "content": "x"}),
    ("write_file", {"path": "a", "content": "x"}),
    ("bash", {"command": "ls"}),
    ("edit", {"filePath": "a", "oldString": "x", "newString": "y"}),
    ("edit", {"path": "a", "append": "x"}),
    ("read", {}),
    ("shell", {}),
    ("mcp__anything__at_all", None),
    ("send", "text"),
]
BAD: list[tuple[str, object, str]] = [
    ("Bash", {}, "Bash needs 'command' (text): give the command to run"),
    ("Bash", {"command": None}, "Bash needs 'command'"),
    ("Bash", {"command": " \n"}, "'command' of Bash is empty"),
    ("Bash", {"command": ["ls"]}, "'command' of Bash must be text, not a list"),
    ("Bash", {"command": "a\0b"}, "NUL"),
    ("Bash", {"command": "ls", "timeout": "soon"}, "'timeout' of Bash must be a number, not 'soon'"),
    ("Bash", {"command": "ls", "timeout": True}, "must be a number, not true or false"),
    ("Bash", {"command": "ls", "run_in_background": 1}, "must be true or false, not a number"),
    ("Bash", "ls", "Bash needs an object as its input, with 'command'"),
    ("Bash", None, "Bash needs an object"),
    ("Write", {"file_path": "a"}, "Write needs 'content' (text): give the whole new content of the file"),
    ("Write", {"path": "a", "content": "x"}, "Write needs 'file_path'"),
    ("Write", {"file_path": "", "content": "x"}, "'file_path' of Write is empty"),
    ("Write", {"file_path": "a", "content": {"a": 1}}, "must be text, not an object"),
    ("Edit", {"file_path": "a", "old_string": "x"}, "Edit needs 'new_string'"),
    ("MultiEdit", {"file_path": "a", "edits": "x"}, "'edits' of MultiEdit must be a list"),
    ("Task", {"subagent_type": "x"}, "Task needs 'prompt'"),
    ("local_shell", {"command": ["", " "]}, "is empty"),
    ("local_shell", {"command": [1]}, "a list of texts"),
    ("shell", {"command": ""}, "is empty"),
    ("write", {"content": 3}, "'content' of write must be text, not a number"),
]


@pytest.mark.parametrize(("tool", "input"), GOOD, ids=range(len(GOOD)))
def test_what_fits_is_no_mistake(tool: str, input: object) -> None:
    assert find_input_mistake(tool, input) == ""


@pytest.mark.parametrize(("tool", "input", "said"), BAD, ids=range(len(BAD)))
def test_what_does_not_fit_is_told_with_what_is_wanted(tool: str, input: object, said: str) -> None:
    told = find_input_mistake(tool, input)
    assert said in told
    assert "\n" not in told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["Bash", "Write", "Edit", "MultiEdit", "local_shell", "shell", "exec_command", "TodoWrite"])
FIELDS = st.sampled_from(
    ["command", "cmd", "file_path", "content", "timeout", "edits", "old_string", "run_in_background"]
)


@given(tool=NAMES, input=JSON | st.dictionaries(FIELDS, JSON, max_size=4))
@settings(deadline=None)
def test_whatever_a_model_sends_is_judged_in_one_line(tool: str, input: object) -> None:
    assert "\n" not in find_input_mistake(tool, input)


@given(tool=st.text(), input=JSON)
@settings(deadline=None)
def test_a_tool_that_nobody_knows_gets_no_opinion(tool: str, input: object) -> None:
    assert find_input_mistake(f"mcp__{tool}", input) == ""
