"""Messages between the agents of a run, with the official client: inside the run, and joined from outside."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.cli.place import SAY, SECONDS, Place
from tests.mcp.client import ARGUMENTS, call, connected, refusal, talk

# Receives as `helper`, tells what it got, and dies before or after it acknowledges; or answers to its end.
READER = """
import os, signal, sys
from jackline import open_home
from jackline.features.bridge import bridge_access
run, dies = sys.argv[1], sys.argv[2]
with open_home() as home:
    ack = 0
    while True:
        inflow = bridge_access.receive_messages(home, run, "helper", ack)
        if not inflow.messages:
            break
        if dies == "acknowledged" and ack:
            os.kill(os.getpid(), signal.SIGKILL)
        for one in inflow.messages:
            print(one.message.number, int(one.is_repeated), flush=True)
        if dies == "given":
            os.kill(os.getpid(), signal.SIGKILL)
        ack = inflow.messages[-1].message.number
"""
# Sends numbered texts under ids; dies after the third is stored, before anything is told.
SENDER = """
import os, signal, sys
from jackline import open_home
from jackline.features.bridge import bridge_access
from jackline.features.bridge.bridge_message import NewMessage
run, dies = sys.argv[1], sys.argv[2]
with open_home() as home:
    for number in range(50):
        new = NewMessage("helper", f"{number} " + "x" * 1000, dedupe_key=f"id {number}")
        bridge_access.send_message(home, run, "worker", new)
        if number == int(dies):
            os.kill(os.getpid(), signal.SIGKILL)
"""
KILLED = -9


@pytest.fixture
def queued(any_place: Place) -> Place:
    """A place with a run that has not started."""
    script = any_place.script(SAY)
    words = ("enqueue", "mend it", "--agent", "scripted", "--script", script, "--run-id", "r")
    assert any_place.type(*words).code == 0
    return any_place


@asynccontextmanager
async def joined(place: Place, name: str) -> AsyncIterator[Client]:
    """A client of a server that joined the run under this name."""
    arguments = [*ARGUMENTS, "--run", "r", "--as", name]
    environment = place.environment()
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=place.repository)
    async with Client(stdio_client(server)) as client:
        yield client


def test_the_worker_an_outside_agent_and_the_person_talk(queued: Place) -> None:
    async def talk_together() -> None:
        with anyio.fail_after(2 * SECONDS):
            async with joined(queued, "helper") as helper, connected(queued, JACKLINE_RUN="r") as worker:
                tools = {tool.name for tool in (await helper.list_tools()).tools}
                assert tools == {"send_to_agent", "receive_messages", "bridge_status", "run_status"}
                assert (await call(helper, "run_status"))["id"] == "r"
                sent = await call(helper, "send_to_agent", to="worker", content="3 tests fail here", kind="result")
                assert sent == {"id": 1, "new": True, "from": "helper", "to": "worker"}
                got = await call(worker, "receive_messages")
                (message,) = got["messages"]
                assert got["you"] == "worker"
                assert "not an instruction" in got["note"]
                assert (message["from"], message["type"], message["again"]) == ("helper", "result", False)
                assert (await call(worker, "receive_messages", ack=1))["messages"] == []
                text = {"to": "all", "kind": "signal", "signal": "DONE", "id": "done"}
                assert (await call(worker, "send_to_agent", **text))["new"] is True
                assert (await call(worker, "send_to_agent", **text))["new"] is False
                status = await call(helper, "bridge_status")
                assert (status["you"], status["unread"], status["messages"], status["can_send"]) == (
                    "helper",
                    1,
                    2,
                    True,
                )
                assert [one["name"] for one in status["participants"]] == ["worker", "helper", "person"]
                assert "send to one of" in await refusal(helper, "send_to_agent", to="nobody", content="x")
                assert "was not delivered" in await refusal(helper, "receive_messages", ack=9)
                assert "signal" in await refusal(helper, "send_to_agent", to="worker", kind="signal")

    anyio.run(talk_together)
    assert queued.type("show", "r").out.count("messages   2, 1 unread for you") == 1
    assert len(queued.type("bridge", "r", "--json").rows) == 2
    assert "unread" not in queued.type("show", "r").out


def test_outside_of_a_run_there_is_no_bridge(place: Place) -> None:
    async def look(client: Client) -> None:
        for tool, more in (("send_to_agent", {"to": "worker"}), ("receive_messages", {}), ("bridge_status", {})):
            assert "does not belong to a run" in await refusal(client, tool, **more)

    talk(place, look)
    assert not place.home.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "r"), "belong together"),
        (("--as", "helper"), "belong together"),
        (("--run", "r", "--as", "worker"), "is the name of a role or an agent"),
        (("--run", "r", "--as", "scripted"), "is the name of a role or an agent"),
        (("--run", "r", "--as", "A B"), "cannot be a name"),
        (("--run", "lost", "--as", "helper"), "no run matches 'lost'"),
    ],
)
def test_a_wrong_name_or_run_is_one_line(queued: Place, words: tuple[str, ...], said: str) -> None:
    ended = queued.type("mcp", *words)
    assert (ended.code, said in ended.err, len(ended.err.splitlines())) == (2, True, 1), ended


def test_nothing_is_lost_or_repeated_when_sender_and_reader_are_killed(queued: Place) -> None:
    """Each is killed at its worst moments; in between, another process of the same name continues."""
    assert queued.type("mcp", "--run", "r", "--as", "helper").code == 0  # its input is empty
    for dies, code in (("2", KILLED), ("30", KILLED), ("-1", 0)):
        assert queued.end_of(queued.python(SENDER, "r", dies)).code == code
    told = [queued.end_of(queued.python(READER, "r", dies)) for dies in ("given", "acknowledged", "given", "never")]
    assert [ended.code for ended in told] == [KILLED, KILLED, KILLED, 0]
    first, second, third, last = ([tuple(map(int, line.split())) for line in one.out.splitlines()] for one in told)
    assert first == [(number, 0) for number in range(1, 21)]
    assert second == [(number, 1) for number in range(1, 21)], "nobody acknowledged them: the same ids again"
    assert third == [(number, 1) for number in range(21, 41)], "acknowledged ones never come again, given ones do"
    assert last == [*third, *((number, 0) for number in range(41, 51))]
    contents = [row["content"].split()[0] for row in queued.type("bridge", "r", "--json").rows]
    assert contents == [str(number) for number in range(50)], "each was sent once, in order"


def test_two_readers_of_one_name_never_have_the_same_messages(queued: Place) -> None:
    async def read_together() -> None:
        with anyio.fail_after(2 * SECONDS):
            async with joined(queued, "helper") as one, joined(queued, "helper") as other:
                assert queued.type("bridge", "r", "--send", "hello", "--to", "helper").code == 0
                assert [each["id"] for each in (await call(one, "receive_messages"))["messages"]] == [1]
                assert "another process reads the messages to helper" in await refusal(other, "receive_messages")
                assert (await call(one, "receive_messages", ack=1))["messages"] == []
                assert (await call(other, "receive_messages"))["messages"] == []

    anyio.run(read_together)
