"""The learning gate at the end of a run, for a case that the agent opened from its shell."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jackline.features.cases.learning import REVIEW_COMMAND
from tests.cli.place import SAY, Ended, Place, is_one_line

UNRESOLVED = 16
ONCE = ("--max-iterations", "1")
START = "jackline case start 'why is it slow?' --skip-intake"
LEARN = "jackline case learning add --kind doc-gap --summary 'caches are cold' --repo-action docs --path docs/cache.md"
NO_ACTION = "jackline case learning add --kind doc-gap --summary 'a one-off' --repo-action none --reason 'never again'"
WRITE = "mkdir -p docs && echo cold >docs/cache.md && git add docs/cache.md"


@pytest.fixture
def repository(place: Place) -> Path:
    git(place, "init", "-q")
    return place.repository


def git(place: Place, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place.repository, env=place.environment(), check=True)


def shell(command: str, **when: Any) -> dict[str, Any]:
    return {
        "call": {"tool": "shell", "input": {"command": command}, "run": command},
        **({"when": when} if when else {}),
    }


def play(place: Place, *steps: dict[str, Any], words: tuple[str, ...] = ()) -> Ended:
    return place.play(*steps, words=("--run-id", "r1", "--json", *words))


def shown(place: Place) -> dict[str, Any]:
    return place.type("show", "r1", "--json").json


def reviews(place: Place) -> list[tuple[int, str]]:
    checks = shown(place)["checks"]
    return [(one["exit_code"], one["output"]) for one in checks if one["command"] == REVIEW_COMMAND]


# --- inside of a run -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("repository")
def test_a_shell_inside_a_run_finds_jackline_its_home_and_its_run(place: Place) -> None:
    look = 'echo "$JACKLINE_RUN|$JACKLINE_HOME|$JACKLINE_DATABASE" >../seen; command -v jackline >>../seen'
    assert play(place, shell(look)).code == 0
    named, program = (place.folder / "seen").read_text().splitlines()
    assert named == f"r1|{place.home}|"
    assert program.endswith("/jackline")


@pytest.mark.usefixtures("repository")
def test_the_proof_sees_the_run_too(place: Place) -> None:
    ended = play(place, SAY, words=("--proof", 'test "$JACKLINE_RUN" = r1 && jackline list --json >../listed'))
    assert (ended.code, ended.json["proof"]) == (0, "proved")
    assert [json.loads(line)["id"] for line in (place.folder / "listed").read_text().splitlines()] == ["r1"]


@pytest.mark.usefixtures("repository")
def test_a_case_that_is_opened_inside_belongs_to_the_run(place: Place) -> None:
    assert play(place, shell(START)).code == 0
    (case,) = place.type("case", "list", "--json").rows
    assert case["run"] == "r1"


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("environ", "name"), [({}, "scripted"), ({"JACKLINE_ACTOR": "forge"}, "forge")])
def test_what_an_agent_does_bears_its_name_unless_a_person_gave_one(
    place: Place, environ: dict[str, str], name: str
) -> None:
    place.environ.update(environ)
    steps = (START, "jackline work enqueue --id a --kind k", "jackline work next", "jackline events append seen")
    proof = 'test -z "$JACKLINE_ACTOR"'  # a check is the host's doing
    assert play(place, *map(shell, steps), words=("--proof", proof)).code == 0
    assert place.type("work", "get", "a", "--json").json["owner_agent"] == name
    events = place.type("events", "tail", "--limit", "50", "--json").rows
    assert {one["actor"] for one in events if one["type"].startswith(("work.", "case.", "seen"))} == {name}


@pytest.mark.usefixtures("repository")
def test_a_run_that_the_home_does_not_know_is_named(place: Place) -> None:
    assert place.play(SAY).code == 0
    ended = place.type("case", "start", "why?", "--skip-intake", environ={"JACKLINE_RUN": "elsewhere"})
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "JACKLINE_RUN names run elsewhere" in ended.err
    assert place.type("case", "list", "--json").rows == []


# --- the gate --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("repository")
def test_a_run_without_a_case_has_no_review(place: Place) -> None:
    assert play(place, SAY).code == 0
    assert shown(place)["checks"] == []
    assert shown(place)["completion"]["steps"] == 2


@pytest.mark.usefixtures("repository")
def test_an_unresolved_learning_fails_the_run_and_says_what_to_do(place: Place) -> None:
    ended = play(place, shell(START), shell(LEARN), words=ONCE)
    assert (ended.code, ended.json["failure"]) == (UNRESOLVED, "learnings"), ended
    (case,) = place.type("case", "list", "--json").rows
    look = f"jackline case learning review --case {case['id']}"
    assert ended.json["detail"] == (
        f"1 learning is unresolved (L001): `{look}` shows what is missing; limit reached: 1 of 1 iterations; "
        "`jackline resume r1 --max-iterations N` continues it"
    )
    assert "docs/cache.md" in place.type(*look.split()[1:]).out
    ((code, output),) = reviews(place)
    assert code == 1
    assert "L001 caches are cold: docs/cache.md is not tracked by git" in output


@pytest.mark.usefixtures("repository")
def test_the_proof_is_not_run_for_what_has_to_change_anyway(place: Place) -> None:
    ended = play(place, shell(START), shell(LEARN), words=("--proof", "touch ../proved", *ONCE))
    assert (ended.code, ended.json["proof"]) == (UNRESOLVED, "unverified")
    assert not (place.folder / "proved").exists()


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    "learned", [(shell(LEARN), shell(WRITE)), (shell(NO_ACTION),), ()], ids=["file", "reason", "none"]
)
def test_an_open_case_with_nothing_unresolved_is_mentioned_and_holds_nothing(
    place: Place, learned: tuple[dict[str, Any], ...]
) -> None:
    ended = play(place, shell(START), *learned, words=("--proof", "true"))
    assert (ended.code, ended.json["proof"]) == (0, "proved"), ended
    ((code, output),) = reviews(place)
    assert (code, "is open" in output) == (0, True)
    folder = place.home / "runs" / "r1"
    (case,) = json.loads((folder / "metadata.json").read_text())["open_cases"]
    assert "open case" in (folder / "summary.txt").read_text()
    assert case in (folder / "summary.txt").read_text()


@pytest.mark.usefixtures("repository")
def test_a_closed_case_is_not_checked_again(place: Place) -> None:
    close = "jackline case close --summary done --verification true"
    assert play(place, shell(START), shell(close)).code == 0
    assert reviews(place) == []


@pytest.mark.usefixtures("repository")
def test_a_resume_tells_the_agent_and_goes_on_to_success(place: Place) -> None:
    steps = [shell(START, attempt=1), shell(LEARN, attempt=1), shell(WRITE, attempt=2)]
    script = place.folder / "forgetful.json"  # one that comes to each step in each attempt
    script.write_text(json.dumps({"version": 1, "session": False, "steps": steps}))
    words = ("run", "--agent", "scripted", "--script", str(script), "--run-id", "r1", *ONCE)
    assert place.type(*words).code == UNRESOLVED
    page = (place.home / "runs" / "r1" / "RESUME.md").read_text()
    assert "docs/cache.md is not tracked by git" in page
    ended = place.type("resume", "r1", "--max-iterations", "2", "--json")
    assert (ended.code, ended.json["state"]) == (0, "succeeded"), ended
    told = shown(place)["turns"][1]["prompt"]
    assert f"the host ran `{REVIEW_COMMAND}`, and it failed (exit code 1)" in told
    assert "L001 caches are cold: docs/cache.md is not tracked by git" in told
    assert "jackline case handoff" in told
    assert [code for code, _ in reviews(place)] == [1, 0]


@pytest.mark.usefixtures("repository")
def test_a_fork_of_such_a_run_has_no_case_of_its_own_and_is_not_held(place: Place) -> None:
    look = "jackline case status >../status 2>&1; true"
    steps = f'if [ "$JACKLINE_RUN" = r1 ]; then {START} && {LEARN}; else {look}; fi'
    assert play(place, shell(steps)).code == UNRESOLVED
    forked = place.type("fork", "r1", "--json")
    assert (forked.code, forked.json["state"]) == (0, "succeeded"), forked
    assert f"no case is active in run {forked.json['id']}" in (place.folder / "status").read_text()


@pytest.mark.usefixtures("repository")
def test_the_transcript_and_the_screen_show_the_review(place: Place) -> None:
    assert play(place, shell(START), shell(LEARN), shell(WRITE), words=("--proof", "true")).code == 0
    rows = [json.loads(line) for line in (place.home / "runs" / "r1" / "transcript.jsonl").read_text().splitlines()]
    signals = [(row["metadata"]["command"], row["signal"]) for row in rows if row.get("signal") in {"PASS", "FAIL"}]
    assert signals == [(REVIEW_COMMAND, "PASS"), ("true", "PASS")]
    assert REVIEW_COMMAND[:30] in place.type("show", "r1").out
    assert place.type("verify", "r1").code == 0


@pytest.mark.usefixtures("repository")
def test_the_transcript_of_a_failed_review_says_fail(place: Place) -> None:
    assert play(place, shell(START), shell(LEARN), words=ONCE).code == UNRESOLVED
    rows = [json.loads(line) for line in (place.home / "runs" / "r1" / "transcript.jsonl").read_text().splitlines()]
    assert [row["signal"] for row in rows if row.get("signal")][-1] == "FAIL"


def test_outside_of_a_repository_only_a_reason_resolves(place: Place) -> None:
    assert play(place, shell(START), shell(LEARN), shell("mkdir docs && touch docs/cache.md")).code == UNRESOLVED
    assert "docs/cache.md is not tracked by git" in reviews(place)[0][1]
