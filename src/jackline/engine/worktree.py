"""Makes the worktree of a run: branch, folder, copied files, set-up command. After a crash it is completed.

Git checks the files out as it would for the user, with their filters, but without hooks: the set-up command does what a
hook would do. A folder that an agent may have worked in is never changed or deleted here.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.engine.command_runner import always_wanted, run_command
from jackline.engine.git import Git
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.work_backup import keep_registered_work
from jackline.engine.worktree_files import CannotCopy, copy_files
from jackline.formatting import make_printable, shorten_text
from jackline.named import NamedTuple
from jackline.secrets.masking import SecretMask
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jackline.domain.records import Lease, Run
    from jackline.domain.spec import WorktreeSpec
    from jackline.engine.command_runner import CommandResult, StillWanted
    from jackline.engine.process import Warden
    from jackline.engine.settings import EngineSettings
    from jackline.store.store import Store

BRANCHES = "jackline/"
SETUP_LOG = "setup.log"
# Starts no hook, no pager and no file monitor that the settings of a repository name; filters run.
GIT_WORDS = ("git", "--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_GIT_SECONDS = 600.0
_MOST_LOG = 16 * 1024 * 1024
_MOST_SHOWN = 200
_SHORT_COMMIT = 12


def name_lock(run_id: str) -> str:
    """The reason of git's own lock of the worktree of a run, which shows whose it is."""
    return f"jackline run {run_id}"


class WorktreeUnready(Exception):
    """The worktree cannot be prepared; the message says why, and what to do."""


class ListedWorktree(NamedTuple):
    """A worktree that git knows."""

    path: str
    head: str = ""
    branch: str = ""  # a whole ref; empty: detached
    lock: str | None = None  # the reason of its lock; None: it is not locked

    def is_of(self, run_id: str) -> bool:
        """Whether jackline made it for this run."""
        return self.lock == name_lock(run_id)


class UserGit(NamedTuple):
    """Runs git as the user would, but without hooks, and below a warden."""

    folder: str
    env: Mapping[str, str]
    warden: Warden | None = None
    wanted: StillWanted = always_wanted

    def run(self, *words: str) -> CommandResult:
        """Run git to its end; WorktreeUnready if it cannot be started."""
        env = {**self.env, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            return run_command(
                (*GIT_WORDS, *words),
                cwd=self.folder,
                env=env,
                timeout_s=_GIT_SECONDS,
                below=self.warden,
                wanted=self.wanted,
            )
        except (SpawnFailed, WardenLost) as error:
            raise WorktreeUnready(str(error)) from error

    def read(self, *words: str) -> str:
        """The output of git; WorktreeUnready if it fails."""
        result = self.run(*words)
        if result.timed_out or result.exit_code != 0:
            lines = result.stderr_tail.decode("utf-8", "replace").splitlines()
            # The last line of `worktree add` on a full disk says less than its first one.
            cause = next((f" ({make_printable(line)})" for line in lines[:-1] if line.startswith("error: ")), "")
            raise WorktreeUnready(f"git {words[0]} {describe_end(result)}{shorten_text(cause, _MOST_SHOWN)}")
        return result.stdout_tail.decode("utf-8", "replace").removesuffix("\n")

    def resolve(self, name: str) -> str:
        """The commit that a ref or another name means; empty if there is none."""
        result = self.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}")
        return result.stdout_tail.decode().strip() if result.exit_code == 0 else ""

    def list_worktrees(self) -> list[ListedWorktree]:
        """All worktrees of the repository; the main one is first."""
        return parse_worktrees(self.read("worktree", "list", "--porcelain"))


def describe_end(result: CommandResult) -> str:
    """How a command ended, with the last line that it printed."""
    how = "took too long" if result.timed_out else f"failed (exit {result.exit_code})"
    lines = (result.stderr_tail or result.stdout_tail).decode("utf-8", "replace").strip().splitlines()
    return f"{how}: {shorten_text(make_printable(lines[-1]), _MOST_SHOWN)}" if lines else how


def parse_worktrees(listed: str) -> list[ListedWorktree]:
    """Parse the output of `git worktree list --porcelain`."""
    found = []
    for block in listed.split("\n\n"):
        fields = dict(line.partition(" ")[::2] for line in block.split("\n") if line)
        if "worktree" in fields:
            path, head, branch = (fields.get(name, "") for name in ("worktree", "HEAD", "branch"))
            found.append(ListedWorktree(path=path, head=head, branch=branch, lock=fields.get("locked")))
    return found


