"""Which CLI tells its model of the skills that `jackline init` writes, and of AGENTS.md: as docs/skills.md says."""

from __future__ import annotations

import re

import pytest

from jackline.app import init
from jackline.fake_model.script import Reply
from tests.agents.conftest import Play
from tests.agents.stage import Stage
from tests.docs.pages import read
from tests.support.skips import NOT_POSSIBLE
from tools.agents.pins import read as pins

DESCRIPTION = "Keep a durable case"  # of the skill `jackline`, as models see it
POINTER = "Keep a case with `jackline case` for a substantial task"
ROW = re.compile(r"^\| ([a-z]+) (\S+) \| (yes|no) \| (yes|no) \|$", re.MULTILINE)


def documented(agent: str) -> tuple[str, bool, bool]:
    """The version, whether it finds skills, whether it reads AGENTS.md."""
    rows = {name: (version, found == "yes", told == "yes") for name, version, found, told in ROW.findall(page())}
    return rows[agent]


def page() -> str:
    return read("docs/skills.md")


def told(stage: Stage, run_id: str = "first") -> tuple[bool, bool]:
    """What of the skills and of AGENTS.md stands in the request of a fresh run."""
    before = len(stage.model.asked)
    assert stage.run("say good morning, please", run_id=run_id).code == 0
    text = repr(stage.model.asked[before:])
    return DESCRIPTION in text, POINTER in text


def prepared(play: Play) -> Stage:
    stage = play(Reply(say="good morning"), otherwise=Reply(say="good morning"))
    assert DESCRIPTION in init.read_skill("jackline")
    assert stage.type("init", "--agents-md").code == 0
    assert POINTER in (stage.repository / "AGENTS.md").read_text()
    return stage


@pytest.mark.full
def test_skills_are_found_where_the_page_says_so(play: Play, agent: str) -> None:
    version, finds, reads = documented(agent)
    assert version == pins()[agent].version
    assert told(prepared(play)) == (finds, reads)


@pytest.mark.full
def test_claude_finds_them_behind_a_link(play: Play, agent: str) -> None:
    """As the page advises."""
    if agent != "claude":
        pytest.skip(f"{NOT_POSSIBLE}only claude needs a link")
    stage = prepared(play)
    (stage.repository / "CLAUDE.md").write_text("Be kind.\n")
    assert told(stage) == (False, False)
    (stage.repository / ".claude").mkdir()
    (stage.repository / ".claude" / "skills").symlink_to("../.agents/skills")
    (stage.repository / "CLAUDE.md").write_text("@AGENTS.md\n")
    assert told(stage, "second") == (True, True)
