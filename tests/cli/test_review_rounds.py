"""Reviews from the request to the decision of a person: real commands, with programs that work and review."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.place import Place, is_one_line

WORKER = """#!/bin/sh
cat >>{folder}/prompts.txt
echo again >>work.txt
echo "I worked"
"""
REVIEWER = """#!/bin/sh
cat >{folder}/review.txt
pwd >>{folder}/places.txt
git config core.fsmonitor >{folder}/monitor.txt
echo "an edit of the reviewer" >>work.txt
cat {folder}/answer.json
"""
BLOCKED = {
    "verdict": "fail",
    "findings": [{"severity": "blocking", "file": "work.txt", "line": 1, "text": "too short"}],
}


def program(place: Place, name: str, text: str) -> str:
    path = place.folder / name
    path.write_text(text.format(folder=place.folder))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f'[agents.{name}]\ncommand = ["{path}"]\nformat = "text"\n'


def git(place: Place, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=place.repository,
        check=True,
        env=place.environment(),
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def answer(place: Place, *values: object) -> None:
    (place.folder / "answer.json").write_text("\n".join(json.dumps(value) for value in values))


@pytest.fixture
def loop(place: Place) -> Place:
    settings = place.folder / ".config" / "jackline"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(program(place, "worker", WORKER) + program(place, "critic", REVIEWER))
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first", "--allow-empty")):
        git(place, *words)
    return place


def run(place: Place, *words: str) -> dict[str, object]:
    ended = place.type("run", "write it", "--agent", "worker", "--review", "critic", "--ungated", "--json", *words)
    assert ended.out, ended
    return ended.json


def test_a_person_ends_a_review_that_does_not_end(loop: Place) -> None:
    answer(loop, BLOCKED)
    ended = run(loop, "--run-id", "one", "--proof", "test -s work.txt")
    assert (ended["state"], ended["reason"], ended["exit_code"]) == ("waiting", "human", 14)
    listed = loop.type("findings", "one", "--json").json
    assert [(one["id"], one["state"]) for one in listed["findings"]] == [("F1", "open")]
    assert [one["review_round"] for one in listed["verdicts"]] == [1, 2]
    shown = loop.type("show", "one", "--json").json
    assert len({one["tree"] for one in listed["verdicts"]}) == 2
    assert listed["verdicts"][-1]["tree"] == shown["life"]["tree"]
    # the reviewer saw what it needs, and changed nothing
    review = (loop.folder / "review.txt").read_text()
    for words in (
        "write it",
        "+again",
        "test -s work.txt",
        "It passed",
        "F1 blocking",
        "This is the diff since that review",
        "I worked",
    ):
        assert words in review
    assert (loop.folder / "monitor.txt").read_text() == "false\n"
    assert (loop.repository / "work.txt").read_text() == "again\nagain\n"
    assert not any(Path(line).exists() for line in (loop.folder / "places.txt").read_text().splitlines())
    # the worker got the finding once, quoted
    prompts = (loop.folder / "prompts.txt").read_text()
    assert prompts.count("too short") == 1
    manifest = json.loads((loop.home / "runs" / "one" / "manifest.json").read_text())
    assert (manifest["review_mode"], manifest["current_iteration"]) == ("critic", 2)
    assert loop.type("findings", "one", "--dismiss", "F1", "--reason", "long enough").code == 0
    resumed = loop.type("resume", "one", "--json").json
    assert (resumed["state"], resumed["proof"], resumed["iteration"]) == ("succeeded", "proved", 2)
    assert len((loop.folder / "places.txt").read_text().splitlines()) == 2
    assert loop.type("verify", "one").code == 0


def test_what_reviewers_block_is_merged_only_if_a_person_says_so(loop: Place) -> None:
    answer(loop, BLOCKED)
    git(loop, "config", "user.name", "t")
    git(loop, "config", "user.email", "t@example.com")
    assert run(loop, "--run-id", "one", "--worktree", "tree", "--commit")["reason"] == "human"
    refused = loop.type("findings", "one", "--accept", "it is fine")
    assert (refused.code, "1 blocking finding: F1 (work.txt:1): dismiss" in refused.err) == (2, True), refused
    refused = loop.type("worktree", "merge", "tree")
    assert (refused.code, is_one_line(refused)) == (1, True), refused
    for words in ("1 blocking finding: F1 (work.txt:1)", "jackline findings one --dismiss F1", "--no-review"):
        assert words in refused.err
    assert not (loop.repository / "work.txt").exists()
    merged = loop.type("worktree", "merge", "tree", "--no-review")
    assert (merged.code, (loop.repository / "work.txt").exists()) == (0, True), merged


def test_after_the_last_iteration_a_dismissed_finding_is_a_pass(loop: Place) -> None:
    answer(loop, BLOCKED)
    ended = run(loop, "--run-id", "one", "--proof", "test -s work.txt", "--max-iterations", "1")
    assert (ended["failure"], ended["exit_code"]) == ("review", 16)
    dismissed = loop.type("findings", "one", "--dismiss", "F1", "--reason", "long enough")
    assert "try again: jackline resume one\n" in dismissed.out, dismissed
    resumed = loop.type("resume", "one", "--json").json
    assert (resumed["state"], resumed["proof"], resumed["iteration"]) == ("succeeded", "proved", 1)
    assert (loop.repository / "work.txt").read_text() == "again\n", "nothing is left for the worker"


def test_a_resume_gives_new_rounds_and_a_finding_is_resolved(loop: Place) -> None:
    answer(loop, BLOCKED)
    assert run(loop, "--run-id", "one")["reason"] == "human"
    answer(loop, {"verdict": "pass", "earlier": {"F1": "resolved"}})
    assert loop.type("resume", "one", "make it longer", "--json").json["state"] == "succeeded"
    assert "make it longer" in (loop.folder / "review.txt").read_text(), "the reviewer knows what a person added"
    listed = loop.type("findings", "one", "--json").json
    assert [(one["state"], one["settled_round"]) for one in listed["findings"]] == [("resolved", 3)]
    assert "PASS" in (loop.home / "runs" / "one" / "transcript.jsonl").read_text()


def test_a_resume_changes_the_number_of_rounds(loop: Place) -> None:
    answer(loop, BLOCKED)
    ended = run(loop, "--run-id", "one", "--review-rounds", "1")
    assert (ended["reason"], "not resolved after 1 review round:" in str(ended["detail"])) == ("human", True)
    resumed = loop.type("resume", "one", "--review-rounds", "2", "--json").json
    assert resumed["reason"] == "human"
    rounds = [one["review_round"] for one in loop.type("findings", "one", "--json").json["verdicts"]]
    assert rounds == [1, 2, 3]
    assert "review_rounds changed from 1 to 2" in loop.type("logs", "one", "--events").out
    assert loop.type("verify", "one").code == 0
    refused = loop.type("resume", "one", "--review-rounds", "0")
    assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert loop.type("run", "write it", "--agent", "worker", "--run-id", "two", "--proof", "false").code == 16
    refused = loop.type("resume", "two", "--review-rounds", "4")
    assert (refused.code, "run two has no reviewers" in refused.err) == (2, True), refused


def test_a_program_may_print_its_verdict_over_several_lines(loop: Place) -> None:
    texts = [f"{number} {'x' * 1_900}" for number in (1, 2, 3)]
    found = [{"severity": "blocking", "file": "work.txt", "text": text} for text in texts]
    verdict = {"verdict": "fail", "findings": found}
    (loop.folder / "answer.json").write_text(f"I have read it.\n\n```json\n{json.dumps(verdict, indent=2)}\n```\n")
    run(loop, "--run-id", "one", "--review-rounds", "1")
    listed = loop.type("findings", "one", "--json").json
    assert [one["text"] for one in listed["findings"]] == texts
    answer(loop, verdict)  # one long line
    loop.type("resume", "one")
    assert len(loop.type("findings", "one", "--json").json["verdicts"]) == 2


def test_an_unclear_answer_is_asked_for_once_more_then_a_person_decides(loop: Place) -> None:
    (loop.folder / "answer.json").write_text("2 passed, 1 failed")
    ended = run(loop, "--run-id", "one")
    assert (ended["state"], ended["reason"]) == ("waiting", "human")
    assert len((loop.folder / "places.txt").read_text().splitlines()) == 2
    assert "Your answer cannot be used" in (loop.folder / "review.txt").read_text()
    assert loop.type("findings", "one", "--json").json["verdicts"] == []
    empty = loop.type("findings", "one", "--accept", " ")
    assert (empty.code, "--accept needs a reason" in empty.err) == (2, True)
    accepted = loop.type("findings", "one", "--accept", "read it myself")
    assert (accepted.code, "continue: jackline resume one" in accepted.out) == (0, True), accepted
    assert "you: accepted the work in review round 1: read it myself" in loop.type("logs", "one").out
    assert loop.type("resume", "one", "--json").json["state"] == "succeeded"
    listed = loop.type("findings", "one")
    assert (listed.out, listed.err) == ("accepted by a person (round 1): read it myself\n", "")
    assert "no open blocking finding; accepted by a person (round 1): read it myself\n" in loop.type("show", "one").out
    for command in ("findings", "show"):
        assert loop.type(command, "one", "--json").json["accepted"] == {"round": 1, "reason": "read it myself"}
    assert len((loop.folder / "places.txt").read_text().splitlines()) == 2  # nobody reviewed again
    assert loop.type("verify", "one").code == 0
    late = loop.type("findings", "one", "--accept", "again")
    assert (late.code, is_one_line(late)) == (2, True), late


def test_other_files_than_those_that_were_accepted_are_reviewed(loop: Place) -> None:
    (loop.folder / "answer.json").write_text("no idea")
    assert run(loop, "--run-id", "one")["reason"] == "human"
    assert loop.type("findings", "one", "--accept", "read it myself").code == 0
    (loop.repository / "work.txt").write_text("something else\n")
    assert loop.type("resume", "one", "--json").json["state"] == "waiting"


def test_what_changed_while_the_run_waited_is_committed_before_it_is_proved_again(loop: Place) -> None:
    answer(loop, BLOCKED)
    ended = run(loop, "--run-id", "one", "--proof", "true", "--commit", "--review-rounds", "1")
    assert ended["reason"] == "human"
    assert git(loop, "status", "--porcelain") == ""
    (loop.repository / "work.txt").write_text("longer, by a person\n")
    answer(loop, {"verdict": "pass", "earlier": {"F1": "resolved"}})
    assert loop.type("resume", "one", "--json").json["state"] == "succeeded"
    assert git(loop, "show", "HEAD:work.txt") == "longer, by a person"
    assert git(loop, "status", "--porcelain") == ""


def test_a_review_that_could_never_be_made_is_refused_before_the_work(loop: Place) -> None:
    words = ("run", "write it", "--agent", "worker", "--ungated", "--review")
    outside = loop.folder / "outside"
    outside.mkdir()
    refused = loop.type(*words, "critic", cwd=outside)
    assert (refused.code, "--review needs a git repository" in refused.err) == (2, True), refused
    refused = loop.type(*words[:-1], "--commit", cwd=outside)
    assert (refused.code, "--commit needs a git repository" in refused.err) == (2, True), refused
    (loop.folder / "critic").unlink()
    missing = loop.type(*words, "critic")
    assert (missing.code, "agent 'critic' cannot be used" in missing.err) == (13, True), missing
    assert not (loop.folder / "prompts.txt").exists()
    assert loop.type("enqueue", *words[1:], "critic").code == 0  # it may be there where the run is worked on


def test_files_that_a_partial_clone_has_not_fetched_are_named_before_the_work(loop: Place) -> None:
    (loop.repository / "other.txt").write_text("not here\n")
    git(loop, "add", "-A")
    git(loop, "commit", "-qm", "other")
    name = git(loop, "rev-parse", "HEAD:other.txt")
    git(loop, "sparse-checkout", "set", "--no-cone", "/*", "!other.txt")
    (loop.repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    ended = run(loop)
    assert (ended["failure"], "has not fetched 1 file" in str(ended["detail"])) == ("worktree", True), ended
    assert not (loop.folder / "prompts.txt").exists()


# --- a review that a crash interrupts

HELD_REVIEWER = """#!/bin/sh
cat >/dev/null
if [ ! -e {folder}/reached ]; then touch {folder}/reached; exec sleep 600; fi
cat {folder}/answer.json
"""


@pytest.mark.parametrize("file", ["theirs.txt", ""])
def test_what_a_person_commits_after_a_crash_stays(loop: Place, file: str) -> None:
    program(loop, "critic", HELD_REVIEWER)
    answer(loop, {"verdict": "pass"})
    git(loop, "branch", "older")
    words = ("--agent", "worker", "--review", "critic", "--ungated", "--run-id", "one", "--proof", "test -s work.txt")
    run = loop.start("run", "write it", *words)
    loop.wait_for("reached")
    run.kill()
    run.wait()
    if file:
        (loop.repository / file).write_text("a day of work\n")
        git(loop, "add", file)
    git(loop, "commit", "-qm", "a day of work", "--allow-empty")
    tip = git(loop, "rev-parse", "main")
    git(loop, "switch", "-q", "older")
    resumed = loop.type("resume", "one", "--quiet")
    assert (resumed.code, resumed.err) == (0, ""), resumed
    assert (git(loop, "rev-parse", "main"), git(loop, "branch", "--show-current")) == (tip, "older")
    shown = loop.type("show", "one", "--json").json
    assert (shown["state"], shown["proof"]) == ("succeeded", "proved")


MEDDLER = """#!/bin/sh
cat >/dev/null
echo "by the reviewer" >{folder}/repository/work.txt
cat {folder}/answer.json
"""


def test_a_person_gets_to_know_what_was_put_back(loop: Place) -> None:
    program(loop, "critic", MEDDLER)
    answer(loop, {"verdict": "pass"})
    words = ("--agent", "worker", "--review", "critic", "--ungated", "--run-id", "one", "--quiet")
    ended = loop.type("run", "write it", *words)
    assert ended.code == 0, ended
    assert (loop.repository / "work.txt").read_text() == "again\n"
    (line,) = [line for line in ended.err.splitlines() if "was put back" in line]
    assert "work.txt changed" in line
    command = line.partition("to get it back: ")[2]
    subprocess.run(shlex.split(command), check=True, env=loop.environment())
    assert (loop.repository / "work.txt").read_text() == "by the reviewer\n"


def test_the_manifest_tells_that_a_review_is_under_way(loop: Place) -> None:
    program(loop, "critic", HELD_REVIEWER)
    answer(loop, {"verdict": "pass"})
    words = ("--agent", "worker", "--review", "critic", "--ungated", "--run-id", "one", "--proof", "test -s work.txt")
    run = loop.start("run", "write it", *words)
    loop.wait_for("reached")
    until, file = time.monotonic() + 60, loop.home / "runs" / "one" / "manifest.json"
    while (manifest := json.loads(file.read_text()))["state"] != "reviewing":
        assert time.monotonic() < until, manifest
        time.sleep(0.01)
    assert (manifest["current_iteration"], manifest["metadata"]["phase"]) == (1, "reviewing")
    run.terminate()
    assert run.wait() == 130
    assert json.loads(file.read_text())["state"] == "input-required"
