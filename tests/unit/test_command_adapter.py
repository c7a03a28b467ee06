"""The command adapter: words, lines and verdicts; the rest is tested with real processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import cli_args, command
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from jackline.domain.states import Failure, WaitReason
from jackline.errors import UsageError

LINE = {"line": True}


def request(*words: str, prompt: str = "do it") -> TurnRequest:
    return TurnRequest("r1", 1, 1, "work", prompt, "/w", "/f", "/g", "t0", session="s1", arguments=words)


def test_launch() -> None:
    launch = command.ADAPTER.launch(request("agent", "--at={workspace}"))
    assert (launch.argv, launch.stdin) == (("agent", "--at=/w"), b"do it")
    assert launch.env == cli_args.helper_env(request())
    assert command.ADAPTER.launch(request("agent", "{prompt}")).stdin is None


def test_without_a_command_it_says_where_to_write_one() -> None:
    with pytest.raises(UsageError, match=r"--agent command -- \./agent\.sh"):
        command.ADAPTER.launch(request())


@given(st.text(st.sampled_from("{}promt ")), st.text(st.sampled_from("{}promt ")))
def test_what_is_filled_in_is_never_a_placeholder(word: str, prompt: str) -> None:
    (filled,) = command.ADAPTER.launch(request(word, prompt=prompt)).argv
    assert filled == word.replace("{prompt}", prompt)


@pytest.mark.parametrize(
    ("line", "heard"),
    [
        (b"", ()),
        (b"  \n", ()),
        (b"  words\r\n", (AgentEvent("message", "  words", LINE),)),
        (b"\xff\0", (AgentEvent("message", "\ufffd\ufffd", LINE),)),
        (b'{"type": "end"}', (AgentEvent("end", "", {}),)),
        (b'{"type": "other"}', (AgentEvent("message", '{"type": "other"}', LINE),)),
        (b"x" * 9_999, (AgentEvent("message", "x" * 9_999, LINE),)),
    ],
)
def test_lines(line: bytes, heard: tuple[AgentEvent, ...]) -> None:
    assert command.ADAPTER.parse(line) == heard


@pytest.mark.parametrize(
    ("exit_", "heard", "failure"),
    [
        (Exit(0), (), None),
        (Exit(1), (), Failure.AGENT_ERROR),
        (Exit(None, 9), (), Failure.CRASHED),
        (Exit(0, lost=True), (), Failure.CRASHED),
        (Exit(0), (AgentEvent("error", "no key", {"class": "authentication"}),), Failure.AUTHENTICATION),
    ],
)
def test_verdicts(exit_: Exit, heard: tuple[AgentEvent, ...], failure: Failure | None) -> None:
    assert command.ADAPTER.classify(exit_, heard, "error: rate limit 429").failure is failure


def test_an_agent_that_waits_for_a_person() -> None:
    deferred = (AgentEvent("end", "deferred"),)
    assert command.ADAPTER.classify(Exit(0), deferred, "") == Outcome(waits=WaitReason.APPROVAL)
