"""Effects that failed in front of the agent: it continues, the same effect is refused, and the run waits at its end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import Ended, Place

WAITS = 14
POLICY = """
[[rule]]
tool = "send"
class = "effect"
decision = "allow"
key = ["to"]
target = "mail:{to}"
[[rule]]
tool = "post"
class = "effect"
decision = "allow"
key = ["to", "body"]
target = "board:{to}"
[[rule]]
tool = "build"
class = "local"
[[rule]]
name = "deploy"
command = "deploy-nowhere"
class = "effect"
decision = "allow"
[[rule]]
name = "request"
command = "curl"
class = "effect"
decision = "allow"
"""


class FailedEffects(Place):
    """A place whose effects leave a line outside."""

    def line(self, text: str, code: int = 0) -> str:
        return f"echo {text} >> {self.path('world')}; exit {code}"

    def world(self) -> list[str]:
        path = self.folder / "world"
        return path.read_text().splitlines() if path.exists() else []

    def send(self, code: int = 0, **step: Any) -> dict[str, Any]:
        return {"call": {"tool": "send", "input": {"to": "ada"}, "run": self.line("send", code)}, **step}

    def build(self) -> dict[str, Any]:
        return {"call": {"tool": "build", "input": {}, "run": self.line("build")}}

    def bash(self, command: str) -> dict[str, Any]:
        return {"call": {"tool": "Bash", "input": {"command": command}, "run": command}}

    def play_here(self, *steps: dict[str, Any], words: tuple[str, ...] = ()) -> Ended:
        return self.play(*steps, words=("--policy", self.policy(POLICY), "--run-id", "r", *words))

    def show(self) -> dict[str, Any]:
        return self.type("show", "r", "--json").json

    def states(self) -> list[tuple[str, str]]:
        return [(call["tool"], call["state"]) for call in self.show()["calls"]]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[FailedEffects]:
    made = FailedEffects(tmp_path)
    made.repository.mkdir()
    yield made
    made.close()


def fail_once(stage: FailedEffects) -> str:
    """A run whose agent ended its work with an effect in doubt; return the call."""
    ended = stage.play_here(
        stage.send(1, when={"attempt": 1}),
        stage.send(when={"attempt_from": 1}),
        stage.build(),
        words=("--proof", f"echo proof >> {stage.path('world')}"),
    )
    assert (ended.code, "waiting: in_doubt" in ended.out) == (WAITS, True), ended
    assert stage.world() == ["send", "build"], "it continues, but neither sends twice nor proves anything"
    assert stage.states() == [("send", "in_doubt"), ("send", "denied"), ("build", "done")]
    first, second, _ = stage.show()["calls"]
    assert second["reason"].startswith(f"call {first['id']} may have done this already; it is in doubt")
    return str(first["id"])


@pytest.mark.parametrize("verdict", ["happened", "skip"])
def test_after_the_answer_only_the_checks_are_left(stage: FailedEffects, verdict: str) -> None:
    call = fail_once(stage)
    assert stage.type("answer", "r", call, verdict).code == 0
    assert stage.type("resume", "r").code == 0
    shown = stage.show()
    assert (len(shown["turns"]), shown["proof"], stage.world()) == (1, "proved", ["send", "build", "proof"])


@pytest.mark.parametrize("verdict", ["did-not", "retry"])
def test_an_effect_that_did_not_happen_is_made_in_another_turn(stage: FailedEffects, verdict: str) -> None:
    ended = stage.play_here(
        stage.send(1, when={"attempt": 1}), {"exit": 0, "when": {"attempt": 1}}, stage.send(when={"attempt": 2})
    )
    assert ended.code == WAITS
    (call,) = stage.show()["calls"]
    assert stage.type("answer", "r", call["id"], verdict).code == 0
    assert stage.type("resume", "r").code == 0
    shown = stage.show()
    assert (len(shown["turns"]), stage.states()) == (2, [("send", "void"), ("send", "done")])
    assert "Known not to have happened:\n- send" in shown["turns"][1]["prompt"]


def test_an_effect_in_doubt_is_not_reworded_without_approval(stage: FailedEffects) -> None:
    def post(body: str, code: int) -> dict[str, Any]:
        return {"call": {"tool": "post", "input": {"to": "ada", "body": body}, "run": stage.line(body, code)}}

    ended = stage.play_here(post("hello", 1), post("hello, Ada", 0), stage.build())
    assert ended.code == WAITS, ended
    assert stage.world() == ["hello"]
    assert stage.states() == [("post", "in_doubt"), ("post", "denied")]
    first, second = stage.show()["calls"]
    assert (second["decision"], second["original"]) == ("ask", first["id"])
    assert "'board:ada' may have been touched by call" in second["reason"]


def test_without_an_answer_the_run_never_succeeds(stage: FailedEffects) -> None:
    fail_once(stage)
    for _ in range(2):
        assert stage.type("resume", "r").code == WAITS
    assert (len(stage.show()["turns"]), stage.world()) == (1, ["send", "build"])


def test_a_program_that_cannot_be_started_is_a_plain_failure_and_may_be_tried_again(stage: FailedEffects) -> None:
    ended = stage.play_here(stage.bash("deploy-nowhere now"), stage.bash("deploy-nowhere now"), stage.build())
    assert ended.code == 0, ended
    assert stage.states() == [("Bash", "failed"), ("Bash", "failed"), ("build", "done")]
    assert [call["exit_code"] for call in stage.show()["calls"][:2]] == [127, 127]


def test_the_same_exit_code_of_several_commands_proves_nothing(stage: FailedEffects) -> None:
    ended = stage.play_here(stage.bash("true; deploy-nowhere now"))
    assert (ended.code, stage.states()) == (WAITS, [("Bash", "in_doubt")])


@pytest.mark.parametrize(("flags", "state"), [("", "failed"), ("--retry 0 ", "in_doubt"), ("-L ", "in_doubt")])
def test_curl_that_found_no_server_sent_nothing(stage: FailedEffects, flags: str, state: str) -> None:
    with socket.socket() as closed:  # bound and not listening: a connection is refused
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        ended = stage.play_here(stage.bash(f"curl -s {flags}-d x {url}"))
    assert (ended.code, stage.states()) == (0 if state == "failed" else WAITS, [("Bash", state)])
    assert stage.show()["calls"][0]["exit_code"] == 7