class WorktreeJob(NamedTuple):
    """What is needed to prepare the worktree of a run."""

    run_id: str
    spec: WorktreeSpec
    git: UserGit  # in the repository
    is_made: bool  # an earlier attempt made it: an agent may have worked in it
    is_set_up: bool
    on_made: Callable[[str, str], None]  # called with `made` or `restored`, and the commit that it starts from
    on_set_up: Callable[[], None]  # called when files are copied and the set-up command has succeeded
    on_setting_up: Callable[[], None] = lambda: None  # called before the set-up command starts
    on_kept: Callable[[str], None] = lambda _ref: None  # called with the ref of what a lost folder leaves in git
    log: str = ""  # the file for the output of the set-up command
    secrets: Iterable[str] = ()
    last_commit: str = ""  # that the run is known to have made


def prepare_worktree(job: WorktreeJob) -> None:
    """Make the worktree, or find it again; WorktreeUnready if that is not possible, OSError if the disk is full."""
    is_fresh = not job.is_set_up
    if not _is_usable(job):
        change = "restored" if job.is_made else "made"
        commit = _restore_worktree(job) if job.is_made else _make_worktree(job)
        job.on_made(change, commit)
        is_fresh = True
    if not is_fresh:
        return
    try:
        copy_files(job.spec.source, job.spec.path, job.spec.copy)
    except CannotCopy as error:
        raise WorktreeUnready(str(error)) from error
    if job.spec.setup:
        job.on_setting_up()
    _set_up(job)
    # Without its own .git the agent would work in whatever repository is around the folder.
    if not _is_usable(job._replace(is_made=True)):
        raise WorktreeUnready(f"its set-up command deleted {job.spec.path}: {job.spec.setup}")
    job.on_set_up()


def _is_usable(job: WorktreeJob) -> bool:
    """Whether the worktree that an earlier attempt made is there, as the agent left it."""
    path = job.spec.path
    if not job.is_made or not os.path.lexists(path) or _is_empty(path):
        return False
    top = job.git._replace(folder=path).run("rev-parse", "--show-toplevel") if os.path.isdir(path) else None
    if top is None or top.exit_code != 0 or os.path.realpath(top.stdout_tail.decode().strip()) != path:
        raise WorktreeUnready(
            f"{path} is no longer a git worktree: keep what is in it with `jackline worktree salvage {job.spec.name}`, "
            "move it away, then resume"
        )
    return True


def _restore_worktree(job: WorktreeJob) -> str:
    """Make the worktree again from its branch; never from another commit."""
    commit = job.git.resolve(f"refs/heads/{job.spec.branch}")
    if not commit:
        last = f" {job.last_commit}" if job.last_commit else " COMMIT"
        raise WorktreeUnready(
            f"its folder {job.spec.path} and its branch {job.spec.branch} are gone: restore the branch with "
            f"`git branch {job.spec.branch}{last}`, then resume"
        )
    # Git forgets what it has of the old folder: commits of a detached HEAD, and files that were staged.
    git = Git(workspace=job.git.folder, env=job.git.env, warden=job.git.warden, timeout_s=_GIT_SECONDS)
    backup = keep_registered_work(git, job.spec.path, job.run_id)
    if backup.problem:
        raise WorktreeUnready(f"what git has of {job.spec.path}, which is gone, cannot be kept: {backup.problem}")
    for ref in backup.refs:
        job.on_kept(ref)
    _add_worktree(job)
    return commit


def _make_worktree(job: WorktreeJob) -> str:
    """Make branch and folder. What an earlier attempt left half made is replaced: no agent has seen it."""
    spec, git = job.spec, job.git
    if os.path.lexists(spec.path) and not _is_empty(spec.path):
        own = [one for one in git.list_worktrees() if os.path.realpath(one.path) == spec.path]
        if not own or not own[0].is_of(job.run_id):
            raise WorktreeUnready(f"{spec.path} exists and does not belong to this run: move it away, then resume")
        shutil.rmtree(spec.path)
    commit = git.resolve(f"refs/heads/{spec.branch}")
    if commit and commit != spec.base:
        raise WorktreeUnready(f"the branch {spec.branch} exists already: rename it, then resume")
    if not commit:
        if not git.resolve(spec.base):
            raise WorktreeUnready(f"the commit {spec.base}, which it starts from, is gone")
        if git.resolve(f"refs/heads/{BRANCHES[:-1]}"):
            raise WorktreeUnready(f"the branch {BRANCHES[:-1]} is in the way of {spec.branch}: rename it, then resume")
        git.read("update-ref", "--create-reflog", "-m", name_lock(job.run_id), f"refs/heads/{spec.branch}",
                 spec.base, "0" * len(spec.base))  # fmt: skip
    _add_worktree(job)
    return spec.base


