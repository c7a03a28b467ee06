"""A run in a worktree of its own: how it is made, prepared, found again after a crash, and never replaced."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.conftest import SLOW_BACKENDS

FAILED = 1
REFUSED = 2
KILLED = -9
INTERRUPTED = 130


def git(place: Place, *words: str, where: Path | None = None) -> str:
    done = subprocess.run(
        ["git", *words], cwd=where or place.repository, env=place.environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, (words, done)
    return done.stdout.strip()


def begin(place: Place) -> None:
    """A repository with one commit, an ignored file, and a file that is not committed."""
    (place.folder / ".gitconfig").write_text(
        "[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n"
    )
    git(place, "init", "-q")
    (place.repository / ".gitignore").write_text(".env\n")
    (place.repository / "a").write_text("one\n")
    (place.repository / "below").mkdir()
    (place.repository / "below" / "b").write_text("b\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    (place.repository / ".env").write_text("KEY=1\n")
    (place.repository / ".env").chmod(0o600)


@pytest.fixture
def repo(place: Place) -> Place:
    begin(place)
    return place


@pytest.fixture(params=SLOW_BACKENDS)
def stored(request: pytest.FixtureRequest, repo: Place) -> Place:
    if request.param == "postgres":
        repo.environ["JACKLINE_DATABASE"] = str(request.getfixturevalue("postgres_database"))
    return repo


def run(command: str) -> dict[str, Any]:
    return {"call": {"tool": "Bash", "input": {"command": command}, "run": command}}


WORK = run("echo two >> a && git commit -qam second")


def start(place: Place, *words: str, steps: tuple[dict[str, Any], ...] = (WORK, SAY), run_id: str = "r") -> Ended:
    return place.play(*steps, words=("--run-id", run_id, "--worktree", *words))


def find_root(place: Place, name: str = "r") -> Path:
    (folder,) = (place.folder / ".local/share/jackline/worktrees").iterdir()
    assert folder.name.startswith("repository-")
    return folder / name


def list_kinds(place: Place, run_id: str = "r") -> list[str]:
    return [row["kind"] for row in place.type("logs", run_id, "--events", "--json").rows]


def test_the_agent_works_on_its_own_branch_and_the_checkout_stays(stored: Place) -> None:
    ended = start(stored, "--copy", ".env", "--setup", "cat .env && echo done > ready")
    assert ended.code == 0, ended
    root = find_root(stored)
    assert git(stored, "log", "--format=%s", "jackline/r") == "second\nfirst"
    assert (git(stored, "status", "--porcelain"), git(stored, "branch", "--show-current")) == ("", "main")
    assert (stored.repository / "a").read_text() == "one\n"
    assert (root / ".env").read_text() == "KEY=1\n"
    assert stat.S_IMODE((root / ".env").stat().st_mode) == 0o600
    assert (root / "ready").exists()
    log = stored.home / "runs/r/setup.log"
    assert log.read_text().startswith("$ cat .env")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    kinds = ["recovery.started", "worktree.made", "worktree.setup", "worktree.ready", "recovery.ended"]
    assert list_kinds(stored)[2:7] == kinds
    assert "set-up command of the worktree started: cat .env" in ended.err
    assert stored.type("verify", "r").code == 0
    refused = start(stored, "taken", run_id="first")
    assert refused.code == 0
    refused = start(stored, "taken", run_id="second")
    assert (refused.code, is_one_line(refused)) == (REFUSED, True), refused
    again = start(stored, "taken", run_id="first")  # the same run, whatever HEAD is now
    assert again.code == 0, again


def test_the_setting_copies_what_a_repository_has(repo: Place) -> None:
    environ = {"JACKLINE_WORKTREE_COPY": ".env, .env.local", "JACKLINE_WORKTREE": "true"}
    ended = repo.play(SAY, words=("--run-id", "r"), environ=environ)
    assert ended.code == 0, ended
    assert (find_root(repo) / ".env").read_text() == "KEY=1\n"
    refused = repo.play(SAY, words=("--workspace", str(repo.folder)), environ=environ)
    assert (refused.code, "use --no-worktree" in refused.err) == (REFUSED, True), refused


def test_a_name_is_refused_while_another_run_waits_for_it(stored: Place) -> None:
    words = ("enqueue", "--agent", "scripted", "--script", stored.script(SAY), "--worktree", "x")
    assert stored.type(*words, "--run-id", "one").code == 0
    refused = stored.type(*words, "--run-id", "two")
    assert (refused.code, is_one_line(refused)) == (REFUSED, True), refused
    assert "worktree x belongs to run one" in refused.err
    assert stored.type("resume", "one").code == 0
    assert find_root(stored, "x").is_dir()


def test_a_run_of_a_subfolder_works_in_the_same_one(repo: Place) -> None:
    ended = repo.play(run("pwd > out"), SAY, words=("--run-id", "r", "--worktree"), cwd=repo.repository / "below")
    assert ended.code == 0, ended
    below = find_root(repo) / "below"
    assert (below / "out").read_text().strip() == str(below)
    rows = repo.type("list", "--json").rows  # it belongs to the repository, not to its worktree
    assert [row["id"] for row in rows] == ["r"]


def test_each_run_of_a_batch_has_its_own(repo: Place) -> None:
    words = (
        "enqueue",
        "--agent",
        "scripted",
        "--script",
        repo.script(SAY),
        "--each",
        "-",
        "--worktree",
        "fan",
        "{line}",
    )
    ended = repo.type(*words, stdin="one\ntwo\n")
    assert ended.code == 0, ended
    ids = [row["id"] for row in repo.type("list", "--json").rows]
    for run_id in ids:
        assert repo.type("resume", run_id).code == 0
    names = sorted(path.name for path in find_root(repo).parent.iterdir())
    assert len(names) == len(ids) == 2
    assert all(name.startswith("fan-") for name in names)


def test_settings_and_tasks_ask_for_one(repo: Place) -> None:
    repo.task("own", "---\nworktree: true\n---\nDo it.\n")
    assert repo.play(SAY, words=("--run-id", "r", "--task", "own")).code == 0
    assert find_root(repo).is_dir()
    assert repo.play(SAY, words=("--run-id", "here", "--task", "own", "--no-worktree")).code == 0
    assert not find_root(repo, "here").exists()


@pytest.mark.parametrize("where", ["task", "project"])
def test_an_untrusted_project_runs_no_set_up_command(repo: Place, where: str) -> None:
    command = f"touch {repo.path('started')}"
    if where == "task":
        repo.task("own", f"---\nsetup: {command}\n---\nDo it.\n")
    else:
        (repo.repository / "jackline.toml").write_text(f'worktree_setup = "{command}"\n')
    words = ("--task", "own") if where == "task" else ()
    ended = start(repo, "w", *words)
    assert not (repo.folder / "started").exists()
    assert ended.code == (REFUSED if where == "task" else 0), ended
    assert "trust" in ended.err
    repo.trust()
    assert start(repo, "v", *words, run_id="v").code == 0
    assert (repo.folder / "started").exists()


def test_trust_of_the_checkout_holds_in_the_worktree(repo: Place) -> None:
    (repo.repository / "jackline.toml").write_text("max_usd = 77\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "settings")
    repo.trust()
    assert start(repo).code == 0
    shown = repo.type("config", "--json", cwd=find_root(repo))
    assert "77" in shown.out
    (find_root(repo) / "jackline.toml").write_text("max_usd = 78\n")
    changed = repo.type("config", cwd=find_root(repo))
    assert "78" not in changed.out.split("max_usd")[1][:40]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--copy", "a"), "tracked by git"),
        (("--copy", "../.gitconfig"), "inside the repository"),
        (("--copy", "out"), "is a link"),
        (("--copy", ".git/config"), "inside the repository"),
        (("--copy", "missing"), "No such file"),
        (("--copy", "many"), "let the set-up command create it"),
        (("--worktree-base", "nothing"), "not a commit"),
        (("two words",), "a prompt goes before --worktree"),
        (("--pr", "two words"), "a prompt goes before --pr"),
        (("x.lock",), "no '.' or '.lock' at the end"),
        (("",), "--worktree is empty"),
        (("--setup", ""), "--setup is empty"),
        (("--no-worktree",), "contradict"),
    ],
)  # fmt: skip
def test_what_cannot_be_prepared_is_refused_before_anything_is_created(
    repo: Place, words: tuple[str, ...], reason: str
) -> None:
    (repo.repository / "out").symlink_to(repo.folder / ".gitconfig")
    if "many" in words:
        (repo.repository / "many").mkdir()
        for number in range(2001):
            (repo.repository / "many" / str(number)).touch()
    refused = start(repo, *words)
    assert (refused.code, is_one_line(refused)) == (REFUSED, True), refused
    assert reason in refused.err
    assert repo.type("list", "--json").out == ""
    assert git(repo, "branch", "--list", "jackline/*") == ""


@pytest.mark.parametrize(
    ("command", "reason"),
    [("rm .git", "no longer a git worktree"), ('rm -rf "$PWD"', "its set-up command deleted")],
)
def test_a_set_up_command_that_breaks_the_worktree_ends_the_run(repo: Place, command: str, reason: str) -> None:
    ended = start(repo, "--setup", command)
    assert (ended.code, reason in ended.out) == (FAILED, True), ended
    assert "turn.launched" not in list_kinds(repo)


def test_outside_of_a_repository_and_without_commits(place: Place) -> None:
    refused = start(place)
    assert (refused.code, "needs a git repository" in refused.err) == (REFUSED, True), refused
    git(place, "init", "-q")
    refused = start(place)
    assert (refused.code, "needs a commit" in refused.err) == (REFUSED, True), refused


@pytest.mark.full
def test_a_repository_without_a_checkout_or_that_git_cannot_read_is_named(place: Place) -> None:
    git(place, "init", "-q")
    (place.repository / ".git" / "config").write_text("[core")
    refused = start(place)
    assert (refused.code, "git cannot read the repository" in refused.err) == (REFUSED, True), refused
    shutil.rmtree(place.repository / ".git")
    git(place, "init", "-q", "--bare")
    refused = start(place)
    assert (refused.code, "is in a bare repository" in refused.err) == (REFUSED, True), refused


def test_a_branch_or_folder_of_somebody_else_is_refused(repo: Place) -> None:
    git(repo, "branch", "jackline/r")
    refused = start(repo)
    assert (refused.code, "jackline/r exists already" in refused.err) == (REFUSED, True), refused
    git(repo, "branch", "-m", "jackline/r", "jackline/r/x")
    refused = start(repo)
    assert "the branch jackline/r/x is in the way of jackline/r: choose another name" in refused.err, refused
    git(repo, "branch", "-m", "jackline/r/x", "jackline")
    refused = start(repo)
    assert (refused.code, "the branch jackline is in the way of jackline/r: rename it" in refused.err) == (2, True)
    git(repo, "branch", "-D", "jackline")
    words = ("enqueue", "--agent", "scripted", "--script", repo.script(SAY), "--worktree", "--run-id", "r")
    assert repo.type(*words).code == 0
    git(repo, "branch", "jackline")  # in the meantime
    failed = repo.type("resume", "r")
    text = "jackline is in the way of jackline/r: rename it, then resume"
    assert (failed.code, text in failed.out + failed.err) == (FAILED, True), failed


def test_a_set_up_that_fails_ends_the_run_and_resume_tries_again(repo: Place) -> None:
    failing = f"echo no; test -f {repo.path('ok')}"
    ended = start(repo, "--setup", failing, steps=(run(f"touch {repo.path('agent')}"), SAY))
    assert ended.code == FAILED, ended
    shown = repo.type("show", "r", "--json").json
    assert (shown["state"], shown["failure"]) == ("failed", "worktree")
    assert "setup.log" in shown["detail"]
    assert not (repo.folder / "agent").exists()
    repo.let_go("ok")
    assert repo.type("resume", "r").code == 0
    assert (repo.folder / "agent").exists()


def test_a_set_up_that_hangs_is_killed(repo: Place) -> None:
    ended = start(repo, "--setup", "sleep 600", "--setup-timeout", "0.2")
    assert ended.code == FAILED, ended
    assert "took too long" in repo.type("show", "r", "--json").json["detail"]


def test_hooks_do_not_run(repo: Place) -> None:
    hook = repo.repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {repo.path('hook')}\n")
    hook.chmod(0o755)
    assert start(repo).code == 0
    assert not (repo.folder / "hook").exists()


def wrap_git(place: Place, program: str) -> dict[str, str]:
    """Put a script before git on the PATH; it gets the path of the real one as $GIT."""
    real = shutil.which("git")
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(f"#!/bin/sh\nGIT={real}\n{program}\n")
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_disk_that_is_full_while_it_is_made_is_told_from_the_first_error(repo: Place) -> None:
    """With git's own lines; resume makes it again."""
    fail = "echo 'error: unable to write file a' >&2; echo 'fatal: Could not reset index file' >&2; exit 128"
    full = wrap_git(repo, f'case "$*" in *"worktree add "*) {fail};; *) exec "$GIT" "$@";; esac')
    words = ("mend it", "--agent", "scripted", "--script", repo.script(SAY), "--run-id", "r", "--worktree")
    ended = repo.type("run", *words, environ=full)
    assert ended.code == FAILED, ended
    told = "git worktree failed (exit 128): fatal: Could not reset index file (error: unable to write file a)"
    assert repo.type("show", "r", "--json").json["detail"] == told
    assert repo.type("resume", "r").code == 0


