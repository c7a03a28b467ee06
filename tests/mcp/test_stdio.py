"""The official client and the real `jackline mcp`: what it offers, what each tool does, and how it fails."""

from __future__ import annotations

import json
import shlex
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import GetPromptResult, ReadResourceResult, TextContent, TextResourceContents

from jackline.features.mcp import relay
from tests.cli.place import SAY, SECONDS, Ended, Place
from tests.mcp.client import ARGUMENTS, call, refusal, talk
from tests.support.helpers import wait_until

TOOLS = {
    "case_start", "case_status", "case_handoff", "case_close", "case_hypothesis_add", "case_hypothesis_resolve",
    "case_evidence_add", "case_command_add", "case_learning_add", "case_learning_review",
    "work_enqueue", "work_next", "work_claim", "work_renew", "work_resolve", "work_release", "work_annotate",
    "work_get", "work_list", "work_wait_human", "events_append", "events_tail", "events_search", "run_status",
    "ask_human", "ask_human_result", "send_to_agent", "receive_messages", "bridge_status",
}  # fmt: skip
LOOKING = {
    "case_status", "case_handoff", "case_learning_review", "work_get", "work_list", "events_tail", "events_search",
    "run_status", "bridge_status",
}  # fmt: skip


# --- what it offers


def test_it_lists_its_tools_with_words_schemas_and_what_they_do(place: Place) -> None:
    async def look(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == TOOLS
        for name, tool in tools.items():
            assert tool.description
            assert tool.output_schema is not None, name
            assert tool.input_schema["additionalProperties"] is False, name
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is (name in LOOKING), name
        assert "RUNS the verification" in str(tools["case_close"].description)

    talk(place, look)


def test_looking_makes_no_home(place: Place) -> None:
    async def look(client: Client) -> None:
        assert (await call(client, "work_list"))["items"] == []
        assert (await call(client, "events_tail"))["events"] == []
        assert (await call(client, "work_next"))["item"] is None
        assert "no case is active" in await refusal(client, "case_status")

    talk(place, look)
    assert not place.home.exists()


def test_it_lists_its_resources_and_prompts(place: Place) -> None:
    async def look(client: Client) -> None:
        resources = await client.list_resources()
        assert [str(one.uri) for one in resources.resources] == ["jackline://dashboard"]
        templates = await client.list_resource_templates()
        assert {one.uri_template for one in templates.resource_templates} == {
            "jackline://runs/{id}/timeline",
            "jackline://cases/{id}/timeline",
            "jackline://items/{id}/timeline",
        }
        prompts = (await client.list_prompts()).prompts
        assert {one.name: [each.name for each in one.arguments or []] for one in prompts} == {
            "start": ["request"],
            "handoff": ["case"],
            "close": ["case"],
        }

    talk(place, look)


# --- a case


def test_a_case_from_its_beginning_to_its_end(any_place: Place) -> None:
    async def investigate(client: Client) -> None:
        started = await call(client, "case_start", request="why is it slow?", intent="find it", verify=["true"])
        case = started["case"]["id"]
        assert started["case"]["expected_verification"] == ["true"]
        assert started["folder"] == str(any_place.repository / ".agents" / "runs" / case)
        assert (await call(client, "case_hypothesis_add", text="the index is missing"))["id"] == "H001"
        evidence = await call(client, "case_evidence_add", text="a scan of 9 s", hypothesis="H001")
        assert (evidence["id"], evidence["entry"]["hypothesis"]) == ("E001", "H001")
        assert (await call(client, "case_command_add", command="explain", status="pass"))["id"] == "C001"
        assert "H001 is open" in await refusal(client, "case_close", summary="it was the index")
        await call(client, "case_hypothesis_resolve", hypothesis="H001", status="accepted", note="seen")
        learned = {"summary": "look at the plan", "kind": "doc-gap", "repo_action": "docs"}
        assert (await call(client, "case_learning_add", **learned, path="lost.md"))["id"] == "L001"
        review = await call(client, "case_learning_review")
        assert (len(review["learnings"]), len(review["unresolved"])) == (1, 1)
        assert "lost.md is not tracked" in await refusal(client, "case_close", summary="done")
        status = await call(client, "case_status")
        assert ([one["status"] for one in status["hypotheses"]], len(status["unmet"])) == (["accepted"], 1)
        assert "the index is missing" in (await call(client, "case_handoff"))["text"]
        told = await call(client, "case_close", summary="done", force="it is only a test", risks=["none"])
        assert told["case"]["status"] == "closed"
        assert told["case"]["closeout"]["verification"][0]["status"] == "pass"
        assert "closed" in await refusal(client, "case_hypothesis_add", text="late", case=case)

    talk(any_place, investigate)
    assert list((any_place.repository / ".agents" / "runs").glob("*/problem.json"))


def test_closing_runs_the_verification_and_records_it(place: Place) -> None:
    async def investigate(client: Client) -> None:
        await call(client, "case_start", request="is it done?")
        failed = await refusal(client, "case_close", summary="done", verification=["echo out; exit 3"])
        assert "exit 3" in failed
        told = await call(client, "case_close", summary="done", verification=["test -f kept.md", "echo loud"])
        assert [one["exit_code"] for one in told["case"]["closeout"]["verification"]] == [0, 0]

    talk(place, investigate)  # what the commands print stays away from the protocol, or the client would complain


# --- work


def test_an_item_through_the_queue(any_place: Place) -> None:
    async def work(client: Client) -> None:
        first = await call(client, "work_enqueue", kind="review", id="pr-1", payload={"pr": 1}, priority=5)
        assert (first["new"], first["item"]["status"]) == (True, "pending")
        assert (await call(client, "work_enqueue", kind="review", id="pr-1", payload={"pr": 1}))["new"] is False
        assert "pr-1" in await refusal(client, "work_enqueue", kind="review", id="pr-1", payload={"pr": 2})
        taken = (await call(client, "work_next", kinds=["review"], owner="ada"))["item"]
        assert (taken["id"], taken["owner"], taken["payload"]) == ("pr-1", "ada", {"pr": 1})
        assert "ada" in await refusal(client, "work_claim", id="pr-1", owner="bob")
        await call(client, "work_renew", id="pr-1", owner="ada", token=taken["token"], lease_seconds=60)
        assert await refusal(client, "work_resolve", id="pr-1", owner="ada", token=taken["token"] + 1)
        await call(client, "work_annotate", id="pr-1", notes="half way")
        back = await call(client, "work_release", id="pr-1", owner="ada", token=taken["token"])
        assert (back["status"], back["notes"]) == ("pending", "half way")
        again = await call(client, "work_claim", id="pr-1", owner="bob")
        waits = await call(client, "work_wait_human", id="pr-1", question="merge?", owner="bob", token=again["token"])
        assert (waits["status"], waits["question"]) == ("waiting_human", "merge?")
        assert "waits for a person" in await refusal(client, "work_resolve", id="pr-1", status="cancelled")
        listed = await call(client, "work_list", statuses=["waiting_human"])
        assert [one["id"] for one in listed["items"]] == ["pr-1"]
        assert (await call(client, "work_get", id="pr-1"))["attempts"] == 2

    talk(any_place, work)


def test_eight_clients_get_eight_items(place: Place) -> None:
    async def fill(client: Client) -> None:
        for number in range(8):
            await call(client, "work_enqueue", kind="review", id=f"pr-{number}")

    async def take(client: Client) -> list[str]:
        found: list[str] = []

        async def one() -> None:
            found.append((await call(client, "work_next"))["item"]["id"])

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
        return found

    talk(place, fill)
    assert sorted(talk(place, take)) == [f"pr-{number}" for number in range(8)]


def test_the_first_calls_of_all_make_one_home(place: Place) -> None:
    async def begin(client: Client) -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(partial(call, client, "work_enqueue", kind="review", id=f"pr-{number}"))
                group.start_soon(partial(call, client, "work_list"))
        assert len((await call(client, "work_list"))["items"]) == 8

    talk(place, begin)


# --- events, runs, resources, prompts


def test_events_are_appended_read_and_found(any_place: Place) -> None:
    async def journal(client: Client) -> None:
        first = await call(client, "events_append", kind="build.started", payload={"build": 7})
        await call(client, "events_append", kind="build.finished", payload={"ok": True})
        await call(client, "work_enqueue", kind="review", id="pr-1")
        beside = await call(client, "events_append", kind="review.seen", work_item="pr-1")
        assert beside["id"].startswith("work:pr-1#")
        tail = (await call(client, "events_tail", kind="build."))["events"]
        assert [(one["kind"], one["data"]) for one in tail] == [
            ("build.started", {"build": 7}),
            ("build.finished", {"ok": True}),
        ]
        later = (await call(client, "events_tail", stream="journal:", after=first["id"]))["events"]
        assert [one["kind"] for one in later] == ["build.finished"]
        found = (await call(client, "events_search", text="FINISHED"))["events"]
        assert [one["id"] for one in found] == [later[0]["id"]]
        own = (await call(client, "events_tail", stream="work:pr-1"))["events"]
        assert [one["kind"] for one in own][-1] == "review.seen"

    talk(any_place, journal)


def test_a_long_payload_is_cut_in_a_list_and_whole_by_itself(place: Place) -> None:
    async def look(client: Client) -> None:
        payload = {"text": "x" * 10_000}
        await call(client, "work_enqueue", kind="review", id="long", payload=payload)
        (line,) = (await call(client, "work_list"))["items"]
        assert line["payload"]["characters"] > 10_000
        assert (await call(client, "work_get", id="long"))["payload"] == payload

    talk(place, look)


def test_a_run_tells_how_it_stands_and_what_happened(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "the-run")).code == 0

    async def look(client: Client) -> None:
        assert "inside a run" in await refusal(client, "run_status")
        assert (await call(client, "run_status", run="the-r"))["state"] == "succeeded"
        text = await _read(client, "jackline://runs/the-run/timeline")
        assert "turn.launched" in text
        assert "agent.message" in text
        assert "the-run" in await _read(client, "jackline://dashboard")

    async def inside(client: Client) -> None:
        status = await call(client, "run_status")
        assert (status["id"], status["spent"]["iterations"]) == ("the-run", 1)

    talk(place, look)
    talk(place, inside, JACKLINE_RUN="the-run")


