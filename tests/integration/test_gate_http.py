"""The HTTP gate, spoken to by raw bytes: the right token, everything that is wrong, many at once, and the end."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

from jackline.agents.claude.claude_hooks import HOOKS
from jackline.domain.states import Decision
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult, GateAnswer
from jackline.engine.gate_http import HttpGate
from jackline.engine.gate_socket import GateServers
from jackline.engine.settings import new_id
from jackline.errors import Fenced, NotFound, StoreUnavailable
from jackline.store.store import Store
from tests.support.stores import begun

TOKEN = "0123456789abcdef"
LIMIT_S = 20


class FakeLedger:
    """Allows everything, unless it is told to raise."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.requests: list[CallRequest] = []
        self.reports: list[CallResult] = []

    def prepare(self, request: CallRequest) -> GateAnswer:
        if self.error is not None:
            raise self.error
        self.requests.append(request)
        return GateAnswer(Decision.ALLOW, f"c-{request.agent_call}")

    def finish(self, report: CallResult) -> None:
        self.reports.append(report)

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        raise AssertionError((call_id, made))


class Client:
    """One connection, and what comes back on it."""

    def __init__(self, gate: HttpGate) -> None:
        self.port = int(gate.address.rpartition(":")[2].partition("/")[0])
        self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)
        self._file = self._socket.makefile("rb")

    def send(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def post(self, body: bytes, token: str = TOKEN, path: str = "/hook") -> tuple[int, dict[str, Any]]:
        self.send(post(body, token, path))
        return self.answer()

    def answer(self) -> tuple[int, dict[str, Any]]:
        status, body = self.raw()
        return status, json.loads(body)

    def raw(self) -> tuple[int, bytes]:
        status = int(self._file.readline().split()[1])
        length = 0
        while (line := self._file.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return status, self._file.read(length)

    def is_over(self) -> bool:
        try:
            return self._file.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self._socket.close()
        self._file.close()


def post(body: bytes, token: str = TOKEN, path: str = "/hook") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def pre(call: str = "t1", **more: Any) -> bytes:
    fields = {"hook_event_name": "PreToolUse", "tool_use_id": call, "tool_name": "Bash", "tool_input": {"command": "x"}}
    return json.dumps({**fields, **more}).encode()


def is_allowed(answer: tuple[int, dict[str, Any]]) -> bool:
    status, fields = answer
    return status == 200 and fields["hookSpecificOutput"]["permissionDecision"] == "allow"


@contextmanager
def opened(ledger: FakeLedger, errors: list[BaseException]) -> Iterator[HttpGate]:
    gate = HttpGate(ledger, TOKEN, HOOKS, errors.append)
    gate.open()
    try:
        yield gate
    finally:
        gate.close()


@contextmanager
def connected(gate: HttpGate) -> Iterator[Client]:
    client = Client(gate)
    try:
        yield client
    finally:
        client.close()


def test_one_connection_carries_many_questions() -> None:
    ledger, errors = FakeLedger(), list[BaseException]()
    with opened(ledger, errors) as gate, connected(gate) as client:
        for number in range(20):
            assert is_allowed(client.post(pre(f"t{number}")))
    assert [request.agent_call for request in ledger.requests] == [f"t{number}" for number in range(20)]
    assert errors == []


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "ünknown"])
def test_nothing_is_written_down_without_the_token(token: str) -> None:
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as client:
        client.send(post(pre(), token))
        assert client.answer()[0] == 401
    assert ledger.requests == []


@pytest.mark.parametrize("header", [b"", b"Authorization: Basic abc\r\n", b"Authorization: Bearer\r\n"])
def test_another_way_to_show_who_one_is_is_none(header: bytes) -> None:
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as client:
        client.send(b"POST /hook HTTP/1.1\r\n%sContent-Length: 2\r\n\r\n{}" % header)
        assert client.answer()[0] == 401