@pytest.mark.parametrize("when", ["after", pytest.param("before", marks=pytest.mark.full)])
@pytest.mark.parametrize("step", ["update-ref", "worktree add", "set-up"])
def test_a_kill_while_it_is_made_is_repaired_by_resume(repo: Place, step: str, when: str) -> None:
    """The process is killed around each step that changes something; the agent starts once, in the whole worktree."""
    kill = f"kill -9 $(cat {repo.path('pid')}); sleep 60"
    act = f'"$GIT" "$@"; {kill}' if when == "after" else f"{kill}"
    wrapped = wrap_git(repo, f'case "$*" in *"{step} "*) {act};; *) exec "$GIT" "$@";; esac')
    once = f"test -f {repo.path('killed')}"
    setup = f"{once} || {{ touch {repo.path('killed')}; {kill}; }}" if step == "set-up" else "true"
    if step == "set-up":
        wrapped = {}
    words = ("--run-id", "r", "--worktree", "--copy", ".env", "--setup", setup)
    script = repo.script(WORK, SAY)
    program = (
        "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); "
        "os.execv(sys.executable, [sys.executable, '-m', 'jackline', *sys.argv[2:]])"
    )
    killed = repo.end_of(
        repo.python(
            program, repo.path("pid"), "run", "--agent", "scripted", "--script", script, *words, environ=wrapped
        )
    )
    assert killed.code == KILLED, killed
    resumed = repo.type("resume", "r")
    assert resumed.code == 0, resumed
    assert git(repo, "log", "--format=%s", "jackline/r") == "second\nfirst"
    assert (find_root(repo) / ".env").exists()
    assert git(repo, "status", "--porcelain", where=find_root(repo)) == ""
    assert list_kinds(repo).count("turn.launched") == 1


