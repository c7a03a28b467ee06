"""What only the host can tell of a call, asked of real git and files: it never fails, and starts nobody's program."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline.clock import boot_ms
from jackline.engine import key_inputs
from jackline.engine.process import Warden
from tests.support.repositories import Work

GIT = frozenset({"git.commit", "git.branch", "git.remote", "git.upstream", "git.refs", "git.url"})


@pytest.fixture(scope="module")
def warden() -> Iterator[Warden]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={"JACKLINE_COMMAND": "test-key-inputs"}) as one:
        yield one


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


class Asking:
    """What is told of a command in a working tree."""

    def __init__(self, work: Work, warden: Warden) -> None:
        self.work, self.warden = work, warden

    def __call__(self, words: str = "git push", wants: frozenset[str] = GIT, **more: Any) -> dict[str, str]:
        program, *arguments = words.split()
        fields = {"program": program, "arguments": arguments, **more.pop("fields", {})}
        folder = more.pop("folder", str(self.work.tree))
        return key_inputs.read_key_inputs(wants, fields, folder, str(self.work.tree), self.work.env, self.warden)


@pytest.fixture
def told(work: Work, warden: Warden) -> Asking:
    return Asking(work, warden)


# --- git -------------------------------------------------------------------------------------------------------


def test_a_push_of_a_branch_that_has_its_place(work: Work, told: Asking) -> None:
    work.push("-u", "origin", "main")
    commit = work.commit("more")
    assert told() == {
        "git.commit": commit,
        "git.branch": "main",
        "git.remote": "origin",
        "git.upstream": "main",
        "git.refs": "refs/heads/main",
        "git.url": str(work.remote),
    }


def test_only_what_is_wanted_is_told(work: Work, told: Asking) -> None:
    assert told(wants=frozenset({"git.branch"})) == {"git.branch": "main"}
    assert told(wants=frozenset()) == {}
    assert told(wants=frozenset({"git.unheard"})) == {"git.unheard": ""}


def test_a_new_commit_makes_another_push(work: Work, told: Asking) -> None:
    work.push("-u", "origin", "main")
    before = told()["git.commit"]
    assert told()["git.commit"] == before
    work.commit("more")
    assert told()["git.commit"] != before


def test_what_is_not_committed_makes_another_tree(work: Work, told: Asking) -> None:
    tree = frozenset({"git.tree"})
    work.commit("more")
    seen = [told(wants=tree)]
    assert told(wants=tree) == seen[0]
    (work.tree / "new.txt").write_text("a")
    seen.append(told(wants=tree))
    (work.tree / "new.txt").write_text("longer")
    seen.append(told(wants=tree))
    (work.tree / "new.txt").unlink()
    assert told(wants=tree) == seen[0]
    assert len({one["git.tree"] for one in seen}) == len(seen)


def test_a_branch_without_a_place_says_only_what_is_known(work: Work, told: Asking) -> None:
    found = told()
    assert (found["git.remote"], found["git.upstream"], found["git.refs"]) == ("origin", "", "")
    assert found["git.commit"]


@pytest.mark.parametrize(
    ("words", "refs", "commits"),
    [
        ("git push origin main", "refs/heads/main", "main"),
        ("git push origin HEAD", "refs/heads/main", "main"),
        ("git push -u origin topic", "refs/heads/topic", "topic"),
        ("git push origin topic:trunk", "refs/heads/trunk", "topic"),
        ("git push origin HEAD~0:refs/heads/x", "refs/heads/x", "main"),
        ("git push origin v1", "refs/tags/v1", "topic"),
        ("git push origin tag v1", "refs/tags/v1", "topic"),
        ("git push origin main topic", "refs/heads/main refs/heads/topic", "main topic"),
        ("git push origin +main", "refs/heads/main", "main"),
        ("git push origin --delete topic", "refs/heads/topic", "gone"),
        ("git push origin :topic main", "refs/heads/topic refs/heads/main", "gone main"),
    ],
)
def test_the_refs_that_a_push_names(work: Work, told: Asking, words: str, refs: str, commits: str) -> None:
    known = {"main": work.git("rev-parse", "HEAD"), "gone": "gone"}
    work.git("checkout", "-q", "-b", "topic")
    known["topic"] = work.commit("of the topic")
    work.git("tag", "-a", "v1", "-m", "a tag of its own")
    work.git("checkout", "-q", "main")
    found = told(words)
    assert (found["git.refs"], found["git.commit"]) == (refs, " ".join(known[one] for one in commits.split()))


def test_another_remote_is_the_one_that_is_asked_for(work: Work, told: Asking, tmp_path: Path) -> None:
    work.git("remote", "add", "fork", "https://ada:token@example.org/fork.git")
    found = told("git push fork main")
    assert (found["git.remote"], found["git.url"]) == ("fork", "https://example.org/fork.git")
    address = told(f"git push {tmp_path}/other.git main")
    assert address["git.url"] == f"{tmp_path}/other.git"


@pytest.mark.parametrize("words", ["git push --tags", "git push --all", "git push --follow-tags", "git push --mirror"])
def test_a_push_of_everything_is_told_apart_by_every_branch_and_tag(work: Work, told: Asking, words: str) -> None:
    work.push("-u", "origin", "main")
    before = told(words)["git.commit"]
    assert told(words)["git.commit"] == before
    work.git("tag", "v1")
    assert told(words)["git.commit"] != before


def test_settings_that_push_more_are_seen(work: Work, told: Asking) -> None:
    work.push("-u", "origin", "main")
    work.git("config", "push.followTags", "true")
    before = told()["git.commit"]
    work.git("tag", "-a", "v1", "-m", "one")
    assert told()["git.commit"] != before
    assert told("git push origin main")["git.commit"] == work.git("rev-parse", "HEAD")


def test_a_ref_that_nobody_knows_makes_no_two_pushes_the_same(work: Work, told: Asking) -> None:
    before = told("git push origin nothing-of-this-name")["git.commit"]
    work.commit("more")
    assert told("git push origin nothing-of-this-name")["git.commit"] not in {"", before}


def test_a_head_that_is_on_no_branch(work: Work, told: Asking) -> None:
    work.git("checkout", "-q", "--detach")
    found = told("git push origin HEAD:refs/heads/x")
    assert (found["git.branch"], found["git.refs"]) == ("", "refs/heads/x")
    assert found["git.commit"] == work.git("rev-parse", "HEAD")


def test_a_repository_without_a_commit(work: Work, told: Asking, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    work.git("init", "-q", where=empty)
    assert set(told(folder=str(empty)).values()) == {""}


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all"])
def test_nothing_is_told_where_nothing_is_known(told: Asking, folder: str) -> None:
    assert told(folder=folder, wants=GIT | {"file:1"}, fields={"1": "begin"}) in (
        {**dict.fromkeys(GIT, ""), "file:1": ""},
        {**dict.fromkeys(GIT, ""), "file:1": "missing"},
    )


def test_no_repository_is_no_error(told: Asking, tmp_path: Path) -> None:
    assert set(told(folder=str(tmp_path)).values()) == {""}


def test_gits_own_folder_and_its_other_options(work: Work, told: Asking, tmp_path: Path) -> None:
    work.push("-u", "origin", "main")
    assert told("git -C tree push", folder=str(tmp_path))["git.refs"] == "refs/heads/main"
    assert set(told("git --git-dir=elsewhere push").values()) == {""}
    assert set(told("git -c remote.origin.url=x push").values()) == {""}


def test_another_program_gets_what_is_checked_out(work: Work, told: Asking) -> None:
    work.push("-u", "origin", "main")
    found = told("npm publish")
    assert (found["git.commit"], found["git.refs"]) == (work.git("rev-parse", "HEAD"), "")


def test_no_program_of_the_repository_is_started(work: Work, told: Asking, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho started >> '{witness}'\n")
    program.chmod(0o755)
    for name in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "credential.helper", "gpg.program",
        "diff.external", "core.askPass", "remote.origin.uploadpack", "remote.origin.receivepack", "alias.config",
    ):  # fmt: skip
        work.git("config", name, str(program))
    work.git("config", "core.hooksPath", str(tmp_path))
    work.git("config", "remote.origin.url", f"ext::{program}")
    found = told("git push origin main")
    assert found["git.commit"]
    assert not witness.exists()


def test_a_hanging_git_does_not_hang_the_gate(
    work: Work, warden: Warden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setattr(key_inputs, "_SECONDS", 0.2)
    env = {**work.env, "PATH": f"{programs}:{os.environ['PATH']}"}
    fields = {"program": "git", "arguments": ["push"]}
    assert set(key_inputs.read_key_inputs(GIT, fields, ".", str(work.tree), env, warden).values()) == {""}


# --- files -----------------------------------------------------------------------------------------------------


def test_the_digest_of_a_file_that_a_field_names(work: Work, told: Asking) -> None:
    (work.tree / "body.json").write_bytes(b"{}")
    digest = hashlib.sha256(b"{}").hexdigest()
    wants = frozenset({"file:1", "file:--data", "file:path", "file:none", "file:number", "file:<"})
    fields = {"1": "body.json", "--data": "@body.json", "path": str(work.tree / "body.json"), "number": 7, "<": "gone"}
    assert told("curl", wants=wants, fields=fields) == {
        "file:1": digest,
        "file:--data": digest,
        "file:path": digest,
        "file:none": "",
        "file:number": "",
        "file:<": "missing",
    }


def test_each_of_several_files_counts(work: Work, told: Asking) -> None:
    for name in ("a", "b"):
        (work.tree / name).write_text(name)
    wants, fields = frozenset({"file:-f"}), {"-f": "a\nb"}
    before = told("kubectl", wants=wants, fields=fields)["file:-f"]
    assert before == f"{hashlib.sha256(b'a').hexdigest()} {hashlib.sha256(b'b').hexdigest()}"
    (work.tree / "a").write_text("changed")
    assert told("kubectl", wants=wants, fields=fields)["file:-f"] != before


@pytest.mark.parametrize("named", ["-", "https://example.org/x", "a\0b", ""])
def test_what_is_no_file(told: Asking, named: str) -> None:
    assert told("x", wants=frozenset({"file:1"}), fields={"1": named}) == {"file:1": ""}


def test_a_pipe_is_not_waited_for(work: Work, told: Asking) -> None:
    os.mkfifo(work.tree / "pipe")
    assert told("x", wants=frozenset({"file:1"}), fields={"1": "pipe"}) == {"file:1": ""}


def test_a_folder_is_told_apart_by_what_is_in_it(work: Work, told: Asking) -> None:
    (work.tree / "dist" / "deep").mkdir(parents=True)
    (work.tree / "dist" / "deep" / "a").write_text("1")
    wants = frozenset({"file:1"})
    before = told("x", wants=wants, fields={"1": "dist"})["file:1"]
    assert before.startswith("folder:")
    assert told("x", wants=wants, fields={"1": "dist"})["file:1"] == before
    (work.tree / "dist" / "deep" / "a").write_text("12")
    assert told("x", wants=wants, fields={"1": "dist"})["file:1"] != before


def test_a_source_folder_is_compared_without_the_data_of_git(work: Work, told: Asking) -> None:
    folder = work.tree / "site"
    (folder / ".git").mkdir(parents=True)
    (folder / "page").write_text("1")
    wants = frozenset({"file:sources"})
    first = told("surge site", wants, fields={"sources": "site"})
    (folder / ".git" / "index").write_text("1")
    assert told("surge site", wants, fields={"sources": "site"}) == first
    (folder / "page").write_text("12")
    assert told("surge site", wants, fields={"sources": "site"}) != first


def test_of_a_large_source_folder_a_part_is_compared(work: Work, told: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_inputs, "_MOST_FILES", 2)
    folder = work.tree / "site"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text("1")
    fields = {"sources": "site", "words": "site"}
    found = told("surge site", frozenset({"file:sources", "file:words"}), fields=fields)
    assert found["file:words"] == ""
    assert found["file:sources"].startswith("part:")
