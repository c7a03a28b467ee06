"""Answers from a phone over real HTTP: notices with codes and buttons, a listener, and a server that fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.app.own_files import confirm_changes, find_unconfirmed, watch_own_files
from jackline.cli.main import main
from jackline.clock import wall_ms
from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.notices import build_notice
from jackline.domain.records import Lease, RunStatus
from jackline.domain.states import Decision, RunState, WaitReason
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery import deliver_due, plan_deliveries
from jackline.features.replies import channel_setup, reply_listener
from jackline.features.replies.channel_setup import NewChannel, add_channel
from jackline.features.replies.reply_listener import list_service_tasks
from jackline.features.replies.reply_store import CLOSED, ReplyStore
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import NewItem
from jackline.files import append_missing
from jackline.store.models import RunChange, Settlement
from tests.conftest import SLOW_BACKENDS
from tests.support.ntfy_server import Message, NtfyServer
from tests.support.stores import MAIL, begun, by_hand, intent

pytestmark = pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
ASKED = MAIL._replace(decision=Decision.ASK)
NOTICES, ANSWERS = "jl-notices-0123456789abcdef", "jl-answers-0123456789abcdef"
SECONDS = 60.0


@pytest.fixture
def ntfy() -> Iterator[NtfyServer]:
    with NtfyServer() as server:
        yield server


class House:
    """A home with a phone, whose service is a thread of the test."""

    def __init__(self, folder: Path, database: str, ntfy: NtfyServer) -> None:
        self.folder, self.database, self.ntfy = folder, database, ntfy
        self._homes: list[Home] = []
        self._listeners: list[Listener] = []
        self.set_channel()

    @property
    def settings(self) -> Path:
        return self.folder / ".config" / "jackline" / "config.toml"

    def set_channel(self, replies: str = "all", more: str = "") -> None:
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(
            f'[channels.phone]\ntype = "ntfy"\nurl = "{self.ntfy.url}"\ntopic = "{NOTICES}"\n'
            f'replies = "{replies}"\nreply_topic = "{ANSWERS}"\n{more}'
        )

    def open(self) -> Home:
        environ = {"HOME": str(self.folder), "JACKLINE_HOME": str(self.folder / "home")}
        if "://" in self.database:
            environ["JACKLINE_DATABASE"] = self.database
        home = Home(load_config(environ, str(self.folder)))
        self._homes.append(home)
        plan_deliveries(home, load_channels(home.config)[0])  # from now on the channel exists
        return home

    def listen(self) -> Listener:
        listener = Listener(self.open())
        self._listeners.append(listener)
        return listener

    def deliver(self) -> None:
        with self.open() as home:
            deliver_due(home, "test", time.monotonic() + SECONDS, ignores_backoff=True)

    def close(self) -> None:
        for listener in self._listeners:
            listener.stop()
        for home in self._homes:
            home.close()


class Listener:
    """A service with nothing but the task that listens; it is the context that the task gets."""

    service_id = "service-1"

    def __init__(self, home: Home) -> None:
        self.home = home
        self.is_stopping = False
        self.failed: Exception | None = None
        (self._task,) = list_service_tasks(home)
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        self._wake.wait(min(seconds, 0.05))
        return self.is_stopping

    def stop(self) -> None:
        self.is_stopping = True
        self._wake.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        if self.failed is not None:
            raise self.failed

    def _run(self) -> None:
        try:
            while not self.is_stopping:
                self.wait(self._task.run(self))
        except Exception as error:  # noqa: BLE001 - raised again by the test
            self.failed = error


class Once:
    """A service that does only what is due now."""

    service_id, is_stopping = "once", False

    def __init__(self, home: Home) -> None:
        self.home = home

    def wait(self, _: float) -> bool:
        return True


def look_once(home: Home) -> None:
    (task,) = list_service_tasks(home)
    task.run(Once(home))


@pytest.fixture
def house(tmp_path: Path, database: str, ntfy: NtfyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "JACKLINE_HOME", "JACKLINE_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    made = House(tmp_path, database, ntfy)
    yield made
    made.close()


def ask(home: Home, run_id: str = "run-1", *keys: str, detail: str = "") -> None:
    """A run that waits for approval of its calls, with the notice that says so."""
    store = home.store()
    lease = begun(store, run_id)
    for number, key in enumerate(keys or ("key-1",), 1):
        wanted = intent(f"call-{number}", ASKED, key=key, input=f'{{"to":"{key}"}}', target=f"mail:{key}")
        store.ledger.admit(lease, wanted, decide_call, (1, 2), lease.token)
    park(home, lease, WaitReason.APPROVAL, detail)


def park(home: Home, lease: Lease, reason: WaitReason, detail: str = "") -> None:
    """Let the run wait, with the notice that says so."""
    store, run_id, at = home.store(), lease.run_id, int(time.time() * 1000)
    status = RunStatus(state=RunState.WAITING, reason=reason, agent="claude", detail=detail)
    run = store.runs.get(run_id)
    assert run is not None
    notice = build_notice(f"notice-{run_id}", run_id, run.spec, status, at)
    change = RunChange(at, (Fact("run.waiting", {"reason": reason}),), status, notice=notice)
    store.leases.write_change(lease, change)


def find_codes(message: Message) -> list[str]:
    return re.findall(r"reply topic: ([0-9A-Z]{7}) ", message["message"])


def state_of(home: Home, run_id: str = "run-1") -> str:
    run = home.store().runs.get(run_id)
    assert run is not None
    return str(run.status.state)


def count_answers(home: Home) -> int:
    return int(by_hand(home.store(), "SELECT COUNT(*) FROM events WHERE kind = 'call.answered'")[0][0])


def wait_until(is_so: Callable[[], bool], what: str = "") -> None:
    """Wait for rows that another thread writes."""
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until, what
        threading.Event().wait(0.01)


def is_answered(home: Home, run_id: str = "run-1") -> Callable[[], bool]:
    return lambda: state_of(home, run_id) == "queued"


def test_a_button_approves_and_what_became_of_it_is_published(house: House) -> None:
    home = house.open()
    ask(home)
    house.deliver()
    (message,) = house.ntfy.list_messages(NOTICES)
    assert [action["label"] for action in message["actions"]] == ["Allow", "Deny"]
    assert len(find_codes(message)) == 1
    house.listen()
    house.ntfy.press(message, "Allow")
    wait_until(is_answered(home))
    house.deliver()
    outcome = house.ntfy.wait_for_message(NOTICES, "answer accepted")
    assert "'allow' for mail of run run-1" in outcome["message"]
    house.ntfy.press(message, "Deny")
    wait_until(lambda: len(home.store().notices.list_newest()) == 2)
    house.deliver()
    house.ntfy.wait_for_message(NOTICES, "answer came too late")
    assert count_answers(home) == 1


def test_typed_replies_answer_several_calls_and_a_deny_channel_says_no_to_allow(house: House) -> None:
    house.set_channel("deny")
    home = house.open()
    ask(home, "run-1", "ada", "bob")
    house.deliver()
    (message,) = house.ntfy.list_messages(NOTICES)
    first, second = find_codes(message)
    assert "actions" not in message
    house.listen()
    house.ntfy.publish(ANSWERS, f"{first} allow")
    house.ntfy.publish(ANSWERS, f"{first.lower()} no")
    house.ntfy.publish(ANSWERS, f"{second} deny")
    wait_until(is_answered(home))
    house.deliver()
    house.ntfy.wait_for_message(NOTICES, "answer not permitted")
    assert by_hand(home.store(), "SELECT DISTINCT answer FROM calls") == [("deny",)]


def test_a_question_is_answered_with_a_text(house: House) -> None:
    house.set_channel("deny")
    home = house.open()
    item = NewItem(id="q", kind="question", payload="{}", question="merge?")
    WorkQueue(home.store()).enqueue(item, int(time.time() * 1000), "agent")
    from jackline.domain.records import SubjectNotice

    at = int(time.time() * 1000)
    home.store().notices.add(SubjectNotice("n", "work:q", "question", "an agent asks", "merge?", at))
    house.deliver()
    (code,) = find_codes(house.ntfy.list_messages(NOTICES)[0])
    house.listen()
    house.ntfy.publish(ANSWERS, f"{code} yes, merge it")

    def answer() -> str:
        found = WorkItems(home.store()).get("q")
        return found.answer if found else ""

    wait_until(lambda: answer() == "yes, merge it")


def test_a_run_whose_agent_asks_continues_with_the_answer(house: House) -> None:
    house.set_channel("deny")
    home = house.open()
    item = NewItem(id="q", kind="question", payload='{"run":"run-1"}', question="merge?")
    WorkQueue(home.store()).enqueue(item, 1, "agent")
    park(home, begun(home.store()), WaitReason.HUMAN)
    house.deliver()
    message = house.ntfy.wait_for_message(NOTICES, "run-1")
    (code,) = find_codes(message)
    house.listen()
    house.ntfy.publish(ANSWERS, f"{code} yes")
    wait_until(is_answered(home))


def test_replies_before_and_between_connections_are_taken_once(house: House) -> None:
    home = house.open()
    for run_id in ("run-1", "run-2", "run-3", "run-4"):
        ask(home, run_id)
    house.deliver()
    codes = [find_codes(message)[0] for message in house.ntfy.list_messages(NOTICES)]
    house.ntfy.publish(ANSWERS, f"{codes[0]} allow")
    house.ntfy.cut_stream(20)
    house.listen()
    wait_until(is_answered(home, "run-1"))
    house.ntfy.wait_for_streams(ANSWERS, 1)
    house.ntfy.drop_streams()
    house.ntfy.publish(ANSWERS, f"{codes[1]} allow")
    wait_until(is_answered(home, "run-2"))
    house.ntfy.die()
    house.ntfy.publish(ANSWERS, f"{codes[2]} allow")
    house.ntfy.start()
    wait_until(is_answered(home, "run-3"))
    house.ntfy.wait_for_streams(ANSWERS, 1)
    house.ntfy.publish(ANSWERS, f"{codes[3]} allow")
    wait_until(is_answered(home, "run-4"))
    assert count_answers(home) == 4
    kinds = [notice.kind for notice in home.store().notices.list_newest()]
    assert kinds == ["reply.taken"] * 4


def test_two_services_take_each_message_once(house: House) -> None:
    home = house.open()
    ask(home)
    house.deliver()
    (message,) = house.ntfy.list_messages(NOTICES)
    for _ in range(2):
        house.listen()
    house.ntfy.wait_for_streams(ANSWERS, 2)
    house.ntfy.publish(ANSWERS, "2222222 allow")
    house.ntfy.press(message, "Deny")
    house.ntfy.publish(ANSWERS, "3333333 allow")

    def is_read() -> bool:
        state = ReplyStore(home.store()).get_channel("phone")
        return state is not None and len(state.position.seen) == 3

    wait_until(is_read)
    house.close()
    assert count_answers(home) == 1
    state = ReplyStore(house.open().store()).get_channel("phone")
    assert state is not None
    assert state.wrong_codes == 1
    notices = [notice.kind for notice in house.open().store().notices.list_newest()]
    assert sorted(notices) == ["reply.taken", "reply.unknown", "reply.unknown"]


# A service that is killed after it has read a reply and before its transaction is committed.
KILLED = """
import os, signal, sys
from jackline import open_home
from jackline.features.replies.reply_listener import list_service_tasks
from jackline.features.replies.reply_store import ReplyStore

