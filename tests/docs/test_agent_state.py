"""The story of the agent's own state: the predecessors' command sequence and call lead where the page says."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.place import Place
from tests.docs.pages import blocks, commands
from tests.docs.test_blocks import check

PAGE = "docs/agent-state.md"
# In the words of the two systems; only the verification is this page's own, because not everybody has `uv`.
NOTEBOOK = [
    ["start", "fix overlay keep_geom_type routing"],
    ["hypothesis", "add", "Doc fanout is outranking direct file hits"],
    ["evidence", "add", "--hypothesis", "H001", "overlay.py ranks below doc seeds"],
    ["hypothesis", "resolve", "H001", "--status", "accepted"],
    ["learning", "add", "--kind", "intake-misroute", "--summary", "keep_geom_type needs a gold routing query",
     "--repo-action", "test", "--path", "tests/test_intake_quality.py"],
    ["close", "--summary", "Added router quality harness", "--verification"],
]  # fmt: skip
SCAFFOLD = ["scaffold", "~/.config/grove/agents/forge", "--host=grove", "--agent=forge"]
LAYOUT = {"state.sqlite", "dashboard.md", "retros", "CLAUDE.md", "context", "persona.md"}


def lines() -> list[str]:
    shown = [block for block in blocks(PAGE) if block.language == "sh"]
    assert not [str(block) for block in shown if block.not_run]  # every command of this page runs
    return [line for block in shown for line in commands(block.text)]


@pytest.fixture
def told(place: Place) -> Place:
    """Where the whole page was typed."""
    for block in blocks(PAGE):
        for line in commands(block.text) if block.language == "sh" else ():
            check(place, block, line)
    return place


def test_the_sequence_and_the_call_of_the_predecessors_are_there() -> None:
    typed = [shlex.split(line, comments=True) for line in lines()]
    of_case = iter([words[2:] for words in typed if words[:2] == ["jackline", "case"]])
    for wanted in NOTEBOOK:
        assert any(words[: len(wanted)] == wanted for words in of_case), f"in this order: {wanted}"
    assert ["jackline", *SCAFFOLD] in typed
    assert ["jackline", *SCAFFOLD, "--strict"] in typed


@pytest.mark.full
def test_it_leads_where_the_page_says(told: Place) -> None:
    (case,) = told.type("case", "list", "--json").rows
    assert (case["status"], case["request"]) == ("closed", "fix overlay keep_geom_type routing")
    assert [(one["status"], one["exit_code"]) for one in case["closeout"]["verification"]] == [("pass", 0)]
    runs = told.repository / ".agents" / "runs"
    assert not (runs / "ACTIVE").exists()
    assert json.loads((runs / case["id"] / "problem.json").read_text())["id"] == case["id"]

    instance = told.folder / ".config" / "grove" / "agents" / "forge"
    assert {path.name for path in instance.iterdir()} >= LAYOUT
    item = told.type("work", "get", "message-17", "--home", str(instance), "--json").json
    assert (item["status"], item["answer"]) == ("done", "Only staging.")
    kinds = [row["type"] for row in told.type("events", "tail", "--home", str(instance), "--json").rows]
    assert "deploy.finished" in kinds
    assert list((instance / "retros").iterdir())