def _add_worktree(job: WorktreeJob) -> None:
    """Check the branch out into the folder. Git's lock, set first, keeps the worktree from being pruned or removed."""
    os.makedirs(os.path.dirname(job.spec.path), mode=0o700, exist_ok=True)
    # Twice forced: the place may be registered for a folder that is gone, and locked. No branch is checked out twice.
    taken = [one.path for one in job.git.list_worktrees() if one.branch == f"refs/heads/{job.spec.branch}"]
    others = [path for path in taken if os.path.realpath(path) != job.spec.path]
    if others:
        raise WorktreeUnready(f"its branch {job.spec.branch} is checked out in {others[0]}: switch that to another one")
    job.git.read(
        "worktree", "add", "--quiet", "--force", "--force", "--lock", "--reason", name_lock(job.run_id),
        job.spec.path, job.spec.branch,
    )  # fmt: skip


def _is_empty(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)


def _set_up(job: WorktreeJob) -> None:
    """Run the set-up command in the worktree; its output, with secrets masked, goes to the log."""
    if not job.spec.setup:
        return
    masks = {source: SecretMask(job.secrets) for source in ("stdout", "stderr")}
    left = _MOST_LOG
    os.makedirs(os.path.dirname(job.log), mode=0o700, exist_ok=True)
    descriptor = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:

        def write(data: bytes) -> None:
            nonlocal left
            file.write(data[:left])
            left -= len(data[:left])

        write(f"$ {job.spec.setup}\n".encode())
        try:
            result = run_command(
                job.spec.setup,
                cwd=job.spec.path,
                env=job.git.env,
                timeout_s=job.spec.setup_timeout_ms / 1000,
                below=job.git.warden,
                hear=lambda source, data: write(masks[source].feed(data)),
                wanted=job.git.wanted,
            )
        except (SpawnFailed, WardenLost) as error:
            raise WorktreeUnready(f"its set-up command could not be started: {error}") from error
        for mask in masks.values():
            write(mask.end())
    if result.timed_out or result.exit_code != 0:
        how = "took too long" if result.timed_out else f"failed (exit {result.exit_code})"
        raise WorktreeUnready(f"its set-up command {how}; its output is in {job.log}: {job.spec.setup}")


def prepare_for_attempt(
    store: Store, lease: Lease, run: Run, settings: EngineSettings, git: UserGit, now: Callable[[], int]
) -> str:
    """Prepare the worktree of a run before its agent starts; return why that is not possible, else nothing."""
    row = store.worktrees.get(run.id)
    if row is None or row.removed_at is not None:
        return f"worktree {run.spec.worktree.name} was removed: start another run"
    if row.made_at is not None and row.host != settings.host:
        return f"its worktree is on host {row.host}: resume it there"
    spec, commits = run.spec.worktree, store.records.get_changes(run.id).ids

    def record_made(change: str, commit: str) -> None:
        store.worktrees.record_made(lease, settings.host, now())
        fact = Fact(f"worktree.{change}", {"path": spec.path, "branch": spec.branch, "commit": commit[:_SHORT_COMMIT]})
        store.leases.write_change(lease, RunChange(at=now(), facts=(fact,)))

    def record_kept(ref: str) -> None:
        fact = Fact("backup.made", {"call": "", "ref": ref, "command": "git worktree add"})
        store.leases.write_change(lease, RunChange(at=now(), facts=(fact,)))

    def record_setting_up() -> None:
        fact = Fact("worktree.setup", {"command": spec.setup})
        store.leases.write_change(lease, RunChange(at=now(), facts=(fact,)))

    def record_set_up() -> None:
        store.worktrees.record_set_up(lease, now())
        fact = Fact("worktree.ready", {"path": spec.path, "copied": len(spec.copy), "setup": spec.setup})
        store.leases.write_change(lease, RunChange(at=now(), facts=(fact,)))

    job = WorktreeJob(
        run_id=run.id,
        spec=spec,
        git=git._replace(folder=store.worktrees.find_repository(run.id)),
        is_made=row.made_at is not None,
        is_set_up=row.set_up_at is not None,
        on_made=record_made,
        on_set_up=record_set_up,
        on_setting_up=record_setting_up,
        on_kept=record_kept,
        log=os.path.join(settings.build_folder(run.id), SETUP_LOG),
        secrets=store.redactor.values,
        last_commit=commits[-1] if commits else "",
    )
    try:
        prepare_worktree(job)
    except WorktreeUnready as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or spec.path}: {error.strerror}"
    return ""