def interrupt(place: Place) -> None:
    """A run that has made a commit and has not ended: its agent failed."""
    error = {"error": {"class": "agent_error", "detail": "no"}}
    ended = start(place, "--setup", f"echo x >> {place.path('setups')}", "--copy", ".env", steps=(WORK, error))
    assert ended.code != 0
    assert git(place, "log", "--format=%s", "jackline/r") == "second\nfirst"


def test_resume_uses_the_worktree_as_the_agent_left_it(repo: Place) -> None:
    interrupt(repo)
    root = find_root(repo)
    (root / "new").write_text("kept\n")
    (root / ".env").write_text("changed by the agent\n")
    repo.type("resume", "r")
    assert (root / "new").read_text() == "kept\n"
    assert (root / ".env").read_text() == "changed by the agent\n"
    assert (repo.folder / "setups").read_text() == "x\n"


def test_what_git_has_of_a_folder_that_is_gone_is_kept_before_it_is_made_again(repo: Place) -> None:
    """Commits of a detached HEAD, and a staged file: git forgets both when the place is used again."""
    interrupt(repo)
    root = find_root(repo)
    git(repo, "switch", "-q", "--detach", where=root)
    git(repo, "commit", "-q", "--allow-empty", "-m", "detached", where=root)
    (root / "staged").write_text("staged\n")
    git(repo, "add", "staged", where=root)
    shutil.rmtree(root)
    repo.type("resume", "r")
    assert git(repo, "log", "--format=%s", "refs/jackline/r/1").splitlines()[1:] == ["detached", "second", "first"]
    assert git(repo, "show", "refs/jackline/r/1:staged") == "staged"
    assert "backup.made" in list_kinds(repo)


