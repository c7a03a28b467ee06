"""Finding runs: by id, prefix and number; by filters; page by page."""

from __future__ import annotations

import pytest

from tests.cli.place import SAY, Place, is_one_line


def ids(place: Place, *words: str) -> list[str]:
    return [row["id"] for row in place.type("list", "--json", *words).rows]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Four runs in two repositories, each different; the tests only read them."""
    place = Place(tmp_path_factory.mktemp("four"))
    other = place.folder / "other"
    for folder in (place.repository, other):
        folder.mkdir()
    assert place.play(SAY, words=("first words", "--run-id", "alpha-1", "--task", place.task("a", ""))).code == 0
    assert place.play({"exit": 1}, words=("--run-id", "alpha-2", "--task", place.task("b"))).code == 1
    assert place.play({"limit": {}}, words=("--run-id", "beta-1", "--task", "b")).code == 10
    assert place.play(SAY, words=("--run-id", "gamma-1", "--workspace", str(other))).code == 0
    return place


def test_filters(four: Place) -> None:
    other = str(four.folder / "other")
    assert ids(four) == ["beta-1", "alpha-2", "alpha-1"]
    assert ids(four, "--all-repos") == ["gamma-1", "beta-1", "alpha-2", "alpha-1"]
    assert ids(four, "--repo", other) == ["gamma-1"]
    assert ids(four, "--state", "failed", "--state", "succeeded") == ["alpha-2", "alpha-1"]
    assert ids(four, "--active") == ["beta-1"]
    assert ids(four, "--task", "b") == ["beta-1", "alpha-2"]
    assert ids(four, "--agent", "scripted", "--limit", "1") == ["beta-1"]
    assert ids(four, "--agent", "nobody") == []
    assert ids(four, "--since", "1h") == ["beta-1", "alpha-2", "alpha-1"]
    assert ids(four, "--since", "2999-01-01") == []
    session = four.type("show", "gamma-1", "--json").json["sessions"]["scripted"]
    assert ids(four, "--session", session) == ["gamma-1"]


def test_paging_prints_the_command_of_the_next_page(four: Place) -> None:
    page = four.type("list", "--all-repos", "--limit", "2")
    assert [line.split("\t")[0] for line in page.out.splitlines()] == ["gamma-1", "beta-1"]
    assert page.err == "more: jackline list --all-repos --limit 2 --after beta-1\n"
    words = page.err.removeprefix("more: jackline ").split()
    last = four.type(*words)
    assert [line.split("\t")[0] for line in last.out.splitlines()] == ["alpha-2", "alpha-1"]
    assert last.err == ""


def test_a_run_is_found_by_number_whole_id_beginning_and_end(four: Place) -> None:
    named = (("alpha-1", "alpha-1"), ("b", "beta-1"), ("#2", "alpha-2"), ("3", "beta-1"), ("a-2", "alpha-2"))
    for text, found in named:
        assert four.type("show", text, "--json").json["id"] == found
    for text in ("alpha", "-1"):  # a beginning, an end
        ambiguous = four.type("show", "--", text)
        assert (ambiguous.code, is_one_line(ambiguous)) == (2, True)
        assert "alpha-1" in ambiguous.err
    for text in ("zeta", "#9", ""):
        unknown = four.type("show", text)
        assert (unknown.code, is_one_line(unknown)) == (2, True)


def test_without_a_run_the_newest_one_here_is_meant(four: Place) -> None:
    assert four.type("show", "--json").json["id"] == "beta-1"
    there = four.folder / "other"
    assert four.type("show", "--json", cwd=there).json["id"] == "gamma-1"
    ended = four.type("resume", cwd=there)
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "can be resumed" in ended.err
    nowhere = four.type("show", cwd=four.folder)
    assert (nowhere.code, is_one_line(nowhere)) == (2, True)
    assert "no run in this repository" in nowhere.err


def test_resume_takes_the_newest_run_that_can_be_resumed(place: Place) -> None:
    once = {"exit": 1, "when": {"attempt": 1}}
    assert place.play(once, SAY, words=("mend it", "--run-id", "old")).code == 1
    assert place.play(SAY, words=("--run-id", "done")).code == 0
    assert place.play({"limit": {}}, words=("--run-id", "gone")).code == 10
    assert place.type("cancel", "gone").code == 0
    ended = place.type("resume")
    assert (ended.code, ended.err.splitlines()[0]) == (0, "resuming run #1 (old): mend it"), ended


def test_plain_rows_in_a_pipe(four: Place) -> None:
    rows = [line.split("\t") for line in four.type("list", "--all-repos").out.splitlines()]
    assert {len(row) for row in rows} == {10}
    assert rows[1][2] == "waiting: limit"
    assert rows[3][-1] == "first words"
    assert "\x1b" not in four.type("list").out


def test_no_runs_is_no_failure_and_says_how_to_start(place: Place) -> None:
    ended = place.type("list")
    assert (ended.code, ended.out) == (0, "")
    assert "jackline run" in ended.err
    assert place.type("list", "--json").out == ""
    assert not place.home.exists()  # reading makes nothing


def test_runs_in_linked_worktrees_are_in_one_list(place: Place) -> None:
    for words in (
        ("init", "-q"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"),
        ("worktree", "add", "-q", "../b"),
    ):
        assert place.end_of(place.execute(["git", *words])).code == 0
    linked = place.folder / "b"
    assert place.play(SAY).code == 0
    assert place.play(SAY, cwd=linked).code == 0
    for folder in (place.repository, linked):
        rows = place.type("list", "--json", cwd=folder).rows
        assert [(row["number"], row["repository"]) for row in rows] == [
            (2, str(place.repository)),
            (1, str(place.repository)),
        ]
        assert place.type("show", "2", "--json", cwd=folder).json["spec"]["workspace"] == str(linked)