def test_timelines_and_prompts_tell_a_case(place: Place) -> None:
    async def look(client: Client) -> None:
        case = (await call(client, "case_start", request="why is it slow?"))["case"]["id"]
        await call(client, "case_hypothesis_add", text="the index is missing")
        assert "case." in await _read(client, f"jackline://cases/{case}/timeline")
        await call(client, "work_enqueue", kind="review", id="pr-1")
        assert "work." in await _read(client, "jackline://items/pr-1/timeline")
        assert "why is it slow?" in await _prompt(client, "start", request="why is it slow?")
        assert "the index is missing" in await _prompt(client, "handoff")
        assert case in await _prompt(client, "close", case=case)

    talk(place, look)


async def _read(client: Client, uri: str) -> str:
    result = await client.read_resource(uri)
    assert isinstance(result, ReadResourceResult)
    (content,) = result.contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def _prompt(client: Client, name: str, **arguments: str) -> str:
    result = await client.get_prompt(name, arguments)
    assert isinstance(result, GetPromptResult)
    (message,) = result.messages
    assert isinstance(message.content, TextContent)
    return message.content.text


# --- how it fails


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("case_start", {}, "request: Field required"),
    ("case_start", {"request": "  "}, "the request is empty"),
    ("case_start", {"request": "x", "targts": ["y"]}, "has no argument 'targts'"),
    ("case_command_add", {"command": "x", "status": "maybe"}, "status: Input should be"),
    ("case_evidence_add", {"text": "seen"}, "no case is active"),
    ("work_get", {"id": "nobody"}, "no work item has the id 'nobody'"),
    ("work_next", {"lease_seconds": 0}, "lease_seconds: Input should be greater"),
    ("work_enqueue", {"kind": "", "id": "x"}, "kind"),
    ("work_enqueue", {"kind": "review", "payload": [1]}, "payload: Input should be a valid dictionary"),
    ("events_append", {"kind": "run.finished"}, "only jackline writes events of type 'run.…'"),
    ("events_tail", {"after": "nonsense"}, "nonsense"),
    ("events_tail", {"stream": "moon:1"}, "unknown stream 'moon:1'"),
    ("events_search", {"text": ""}, "the text to search for is empty"),
    ("run_status", {"run": "nobody"}, "no run matches 'nobody'"),
    ("ask_human", {"question": " "}, "the question is empty"),
    ("no_such_tool", {}, "unknown tool 'no_such_tool'"),
]