def test_a_folder_that_is_gone_is_made_again_from_the_branch(repo: Place) -> None:
    interrupt(repo)
    git(repo, "commit", "-q", "--allow-empty", "-m", "later")  # another commit on main: not the run's
    tip = git(repo, "rev-parse", "jackline/r")
    shutil.rmtree(find_root(repo))
    repo.type("resume", "r")
    assert "worktree.restored" in list_kinds(repo)
    assert git(repo, "merge-base", "--is-ancestor", tip, "jackline/r") == ""
    assert (find_root(repo) / ".env").read_text() == "KEY=1\n"
    assert (repo.folder / "setups").read_text() == "x\nx\n"


def test_without_folder_and_branch_nothing_starts_on_another_commit(repo: Place) -> None:
    interrupt(repo)
    tip = git(repo, "rev-parse", "jackline/r")
    git(repo, "worktree", "remove", "-f", "-f", str(find_root(repo)))
    git(repo, "branch", "-qD", "jackline/r")
    ended = repo.type("resume", "r")
    assert ended.code == FAILED, ended
    assert f"git branch jackline/r {tip}" in repo.type("show", "r", "--json").json["detail"]
    assert git(repo, "branch", "--list", "jackline/*") == ""
    git(repo, "branch", "jackline/r", tip)
    repo.type("resume", "r")
    assert "worktree.restored" in list_kinds(repo)


