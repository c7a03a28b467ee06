"""A run reports its start and its end to an address, as Healthchecks expects it; a dead server delays nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from tests.cli.place import SAY, Place
from tests.conftest import SLOW_BACKENDS

SECRET = "0b1c2d3e-4f50-4111-8222-93a4b5c6d7e8"
FAIL = {"exit": 3}


class PingServer:
    """Remembers what was requested; with `answer` it can refuse."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []
        self.answer, self.text = 200, ""
        remember = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                remember.seen.append((parts.path, parse_qs(parts.query)["rid"][0], body))
                self.send_response(remember.answer)
                self.end_headers()
                self.wfile.write(remember.text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{SECRET}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def paths(self) -> list[str]:
        return [path.removeprefix(f"/{SECRET}") for path, _, _ in self.seen]


@pytest.fixture
def pings() -> Iterator[PingServer]:
    server = PingServer()
    yield server
    server.close()


@pytest.fixture(params=SLOW_BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Place:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return place


def test_a_run_reports_its_start_and_its_end(any_place: Place, pings: PingServer) -> None:
    ended = any_place.play(SAY, words=("--ping", pings.url, "--run-id", "one"))
    assert ended.code == 0, ended
    assert pings.paths == ["/start", ""]
    (_, first, _), (_, second, body) = pings.seen
    assert UUID(first) == UUID(second)
    assert "run one (#1)\nsucceeded" in body
    assert SECRET not in ended.out + ended.err


def test_a_failed_run_reports_that(place: Place, pings: PingServer) -> None:
    assert place.play(FAIL, words=("--ping", pings.url, "--retries", "0")).code != 0
    assert pings.paths == ["/start", "/fail"]


def test_a_cancelled_run_that_never_started_reports_that(place: Place, pings: PingServer) -> None:
    queued = place.type("enqueue", "--script", place.script(SAY), "--ping", pings.url, "--run-id", "one")
    assert queued.code == 0, queued
    assert place.type("cancel", "one").code == 0
    assert pings.paths == ["/fail"]


def test_a_service_pings(place: Place, pings: PingServer) -> None:
    place.type("enqueue", "--script", place.script(SAY), "--ping", pings.url)
    assert place.type("serve", "--once").code == 0
    assert pings.paths == ["/start", ""]


def test_what_a_dead_server_missed_is_sent_by_the_next_command(place: Place, pings: PingServer) -> None:
    pings.answer = 503
    ended = place.play(SAY, words=("--ping", pings.url, "--run-id", "one"))
    assert ended.code == 0
    assert "jackline: a ping was not accepted and stays due; see `jackline notices --stuck`\n" in ended.err
    assert "notices for" not in ended.err
    assert SECRET not in ended.err
    delivered = place.type("notices", "--deliver")
    assert (delivered.code, delivered.out) == (1, "0 messages sent\n")
    assert "a ping was not accepted" in delivered.err
    pings.answer = 200
    pings.seen.clear()
    assert place.play(SAY, words=("--run-id", "two")).code == 0
    assert pings.paths == [""]  # a late start would look like another run


def dead_url() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/{SECRET}"


def test_a_dead_server_keeps_no_other_from_being_asked(place: Place, pings: PingServer) -> None:
    """One is gone, and one takes each request and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        urls = {"gone": dead_url(), "silent": f"http://127.0.0.1:{silent.getsockname()[1]}/{SECRET}"}
        for name, url in urls.items():
            assert place.type("enqueue", "--script", place.script(SAY), "--ping", url, "--run-id", name).code == 0
            assert place.type("cancel", name).code == 0
        assert place.play(SAY, words=("--ping", pings.url)).code == 0
        assert pings.paths == ["/start", ""]


def test_a_ping_that_is_stuck_is_listed_by_its_run(place: Place, pings: PingServer) -> None:
    pings.answer = 404
    pings.text = f"/{SECRET} is not known"
    assert place.play(SAY, words=("--ping", pings.url, "--run-id", "one")).code == 0
    listed = place.type("notices", "--stuck")
    assert "ping.success" in listed.out
    assert "the server answered 404" in listed.err
    rows = place.type("notices", "--stuck", "--json").rows  # that of the start may be dropped: it came too late
    (end,) = (row for row in rows if row["kind"] == "ping.success")
    assert end["subject"] == "run:one"
    beat = place.type("heartbeat")
    assert beat.code == 1
    assert beat.out.endswith(" not delivered: jackline notices --stuck\n")
    assert "notice " not in beat.out
    assert SECRET not in listed.out + listed.err + str(end) + beat.out
    pings.answer, pings.seen = 200, []
    retried = place.type("notices", "--retry", str(end["id"]))
    assert (retried.code, pings.paths[-1]) == (0, ""), retried
    assert retried.out == "1 due again\n0 messages sent\n"


def test_an_address_is_never_shown(place: Place, pings: PingServer) -> None:
    config = place.folder / ".config" / "jackline" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'ping = "{pings.url}"\n')
    assert place.play({"say": f"the address is {pings.url}"}, words=("--run-id", "one")).code == 0
    assert pings.paths == ["/start", ""]
    place.type("schedule", "add", "n", "@daily", "x", "--agent", "claude", "--ping", pings.url)
    for words in (("config",), ("config", "--json"), ("schedule", "show", "n", "--json"), ("logs", "one"),
                  ("show", "one", "--json"), ("notices", "--json")):  # fmt: skip
        shown = place.type(*words)
        assert shown.code == 0, shown
        assert SECRET not in shown.out + shown.err, words
    # Its script, in which the test wrote the address, is what the run needs to be executed.
    files = [path for path in (place.home / "runs" / "one").rglob("*") if path.is_file() and path.name != "script.json"]
    assert files
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    "url",
    [
        "hc-ping.com/x",
        "ftp://host/x",
        "http://",
        "http:///x",
        "https://host/a b",
        "file:///etc",
        "https://me:pw@host/x",
    ],
)
def test_a_bad_address_is_refused(place: Place, url: str) -> None:
    ended = place.play(SAY, words=("--ping", url))
    assert ended.code == 2
    assert "ping must be an http:// or https:// address" in ended.err
    assert not (place.home / "state.sqlite").exists()


def test_a_project_cannot_name_an_address(place: Place, pings: PingServer) -> None:
    (place.repository / "jackline.toml").write_text(f'ping = "{pings.url}"\n')
    ended = place.play(SAY)
    assert ended.code == 2
    assert "may not set 'ping'" in ended.err
    assert pings.seen == []
