"""The ollama adapter, and the parts of its helper that need no server."""

from __future__ import annotations

import os.path
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import cli_args, ollama
from jackline.agents.helpers import model_tools, workspace_io
from jackline.agents.helpers.ollama_loop import ChatHistory
from jackline.agents.helpers.ollama_server import OllamaServer
from jackline.agents.helpers.workspace_io import HEAD_BYTES, TAIL_BYTES, OutputBuffer
from jackline.agents.scripted.playback.agent_io import Stop
from jackline.domain.adapter import TurnRequest
from jackline.errors import UsageError
from jackline.fake_model.pointing import point
from jackline.fake_model.wire import FakeAnswer, ToolCall
from jackline.fake_model.wires.ollama_api import WIRE


def test_launch() -> None:
    request = TurnRequest(
        "r1", 2, 3, "work", "do it", "/w", "/f", "/g", "t0", session="s1", resume=True, model="m", effort="high",
        arguments=("num_ctx=8192",),
    )  # fmt: skip
    launch = ollama.ADAPTER.launch(request)
    assert launch.argv == (sys.executable, "-IS", cli_args.HELPER, "ollama", "num_ctx=8192")
    assert os.path.isfile(cli_args.HELPER)
    assert launch.stdin == b"do it"
    assert launch.env == {
        "JACKLINE_GATE": "/g",
        "JACKLINE_GATE_TOKEN": "t0",
        "JACKLINE_RUN_ID": "r1",
        "JACKLINE_ATTEMPT": "2",
        "JACKLINE_TURN": "3",
        "JACKLINE_SESSION": "s1",
        "JACKLINE_RESUME": "1",
        "JACKLINE_AGENT_FOLDER": "/f",
        "JACKLINE_WORKSPACE": "/w",
        "JACKLINE_MODEL": "m",
        "JACKLINE_EFFORT": "high",
    }


def test_declaration() -> None:
    facts = ollama.ADAPTER.declaration
    assert (facts.gate, facts.chooses_session, facts.resumes, facts.forks) == ("enforced", True, True, False)
    assert (facts.binary, facts.version_arguments) == (sys.executable, ())
    assert facts.model_variables == ("OLLAMA_MODEL",)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("  ", "http://127.0.0.1:11434"),
        ("example.org", "http://example.org:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - what a server is told to listen at
        (":9000", "http://127.0.0.1:9000"),
        ("[::1]:9000", "http://[::1]:9000"),
        ("http://example.org", "http://example.org:80"),
        ("https://example.org/ollama", "https://example.org:443/ollama"),
        ('"127.0.0.1:1"', "http://127.0.0.1:1"),
    ],
)
def test_what_ollama_host_means(host: str, address: str) -> None:
    assert OllamaServer({"OLLAMA_HOST": host}).address == address


@pytest.mark.parametrize(
    ("host", "place"),
    [("", ("127.0.0.1", 11434)), ("[::1]:9000", ("::1", 9000)), ("https://example.org/x", ("example.org", 443))],
)
def test_where_its_server_is_looked_for(host: str, place: tuple[str, int]) -> None:
    assert ollama.OllamaAdapter().address({"OLLAMA_HOST": host}) == place


@pytest.mark.parametrize("host", ["127.0.0.1:port", "http://[::1", "127.0.0.1:99999"])
def test_where_no_server_can_be_is_said(host: str) -> None:
    with pytest.raises(UsageError, match="which is not an address"):
        ollama.OllamaAdapter().address({"OLLAMA_HOST": host})


def test_an_address_that_is_none() -> None:
    with pytest.raises(Stop) as caught:
        OllamaServer({"OLLAMA_HOST": "127.0.0.1:port"})
    assert caught.value.fields["class"] == "connectivity"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ({"name": "shell", "arguments": {}}, "needs 'command'"),
        ({"name": "shell", "arguments": {"command": 3}}, "must be a string"),
        ({"name": "shell", "arguments": {"command": "x", "timeout": "soon"}}, "must be a number"),
        ({"name": "shell", "arguments": {"command": "x", "timeout": True}}, "must be a number"),
        ({"name": "read_file", "arguments": {"path": "x", "first": 1.5}}, "must be a integer"),
        ({"name": "shell", "arguments": "{"}, "not JSON"),
        ({"name": "shell", "arguments": "[]"}, "not an object"),
        ({"name": "list_files", "arguments": []}, "not an object"),
        ({"name": "rm"}, "there is no tool 'rm'"),
        (None, "there is no tool"),
    ],
)
def test_calls_that_do_not_fit(function: Any, words: str) -> None:
    with pytest.raises(model_tools.InvalidCall, match=words):
        model_tools.parse_call({"function": function})


