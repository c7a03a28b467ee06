"""Edge cases of `jackline case`: odd names, moved repositories, interrupted commands, empty variables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jackline.app import config
from jackline.app.home import Home
from jackline.engine import run_env
from tests.cli.place import EFFECT_RULE, SAY, SEND, Place
from tests.cli.test_case import do, git, refused
from tests.support.secrets import TOKENS

LEARN = ("case", "learning", "add", "--kind", "doc-gap", "--summary", "say it", "--repo-action", "docs", "--path")


@pytest.fixture
def at(place: Place) -> Place:
    """In a git repository with a tracked file."""
    place.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    git(place.repository, "init", "-q")
    (place.repository / "docs").mkdir()
    (place.repository / "docs" / "kept.md").touch()
    git(place.repository, "add", "docs")
    return place


def begin(place: Place, *words: str, **more: Any) -> str:
    ended = place.type("case", "start", "mend it", "--json", *words, **more)
    assert ended.code == 0, ended
    return str(ended.json["id"])


def review(place: Place, **more: Any) -> list[tuple[str, bool]]:
    return [(one["path"], one["resolved"]) for one in do(place, "learning", "review", "--json", **more).rows]


def last_command(place: Place) -> dict[str, Any]:
    command: dict[str, Any] = do(place, "status", "--json").json["last_commands"][-1]
    return command


# secrets and terminals


def test_a_secret_in_the_request_does_not_become_the_name_of_the_case(at: Place) -> None:
    token = TOKENS["github p"]
    case = at.type("case", "start", f"why is {token} refused", "--json").json
    assert case["id"].endswith("Z-why-is-redacted-refused")
    everything = "".join(str(one) for one in (at.repository / ".agents").rglob("*")).lower()
    assert token.lower().rpartition("_")[2] not in everything


def test_a_verification_that_could_not_be_run_again_is_refused(at: Place) -> None:
    """What is kept is redacted, and `close` would run that."""
    token = TOKENS["github p"]
    ended = at.type("case", "start", "x", "--verify", f"curl -H 'X: {token}' host")
    refused(ended, 2, "--verify seems to contain a secret")
    assert not (at.repository / ".agents").exists()


def test_what_others_wrote_steers_no_terminal(at: Place) -> None:
    ended = at.type("case", "start", "x", environ={"JACKLINE_INTAKE": "printf 'no \\033[2J plan' >&2; exit 3"})
    assert (ended.code, "made no plan" in ended.err) == (0, True)
    do(at, *LEARN[1:], "new.md")
    git(at.repository, "config", "user.name", "Ada")
    said = at.type("case", "learning", "add", *LEARN[3:6], "a\x1b[2J\nb", *LEARN[7:], "x.md").err
    said += at.type("case", "hook", "pre-commit").err
    said += at.type("case", "close", "--summary", "x", "--force", "y", "--verification", ": '\x1b[2J'; false").err
    assert "\x1b" not in ended.err + said
    assert "jackline: L002 a [2J b: x.md is not tracked by git" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", "x", "--intent", "y" * 20_000), "--intent has 20000 characters"),
        (("close", "--summary", "x", "--verification", "true", "--risk", ""), "--risk is empty"),
    ],
)
def test_every_text_has_its_bounds(at: Place, words: tuple[str, ...], said: str) -> None:
    if words[0] == "close":
        begin(at)
    refused(at.type("case", *words), 2, said)


def test_a_name_that_came_out_empty_is_not_the_active_case(at: Place) -> None:
    """As in `--case "$ID"`, with ID unset."""
    begin(at)
    for words in (("status", "--case", ""), ("hypothesis", "add", "x", "--case", ""), ("reopen", "")):
        refused(at.type("case", *words), 1, "no case matches ''")
    refused(at.type("case", "evidence", "add", "x", "--hypothesis", ""), 1, "no hypothesis matches ''")
    refused(at.type("events", "tail", "--case", ""), 1, "no case matches ''")
    assert do(at, "status", "--json").json["counts"] == {"hypothesis": 0, "evidence": 0, "command": 0, "learning": 0}


@pytest.mark.parametrize("name", ["a\nb", " ", "x" * 201])
def test_who_acts_has_a_name_in_one_line(at: Place, name: str) -> None:
    begin(at)
    ended = at.type("case", "hypothesis", "add", "x", environ={"JACKLINE_ACTOR": name})
    refused(ended, 2, "JACKLINE_ACTOR: an actor is a name in one line")


def test_an_invalid_name_of_a_hypothesis_is_shortened(at: Place) -> None:
    begin(at)
    ended = at.type("case", "evidence", "add", "x", "--hypothesis", "H" + "x" * 5000)
    refused(ended, 1, "no hypothesis matches 'Hxxx")
    assert len(ended.err) < 300


def test_a_verification_that_kills_who_watches_it_has_failed(at: Place) -> None:
    begin(at)
    ended = at.type("case", "close", "--summary", "x", "--verification", "kill -9 $PPID")
    assert (ended.code, "verification C001 failed (exit 137): kill -9 $PPID" in ended.err) == (16, True), ended
    assert "that watched it was killed" in last_command(at)["output"]


# the files of learnings


def test_odd_names_of_files(at: Place) -> None:
    begin(at)
    names = ("with space.md", "new\nline.md", "-n.md", "*.md")
    for name in names:
        (at.repository / name).touch()
        do(at, "learning", "add", *LEARN[3:-1], f"--path={name}")
    git(at.repository, "add", "-A")
    assert review(at) == [(name, True) for name in names]


def test_a_file_that_git_could_not_find_later_is_refused(at: Place) -> None:
    begin(at)
    (Path(os.fsdecode(bytes(at.repository) + b"/bad\xff.md"))).touch()
    refused(at.type(*LEARN, "bad\udcff.md"), 2, "not UTF-8")
    refused(at.type(*LEARN, "docs"), 2, "is a folder: name the file")
    refused(at.type(*LEARN, "deep/" * 1_000), 2, "is too long for a path")
    (at.repository / "away").symlink_to(at.folder)
    refused(at.type(*LEARN, "away/x.md"), 2, "is not a file in")


def test_a_file_behind_a_linked_folder_is_the_one_that_git_knows(at: Place) -> None:
    begin(at)
    (at.repository / "pages").symlink_to("docs")
    (at.repository / "link.md").symlink_to("docs/kept.md")
    git(at.repository, "add", "-A")
    do(at, *LEARN[1:], "pages/kept.md")
    do(at, *LEARN[1:], "link.md")
    assert review(at) == [("docs/kept.md", True), ("link.md", True)]


def test_a_path_is_meant_from_here_unless_only_the_root_has_it(at: Place) -> None:
    begin(at)
    below = at.repository / "docs"
    for path in ("kept.md", "docs/kept.md", "new.md", "docs/new.md", "../new.md", "deep/new.md"):
        do(at, *LEARN[1:], path, cwd=below)
    paths = [path for path, _ in review(at)]
    assert paths == ["docs/kept.md", "docs/kept.md", "docs/new.md", "docs/new.md", "new.md", "docs/deep/new.md"]


def test_a_deleted_file_keeps_nothing_and_a_git_that_cannot_say_is_named(at: Place) -> None:
    begin(at)
    do(at, *LEARN[1:], "docs/kept.md")
    (at.repository / "docs" / "kept.md").unlink()
    assert review(at) == [("docs/kept.md", False)]
    (at.repository / "docs" / "kept.md").touch()
    assert review(at) == [("docs/kept.md", True)]
    (at.repository / ".git" / "index").write_bytes(b"half an index")
    (lacking,) = do(at, "learning", "review", "--json").rows
    assert lacking["lacks"] == "cannot determine whether git tracks docs/kept.md; see `git status`"
    held = at.type("case", "hook", "pre-commit")
    assert held.code == 0, "that is no reason to hold a commit"
    assert "git cannot list the tracked files" in held.err
    refused(at.type("case", "close", "--summary", "x", "--verification", "true"), 1, "cannot determine whether git")
    assert do(at, "handoff", "--json").json["dirty_now"] == ["! git status failed"]


def test_git_is_asked_about_the_case_s_own_repository(at: Place) -> None:
    """In a hook or an alias of another repository git names that one in the environment."""
    begin(at)
    do(at, *LEARN[1:], "docs/kept.md")
    other = at.folder / "other"
    other.mkdir()
    git(other, "init", "-q")
    environ = {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / ".git" / "index")}
    assert review(at, environ=environ) == [("docs/kept.md", True)]
    assert do(at, "handoff", "--json", environ=environ).json["dirty_now"] == ["A  docs/kept.md"]


# commands that are run


def test_output_of_a_command_appears_at_once_and_completely(at: Place) -> None:
    begin(at)
    process = at.start("case", "command", "run", "--", "echo first; while ! test -e go; do sleep 0.05; done; echo last")
    assert process.stdout is not None
    assert process.stdout.readline() == "first\n"
    (at.repository / "go").touch()
    assert at.end_of(process).out == "last\n"
    flood = at.type("case", "command", "run", "--", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert (flood.code, len(flood.out)) == (0, 3_000_000)
    assert last_command(at)["output"] == "x" * 4000


def test_an_interrupted_command_is_written_down(at: Place) -> None:
    begin(at, "--verify", "true")
    waits = "echo ready; exec sleep 600"
    process = at.start("case", "command", "run", "--", waits, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert at.end_of(process).code == 130
    command = last_command(at)
    assert (command["command"], command["status"], command["exit_code"]) == (waits, "fail", 130)


# where a case is


def test_a_case_goes_with_its_repository(at: Place) -> None:
    case_id = begin(at, "--verify", "test -e docs/kept.md")
    do(at, *LEARN[1:], "docs/kept.md")
    moved = at.folder / "moved"
    at.repository.rename(moved)
    stranger = at.folder / "stranger"
    stranger.mkdir()
    refused(at.type("case", "switch", case_id, cwd=stranger), 1, f"belongs to {at.repository}")
    assert do(at, "switch", case_id, cwd=moved).out == f"{case_id} active\n"
    assert do(at, "status", "--json", cwd=moved).json["repository"] == str(moved)
    assert do(at, "close", "--summary", "done", cwd=moved).out == f"{case_id} closed\n"
    told = json.loads((moved / ".agents/runs" / case_id / "closeout.json").read_text())
    assert told["summary"] == "done"
    moved.rename(at.repository)
    assert do(at, "reopen", case_id).out == f"{case_id} open\n"
    assert at.type("db", "check").code == 0


def test_a_case_is_not_taken_from_a_repository_that_is_there(at: Place) -> None:
    case_id = begin(at)
    copy = at.folder / "copy"
    subprocess.run(["cp", "-r", str(at.repository), str(copy)], check=True)
    refused(at.type("case", "switch", case_id, cwd=copy), 1, f"belongs to {at.repository}")


def test_a_linked_worktree_has_a_case_of_its_own(at: Place) -> None:
    git(at.repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begin")
    first = begin(at)
    linked = at.folder / "linked"
    git(at.repository, "worktree", "add", "-q", str(linked))
    second = begin(at, cwd=linked)
    assert first != second
    (linked / "docs" / "new.md").touch()
    git(linked, "add", "docs/new.md")
    do(at, *LEARN[1:], "docs/new.md", cwd=linked)
    do(at, *LEARN[1:], "docs/new.md")
    assert (review(at, cwd=linked), review(at)) == ([("docs/new.md", True)], [("docs/new.md", False)])


def test_warnings_about_an_entry_are_in_the_json_output_too(at: Place) -> None:
    begin(at)
    runs = at.repository / ".agents"
    runs.rename(at.repository / "was")
    runs.touch()
    added = do(at, "hypothesis", "add", "x", "--json").json
    assert (added["id"], len(added["warnings"])) == ("H001", 1)


# runs


def test_reopening_without_an_id_means_no_case_of_a_run(at: Place) -> None:
    run_id = at.play(SAY, words=("--json",)).json["id"]
    inside: dict[str, Any] = {"environ": {"JACKLINE_RUN": run_id}}
    own = begin(at, "--verify", "true")
    do(at, "close", "--summary", "x")
    theirs = begin(at, "--verify", "true", **inside)
    do(at, "close", "--summary", "x", **inside)
    assert do(at, "reopen").out == f"{own} open\n"
    assert do(at, "reopen", **inside).out == f"{theirs} open\n"


@pytest.mark.parametrize("named", ["", "another"])
def test_a_run_that_is_not_named_any_more_is_known_by_its_mark(at: Place, named: str) -> None:
    """`env -u JACKLINE_RUN jackline case command run -- git push` must not get around the gate."""
    waits = at.policy(EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"'))
    run_id = at.play(SEND, SAY, words=("--policy", waits, "--json")).json["id"]
    begin(at)
    environ = at.environment()
    with Home(config.load_config(environ, str(at.repository))) as home:
        mark = run_env.build_process_tag(home.store().secret, run_id)
    if named:
        mark["JACKLINE_RUN"] = at.play(SAY, words=("--json",)).json["id"]
        begin(at, environ=mark)
    push = ("git", "push", "--force", "origin", "main")
    ended = at.type("case", "command", "run", "--", *push, environ=mark)
    refused(ended, 1, f"inside run {run_id} `git push --force origin main` cannot be run from here")
    assert at.type("case", "command", "run", "--", "true", environ=mark).code == 0
