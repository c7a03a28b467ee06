"""A whole evening: a run waits, the service tells the phone, a button approves, and the run ends with one effect."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from tests.cli.place import SAY, Place
from tests.cli.test_approval import ASK_RULE, WAITS, outbox, send
from tests.conftest import SLOW_BACKENDS
from tests.support.ntfy_server import NtfyServer

NOTICES, ANSWERS = "jl-notices-0123456789abcdef", "jl-answers-0123456789abcdef"


@pytest.fixture
def ntfy() -> Iterator[NtfyServer]:
    with NtfyServer() as server:
        yield server


@pytest.fixture(params=SLOW_BACKENDS)
def phone_place(place: Place, ntfy: NtfyServer, request: pytest.FixtureRequest) -> Place:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    path = place.folder / ".config" / "jackline" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'[channels.phone]\ntype = "ntfy"\nurl = "{ntfy.url}"\ntopic = "{NOTICES}"\n'
        f'replies = "all"\nreply_topic = "{ANSWERS}"\n'
    )
    return place


def test_a_button_lets_the_run_continue_in_the_service_with_one_effect(phone_place: Place, ntfy: NtfyServer) -> None:
    place = phone_place
    words = ("--policy", place.policy(ASK_RULE), "--run-id", "r")
    assert place.play(send(place), SAY, words=words).code == WAITS
    service = place.start("serve")
    message = ntfy.wait_for_message(NOTICES, "approval")
    assert [action["label"] for action in message["actions"]] == ["Allow", "Deny"]
    ntfy.press(message, "Allow")
    ntfy.press(message, "Allow")
    ntfy.wait_for_message(NOTICES, "answer accepted")
    ntfy.wait_for_message(NOTICES, "answer came too late")
    ntfy.wait_for_message(NOTICES, "succeeded")
    service.send_signal(signal.SIGTERM)
    assert place.end_of(service).code == 0
    assert outbox(place) == ["ada"]
    events = [json.loads(line) for line in place.type("logs", "r", "--events", "--json").out.splitlines()]
    (answered,) = [event for event in events if event["kind"] == "call.answered"]
    assert (answered["actor"], answered["data"]["via"], answered["data"]["answer"]) == ("person", "ntfy", "allow")
    assert place.type("verify", "r").code == 0
    secrets = (ANSWERS, NOTICES, *(action["body"].split()[2] for action in message["actions"]))
    shown = place.type("show", "r", "--json").out + place.type("events", "tail", "--json").out
    assert not [secret for secret in secrets if secret in shown]