def test_a_mistake_is_told_in_one_line(place: Place) -> None:
    async def err(client: Client) -> None:
        for tool, arguments, words in BAD:
            assert words in await refusal(client, tool, **arguments), tool

    talk(place, err)


def test_what_is_not_there_cannot_be_read(place: Place) -> None:
    async def err(client: Client) -> None:
        for uri, words in (
            ("jackline://runs/nobody/timeline", "no run matches 'nobody'"),
            ("jackline://items/nobody/timeline", "no work item has the id 'nobody'"),
            ("jackline://cases/nobody/timeline", "no case matches 'nobody'"),
            ("jackline://nothing", "nothing"),
        ):
            with pytest.raises(MCPError, match=words):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="no case is active"):
            await client.get_prompt("handoff", {})

    talk(place, err)


def test_a_run_that_the_home_does_not_know_is_refused(place: Place) -> None:
    async def err(client: Client) -> None:
        assert "does not know" in await refusal(client, "case_start", request="x")

    talk(place, err, JACKLINE_RUN="stray")


def test_a_damaged_database_is_one_line_and_the_server_lives_on(place: Place) -> None:
    place.home.mkdir()
    (place.home / "state.sqlite").write_bytes(b"no database at all" * 100)

    async def err(client: Client) -> None:
        assert "damaged" in await refusal(client, "work_list")
        assert "damaged" in await refusal(client, "work_enqueue", kind="review")

    talk(place, err)


