"""How a real CLI is made to talk to the fake model, and to nobody else."""

from __future__ import annotations

import pytest

from jackline.errors import UsageError
from jackline.fake_model.pointing import _POINTING, point

ADDRESS = "http://127.0.0.1:8123"
FOLDER = "/isolated/home"


def test_claude_needs_variables_only() -> None:
    pointed = point("claude", ADDRESS, FOLDER)
    assert pointed.env["ANTHROPIC_BASE_URL"] == ADDRESS
    assert pointed.files == {}


@pytest.mark.parametrize("agent", sorted(_POINTING))
def test_every_agent_gets_the_address_and_a_home_of_its_own(agent: str) -> None:
    pointed = point(agent, ADDRESS, FOLDER)
    told = "\n".join([*pointed.env.values(), *(content.decode() for content in pointed.files.values())])
    assert ADDRESS.removeprefix("http://") in told
    assert pointed.env["HOME"] == FOLDER
    assert all(path.startswith(f"{FOLDER}/") for path in pointed.files)


def test_an_unknown_agent_is_told_which_are_known() -> None:
    with pytest.raises(UsageError, match=r"'clod'.*claude"):
        point("clod", ADDRESS, FOLDER)
