"""The pages that must not drift from the code: the state diagram, and the list of crash points."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from jackline import crash_points
from jackline.domain import diagram
from jackline.domain.states import WORK_ENDED, CallState, Failure, Phase, RunState, WaitReason, WorkStatus
from jackline.domain.transitions import CALL, RUN, WORK

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = re.compile(r"^\| `([a-z._]+)` \| ([^|]+) \|$", re.MULTILINE)
SOURCE = os.path.dirname(os.path.dirname(str(crash_points.__file__)))
REACHED = """
import sys
from jackline.crash_points import crash_point
for point in sys.argv[1:]: crash_point(point)
print('alive')
"""


def read(name: str) -> str:
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
        return file.read()


def test_the_committed_page_is_the_generated_one() -> None:
    assert read("states.md") == diagram.page(), "run `make diagram`"


def test_the_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    diagram.main()
    assert capsys.readouterr().out == diagram.page() == diagram.page()


def test_every_change_of_the_tables_is_an_arrow_and_a_row() -> None:
    page = diagram.page()
    for (source, change), target in [*RUN.items(), *CALL.items(), *WORK.items()]:
        assert f"\n    {source} --> {target}: {change}\n" in page
        assert f"\n| {source} | {change} | {target} |\n" in page


@pytest.mark.parametrize("word", [*RunState, *CallState, *WorkStatus, *WaitReason, *Failure, *Phase])
def test_every_word_is_on_the_page(word: str) -> None:
    assert re.search(rf"\b{word}\b", diagram.page())


def test_only_states_that_nothing_leaves_lead_to_the_end() -> None:
    ends = set(re.findall(r"^    (\w+) --> \[\*\]$", diagram.page(), re.MULTILINE))
    final = {RunState.SUCCEEDED, RunState.CANCELLED}
    assert ends == {*final, *WORK_ENDED, *(set(CallState) - {CallState.PREPARED, CallState.IN_DOUBT})}


def test_the_page_of_crash_points_lists_all_of_them_in_their_order() -> None:
    rows = ROW.findall(read("crash-points.md"))
    assert tuple(point for point, _ in rows) == crash_points.POINTS
    assert all(meaning.strip() for _, meaning in rows)
    assert len(set(crash_points.POINTS)) == len(crash_points.POINTS)


def crash(at: str | None, *points: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.defpath, "PYTHONPATH": SOURCE} | ({"JACKLINE_CRASH_AT": at} if at is not None else {})
    argv = [sys.executable, "-c", REACHED, *points]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize(
    ("at", "points", "dies"),
    [
        (None, crash_points.POINTS, False),
        ("", crash_points.POINTS, False),
        ("run.claimed", ("run.created",), False),
        ("run.claimed", ("run.created", "run.claimed"), True),
        ("run.claimed:2", ("run.claimed",), False),
        ("run.claimed:2", ("run.claimed", "run.created", "run.claimed"), True),
    ],
)
def test_a_crash_point_kills_only_where_it_is_asked_to(at: str | None, points: tuple[str, ...], dies: bool) -> None:
    done = crash(at, *points)
    assert (done.returncode, done.stdout) == ((-9, "") if dies else (0, "alive\n"))
