"""The table of what each agent may see of the environment is that of the code."""

from __future__ import annotations

import re

import pytest

from jackline.agents import registry
from tests.docs.pages import read

PAGE = "docs/agents.md"
CODE = re.compile(r"`([^`]+)`")
NONE = "—"


def rows() -> dict[str, list[str]]:
    table = read(PAGE).partition("\n## What each agent may see\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]
    return {name: others for name, *others in cells[1:]}


def conditions(cell: str) -> dict[str, tuple[str, ...]]:
    """From `with A: B, C; with D: E`."""
    found = {}
    for part in () if cell == NONE else cell.split("; "):
        switch, *names = CODE.findall(part)
        assert part.startswith(f"with `{switch}`: "), part
        found[switch] = tuple(names)
    return found


def test_every_agent_has_its_line() -> None:
    assert list(rows()) == sorted(registry.AGENTS)


@pytest.mark.parametrize("name", sorted(registry.AGENTS))
def test_the_line_is_what_the_code_passes(name: str) -> None:
    always, sometimes = rows()[name]
    declaration = registry.load_adapter(name).declaration
    assert tuple(CODE.findall(always)) == declaration.passes
    assert conditions(sometimes) == dict(declaration.passes_if)


@pytest.mark.parametrize("name", sorted(registry.AGENTS))
def test_no_agent_sees_the_keys_to_an_account_without_a_word(name: str) -> None:
    declaration = registry.load_adapter(name).declaration
    assert not {one for one in declaration.passes if one.startswith(("AWS_", "GOOGLE_*", "OPENAI_*"))}