def test_a_folder_that_is_no_worktree_any_more_is_not_touched(repo: Place) -> None:
    interrupt(repo)
    root = find_root(repo)
    (root / "new").write_text("work\n")
    (root / ".git").unlink()
    ended = repo.type("resume", "r")
    assert ended.code == FAILED, ended
    assert "salvage" in repo.type("show", "r", "--json").json["detail"]
    assert (root / "new").read_text() == "work\n"


def test_a_fork_has_a_worktree_of_its_own(repo: Place) -> None:
    assert start(repo).code == 0
    ended = repo.type("fork", "r", "more", "--run-id", "child")
    assert ended.code == 0, ended
    assert git(repo, "log", "--format=%s", "jackline/child").splitlines()[-2:] == ["second", "first"]
    assert find_root(repo, "child").is_dir()
    assert (find_root(repo).parent / "r").is_dir()


def test_a_folder_of_somebody_else_is_not_replaced(repo: Place) -> None:
    """It appears after the run was created, and before its worktree is made."""
    words = ("enqueue", "--agent", "scripted", "--script", repo.script(SAY), "--worktree", "--run-id", "r")
    assert repo.type(*words).code == 0
    assert start(repo, run_id="other").code == 0
    root = find_root(repo)
    root.mkdir()
    (root / "mine").write_text("mine\n")
    ended = repo.type("resume", "r")
    assert ended.code == FAILED, ended
    assert (root / "mine").read_text() == "mine\n"


def test_an_interrupt_during_the_set_up_pauses_the_run(repo: Place) -> None:
    wait = f"touch {repo.path('on')}; test -f {repo.path('go')} || sleep 600"
    process = repo.start_playing(WORK, SAY, words=("--run-id", "r", "--worktree", "--setup", wait))
    repo.wait_for("on")
    process.send_signal(signal.SIGINT)
    ended = repo.end_of(process)
    shown = repo.type("show", "r", "--json").json
    assert (ended.code, shown["state"], shown["reason"]) == (INTERRUPTED, "waiting", "paused"), (ended, shown)
    repo.let_go("go")
    assert repo.type("resume", "r").code == 0
    assert git(repo, "log", "--format=%s", "jackline/r") == "second\nfirst"


def test_a_service_makes_worktrees_and_works_in_several_at_once(repo: Place) -> None:
    """Both runs come from one checkout: neither waits for the other."""
    flags = [repo.path(f"on-{run_id}") for run_id in ("one", "two")]
    both = f"touch {repo.path('on')}-$JACKLINE_RUN; until [ -f {flags[0]} -a -f {flags[1]} ]; do sleep 0.05; done"
    words = ("enqueue", "--agent", "scripted", "--script", repo.script(run(both), SAY), "--worktree")
    for run_id in ("one", "two"):
        assert repo.type(*words, "--run-id", run_id).code == 0
    service = repo.start("serve")
    repo.wait_for("on-one")
    repo.wait_for("on-two")
    for run_id in ("one", "two"):
        assert repo.type("attach", run_id).code == 0
    service.terminate()
    repo.end_of(service)
    assert sorted(path.name for path in find_root(repo).parent.iterdir()) == ["one", "two"]