@pytest.mark.parametrize(
    "body",
    [
        b"", b"garbage", b"[]", b"null", b'{"hook_event_name":"PreToolUse"}', b'{"hook_event_name":7}', b"\xff\xfe",
        b"[" * 100_000, b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":["t"]}',
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused_and_the_connection_goes_on(body: bytes) -> None:
    ledger, errors = FakeLedger(), list[BaseException]()
    with opened(ledger, errors) as gate, connected(gate) as client:
        assert client.post(body)[0] == 400
        assert is_allowed(client.post(pre()))
    assert (len(ledger.requests), errors) == (1, [])


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /hook HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"nonsense\r\n\r\n", b"POST /hook HTTP/1.1\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST /hook HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST /hook HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_and_the_connection_ends(raw: bytes) -> None:
    ledger, errors = FakeLedger(), list[BaseException]()
    with opened(ledger, errors) as gate, connected(gate) as client:
        client.send(raw)
        assert client.answer()[0] == 400
        assert client.is_over()
    assert (ledger.requests, errors) == ([], [])


@pytest.mark.parametrize("length", ["67108865", "9" * 5000])
def test_a_body_beyond_the_limit_is_not_even_read(length: str) -> None:
    with opened(FakeLedger(), []) as gate, connected(gate) as client:
        client.send(f"POST /hook HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())
        assert client.answer()[0] == 413
        assert client.is_over()


def test_a_length_with_thousands_of_digits_is_no_way_to_end_the_run() -> None:
    ledger, errors = FakeLedger(), list[BaseException]()
    with opened(ledger, errors) as gate, connected(gate) as client:
        client.send(b"POST /hook HTTP/1.1\r\nContent-Length: %s2\r\n\r\n{}" % (b"0" * 5_000))
        assert client.answer()[0] == 401
        assert client.is_over()
    assert (ledger.requests, errors) == ([], [])


def test_the_body_of_a_stranger_is_not_kept_in_memory() -> None:
    with opened(FakeLedger(), []) as gate, connected(gate) as client:
        client.send(b"POST /hook HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n" + b"x" * 65_536)
        assert client.answer()[0] == 401


def test_a_stranger_who_says_nothing_more_is_sent_away_and_one_who_knows_the_token_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jackline.engine.gate_http._STRANGER_S", 1)
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as known, connected(gate) as stranger:
        assert is_allowed(known.post(pre("t1")))
        stranger.send(b"POST /hook HT")
        assert stranger.is_over()  # waits until it is: longer than the other one has been silent by then
        assert is_allowed(known.post(pre("t2")))


@pytest.mark.parametrize("part", [b"x", b"X-More: yes\r\n"], ids=["in a line", "between headers"])
def test_a_stranger_who_sends_its_request_in_drops_is_sent_away(monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    monkeypatch.setattr("jackline.engine.gate_http._STRANGER_S", 1)
    with opened(FakeLedger(), []) as gate, connected(gate) as stranger:
        stranger.send(b"POST /hook HTTP/1.1\r\n")
        over = threading.Event()

        def watch() -> None:
            if stranger.is_over():
                over.set()

        thread = threading.Thread(target=watch)
        thread.start()
        for _ in range(90):  # fewer than the headers of one request may be, and 18 seconds: the deadline comes first
            if over.wait(0.2):
                break
            with contextlib.suppress(ConnectionError):
                stranger.send(part)
        thread.join()
        assert over.is_set()


def test_the_oldest_stranger_makes_room_and_the_agent_finds_the_gate_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackline.engine.gate_http._MOST_STRANGERS", 3)
    with opened(FakeLedger(), []) as gate, contextlib.ExitStack() as kept:
        known = kept.enter_context(connected(gate))
        assert is_allowed(known.post(pre("t1")))
        first, *others = [kept.enter_context(connected(gate)) for _ in range(4)]
        assert first.is_over()
        assert is_allowed(kept.enter_context(connected(gate)).post(pre("t2")))
        assert others[0].is_over()
        assert is_allowed(known.post(pre("t3")))
        assert others[2].post(pre("t4"), token="wrong")[0] == 401


def test_who_only_tells_gets_an_answer_without_words() -> None:
    """An object, even an empty one, would become an entry in the session of the agent, for every call."""
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as client:
        assert is_allowed(client.post(pre("t1")))
        client.send(post(json.dumps({"hook_event_name": "PostToolUse", "tool_use_id": "t1"}).encode()))
        assert client.raw() == (200, b"")
        assert is_allowed(client.post(pre("t2")))
    assert [report.call_id for report in ledger.reports] == ["c-t1"]


def test_a_large_call_is_taken_whole() -> None:
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as client:
        assert is_allowed(client.post(pre(tool_input={"command": "x" * 8_000_000})))
    asked = ledger.requests[0].input
    assert isinstance(asked, dict)
    assert len(asked["command"]) == 8_000_000


def test_another_path_is_not_the_gate() -> None:
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as client:
        assert client.post(pre(), path="/other")[0] == 404
    assert ledger.requests == []


def test_a_request_that_is_cut_off_is_none() -> None:
    ledger, errors = FakeLedger(), list[BaseException]()
    with opened(ledger, errors) as gate:
        with connected(gate) as client:
            client.send(post(pre())[:-5])
        with connected(gate) as other:
            assert is_allowed(other.post(pre("t2")))
    assert ([request.agent_call for request in ledger.requests], errors) == (["t2"], [])


def test_many_ask_at_once_and_each_gets_its_own_answer() -> None:
    ledger, answers = FakeLedger(), list[tuple[int, dict[str, Any]]]()

    def ask(gate: HttpGate, name: str) -> None:
        with connected(gate) as client:
            answers.extend(client.post(pre(f"{name}-{number}")) for number in range(10))

    with opened(ledger, []) as gate:
        threads = [threading.Thread(target=ask, args=(gate, f"t{number}")) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
    assert len(answers) == len(ledger.requests) == 160
    assert all(map(is_allowed, answers))
    assert len({request.agent_call for request in ledger.requests}) == 160


@pytest.mark.parametrize(
    ("error", "surfaces"),
    [(Fenced("run-1"), True), (StoreUnavailable("gone"), True), (NotFound("c1", what="call", hint="look"), False)],
)
def test_what_the_store_refuses_is_no_permission(error: Exception, *, surfaces: bool) -> None:
    errors: list[BaseException] = []
    with opened(FakeLedger(error), errors) as gate, connected(gate) as client:
        assert client.post(pre())[0] == 500
    assert errors == ([error] if surfaces else [])


def test_an_error_that_nobody_expected_surfaces_and_is_no_permission() -> None:
    errors: list[BaseException] = []
    with opened(FakeLedger(ZeroDivisionError("a fault of ours")), errors) as gate, connected(gate) as client:
        client.send(post(pre()))
        assert client.is_over()
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_closed_gate_answers_nobody_who_is_connected_and_takes_nobody_in() -> None:
    ledger = FakeLedger()
    with opened(ledger, []) as gate, connected(gate) as client:
        assert is_allowed(client.post(pre("t1")))
        gate.close()
        assert client.is_over()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", client.port), timeout=LIMIT_S)
    assert [request.agent_call for request in ledger.requests] == ["t1"]


def test_a_gate_that_never_opened_can_be_closed() -> None:
    HttpGate(FakeLedger(), TOKEN, HOOKS, lambda _error: None).close()


def test_a_request_of_the_agent_to_the_gate_itself_asks(store: Store) -> None:
    """The port is only known when the gate listens; a request to another port on loopback is local."""
    lease = begun(store)
    run = store.runs.get(lease.run_id)
    assert run is not None
    run = run._replace(spec=run.spec._replace(policy_version=2))
    ledger = CallLedger(store, lease, run, ANY, now=lambda: 1, new_id=new_id, stop=lambda _why, _detail: None)
    gates = GateServers("", ledger, TOKEN, lambda _error: None)
    adapter: Any = SimpleNamespace(declaration=SimpleNamespace(door="http"), hooks=HOOKS)
    try:
        address = gates.get_address(adapter)
        asked = [{"command": f"curl -d x {url}"} for url in (address, "http://127.0.0.1:8000/hook")]
        answers = [ledger.prepare(CallRequest(tool="Bash", input=one, door="http")).decision for one in asked]
    finally:
        gates.close()
    assert answers == [Decision.ASK, Decision.ALLOW]
