"""Commands without a service deliver their notices before they exit, and a dead channel costs them seconds at most."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from jackline.app.home import Home, open_home
from jackline.engine import command_runner
from jackline.engine.command_runner import CommandResult
from jackline.features.notify import after_work, delivery
from jackline.features.notify.channel_pass import DeliveryReport
from jackline.features.notify.delivery_store import DeliveryStore
from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_terminal import Terminal
from tests.conftest import SLOW_BACKENDS
from tests.support.ntfy_server import NtfyServer

TOPIC = "watch"
MOST_SECONDS = 3.0
SLACK_SECONDS = 15.0  # a busy machine is no reason to fail


def set_up(place: Place, *tables: str) -> None:
    path = place.folder / ".config" / "jackline" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(tables))


def ntfy_table(server: NtfyServer, *lines: str, name: str = "phone") -> str:
    return "\n".join([f"[channels.{name}]", 'type = "ntfy"', f'url = "{server.url}"', f'topic = "{TOPIC}"', *lines])


@pytest.mark.parametrize("backend", SLOW_BACKENDS)
def test_a_run_delivers_its_notice_before_it_exits(place: Place, backend: str, request: pytest.FixtureRequest) -> None:
    if backend == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        ended = place.play(SAY, words=("--label", "nightly"))
        assert ended.code == 0, ended
        (message,) = server.list_messages(TOPIC)
        assert message["title"] == "scripted/adhoc: succeeded"
        assert message["tags"] == ["white_check_mark", "nightly"]
        assert "agent scripted · task adhoc · run " in message["message"]
        assert " · unverified\n" in message["message"]
        assert str(place.home / "runs") in message["message"]
        place.play(SAY)
        assert len(server.list_messages(TOPIC)) == 2  # the first is not sent again
    assert "jackline:" not in ended.err


def test_a_dead_server_costs_seconds_and_the_next_command_delivers_both(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        server.die()
        assert place.play(SAY).code == 0
        server.start()
        place.play({"say": "again"})
        messages = server.wait_for_messages(TOPIC, 2)
        assert len({one["message"] for one in messages}) == 2


def test_a_server_that_never_answers_is_left_after_three_seconds(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        never = server.hang()
        process = place.start_playing(SAY)
        (request,) = server.wait_for_requests(1)
        asked = time.monotonic()
        ended = place.end_of(process)
        assert ended.code == 0, ended
        assert time.monotonic() - asked < MOST_SECONDS + SLACK_SECONDS
        assert server.list_messages(TOPIC) == []
        server.die()
        never.set()
        server.start()
        place.play({"say": "again"})
        messages = server.wait_for_messages(TOPIC, 2)
        assert len({one["message"] for one in messages}) == 2
        assert request.method == "POST"


@contextmanager
def trickling_server() -> Iterator[int]:
    """A server that answers one byte after the other, without end: no wait for a single byte is too long."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        is_over = threading.Event()

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                while not is_over.wait(0.1):
                    connection.sendall(b"H")

        thread = threading.Thread(target=trickle)
        thread.start()
        yield int(listener.getsockname()[1])
        is_over.set()
        thread.join()


def test_a_child_that_does_not_end_is_killed_and_its_message_is_due_at_once(place: Place) -> None:
    with trickling_server() as port:
        set_up(place, f'[channels.phone]\ntype = "ntfy"\nurl = "http://127.0.0.1:{port}"\ntopic = "{TOPIC}"')
        ended = place.play(SAY)
        assert ended.code == 0
        assert "notices for phone were not delivered and stay due" in ended.err
    (row,) = place.type("notices", "--stuck", "--json").rows
    (delivery,) = row["channels"]
    assert (delivery["state"], delivery["attempts"], delivery["next_at"]) == ("pending", 1, row["at"])
    assert "no answer within" in delivery["error"]


def test_a_dead_channel_does_not_delay_another(place: Place) -> None:
    with NtfyServer() as server, NtfyServer() as dead:
        dead.hang()
        set_up(place, ntfy_table(dead, name="a-dead"), ntfy_table(server, name="phone"))
        assert place.play(SAY).code == 0
        assert len(server.list_messages(TOPIC)) == 1


