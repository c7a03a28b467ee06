"""The page about what each CLI was seen to do is that of a run in which all went well, with the versions of today."""

from __future__ import annotations

from tests.agents import cells, table
from tests.docs.pages import read
from tests.support.skips import NOT_POSSIBLE
from tools.agents.pins import read as pins

PAGE = "docs/conformance.md"
AGAIN = "run `make conformance`: the page is not that of these tests, these agents and these versions"


def all_went_well() -> list[cells.Cell]:
    """What is found when nothing fails and nothing is left out."""
    places = [(agent, behaviour) for agent in cells.AGENTS for behaviour in cells.BEHAVIOURS]
    return [cells.Cell(*place, _verdict(place), pins()[place[0]].version) for place in places]


def _verdict(place: tuple[str, str]) -> str:
    reason = cells.IMPOSSIBLE.get(place)
    return NOT_POSSIBLE + reason if reason else "pass"


def test_the_page_is_that_of_a_run_in_which_all_went_well() -> None:
    assert read(PAGE) == table.page(all_went_well()), AGAIN


def test_the_page_has_every_agent_with_its_version_and_every_behaviour() -> None:
    text = read(PAGE)
    named = [f"{agent} {pins()[agent].version}" for agent in cells.AGENTS]
    assert [one for one in (*named, *cells.BEHAVIOURS.values()) if f"| {one} |" not in text] == [], AGAIN


def test_every_cell_of_the_page_is_a_pass_or_has_its_reason() -> None:
    rows = [line.strip("| ").split(" | ") for line in read(PAGE).splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(cells.BEHAVIOURS)
    assert {cell.partition(" (")[0] for row in rows for cell in row[1:]} <= {"pass", "not possible"}