def test_a_call_is_made_to_fit() -> None:
    call = {"function": {"name": "shell", "arguments": '{"command": "ls", "timeout": "5", "why": "curious"}'}}
    tool, found = model_tools.parse_call(call)
    assert (tool.word, found) == ("shell", {"command": "ls", "timeout": 5.0})
    assert model_tools.parse_call({"function": {"name": "list_files"}})[1] == {}
    assert (
        model_tools.parse_call({"function": {"name": "read_file", "arguments": {"path": "x", "first": "2"}}})[1][
            "first"
        ]
        == 2
    )


@given(st.lists(st.binary(max_size=20_000), max_size=12))
def test_kept_output_is_bounded_and_says_what_is_missing(chunks: list[bytes]) -> None:
    kept = OutputBuffer()
    for chunk in chunks:
        kept.add(chunk)
    whole = b"".join(chunks).decode("utf-8", "replace")
    text = kept.text()
    missing = len(b"".join(chunks)) - HEAD_BYTES - TAIL_BYTES
    assert text == whole if missing <= 0 else f"[… {missing} bytes left out …]" in text


@pytest.mark.parametrize("path", ["..", "../workspace2/x", "/etc/passwd", "link/x", "", "a\0b"])
def test_paths_that_lead_outside(tmp_path: Path, path: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "workspace2").mkdir()
    (workspace / "link").symlink_to(tmp_path / "workspace2")
    with pytest.raises(workspace_io.OutsideWorkspace):
        workspace_io.resolve_path(str(workspace), path)


def test_paths_inside(tmp_path: Path) -> None:
    assert workspace_io.resolve_path(str(tmp_path), "a/../b") == str(tmp_path / "b")
    assert workspace_io.resolve_path(str(tmp_path), str(tmp_path)) == str(tmp_path)
    assert workspace_io.resolve_path("/", "etc") == "/etc"


def test_open_calls_are_those_without_result(tmp_path: Path) -> None:
    history = ChatHistory(str(tmp_path), "s")
    assert history.list_open_calls() == []
    history.append({"role": "user"}, {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]})
    assert history.list_open_calls() == [("m1.0", {"id": "a"}), ("m1.1", {"id": "b"})]
    history.append({"role": "tool"})
    assert history.list_open_calls() == [("m1.1", {"id": "b"})]
    history.append({"role": "tool"}, {"role": "user"})
    assert history.list_open_calls() == []


# --- the fake's side ---------------------------------------------------------------------------------------


def test_the_wire_reads_and_writes() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}, {"role": "tool", "content": "out"}, {"role": "assistant"}],
        "tools": [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}],
    }
    asked = WIRE.parse_request("/api/chat", body)
    assert (asked.model, asked.stream, asked.text, asked.results) == ("m", True, "hi\nout", 1)
    assert [(tool.name, tool.schema) for tool in asked.tools] == [("shell", {"type": "object"})]
    assert not WIRE.parse_request("/api/chat", {"stream": False}).stream
    whole = WIRE.build_response(FakeAnswer("i", "m", "said", "thought", (ToolCall("c", "shell", {"command": "ls"}),)))
    assert whole["message"]["tool_calls"][0]["function"]["arguments"] == {"command": "ls"}
    assert (whole["done"], whole["prompt_eval_count"], whole["eval_count"]) == (True, 11, 7)
    assert WIRE.build_error(404, "gone", "") == {"error": "gone"}
    assert WIRE.build_page("GET", "/api/version") is not None
    assert WIRE.build_page("POST", "/api/show") is not None
    assert WIRE.build_page("GET", "/api/chat") is None


def test_pointing() -> None:
    pointed = point("ollama", "http://127.0.0.1:1", "/h")
    assert pointed.env == {"HOME": "/h", "OLLAMA_HOST": "http://127.0.0.1:1", "OLLAMA_MODEL": "fake-model"}