def test_reading_commands_deliver_nothing(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        server.die()
        place.play(SAY)
        server.start()
        for words in (("list",), ("show", "1"), ("run", "x", "--agent", "command", "--dry-run", "--", "true")):
            assert place.type(*words).code == 0
        assert server.requests == []


def test_notices_before_a_channel_are_not_sent_to_it(place: Place) -> None:
    place.play(SAY)
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        place.play({"say": "again"})
        assert len(server.list_messages(TOPIC)) == 1


def test_a_wrong_channel_is_reported_and_the_others_work(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, '[channels.odd]\ntype = "ntfy"', ntfy_table(server))
        ended = place.play(SAY)
        assert ended.code == 0
        assert "[channels.odd]: topic is missing" in ended.err
        assert len(server.list_messages(TOPIC)) == 1


@pytest.mark.parametrize("name", ["command", "bell"])
def test_without_channels_nothing_of_the_feature_is_imported(place: Place, name: str) -> None:
    program = (
        "import sys; from jackline.cli.main import main; code = main(sys.argv[1:]); "
        "print('jackline.features.notify' in sys.modules); sys.exit(code)"
    )
    ended = place.end_of(place.python(program, "run", "x", "--agent", "command", "--", "true", name))
    assert ended.out.splitlines()[-1] == "False"


ASK_RULE = '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "ask"\nkey = ["to"]\ntarget = "mail:{to}"\n'


def test_a_run_that_waits_names_the_call_and_the_command_that_answers(place: Place) -> None:
    call = {"call": {"tool": "send", "input": {"to": "ada\x1b[2J"}, "run": "true"}}
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        ended = place.play(call, words=("--policy", place.policy(ASK_RULE), "--run-id", "asks"))
        assert ended.code == 14, ended
        (message,) = server.list_messages(TOPIC)
        assert (message["priority"], message["tags"][0]) == (4, "raised_hand")
        assert "a call needs your approval: send" in message["message"]
        assert "\x1b" not in message["message"]
        answer = next(line for line in message["message"].splitlines() if line.startswith("jackline answer "))
        words, _, others = answer.partition(" (or ")
        assert others == "deny)"
        assert place.type(*words.split()[1:]).code == 0
        assert place.type("cancel", "asks").code == 0
        assert server.wait_for_messages(TOPIC, 2)[1]["title"] == "scripted/adhoc: cancelled"


def test_a_run_that_continues_by_itself_is_not_urgent(place: Place) -> None:
    day = {"JACKLINE_MAX_USD_PER_DAY": "1"}
    with NtfyServer() as server:
        set_up(place, ntfy_table(server, 'kinds = ["run.waiting.budget"]'))
        assert place.play({"usage": {"input": 10, "output": 1, "usd": 1.1}}, environ=day).code == 15
        (message,) = server.list_messages(TOPIC)
        assert message["priority"] == 2


def test_a_run_that_waits_in_its_process_reports_before_it_waits(place: Place) -> None:
    """With --on-ask wait the command does not end before the answer, and the answer needs the notice."""
    call = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        words = ("--policy", place.policy(ASK_RULE), "--run-id", "asks", "--on-ask", "wait")
        process = place.start_playing(call, words=words)
        message = server.wait_for_message(TOPIC, "approval")
        answer = next(line for line in message["message"].splitlines() if line.startswith("jackline answer "))
        assert place.type(*answer.partition(" (or ")[0].split()[1:]).code == 0
        assert place.end_of(process).code == 0
        assert [one["title"] for one in server.list_messages(TOPIC)] == [
            "scripted/adhoc: approval",
            "scripted/adhoc: succeeded",
        ]


def test_the_bell_rings_while_a_question_waits_at_the_terminal(place: Place) -> None:
    call = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    set_up(place, '[channels.bell]\ntype = "bell"\nkinds = ["run.waiting.*"]')
    words = ("--agent", "scripted", "--script", place.script(call), "--policy", place.policy(ASK_RULE))
    terminal = Terminal(place, "run", *words)
    terminal.until("\a")
    os.write(terminal.ours, b"\x04")  # leave the question open
    terminal.end()
    assert terminal.process.returncode == 14


def test_a_question_that_was_answered_before_it_was_sent_is_not_sent(place: Place) -> None:
    call = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        server.die()
        place.play(call, words=("--policy", place.policy(ASK_RULE), "--run-id", "asks"))
        assert place.type("answer", "asks", "deny").code == 0
        server.start()
        assert place.type("cancel", "asks").code == 0
        assert [one["title"] for one in server.list_messages(TOPIC)] == ["scripted/adhoc: cancelled"]
        asked = place.type("notices", "--json").rows[-1]
        assert asked["channels"][0]["state"] == "skipped"


def test_a_living_service_delivers_and_the_command_only_wakes_it(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        service = place.start("serve", "--json", "--slots", "1")
        assert service.stdout is not None
        assert json.loads(service.stdout.readline())["event"] == "started"
        assert place.type("notify", "hello").code == 0
        server.wait_for_message(TOPIC, "hello")
        assert place.play(SAY).code == 0
        server.wait_for_message(TOPIC, "succeeded")
        (row,) = place.type("notices", "--run", "1", "--json").rows
        delivered = place.type("notices", "--deliver", "--json").json
        assert delivered == {"sent": 0, "postponed": 0, "stuck": 0, "down": [], "service": True}
        service.terminate()
        assert place.end_of(service).code == 0
    assert len(server.requests) == 2
    assert row["kind"] == "run.succeeded"


def test_once_delivers_for_other_commands_while_it_works(place: Place) -> None:
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        script = place.script({"wait_for": place.path("go")}, name="slow.json")
        other = place.folder / "other"
        other.mkdir()
        assert place.type("enqueue", "--script", script, "--agent", "scripted", cwd=other).code == 0
        service = place.start("serve", "--once", "--json")
        assert service.stdout is not None
        while json.loads(service.stdout.readline())["event"] != "claimed":
            pass
        assert place.play(SAY).code == 0
        server.wait_for_message(TOPIC, "succeeded")
        place.let_go("go")
        assert place.end_of(service).code == 0
    assert len(server.requests) == 2


def test_a_changed_task_is_reported_while_changed_settings_are_not_used(place: Place) -> None:
    """The agent runs as the user: who could write the settings chooses where their messages go."""
    settings = place.folder / ".config" / "jackline" / "config.toml"
    task = settings.parent / "tasks" / "night.md"
    with NtfyServer() as server:
        set_up(place, ntfy_table(server))
        write = {"call": {"tool": "try", "input": {}, "run": f"mkdir -p {task.parent}; echo x > {task}"}}
        server.die()
        assert place.play(write, SAY).code == 0
        server.start()
        assert place.type("serve", "--once").code == 0
        server.wait_for_message(TOPIC, "no run starts until you have reviewed this")
        place.trust()
        change = {"call": {"tool": "try", "input": {}, "run": f"echo '# x' >> {settings}"}}
        assert place.play(change, SAY).code == 0
        refused = place.type("serve", "--once")
        assert (refused.code, "config.toml" in refused.err, is_one_line(refused)) == (2, True, True), refused


def test_the_wait_for_pings_and_the_start_of_the_child_are_part_of_the_three_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked, deadlines = [100.0], [], []

    def deliver(_home: Home, _owner: str, until: float, **_: object) -> DeliveryReport:
        deadlines.append(until)
        return DeliveryReport()

    def wait_for_pings(_home: Home) -> None:
        now[0] += 0.5

    def run(_argv: object, *, stdin: bytes, timeout_s: float, **_: object) -> CommandResult:
        asked.append(now[0] + timeout_s)
        now[0] += 2.0  # the start of a process on a busy machine
        monkeypatch.setattr("sys.stdin", StringIO(stdin.decode()))
        assert delivery.main() == 0
        return CommandResult(
            exit_code=0, signal=None, timed_out=False, stdout_tail=b"{}", stderr_tail=b"", duration_ms=0
        )

    monkeypatch.setattr(after_work, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(after_work, "finish_background", wait_for_pings)
    monkeypatch.setattr(delivery, "deliver_due", deliver)
    monkeypatch.setattr(command_runner, "run_command", run)
    monkeypatch.setattr(DeliveryStore, "has_work", lambda *_: True)
    with open_home(str(tmp_path / "home")) as home:
        home.store(create=True)
        after_work.deliver_after_work(home)
    (killed_at,) = asked
    assert killed_at < 100.0 + MOST_SECONDS
    assert deadlines == [pytest.approx(killed_at - 0.3)], "no time is left to report"
