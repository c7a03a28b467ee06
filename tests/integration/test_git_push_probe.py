"""Whether a push took place, asked of real repositories: reached, missed, moved on, thrown away, out of reach."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.clock import boot_ms, wall_ms
from jackline.engine.process import Warden
from tests.support.probing import Doubt
from tests.support.repositories import Work


@pytest.fixture(scope="module")
def warden() -> Iterator[Warden]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={"JACKLINE_COMMAND": "test-push"}) as one:
        yield one


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work(tmp_path)
    made.push("-u", "origin", "main")
    return made


@pytest.fixture
def doubt(work: Work, warden: Warden) -> Doubt:
    return Doubt("builtin:git-push", work.tree, work.env, warden)


def forget(work: Work) -> None:
    """As after a crash between the remote's word and git's own record of it."""
    work.git("update-ref", "-d", "refs/remotes/origin/main")
    shutil.rmtree(work.tree / ".git" / "logs" / "refs" / "remotes", ignore_errors=True)


def test_a_push_that_reached_the_remote(work: Work, doubt: Doubt) -> None:
    commit = work.commit("more")
    call = doubt.prepared("git push")
    work.push()
    settlement = doubt.judge(call)
    assert settlement is not None
    assert (settlement.change, settlement.external_id, settlement.origin) == ("happened", commit, "probe")
    assert settlement.reason == "builtin:git-push"
    assert commit in settlement.output


def test_a_push_that_never_began(work: Work, doubt: Doubt) -> None:
    commit = work.commit("more")
    change, evidence = doubt.found(doubt.prepared("git push origin main"))
    assert change == "did_not"
    assert f"does not contain {commit}" in evidence


def test_a_push_of_a_new_branch_that_never_began(work: Work, doubt: Doubt) -> None:
    work.git("checkout", "-q", "-b", "topic")
    assert doubt.found(doubt.prepared("git push -u origin topic")) == ("did_not", "the remote has no refs/heads/topic")


def test_a_branch_that_moved_on_since_still_holds_the_commit(work: Work, doubt: Doubt) -> None:
    commit = work.commit("more")
    call = doubt.prepared("git push")
    work.push()
    work.commit("still more")
    work.push()
    change, evidence = doubt.found(call)
    assert change == "happened"
    assert f"which contains {commit}" in evidence


def test_a_branch_that_somebody_else_moved_on_is_known_only_by_gits_own_record(work: Work, doubt: Doubt) -> None:
    work.commit("more")
    call = doubt.prepared("git push")
    work.push()
    other = work.clone("other")
    work.commit("somebody else's", where=other)
    work.git("push", "-q", where=other)
    assert doubt.found(call)[0] == "happened"
    forget(work)
    change, evidence = doubt.found(call)
    assert change == "doubt"
    assert "which this repository does not know" in evidence


def test_a_branch_that_went_another_way(work: Work, doubt: Doubt) -> None:
    other = work.clone("other")
    work.commit("somebody else's", where=other)
    work.git("push", "-q", where=other)
    work.commit("more")
    call = doubt.prepared("git push")
    work.git("push", "-q", code=1)
    work.git("fetch", "-q")
    change, evidence = doubt.found(call)
    assert change == "did_not"
    assert "does not contain" in evidence


def test_a_branch_that_was_deleted_after_the_push(work: Work, doubt: Doubt) -> None:
    work.git("checkout", "-q", "-b", "topic")
    work.commit("of the topic")
    call = doubt.prepared("git push -u origin topic")
    work.push("-u", "origin", "topic")
    work.git("update-ref", "-d", "refs/heads/topic", where=work.remote)
    change, evidence = doubt.found(call)
    assert change == "happened"
    assert "the reflog records" in evidence


def test_an_earlier_push_of_the_same_commit_is_no_evidence(work: Work, doubt: Doubt) -> None:
    work.git("checkout", "-q", "-b", "topic")
    work.commit("of the topic")
    work.push("-u", "origin", "topic")
    work.git("update-ref", "-d", "refs/heads/topic", where=work.remote)
    call = doubt.prepared("git push -u origin topic", prepared_at=wall_ms() + 60_000)
    assert doubt.found(call) == ("did_not", "the remote has no refs/heads/topic")


def test_a_remote_that_cannot_be_reached_is_shown_with_its_own_words(work: Work, doubt: Doubt) -> None:
    work.commit("more")
    call = doubt.prepared("git push")
    os.rename(work.remote, work.remote.with_name("away.git"))
    change, evidence = doubt.found(call)
    assert change == "doubt"
    assert "builtin:git-push" in evidence
    assert "the remote cannot be queried: git: exit 128" in evidence
    assert "does not appear to be a git repository" in evidence


def test_a_push_that_git_wrote_down_needs_no_remote(work: Work, doubt: Doubt) -> None:
    work.commit("more")
    call = doubt.prepared("git push")
    work.push()
    os.rename(work.remote, work.remote.with_name("away.git"))
    assert doubt.found(call)[0] == "happened"


def test_nobody_listens(work: Work, doubt: Doubt) -> None:
    work.git("remote", "set-url", "origin", "git://127.0.0.1:1/nothing")
    change, evidence = doubt.found(doubt.prepared("git push origin main", prepared_at=wall_ms()))
    assert change == "doubt"
    assert "Connection refused" in evidence


def test_a_forced_push_back_is_not_there_because_the_branch_holds_it(work: Work, doubt: Doubt) -> None:
    first = work.git("rev-parse", "HEAD")
    work.commit("to be taken back")
    work.push()
    work.git("reset", "-q", "--hard", first)
    call = doubt.prepared("git push --force origin main", prepared_at=wall_ms())
    assert doubt.found(call)[0] == "doubt"
    work.push("--force", "origin", "main")
    assert doubt.found(call)[0] == "happened"


def test_a_tag_with_words_of_its_own(work: Work, doubt: Doubt) -> None:
    work.git("tag", "-a", "v1", "-m", "one")
    call = doubt.prepared("git push origin v1")
    assert doubt.found(call) == ("did_not", "the remote has no refs/tags/v1")
    work.push("origin", "v1")
    assert doubt.found(call)[0] == "happened"


def test_a_deletion(work: Work, doubt: Doubt) -> None:
    work.push("origin", "main:old")
    call = doubt.prepared("git push origin --delete old")
    assert doubt.found(call)[0] == "did_not"
    work.push("origin", "--delete", "old")
    assert doubt.found(call) == ("happened", "refs/heads/old is not there")


def test_of_two_branches_only_one_arrived(work: Work, doubt: Doubt) -> None:
    work.commit("more")
    work.git("branch", "topic")
    call = doubt.prepared("git push origin main topic")
    assert doubt.found(call)[0] == "did_not"
    work.push("origin", "topic")
    change, evidence = doubt.found(call)
    assert change == "doubt"
    assert "did not: " in evidence
    assert "happened: refs/heads/topic" in evidence
    work.push("origin", "main")
    assert doubt.found(call)[0] == "happened"


@pytest.mark.parametrize("command", ["git push --tags", "git push --all origin", "git -c a.b=c push", "git status"])
def test_what_this_probe_cannot_compare_stays_in_doubt(work: Work, doubt: Doubt, command: str) -> None:
    assert doubt.found(doubt.prepared(command))[0] == "doubt"


def test_a_call_of_which_nothing_was_written_down(doubt: Doubt) -> None:
    change, evidence = doubt.found(doubt.call({"command": "git push"}))
    assert change == "doubt"
    assert "the commit and the ref to push were not stored" in evidence


def test_what_was_written_down_of_another_command_is_not_taken_for_the_push(work: Work, doubt: Doubt) -> None:
    work.git("branch", "topic")
    call = doubt.prepared("git push origin topic", words="gh pr create")
    assert doubt.found(call)[0] == "doubt"


def test_a_relative_remote_and_a_folder_of_its_own(work: Work, warden: Warden, tmp_path: Path) -> None:
    work.git("remote", "set-url", "origin", "../remote.git")
    doubt = Doubt("builtin:git-push", tmp_path, work.env, warden)
    work.commit("more")
    call = doubt.prepared("git -C tree push")
    assert doubt.found(call)[0] == "did_not"
    work.push()
    forget(work)
    assert doubt.found(call)[0] == "happened"


def test_the_repositorys_own_settings_start_no_program(work: Work, doubt: Doubt, tmp_path: Path) -> None:
    witness, program = tmp_path / "witness", tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho started >> '{witness}'\nexit 1\n")
    program.chmod(0o755)
    for name in ("core.sshCommand", "credential.helper", "remote.origin.uploadpack", "core.fsmonitor", "core.gitProxy"):
        work.git("config", name, str(program))
    for address in ("ssh://127.0.0.1:1/x", "git://127.0.0.1:1/x", f"ext::{program}", str(work.remote)):
        work.git("config", "remote.origin.url", address)
        doubt.found(doubt.prepared("git push origin main"))
    assert not witness.exists()


def test_a_remote_that_never_answers_is_given_up(work: Work, doubt: Doubt, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    real = shutil.which("git")
    (programs / "git").write_text(f'#!/bin/sh\ncase $1 in ls-remote) exec sleep 600;; esac\nexec {real} "$@"\n')
    (programs / "git").chmod(0o755)
    doubt.env = {**doubt.env, "PATH": f"{programs}:{os.environ['PATH']}"}
    doubt.timeout_s = 1.5
    work.commit("more")
    change, evidence = doubt.found(doubt.prepared("git push"))
    assert change == "doubt"
    assert "no answer within" in evidence


def test_a_password_in_an_address_is_not_shown(work: Work, doubt: Doubt) -> None:
    work.git("remote", "set-url", "origin", "https://ada:sesame@127.0.0.1:1/r.git")
    call = doubt.prepared("git push origin main", prepared_at=wall_ms())
    change, evidence = doubt.found(call)
    assert change == "doubt"
    assert "sesame" not in evidence + call.external


def test_a_shell_that_gets_a_list_of_words(work: Work, doubt: Doubt) -> None:
    call = doubt.prepared("git push origin main")
    call = call._replace(input=json.dumps({"command": ["bash", "-lc", "git push origin main"]}))
    assert doubt.found(call)[0] == "happened"


# --- a push among other commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["git push 2>&1 | tail -5", "cd . && git push; echo done", "sudo git push"])
def test_commands_that_move_no_branch_do_not_matter(work: Work, doubt: Doubt, command: str) -> None:
    work.commit("more")
    call = doubt.prepared(command, words="git push")
    assert doubt.found(call)[0] == "did_not"
    work.push()
    assert doubt.found(call)[0] == "happened"


def test_what_was_pushed_before_is_no_evidence_for_a_commit_that_the_call_itself_makes(
    work: Work, doubt: Doubt
) -> None:
    call = doubt.prepared("git commit -q --allow-empty -m x && git push", words="git push")
    change, evidence = doubt.found(call)  # it was cut off before anything ran; the remote is at the old commit
    assert change == "doubt"
    assert "it is unknown how far" in evidence
    work.commit("x")
    assert doubt.found(call)[0] == "doubt"  # cut off between the two
    work.push()
    assert doubt.found(call)[0] == "happened"


@pytest.mark.parametrize(
    "command",
    [
        "git push origin main; git push origin topic",
        "git push origin $BRANCH",
        "GIT_DIR=x git push",
        "echo a | xargs git push",
    ],
)
def test_pushes_that_cannot_be_told_from_each_other_or_from_the_text(work: Work, doubt: Doubt, command: str) -> None:
    assert doubt.found(doubt.prepared(command, words="git push"))[0] == "doubt"