def test_a_slow_tool_does_not_hold_up_the_others(place: Place) -> None:
    """The verification of one call ends only when another call has been answered."""

    async def both(client: Client) -> None:
        await call(client, "case_start", request="x")
        wait = f"for n in $(seq 300); do test -e {place.path('go')} && exit 0; sleep 0.1; done; exit 1"
        async with anyio.create_task_group() as group:

            async def close() -> None:
                await call(client, "case_close", summary="done", verification=[wait])

            group.start_soon(close)
            await call(client, "work_enqueue", kind="review")
            place.let_go("go")

    talk(place, both)


# --- the process


def _start(place: Place) -> subprocess.Popen[str]:
    return place.start("mcp", stdin=subprocess.PIPE)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def test_only_the_protocol_is_written_to_stdout_and_it_ends_with_stdin(place: Place) -> None:
    process = _start(place)
    ended = place.end_of(process, json.dumps(INITIALIZE) + "\nno json at all\n")
    assert (ended.code, ended.err) == (0, "")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert lines[0]["result"]["serverInfo"]["name"] == "jackline"
    assert all(line["jsonrpc"] == "2.0" for line in lines)


def _answers(place: Place, *asked: str) -> tuple[dict[int, Any], Ended]:
    """What it says to some requests, which are numbered from 2, and how it ends after that."""
    process = _start(place)
    assert process.stdin is not None
    assert process.stdout is not None
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    process.stdin.write("".join(f"{line}\n" for line in (json.dumps(INITIALIZE), json.dumps(begun), *asked)))
    process.stdin.flush()
    found: dict[int, Any] = {}
    while len(found) <= len(asked):
        line = json.loads(process.stdout.readline())
        found[line["id"]] = line
    return found, place.end_of(process)


