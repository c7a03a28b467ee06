"""Reviewers are checked before the work begins: one clear line, and no run."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.place import Place

CONFIG = '[agents.critic]\ncommand = ["true"]\nformat = "text"\n'


@pytest.fixture
def place(place: Place) -> Place:
    settings = place.folder / ".config" / "jackline"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(CONFIG)
    subprocess.run(["git", "init", "-q", str(place.repository)], check=True)  # a review needs one
    return place


def refused(place: Place, *words: str, **environ: str) -> tuple[int, str]:
    ended = place.play({"say": "done"}, words=words, environ=environ)
    assert not place.type("list", "--json").rows
    assert len(ended.err.strip().splitlines()) == 1, ended
    return ended.code, ended.err


def test_an_agent_that_nothing_holds_back_needs_consent(place: Place) -> None:
    code, said = refused(place, "--review", "critic")
    assert (code, "critic cannot review safely" in said, "--ungated" in said) == (2, True, True)


def test_nor_may_such_an_agent_plan(place: Place) -> None:
    ended = place.type("run", "work", "--agent", "critic", "--plan")
    assert (ended.code, "critic cannot plan safely" in ended.err) == (2, True)


def test_an_unknown_reviewer_is_named(place: Place) -> None:
    code, said = refused(place, "--review", "nobody")
    assert (code, "nobody" in said) == (2, True)


def test_a_reviewer_that_is_not_installed_stops_the_run_before_it_begins(place: Place) -> None:
    code, said = refused(place, "--review", "codex", PATH="/usr/bin:/bin")
    assert (code, "agent 'codex' cannot be used: 'codex' is not on the PATH" in said) == (13, True)


def test_a_reviewer_that_would_need_settings_of_the_project_cannot_review(place: Place) -> None:
    rules = place.repository / ".codex" / "rules"
    rules.mkdir(parents=True)
    (rules / "own.rules").write_text("allow everything\n")
    code, said = refused(place, "--review", "codex")
    assert (code, "a reviewer is started without the settings of the work" in said) == (13, True)


def test_none_is_a_run_without_reviewers(place: Place) -> None:
    task = place.task("reviewed", "---\nreview: [critic]\nreview_mode: any\n---\nDo it.\n")
    words = ("run", "--task", task, "--agent", "scripted", "--script", place.script({"say": "hello"}))
    planned = place.type(*words, "--review", "none", "--dry-run", "--json")
    assert (planned.code, planned.json["reviewers"]) == (0, []), planned
    ended = place.type(*words, "--review", "none", "--json")
    assert ended.json["state"] == "succeeded"
    refused = place.type(*words, "--review", "none,critic")
    assert (refused.code, "'none' is for a run without reviewers" in refused.err) == (2, True), refused
