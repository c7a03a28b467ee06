"""Puts every behaviour before every agent, and keeps what was found for the conformance table."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from tests.agents import cells
from tests.agents.stage import Stage
from tests.real_agents import binary
from tests.support.skips import NOT_POSSIBLE
from tools.agents.pins import read as pins

Play = Callable[..., Stage]
HERE = Path(__file__).parent
_SLOW = {"gemini", "kilo", "opencode", "qwen"}  # three seconds of processor time and more for one word


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = any(mark.args[0] == "agent" for mark in metafunc.definition.iter_markers("parametrize"))
    if "agent" in metafunc.fixturenames and not named:
        marked = (pytest.param(agent, marks=pytest.mark.full) if agent in _SLOW else agent for agent in cells.AGENTS)
        metafunc.parametrize("agent", list(marked))


@pytest.fixture
def play(agent: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Set the stage for these replies of the model; `otherwise` answers when they are used up."""
    reason = cells.IMPOSSIBLE.get((agent, request.function.__name__))
    if reason:
        pytest.skip(NOT_POSSIBLE + reason)
    program = binary(agent)
    with ExitStack() as stack:

        def set_stage(*replies: Reply, otherwise: Reply | None = None) -> Stage:
            script = Script(replies, otherwise) if otherwise else Script(replies)
            stage = Stage(agent, program, tmp_path, stack.enter_context(FakeModel(script)))
            stack.callback(stage.close)  # before the model goes, so that no CLI is left with a dead one
            stage.build()
            return stage

        yield set_stage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    if isinstance(item, pytest.Function) and item.path.parent == HERE and item.originalname in cells.BEHAVIOURS:
        verdict = _verdict(report, call)
        if verdict:
            agent = str(item.callspec.params["agent"])
            cell = cells.Cell(agent, item.originalname, verdict, pins()[agent].version, round(call.duration, 1))
            cells.write(cell)
    return report


def _verdict(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> str:
    """What a phase of the test adds; nothing where the test itself is still to come, or was told already."""
    if report.failed:
        return "fail"
    if report.skipped and call.excinfo is not None:
        return str(call.excinfo.value)
    return "pass" if report.when == "call" else ""