class Context:
    home, service_id, is_stopping = open_home(), "s", False
    def wait(self, seconds): return False

move = ReplyStore._use
def use(self, *args):
    move(self, *args)
    os.kill(os.getpid(), signal.SIGKILL)
ReplyStore._use = use
list_service_tasks(Context.home)[0].run(Context())
"""


def test_a_service_that_is_killed_before_the_commit_has_taken_nothing(house: House) -> None:
    home = house.open()
    ask(home)
    house.deliver()
    house.ntfy.press(house.ntfy.list_messages(NOTICES)[0], "Allow")
    environ = {"HOME": str(house.folder), "JACKLINE_HOME": str(house.folder / "home"), "PATH": "/usr/bin:/bin"}
    if "://" in house.database:
        environ["JACKLINE_DATABASE"] = house.database
    done = subprocess.run([sys.executable, "-c", KILLED], env=environ, timeout=60, cwd=house.folder, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (count_answers(home), state_of(home)) == (0, "waiting")
    house.listen()
    wait_until(is_answered(home))
    assert count_answers(home) == 1


def test_five_wrong_codes_close_the_channel_and_every_channel_learns_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_listener, "_CLOSED_SECONDS", 0.1)
    if "://" in house.database:
        monkeypatch.setenv("JACKLINE_DATABASE", house.database)
    more = f'\n[channels.second]\ntype = "ntfy"\nurl = "{house.ntfy.url}"\ntopic = "jl-second"\n'
    house.set_channel(more=more)
    home = house.open()
    ask(home)
    house.deliver()
    message = house.ntfy.list_messages(NOTICES)[0]
    listener = house.listen()
    for number in range(5):
        house.ntfy.publish(ANSWERS, f"222222{number + 2} allow")
    wait_until(lambda: any(one.kind == CLOSED for one in home.store().notices.list_newest()))
    house.ntfy.wait_for_streams(ANSWERS, 0)
    house.ntfy.press(message, "Allow")
    house.deliver()
    for topic in (NOTICES, "jl-second"):
        house.ntfy.wait_for_message(topic, "replies from 'phone' are switched off")
    listener.stop()
    house.listen()  # after a restart it is still closed
    ask(home, "run-2")
    house.deliver()
    closed = house.ntfy.wait_for_message(NOTICES, "run-2")
    assert ("actions" in closed, "jackline channel reopen phone" in closed["message"]) == (False, True)
    assert state_of(home) == "waiting"
    assert main(["channel", "reopen", "phone", "--home", home.path]) == 0
    house.ntfy.wait_for_streams(ANSWERS, 1)
    code = find_codes(message)[0]
    house.ntfy.publish(ANSWERS, f"{code} deny", time=int(time.time()) + 1)
    wait_until(is_answered(home))


def test_a_token_reads_the_topic_and_another_one_is_in_the_buttons(house: House) -> None:
    for name, token in (("all", "tk_all"), ("read", "tk_read"), ("write", "tk_write")):
        path = house.folder / name
        path.write_text(f"{token}\n")
        path.chmod(0o600)
    keys = {"token": "all", "reply_token": "read", "button_token": "write"}
    house.set_channel(more="".join(f'{key} = {{ file = "{house.folder / name}" }}\n' for key, name in keys.items()))
    house.ntfy.protect("tk_all", NOTICES)
    house.ntfy.protect("tk_write", ANSWERS)
    home = house.open()
    ask(home)
    house.deliver()
    house.listen()
    house.ntfy.wait_for_requests(2)
    wait_until(lambda: any(one.kind == "replies.unreadable" for one in home.store().notices.list_newest()))
    house.ntfy.protect("tk_read", ANSWERS)
    house.ntfy.wait_for_streams(ANSWERS, 1)
    house.ntfy.press(house.ntfy.list_messages(NOTICES)[0], "Deny")
    wait_until(is_answered(home))


def test_a_stream_that_is_held_back_is_polled(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_listener, "_OPEN_SECONDS", 0.1)
    monkeypatch.setattr(reply_listener, "_POLL_SECONDS", 0.1)
    house.ntfy.hold_streams()
    home = house.open()
    ask(home)
    house.deliver()
    house.listen()
    house.ntfy.press(house.ntfy.list_messages(NOTICES)[0], "Allow")
    wait_until(is_answered(home))
    assert any("poll=1" in request.path for request in house.ntfy.requests)


def test_a_service_that_does_only_what_is_due_now_polls_and_ends(house: House) -> None:
    home = house.open()
    ask(home)
    house.deliver()
    house.ntfy.press(house.ntfy.list_messages(NOTICES)[0], "Allow")

    look_once(home)
    assert state_of(home) == "queued"


def test_a_server_that_does_not_answer_delays_no_stop(house: House) -> None:
    let_go = house.ntfy.hang()
    listener = house.listen()
    house.ntfy.wait_for_requests(1)
    listener.stop()
    let_go.set()


def test_hostile_messages_stop_nothing(house: House) -> None:
    home = house.open()
    ask(home)
    house.deliver()
    (code,) = find_codes(house.ntfy.list_messages(NOTICES)[0])
    hostile: list[dict[str, Any]] = [
        {"id": 7}, {"id": ""}, {"id": "x" * 65}, {"time": "soon"}, {"time": -1}, {"time": 10**12}, {"message": None},
        {"event": "keepalive"}, {"event": "poll_request"},
    ]  # fmt: skip
    house.listen()
    house.ntfy.wait_for_streams(ANSWERS, 1)
    for fields in hostile:
        house.ntfy.publish(ANSWERS, f"{code} deny", **fields)
    house.ntfy.publish(ANSWERS, f"{code} allow\u202e\x1b[31m")
    house.ntfy.publish(ANSWERS, f"{code} allow")
    wait_until(is_answered(home))
    assert by_hand(home.store(), "SELECT answer FROM calls") == [("allow",)]


def test_topics_may_be_in_files_and_are_redacted_everywhere(house: House) -> None:
    for name, topic in (("topic", NOTICES), ("reply_topic", ANSWERS)):
        path = house.folder / name
        path.write_text(f"{topic}\n")
        path.chmod(0o600)
    text = house.settings.read_text()
    for name, topic in (("topic", NOTICES), ("reply_topic", ANSWERS)):
        text = text.replace(f'\n{name} = "{topic}"', f'\n{name} = {{ file = "{house.folder / name}" }}')
    assert NOTICES not in text
    house.settings.write_text(text)
    home = house.open()
    ask(home, detail=f"curl https://ntfy.sh/{ANSWERS}")
    assert ANSWERS not in home.store().records.list_notices("run-1")[0].body
    house.deliver()
    house.listen()
    house.ntfy.press(house.ntfy.list_messages(NOTICES)[0], "Deny")
    wait_until(is_answered(home))


def test_a_long_notice_keeps_its_code_and_its_buttons(house: House) -> None:
    home = house.open()
    ask(home, detail='"' * 6000)
    house.deliver()
    (message,) = house.ntfy.list_messages(NOTICES)
    assert (len(find_codes(message)), len(message["actions"]), "attachment" in message) == (1, 2, False)


def test_a_call_that_is_not_shown_whole_cannot_be_allowed_from_the_phone(house: House) -> None:
    home = house.open()
    ask(home, "run-1", f"{'harmless words ' * 60}; and the end")
    house.deliver()
    (message,) = house.ntfy.list_messages(NOTICES)
    assert [action["label"] for action in message["actions"]] == ["Deny"]
    (code,) = find_codes(message)
    assert f"{code} deny\nThe call is too long for this message" in message["message"]
    assert "characters left out" in message["message"]
    assert "; and the end" in message["message"]
    house.listen()
    house.ntfy.publish(ANSWERS, f"{code} allow")
    wait_until(lambda: len(home.store().notices.list_newest()) == 1)
    house.deliver()
    refused = house.ntfy.wait_for_message(NOTICES, "answer not permitted")
    assert "showed only a part of the call, so 'allow' was not offered" in refused["message"]
    assert by_hand(home.store(), "SELECT answer FROM calls") == [("",)]
    house.ntfy.publish(ANSWERS, f"{code} deny")
    wait_until(is_answered(home))


def test_a_call_in_doubt_that_is_not_shown_whole_has_no_code(house: House) -> None:
    home = house.open()
    lease, key = begun(home.store(), "run-1"), f"{'harmless words ' * 60}; and the end"
    wanted = intent("call-1", MAIL, key=key, input=f'{{"to":"{key}"}}', target=f"mail:{key}")
    home.store().ledger.admit(lease, wanted, decide_call, (1, 2), lease.token)
    home.store().ledger.settle(lease, Settlement("call-1", "doubt", 1, origin="recovery", reason="cut off"))
    park(home, lease, WaitReason.IN_DOUBT)
    house.deliver()
    (message,) = house.ntfy.list_messages(NOTICES)
    assert ("actions" in message, find_codes(message)) == (False, [])
    assert "too long for this message: answer it where you can read all of it" in message["message"]


def test_after_a_change_of_the_settings_during_a_run_no_code_is_sent_and_no_reply_is_read(house: House) -> None:
    home = house.open()
    ask(home)
    with watch_own_files(home, "run-1"):
        house.set_channel(more="# another topic, for example\n")
    house.deliver()
    message = house.ntfy.wait_for_message(NOTICES, "run run-1")
    assert ("actions" in message, find_codes(message)) == (False, [])
    assert "Confirm the change with `jackline trust`" in message["message"]
    look_once(home)
    assert not any(f"/{ANSWERS}/" in request.path for request in house.ntfy.requests)


def test_a_change_of_the_settings_ends_the_reading_until_it_is_confirmed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_listener, "_CLOSED_SECONDS", 0.1)
    home = house.open()
    ask(home)
    house.deliver()
    message = house.ntfy.list_messages(NOTICES)[0]
    house.listen()
    house.ntfy.wait_for_streams(ANSWERS, 1)
    with watch_own_files(home, "run-1"):
        house.set_channel(more="# changed while the stream is open\n")
    house.ntfy.press(message, "Allow")
    house.ntfy.wait_for_streams(ANSWERS, 0)
    assert (count_answers(home), state_of(home)) == (0, "waiting")
    change = find_unconfirmed(home)
    assert change is not None
    confirm_changes(home, change)
    wait_until(is_answered(home))


def test_a_message_that_is_too_long_for_a_reply_does_not_stop_the_reading(house: House) -> None:
    home = house.open()
    ask(home)
    house.deliver()
    house.ntfy.publish(ANSWERS, "hello", title="t" * 300_000)
    house.ntfy.press(house.ntfy.list_messages(NOTICES)[0], "Allow")
    house.listen()
    wait_until(is_answered(home))


def test_a_person_who_adds_a_channel_while_a_run_lives_has_confirmed_it(house: House) -> None:
    wait_until(lambda: wall_ms() > house.settings.stat().st_ctime_ns // 1_000_000)  # not changed since it is read
    home = house.open()
    ask(home)
    with watch_own_files(home, "run-1"):
        add_channel(home, NewChannel(name="second"), os.environ)
        assert find_unconfirmed(home) is None
    assert find_unconfirmed(home) is None


def test_what_an_agent_adds_beside_a_new_channel_is_not_confirmed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: wall_ms() > house.settings.stat().st_ctime_ns // 1_000_000)  # not changed since it is read
    home = house.open()
    ask(home)

    def append_and_lose_the_race(path: str, find_missing: Callable[[bytes], bytes]) -> bool:
        is_added = append_missing(path, find_missing)
        with open(path, "a") as file:
            file.write('[channels.theirs]\ntype = "command"\ncommand = ["true"]\n')
        return is_added

    monkeypatch.setattr(channel_setup, "append_missing", append_and_lose_the_race)
    with watch_own_files(home, "run-1"):
        add_channel(home, NewChannel(name="second"), os.environ)
        change = find_unconfirmed(home)
        assert change is not None
        assert change.files == (str(house.settings),)
