"""The host commits what the agent left uncommitted, before the proof. Hooks run as for a commit of the user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.domain.changes import build_reflog_env
from jackline.domain.quoted_text import remove_quotations
from jackline.domain.states import Failure
from jackline.engine.check import CheckResult, HostCheck
from jackline.engine.command_runner import run_command
from jackline.engine.git import GitFailed, GitRefused, find_git_reason, find_hook_reason
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.tree_files import keep_small_files, list_work_in_gitlinks
from jackline.engine.tree_id import TreeUnreadable, describe_names
from jackline.engine.work_backup import find_missing_identity
from jackline.policy.git_push_args import HEADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Run
    from jackline.engine.git import Git
    from jackline.engine.tree_files import WorkingRepository
    from jackline.engine.work_trees import WorkTrees
    from jackline.store.store import Store

COMMAND = "git commit"
_REFUSED = 1  # git's exit code after most hooks have refused, whatever theirs; after its own errors it is 128
_SECONDS = 600.0
_SUBJECT = 72  # characters
_MOST_NAMED = 10
_TAIL = 16_384
# What `git add` says if the work is not the cause: a lock, the disk, or the machine.
_HOST_REASONS = re.compile(
    r"Unable to create '[^']*\.lock'|unable to write|insufficient permission|out of memory"
    r"|: (?:File exists|No space left|Disk quota|Read-only file system|Permission denied|Input/output error)",
    re.IGNORECASE,
)


def commit_work(store: Store, run: Run, trees: WorkTrees) -> CheckResult:
    """Commit all that is not ignored, except large data and what only a proof wrote; never an empty commit."""
    try:
        repository = trees.find_repository()
        if repository is None:
            return _fail("there is no git repository to commit to")
        return _commit(store, run, trees, repository)
    except TreeUnreadable as error:
        return _fail(str(error))
    except (GitFailed, SpawnFailed, WardenLost, OSError) as error:
        return _give_up(str(error))


COMMIT_CHECK = HostCheck(
    failure=Failure.PROOF,
    find_command=lambda _store, run: COMMAND if run.spec.commit_work else "",
    work=commit_work,
)


def _commit(store: Store, run: Run, trees: WorkTrees, repository: WorkingRepository) -> CheckResult:
    git = repository.bind(trees.git)._replace(has_hooks=True)
    if git.read("ls-files", "-z", "--unmerged"):
        return _fail("there are conflicts in the index: resolve them first")
    if astray := _describe_other_branch(git, run.spec.worktree.branch):
        return _fail(astray)
    listed = git.read("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    written = trees.find_proof_files() | trees.find_proof_only_files()
    hidden = [name for name in list_work_in_gitlinks(git, ignored=False) if name not in written]
    if hidden:
        shown = ", ".join(describe_names(hidden[:_MOST_NAMED]))
        return _fail(f"git cannot add files below a submodule that is not checked out: {shown}")
    names = {name for name in listed if name and not name.endswith("/")} - written
    kept, large = keep_small_files(repository.top, names)
    if refused := _add_files(git, kept):
        return _fail(refused)
    left_out = ", ".join(describe_names(large[:_MOST_NAMED]))
    note = f"large files are not committed: {left_out}\n" if large else ""
    if git.run("diff", "--cached", "--quiet", "--no-ext-diff") is not None:
        return CheckResult(0, f"{note}nothing to commit", "")
    done = run_command(
        ("git", "commit", "--quiet", "-m", _build_message(store, run)),
        cwd=repository.top,
        env={**git.env, **find_missing_identity(git), **build_reflog_env(run.id), "GIT_TERMINAL_PROMPT": "0"},
        timeout_s=_SECONDS,
        output_limit=_TAIL,
        below=git.warden,
    )
    printed = store.redactor.redact((done.stdout_tail + done.stderr_tail).decode("utf-8", "replace"))
    if done.exit_code == 0 and not done.timed_out:
        return CheckResult(0, note + printed, "")
    hook_reason = find_hook_reason(printed)
    reason = hook_reason or find_git_reason(printed)
    if done.exit_code != _REFUSED and not hook_reason and not done.timed_out:
        return _give_up(f"{COMMAND} ended with exit code {done.exit_code}: {reason}", printed)
    content = (git.run("write-tree") or "").strip()  # a hook may always print the same
    why = "it took too long" if done.timed_out else f"exit {done.exit_code}"
    return CheckResult(_REFUSED, printed, f"the host's commit failed ({why}): {reason}", content)


def _add_files(git: Git, names: Sequence[str]) -> str:
    """Add what has changed and these new files; why git does not take them, such as the ends of their lines.

    GitFailed if the cause is not the work.
    """
    try:
        git.read("add", "--update", "--", ".")
        if names:
            words = ("--literal-pathspecs", "add", "--pathspec-from-file=-", "--pathspec-file-nul")
            git.read(*words, stdin="".join(f"{name}\0" for name in names))
    except GitRefused as error:
        if _HOST_REASONS.search(str(error)):
            raise
        return str(error)
    return ""


def _describe_other_branch(git: Git, own: str) -> str:
    """Why a commit would not be on the run's own branch; empty if it would be, or the run has none."""
    head = (git.run("symbolic-ref", "--quiet", "HEAD") or "").strip()
    if not own or head == f"{HEADS}{own}":
        return ""
    where = f"the worktree is on {head.removeprefix(HEADS)}" if head else "HEAD is detached"
    return f"{where}: switch back to the branch {own}, with all changes and commits that belong to the work"


def _build_message(store: Store, run: Run) -> str:
    lines = store.redactor.redact(remove_quotations(run.spec.prompt)).strip().splitlines()
    subject = lines[0].strip() if lines else run.spec.task or "Work of an agent"
    subject = subject if len(subject) <= _SUBJECT else f"{subject[: _SUBJECT - 1]}…"
    return f"{subject}\n\nCommitted by jackline in run {run.id}."


def _fail(why: str) -> CheckResult:
    return CheckResult(_REFUSED, why, f"the host cannot commit the work: {why}")


def _give_up(why: str, output: str = "") -> CheckResult:
    """No work of the agent repairs this: signing, the identity, a locked index, or a full disk."""
    detail = f"the host cannot commit the work: {why}; correct that, then resume the run"
    return CheckResult(None, output or why, detail, failure=Failure.NO_COMMIT)
