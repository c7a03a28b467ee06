"""Tasks, job files, dry runs, and the changes of a run in git, from the command line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from jackline.app.tasks import BUILT_IN_FOLDER
from tests.cli.place import SAY, Ended, Place, is_one_line

COMMIT = {
    "call": {"tool": "shell", "input": {}, "run": "echo x >>smoke.txt && git add . && git commit -qm 'Smoke test'"}
}
REQUIRES_COMMIT = {
    "debug_hello_simple": False, "debug_hello_world": True, "debug_smoke_commit": True, "document_coverage": True,
    "document_test_alignment": True, "agent_management": True,
}  # fmt: skip


@pytest.fixture
def git(place: Place) -> Place:
    """The place, as a git repository with a commit of somebody else."""
    (place.folder / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "--allow-empty", "-m", "begin")):
        subprocess.run(["git", *words], cwd=place.repository, env=place.environment(), check=True)
    return place


def refused(ended: Ended) -> str:
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    return ended.err


# --- finding, showing, beginning -------------------------------------------------------------------------------


def test_the_six_of_the_predecessor_are_built_in(place: Place) -> None:
    rows = place.type("tasks", "list", "--json").rows
    assert {row["name"]: row["requires_commit"] for row in rows} == REQUIRES_COMMIT
    assert all(row["origin"] == "built in" and row["description"] and row["problem"] is None for row in rows)
    for name in REQUIRES_COMMIT:
        shown = place.type("tasks", "show", name, "--json").json
        assert shown["prompt"]
        assert shown["needs"] == [], "a built-in task needs no variable"
        assert "workspace" not in shown["prompt"] or "{workspace}" in shown["prompt"]
    assert {path.stem for path in Path(BUILT_IN_FOLDER).iterdir()} == set(REQUIRES_COMMIT)


def test_the_nearest_one_counts(git: Place) -> None:
    below = git.repository / "a" / "b"
    below.mkdir(parents=True)
    user = git.folder / ".config" / "jackline" / "tasks"
    user.mkdir(parents=True)
    for name in ("mine", "theirs", "debug_hello_world"):
        (user / f"{name}.md").write_text("---\ndescription: of the user\n---\nx")
    git.task("theirs", "---\ndescription: of the project\n---\nx")
    git.task("broken", "---\nparty: 1\n---\nx")
    rows = {row["name"]: row for row in git.type("tasks", "list", "--json", cwd=below).rows}
    assert rows["mine"]["origin"] == rows["debug_hello_world"]["origin"] == "user"
    assert (rows["theirs"]["origin"], rows["theirs"]["description"]) == ("project", "of the project")
    assert "unknown key 'party'" in rows["broken"]["problem"]
    assert "cannot be used" in git.type("tasks", "list").out
    assert "line 2" in refused(git.type("tasks", "show", "broken"))


def test_outside_a_repository_parent_folders_are_not_searched(place: Place) -> None:
    place.task("above")
    below = place.repository / "below"
    below.mkdir()
    assert "above" in place.type("tasks", "list").out
    assert "above" not in place.type("tasks", "list", cwd=below).out


def test_a_new_task_can_be_used_at_once_and_is_never_overwritten(place: Place) -> None:
    made = place.type("tasks", "new", "tidy", "--description", 'Tidy: "up"')
    path = place.repository / ".agents" / "tasks" / "tidy.md"
    assert (made.code, made.out.strip()) == (0, str(path))
    assert place.type("tasks", "show", "tidy", "--json").json["description"] == 'Tidy: "up"'
    assert (
        place.play(SAY, words=("--task", "tidy", "--json"))
        .json["prompt"]
        .startswith(f"You work in {place.repository}.")
    )
    path.write_text("mine now")
    assert "already exists" in refused(place.type("tasks", "new", "tidy"))
    assert path.read_text() == "mine now"
    assert "cannot be a task's name" in refused(place.type("tasks", "new", "../up"))


def test_what_is_no_file_of_the_project_is_no_task(place: Place) -> None:
    folder = place.repository / ".agents" / "tasks"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.md")
    (folder / "folder.md").mkdir()
    (place.folder / "secret").write_text("theirs")
    (folder / "link.md").symlink_to(place.folder / "secret")
    place.task("real")
    (folder / "inside.md").symlink_to("real.md")
    rows = {row["name"]: row["problem"] for row in place.type("tasks", "list", "--json").rows}
    assert (rows["real"], rows["inside"]) == (None, None)
    for name in ("pipe", "folder", "link"):
        assert rows[name], name
        assert rows[name] in refused(place.type("tasks", "show", name))
        assert rows[name] in refused(place.play(SAY, words=("--task", name)))
    assert "theirs" not in place.type("tasks", "list").out


def test_a_folder_of_tasks_outside_the_project_is_none(place: Place) -> None:
    outside = place.folder / "outside" / "tasks"
    outside.mkdir(parents=True)
    (outside / "theirs.md").write_text("x")
    (place.repository / ".agents").symlink_to(place.folder / "outside")
    assert "out of the project" in refused(place.type("tasks", "show", "theirs"))
    assert "is a link" in refused(place.type("tasks", "new", "mine"))
    assert not (outside / "mine.md").exists()


# --- running ---------------------------------------------------------------------------------------------------


def test_an_unknown_task_names_its_neighbours(place: Place) -> None:
    said = refused(place.play(SAY, words=("do it", "--task", "debug_helo_simple")))
    assert "did you mean debug_hello_simple" in said
    assert "jackline tasks list" in said
    assert not place.home.exists()
    assert "no task is called '../../etc/passwd'" in refused(place.play(SAY, words=("--task", "../../etc/passwd")))


def test_variables_and_further_arguments(place: Place) -> None:
    place.task("greet", "---\nvar.who: you\nmax_calls: 7\nproof: test -d .\n---\nGreet {who} in {where}.")
    assert place.trust().code == 0
    words = ("--task", "greet", "--var", "where=there", "--var", "who=her", "--json", "and be brief")
    run = place.play(SAY, words=words).json
    assert (run["task"], run["prompt"], run["proof"]) == ("greet", "Greet her in there.\n\nand be brief", "proved")
    spec = place.type("show", run["id"], "--json").json["spec"]
    assert spec["limits"]["calls"] == 7
    assert "add --var where=VALUE" in refused(place.play(SAY, words=("--task", "greet")))
    assert "has no variable 'what'" in refused(place.play(SAY, words=("--task", "greet", "--var", "what=1")))
    assert "is for a task" in refused(place.play(SAY, words=("hello", "--var", "what=1")))
    short = ("--task", "greet", "--var", "where=x", "--json")
    environ = {"JACKLINE_MAX_CALLS": "5"}
    for more, calls in (((), 7), (("--max-calls", "3"), 3)):
        run = place.play(SAY, words=(*short, *more), environ=environ).json
        assert place.type("show", run["id"], "--json").json["spec"]["limits"]["calls"] == calls
    run = place.play(SAY, words=(*short, "--proof", "false", "--max-iterations", "1")).json
    assert (run["exit_code"], run["failure"]) == (16, "proof")


def test_a_setting_of_a_task_that_makes_no_sense(place: Place) -> None:
    place.task("odd", "---\nretries: 1.5\n---\nx")
    assert "odd.md: retries must be a whole number" in refused(place.play(SAY, words=("--task", "odd")))


# --- commits ---------------------------------------------------------------------------------------------------


def test_a_required_commit_is_found_and_shown_everywhere(git: Place) -> None:
    run = git.play(COMMIT, SAY, words=("--task", "debug_smoke_commit", "--json"))
    assert run.code == 0, run
    shown = git.type("show", run.json["id"], "--json").json
    (commit,) = shown["changes"]["commits"]
    assert commit.endswith(" Smoke test")
    assert "1 commit, 1 file, +1 -0" in git.type("show", run.json["id"]).out
    folder = Path(run.json["folder"])
    told = json.loads((folder / "metadata.json").read_text())
    names = ("commits", "files_changed", "insertions", "deletions", "requires_commit")
    assert [told[name] for name in names] == [[commit], 1, 1, 0, True]
    assert commit in (folder / "summary.txt").read_text()


def test_somebody_elses_commit_is_not_the_one_that_is_required(git: Place) -> None:
    """A person commits in the same tree while the agent works; the agent itself commits nothing."""
    theirs = {
        "call": {
            "tool": "shell",
            "input": {},
            "run": f"touch {git.path('begun')}; until [ -e {git.path('go')} ]; do sleep 0.02; done",
        }
    }
    process = git.start_playing(theirs, SAY, words=("--task", "debug_smoke_commit", "--json"))
    git.wait_for("begun")
    command = ["git", "commit", "-q", "--allow-empty", "-m", "Smoke test"]
    subprocess.run(command, cwd=git.repository, env=git.environment(), check=True)
    git.let_go("go")
    ended = git.end_of(process)
    assert (ended.code, ended.json["failure"]) == (1, "no_commit")
    assert git.type("show", ended.json["id"], "--json").json["changes"]["commits"] == []


def test_a_commit_that_is_required_where_there_is_no_repository(place: Place) -> None:
    said = refused(place.play(SAY, words=("--task", "debug_smoke_commit")))
    assert "is not in a git repository" in said
    assert not place.home.exists()


def test_a_clean_tree_that_is_required(git: Place) -> None:
    git.task("careful", "---\nrequires_clean: true\n---\nx")
    said = refused(git.play(SAY, words=("--task", "careful", "--run-id", "one")))
    assert "requires a clean tree" in said
    assert "git status" in said
    for words in (("add", "."), ("commit", "-q", "-m", "clean now")):
        subprocess.run(["git", *words], cwd=git.repository, env=git.environment(), check=True)
    words = ("--task", "careful", "--run-id", "one")
    assert git.play({"edit": {"path": "new.txt", "content": "x"}}, SAY, words=words).code == 0
    assert git.play({"edit": {"path": "new.txt", "content": "x"}}, SAY, words=words).code == 0, (
        "asked again, not begun again"
    )
    assert "new.txt" in refused(git.play(SAY, words=("--task", "careful")))


# --- job files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["toml", "json"])
def test_a_job_file_says_it_all_and_stays_with_the_run(place: Place, language: str) -> None:
    place.task("greet", "---\nmax_calls: 7\n---\nGreet {who}.")
    place.script(SAY)
    place.repository.parent.joinpath("elsewhere").mkdir()
    words = {
        "task": "greet",
        "prompt": "Be brief.",
        "script": "script.json",
        "workspace": "repository",
        "proof": "true",
    }
    tables = {"vars": {"who": "her"}, "settings": {"max_usd": 3}}
    toml = "".join(f"{name} = {json.dumps(value)}\n" for name, value in words.items())
    toml += '[vars]\nwho = "her"\n[settings]\nmax_usd = 3\n'
    path = place.folder / "the-job"
    path.write_text(toml if language == "toml" else json.dumps({**words, **tables}))
    ended = place.type("run", "--job", str(path), "--max-usd", "4", "--json", cwd=place.folder / "elsewhere")
    assert ended.code == 0, ended
    run = ended.json
    assert (run["prompt"], run["task"], run["agent"], run["proof"]) == (
        "Greet her.\n\nBe brief.",
        "greet",
        "scripted",
        "proved",
    )
    spec = place.type("show", run["id"], "--json").json["spec"]
    assert (spec["workspace"], spec["limits"]["usd_micros"], spec["limits"]["calls"]) == (
        str(place.repository),
        4_000_000,
        7,
    )
    kept = Path(run["folder"], f"job.{language}")
    assert kept.read_bytes() == path.read_bytes()
    kept.unlink()
    path.unlink()
    assert place.type("export", run["id"]).code == 0
    assert kept.exists(), "it is written again from the store"


def test_a_bad_job_file(place: Place) -> None:
    (place.folder / "job.toml").write_text("prompt = 'x'\nparty = 1\n")
    assert "unknown field 'party'" in refused(place.type("run", "--job", place.path("job.toml")))
    assert "cannot be read" in refused(place.type("run", "--job", place.path("missing")))
    assert not place.home.exists()


# --- dry runs --------------------------------------------------------------------------------------------------


def test_a_dry_run_tells_all_and_does_nothing(place: Place) -> None:
    words = ("--task", "debug_hello_simple", "--dry-run")
    told = place.play(SAY, words=(*words, "--json"), environ={"LANG": "C", "SECRET_KEY": "hush"}).json
    assert told["dry_run"] is True
    assert (told["agent"], told["task"], told["stdin"]) == ("scripted", "debug_hello_simple", True)
    assert shlex.split(told["command"]) == told["argv"]
    assert told["prompt"].startswith("Say hello")
    assert told["files"] == [str(place.home / "runs" / "RUN" / "agent" / "script.json")]
    shown = place.play(SAY, words=words, environ={"LANG": "C", "SECRET_KEY": "hush"})
    assert (shown.code, shown.err) == (0, "")
    for text in (told["command"], told["files"][0], "Say hello", " LANG "):
        assert text in shown.out
    assert "SECRET_KEY" not in shown.out
    assert not place.home.exists()


def test_a_dry_run_of_a_job_tells_reviewers_worktree_and_pull_request(place: Place) -> None:
    for command in (
        ("init", "-q", "-b", "main"),
        ("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-q", "--allow-empty", "-m", "one"),
        ("remote", "add", "origin", "https://github.com/ada/garden.git"),
    ):
        subprocess.run(["git", *command], cwd=place.repository, check=True)
    (place.repository / ".env").write_text("A=1\n")
    job = place.folder / "job.toml"
    job.write_text(
        f"""
        prompt = "fix it"
        agent = "scripted"
        script = {json.dumps(place.script(SAY))}
        proof = "make test"
        plan = true
        review = ["scripted", "scripted"]
        review_mode = "any"
        copy = [".env"]
        setup = "make setup"
        pr = "draft"
        pr_base = "stable"
        until = "green"
        """
    )
    words = ("run", "--job", str(job), "--worktree", "loop", "--dry-run")
    planned = place.type(*words, "--json").json
    expected = {
        "plan": True, "reviewers": ["scripted", "scripted"], "review_mode": "any", "copy": [".env"],
        "setup": "make setup", "pr": "draft", "pr_base": "stable", "until": "green",
    }  # fmt: skip
    assert {name: planned[name] for name in expected} == expected
    shown = place.type(*words)
    assert shown.code == 0, shown
    lines = {line[:12].strip(): line[13:] for line in shown.out.splitlines()}
    assert lines["review"] == "scripted, scripted (any must pass)"
    assert lines["worktree"].startswith(f"branch {planned['branch']} from {planned['base'][:12]}")
    assert lines["pull request"] == f"draft, from {planned['pr_branch']} to stable, until green"
    assert lines["setup"] == "make setup"
    assert not place.home.exists()


def test_a_dry_run_names_exactly_what_an_agent_will_see(place: Place) -> None:
    look = {"call": {"tool": "shell", "input": {}, "run": f"tr '\\0' '\\n' </proc/$PPID/environ >{place.path('seen')}"}}
    told = place.play(look, SAY, words=("--dry-run", "--json")).json
    assert place.play(look, SAY).code == 0
    seen = {line.partition("=")[0] for line in Path(place.path("seen")).read_text().splitlines()}
    assert seen == set(told["environment"])


def test_a_dry_run_refuses_what_a_run_would(place: Place) -> None:
    assert "no task is called" in refused(place.play(SAY, words=("--task", "nothing", "--dry-run")))
    assert "not in a git repository" in refused(place.play(SAY, words=("--task", "debug_smoke_commit", "--dry-run")))
    assert "there is no agent 'nobody'" in refused(place.type("run", "x", "--agent", "nobody", "--dry-run"))


def test_a_dry_run_tells_model_effort_proof_and_limits(place: Place) -> None:
    words = (
        "run",
        "x",
        "--agent",
        "claude",
        "--model",
        "opus",
        "--effort",
        "high",
        "--proof",
        "make test",
        "--dry-run",
    )
    told = place.type(*words, "--max-usd", "3", "--json").json
    assert (told["model"], told["effort"], told["proof"]) == ("opus", "high", "make test")
    assert (told["limits"]["max_usd"], told["limits"]["timeout_seconds"]) == (3, 0)
    shown = place.type(*words).out
    for text in ("opus", "high", "make test", "max_usd 20", "max_calls 10000"):
        assert text in shown


@pytest.mark.parametrize("program", ["missing", "old"])
def test_a_dry_run_without_the_program_prints_its_plan_and_is_13(place: Place, program: str) -> None:
    binary = place.folder / "claude"
    if program == "old":
        binary.write_text("#!/bin/sh\necho 0.0.1\n")
        binary.chmod(0o700)
    environ = {"JACKLINE_CLAUDE_BINARY": str(binary)}
    words = ("run", "x", "--agent", "claude", "--dry-run")
    ended = place.type(*words, environ=environ)
    assert (ended.code, is_one_line(ended)) == (13, True), ended
    assert "prompt" in ended.out
    assert "agent 'claude' cannot be used" in ended.err
    told = place.type(*words, "--json", environ=environ)
    assert (told.code, told.json["exit_code"], str(binary) in told.json["problem"]) == (13, 13, True)
    assert place.play(SAY, words=("--dry-run", "--fallback", "claude"), environ=environ).code == 0
    assert not place.home.exists()


def test_a_dry_run_refuses_a_session_that_is_taken(place: Place) -> None:
    first = place.play({"limit": {"resets_in": 3600}}, words=("--json",)).json
    session = place.type("show", first["id"], "--json").json["sessions"]["scripted"]
    said = refused(place.play(SAY, words=("--session", session, "--dry-run")))
    assert first["id"] in said
    assert said == refused(place.play(SAY, words=("--session", session)))


@pytest.mark.parametrize("flag", ["--workspace", "--job", "--policy", "--script", "--task"])
def test_an_empty_value_is_reported(place: Place, flag: str) -> None:
    assert f"{flag} is empty" in refused(place.type("run", "x", "--agent", "claude", flag, ""))


def test_a_long_name_is_cut_in_the_message(place: Place) -> None:
    for words in (("tasks", "show"), ("show",), ("run", "x", "--agent", "claude", "--run-id"), ("tasks", "new")):
        assert len(refused(place.type(*words, "x" * 5000))) < 300, words
