"""The ACP adapter: what it launches; the client itself is tested as a process."""

from __future__ import annotations

import sys

import pytest

from jackline.agents import acp, cli_args
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit
from jackline.errors import UsageError

REQUEST = TurnRequest("r1", 1, 1, "work", "do it", "/w", "/f", "/g", "t0", arguments=("gemini", "--acp"))


def test_launch() -> None:
    launch = acp.ADAPTER.launch(REQUEST)
    assert launch.argv == (sys.executable, "-IS", cli_args.HELPER, "acp", "gemini", "--acp")
    assert launch.env == cli_args.helper_env(REQUEST)
    assert launch.stdin == b"do it"


def test_without_a_command_it_says_where_to_write_one() -> None:
    with pytest.raises(UsageError, match=r"--agent acp -- gemini --acp"):
        acp.ADAPTER.launch(TurnRequest("r1", 1, 1, "work", "do it", "/w", "/f", "/g", "t0"))


def test_declaration() -> None:
    facts = acp.ADAPTER.declaration
    assert (facts.gate, facts.chooses_session, facts.resumes) == ("advisory", False, True)
    assert facts.gate_reason


def test_it_reads_our_lines() -> None:
    assert acp.ADAPTER.parse(b'{"type": "message", "text": "hi"}') == (AgentEvent("message", "hi", {"text": "hi"}),)
    assert acp.ADAPTER.classify(Exit(0), (AgentEvent("end", "done"),), "").failure is None