def test_half_a_character_is_no_reason_not_to_answer(place: Place) -> None:
    """The SDK drops what it cannot read, and whoever asked would wait for ever."""
    shown = {"\\ud83d": "\ufffd", "\\uDE00": "\ufffd", "\\ud83d\\ude00": "\U0001f600"}
    asks = {"name": "work_enqueue", "arguments": {"kind": "review", "notes": "a HERE \\ud83d b"}}
    asked = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asks}).replace("HERE", written)
        for number, written in enumerate(shown, 2)
    ]
    found, ended = _answers(place, *asked)
    notes = [found[number]["result"]["structuredContent"]["item"]["notes"] for number in (2, 3, 4)]
    assert notes == [f"a {one} \\ud83d b" for one in shown.values()]
    assert (ended.code, ended.err) == (0, "")


def test_wrong_arguments_of_a_prompt_are_one_line_to_the_client_and_none_to_stderr(place: Place) -> None:
    asked = [("nope", {}), ("start", {}), ("start", {"request": "x", "more": "y"}), ("handoff", {"case": "nobody"})]
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": "prompts/get", "params": {"name": name, "arguments": given}}
        for number, (name, given) in enumerate(asked, 2)
    ]
    found, ended = _answers(place, *map(json.dumps, lines))
    errors = [found[number]["error"] for number in range(2, 6)]
    assert (ended.code, ended.err) == (0, "")
    assert {error["code"] for error in errors} == {-32602}, errors
    assert errors[2]["message"] == "more: Unexpected keyword argument"
    assert not any("\n" in error["message"] for error in errors)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_at_once_although_stdin_is_open(place: Place, number: signal.Signals) -> None:
    process = _start(place)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE) + "\n")
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(number)
    assert process.wait(SECONDS) == -number


def test_what_was_answered_is_kept_when_the_server_is_killed(place: Place) -> None:
    process = _start(place)
    assert process.stdin is not None
    assert process.stdout is not None
    asks = {"name": "work_enqueue", "arguments": {"kind": "review", "id": "pr-1"}}
    lines = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asks},
    ]
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
    process.stdin.flush()
    while json.loads(process.stdout.readline()).get("id") != 2:
        pass
    process.kill()
    process.wait()
    with sqlite3.connect(place.home / "state.sqlite") as database:
        assert database.execute("SELECT id, status FROM work_items").fetchall() == [("pr-1", "pending")]
    database.close()


# --- what shows it


def test_every_change_is_on_the_dashboard(place: Place) -> None:
    """At once if the last one is a while ago, and in any case when it ends."""
    path = place.home / "dashboard.md"

    async def change(client: Client) -> None:
        await call(client, "work_enqueue", id="first", kind="mail")
        await anyio.to_thread.run_sync(wait_until, path.exists)
        assert "work:first" in path.read_text()
        for number in range(5):
            await call(client, "events_append", kind=f"build.number{number}")

    talk(place, change)
    assert all(f"`build.number{number}`" in path.read_text() for number in range(5))


@pytest.mark.parametrize("program", [ARGUMENTS, ["-I", "-S", relay.__file__]])
def test_a_server_whose_stdin_is_closed_ends(place: Place, program: list[str]) -> None:
    words = shlex.join([sys.executable, *program])
    ended = place.end_of(place.execute(["/bin/sh", "-c", f"exec {words} <&-"]))
    assert (ended.code, ended.out, "Traceback" in ended.err) == (0, "", False), ended
