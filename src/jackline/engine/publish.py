"""Publishes the work of a run: pushes its branch and opens its pull request, each once, as effects of the host.

The commands of the run machine that publish or look at a pull request are executed here.
It never forces a push, never pushes to the default branch, and only to the remote that the repository had when the run
was created. What was pushed is the content that was proved and reviewed.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from jackline.domain.graphql_answer import is_number
from jackline.domain.pull_request import PullRequest, build_url, compute_next_look, describe_set_back
from jackline.domain.pull_request_text import build_body, build_title
from jackline.domain.run_inputs import BLOCKED, CLOSED, OPEN, REACHED, Published
from jackline.domain.spec import DRAFT, MERGED
from jackline.domain.states import Failure, Role, WaitReason
from jackline.engine.attempt import RunInput
from jackline.engine.command_runner import run_command
from jackline.engine.committed_files import list_uncommitted
from jackline.engine.git import Git, GitFailed, unbind_git_env
from jackline.engine.github_client import GitHubClient, GitHubFailed, find_github_repository
from jackline.engine.host_calls import HostCaller, HostCallFailed
from jackline.engine.key_inputs import read_push_address
from jackline.engine.probes.findings import SILENT, describe_exit
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.pull_request_look import PullRequestWatcher
from jackline.engine.push_repository import make_push_repository
from jackline.engine.remotes import ORIGIN
from jackline.files import write_volatile
from jackline.named import NamedTuple
from jackline.policy import own_remotes
from jackline.policy.git_push_args import HEADS, remove_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.records import Run
    from jackline.engine.call_ledger import CallLedger
    from jackline.engine.command_runner import StillWanted
    from jackline.engine.process import Warden
    from jackline.engine.push_repository import PushRepository
    from jackline.store.store import Store

_PUSH_SECONDS = 600.0
_GH_SECONDS = 120.0
_LOOK_SECONDS = 60.0
_GIT_SECONDS = 60.0
_SHORT = 12  # digits of a commit
_NUMBER = re.compile(r"/pull/(\d+)\b")
_OPEN_FIELDS = (
    "pullRequests(headRefName: $branch, states: OPEN, first: 20) { nodes { number url baseRefName isCrossRepository } }"
)


class HostTools(NamedTuple):
    """What an attempt gives to the host's own work."""

    store: Store
    run: Run
    ledger: CallLedger
    env: Mapping[str, str]  # with the person's logins
    warden: Callable[[], Warden]
    folder: str  # of the run
    read_tree: Callable[[], str]
    now: Callable[[], int]
    wanted: StillWanted


class NotPublished(Exception):
    """Why the work cannot be published."""


class RemoteSilent(Exception):
    """Why a server did not answer: a later try may succeed."""


class WorkUncommitted(Exception):
    """Which work the last commit lacks."""


class PushedCommitLost(Exception):
    """Which commit was pushed, and is not in the branch any more."""


class BranchMoved(Exception):
    """What somebody else has done to the branch on the remote."""


class BranchLeft(Exception):
    """Which branch the workspace has instead of the published one, such as after a person has switched it."""


class WorkChanged(Exception):
    """The workspace is not what was proved."""


class PublishTarget(NamedTuple):
    """Where the work goes: the branch of a remote, and the branch that it should be merged into."""

    remote: str
    url: str
    repository: str  # HOST/OWNER/NAME
    branch: str
    commit: str


class RemoteState(NamedTuple):
    """What the remote has now."""

    default: str  # its default branch; empty if it names none
    branch: str  # the commit of our branch there; empty if it does not exist
    base: str  # the commit of the branch to merge into


class Publisher(NamedTuple):
    """Publishes the work of one run."""

    store: Store
    run: Run
    caller: HostCaller
    git: Git
    folder: str  # of the run
    read_tree: Callable[[], str]  # the content of the workspace now; empty if git cannot tell
    now: Callable[[], int]

    def publish(self) -> tuple[Published, PullRequest | None]:
        """Push the branch and open the pull request, as far as that is still to be done."""
        try:
            known = self.store.pull_requests.get(self.run.id)
            if known is not None and self._is_over(known):
                return Published(at=self.now()), None
            target = self._find_target(known)
            # What needed a person may be a branch that somebody has moved.
            is_done = known is not None and known.head == target.commit and known.state != BLOCKED
            request = known if is_done else self._publish(target, known)
        except HostCallFailed as error:
            return self._build_failed(str(error), error.doubts), None
        except NotPublished as error:
            return self._build_failed(str(error)), None
        except (WorkUncommitted, PushedCommitLost) as error:  # the agent can repair both
            return self._build_failed(str(error))._replace(uncommitted=self.git.resolve_commit("HEAD") or "HEAD"), None
        except (BranchMoved, BranchLeft) as error:
            return Published(at=self.now(), waits=WaitReason.HUMAN, detail=f"not published: {error}"), None
        except (RemoteSilent, GitHubFailed) as error:
            return self._build_failed(str(error))._replace(failure=Failure.CONNECTIVITY), None
        except WorkChanged as error:
            return Published(at=self.now(), is_stale=True, detail=str(error)), None
        return Published(at=self.now()), request

    def _is_over(self, known: PullRequest) -> bool:
        """Whether nothing is left to publish, whatever a person has in the workspace by now; the next look says why.

        Only a merge or a closed pull request ends a run whose agent has worked since the last push. If GitHub does not
        answer about one that only waits, nothing is pushed either: the next look lets it wait.
        """
        if not self.run.spec.until:
            return False
        turns = self.store.records.list_turns(self.run.id)
        has_worked = any(turn.role != Role.REVIEW and turn.started_at > known.pushed_at for turn in turns)
        client = GitHubClient(known.repository, self.caller.env, self.caller.warden(), self.caller.wanted)
        watcher = PullRequestWatcher(self.store, self.run, lambda _: client, self.now)
        try:
            state = watcher.read_state(known, MERGED if has_worked else self.run.spec.until)
        except GitHubFailed:
            return not has_worked
        return state in {REACHED, CLOSED}

    def _build_failed(self, why: str, doubts: tuple[str, ...] = ()) -> Published:
        return Published(at=self.now(), failure=Failure.PULL_REQUEST, detail=f"not published: {why}", doubts=doubts)

    def _publish(self, target: PublishTarget, known: PullRequest | None) -> PullRequest:
        repository = make_push_repository(
            os.path.join(self.folder, "push.git"), self.git, target.remote, target.url, target.commit
        )
        if repository is None:
            raise NotPublished("git cannot read the repository")
        try:
            remote = self._read_remote(repository, target)
            if known is not None and remote.branch == known.head == target.commit:
                return known
            base = self._choose_base(target, remote, known)
            if remote.branch != target.commit:
                self._require_descent(target, remote.branch, known)
                if known is not None and known.head == target.commit:  # the ledger lets no effect happen twice
                    raise BranchMoved(describe_set_back(target.branch, remote.branch, target.commit))
                words = ("git", "push", "--no-verify", target.remote, f"HEAD:{HEADS}{target.branch}")
                self.caller.run(words, _PUSH_SECONDS, **repository.env)
            return self._open(repository, target, base, known)
        finally:
            repository.remove()

    # what is published, and where

    def _find_target(self, known: PullRequest | None) -> PublishTarget:
        """Find the branch, its commit and its remote; NotPublished if the work must not be pushed as it is."""
        spec = self.run.spec
        words = ("rev-parse", "HEAD^{commit}", "HEAD^{tree}", "--symbolic-full-name", "HEAD")
        lines = (self.git.run(*words) or "").splitlines()
        if len(lines) != len(("commit", "tree", "branch")):
            raise NotPublished("the workspace has no commit")
        commit, tree, ref = lines
        branch, expected = ref.removeprefix(HEADS), known.branch if known else spec.pr_branch or spec.worktree.branch
        if branch != expected:
            why = f"the workspace is on {branch}, not on {expected}: `git switch {expected}`, then resume"
            raise BranchLeft(why) if known else NotPublished(why)
        if tree != self.run.status.tree:  # else the commit is exactly what was proved, whatever else lies around
            self._require_committed(branch)
        url = read_push_address(self.git, ORIGIN)
        address = own_remotes.normalize_address(url, self.git.workspace)
        expected = spec.pr_remote or "".join(spec.own_remotes if len(spec.own_remotes) == 1 else ())
        if not url or address != expected:  # the agent may have set it, to another remote of the repository, too
            shown, before = remove_credentials(url) or "missing", expected or "not recorded"
            why = f"the remote {ORIGIN} is {shown}, but was {before} when the run was created"
            raise NotPublished(f"{why}: set it back, then resume the run" if expected else f"{why}: start another run")
        if branch == spec.own_remotes.get(address):
            raise NotPublished(f"{branch} is the default branch of {ORIGIN}")
        repository = find_github_repository(address)
        if not repository:
            raise NotPublished(f"{remove_credentials(url)} is not the address of a repository on GitHub")
        return PublishTarget(remote=ORIGIN, url=url, repository=repository, branch=branch, commit=commit)

    def _require_committed(self, branch: str) -> None:
        """Require that the commit is the workspace, and the workspace what was proved."""
        try:
            changed = list_uncommitted(self.git, os.path.join(self.folder, "publish.index"))
        except (GitFailed, OSError) as error:
            raise NotPublished(f"it is unknown what is committed in the workspace: {error}") from error
        if changed:
            what = f"the workspace has changes that are not committed, such as {changed[0]}"
            host = (
                "" if self.run.spec.commit_work else f"; `jackline resume {self.run.id} --commit` lets the host do so"
            )
            raise WorkUncommitted(f"{what}: commit what belongs to the work on {branch}{host}")
        if self.run.status.tree and self.read_tree() != self.run.status.tree:
            raise WorkChanged("the workspace has changed since it was proved")

    def _read_remote(self, repository: PushRepository, target: PublishTarget) -> RemoteState:
        words = ("git", "ls-remote", "--symref", target.remote, "HEAD", f"{HEADS}*")
        try:
            result = run_command(
                words,
                cwd=self.git.workspace,
                env={**self.caller.env, **SILENT, **repository.env},
                timeout_s=_LOOK_SECONDS,
                output_limit=16 * 1024 * 1024,
                below=self.caller.warden(),
                wanted=self.caller.wanted,
            )
        except (SpawnFailed, WardenLost) as error:
            raise NotPublished(f"git: {error}") from None
        if result.exit_code != 0 or result.timed_out:
            why = describe_exit(result).replace(target.url, remove_credentials(target.url))
            raise RemoteSilent(f"the remote {target.remote} does not answer: {why}")
        return parse_remote(result.stdout_tail.decode("utf-8", "replace"), target.branch, self.run.spec.pr_base)

    def _choose_base(self, target: PublishTarget, remote: RemoteState, known: PullRequest | None) -> str:
        """The branch to merge into; NotPublished if the branch is the default one, or has nothing to merge."""
        if not remote.default:
            raise NotPublished(f"the default branch of {target.remote} is unknown, so nothing is pushed")
        base = known.base if known else self.run.spec.pr_base or remote.default
        if target.branch in {remote.default, base}:
            what = "the default branch" if target.branch == remote.default else "the branch to merge into"
            raise NotPublished(f"{target.branch} is {what}: start the run with --worktree, or on a separate branch")
        if known is None and not remote.base:
            raise NotPublished(f"{target.remote} has no branch {base}")
        if known is None and self.git.run("merge-base", "--is-ancestor", target.commit, remote.base) is not None:
            raise NotPublished(f"{target.branch} has no commit that {base} does not have")
        return base

    def _require_descent(self, target: PublishTarget, pushed: str, known: PullRequest | None) -> None:
        """Require that the commit follows the one that the branch has on the remote: git refuses any other push."""
        if not pushed or self.git.run("merge-base", "--is-ancestor", pushed, target.commit) is not None:
            return
        short, branch = pushed[:_SHORT], target.branch
        if known is not None and pushed in known.commits.split():
            how = f"`git reset --soft {short}`, then commit again"
            raise PushedCommitLost(f"{branch} no longer contains {short}, which is pushed, and stays: {how}")
        where = f"{branch} of {target.remote} is at {short}, which the workspace does not have"
        raise BranchMoved(f"{where}: merge that into the workspace, then resume")

    # the effects

    def _open(
        self, repository: PushRepository, target: PublishTarget, base: str, known: PullRequest | None
    ) -> PullRequest:
        """Find the open pull request of the branch, or open it."""
        at = self.now()
        if known is not None:
            commits = f"{known.commits} {target.commit}"
            first = compute_next_look(at, 0)
            return known._replace(head=target.commit, commits=commits, pushed_at=at, state=OPEN, next_at=first, quiet=0)
        number, base = self._find_open(target) or self._create(repository, target, base)
        return PullRequest(
            run_id=self.run.id,
            repository=target.repository,
            number=number,
            url=build_url(target.repository, number),
            branch=target.branch,
            base=base,
            head=target.commit,
            commits=target.commit,
            state=OPEN,
            seen="",
            published_at=at,
            pushed_at=at,
            looked_at=at,
            next_at=compute_next_look(at, 0),
        )

    def _find_open(self, target: PublishTarget) -> tuple[int, str] | None:
        """The number and the base of the open pull request of the branch."""
        client = GitHubClient(target.repository, self.caller.env, self.caller.warden(), self.caller.wanted)
        return parse_open(client.query(_OPEN_FIELDS, {"branch": target.branch}))

    def _create(self, repository: PushRepository, target: PublishTarget, base: str) -> tuple[int, str]:
        redact = self.store.redactor.redact
        spec = self.run.spec
        body = os.path.join(self.folder, "pull-request.md")
        turns = self.store.records.list_turns(self.run.id)
        verdicts = self.store.reviews.list_verdicts(self.run.id)
        text = build_body(self.run, turns, [one for one in verdicts if one.tree == self.run.status.tree])
        write_volatile(body, redact(text).encode())
        words = [
            "gh", "pr", "create", "--repo", target.repository, "--head", target.branch, "--base", base,
            "--title", build_title(redact(spec.prompt), target.branch), "--body-file", body,
        ]  # fmt: skip
        words += ["--draft"] if spec.pr == DRAFT else []
        output = self.caller.run(words, _GH_SECONDS, **repository.env)
        url = next((word for word in output.split() if _NUMBER.search(word)), "")
        if number := _NUMBER.search(url):
            return int(number[1]), base
        if (found := self._find_open(target)) is not None:  # a probe found it
            return found
        raise NotPublished(f"gh opened a pull request of {target.branch}, but GitHub does not list it: resume the run")


def publish_work(tools: HostTools) -> RunInput:
    """Push the branch and open the pull request."""
    workspace, env = tools.run.spec.workspace, unbind_git_env(tools.env)
    publisher = Publisher(
        store=tools.store,
        run=tools.run,
        caller=HostCaller(tools.ledger, workspace, env, tools.warden, tools.wanted),
        git=Git(workspace=workspace, env=env, warden=tools.warden(), timeout_s=_GIT_SECONDS),
        folder=tools.folder,
        read_tree=tools.read_tree,
        now=tools.now,
    )
    published, request = publisher.publish()
    return RunInput(published, pull_request=request)


def look_at_pull_request(tools: HostTools) -> RunInput:
    """Find out whether the pull request is as the run wants it."""

    def connect(repository: str) -> GitHubClient:
        return GitHubClient(repository, tools.env, tools.warden(), tools.wanted)

    seen, request, feedback = PullRequestWatcher(tools.store, tools.run, connect, tools.now).look()
    return RunInput(seen, pull_request=request, feedback=feedback)


def parse_open(answer: Mapping[str, Any]) -> tuple[int, str] | None:
    """The number and the base of the first pull request of the repository itself; GitHubFailed if it is unclear."""
    found = answer.get("pullRequests")
    nodes = found.get("nodes") if isinstance(found, dict) else None
    if isinstance(nodes, list) and all(isinstance(one, dict) for one in nodes):
        own = next((one for one in nodes if one.get("isCrossRepository") is False), None)
        if own is None:
            return None
        number, base = own.get("number"), own.get("baseRefName")
        if is_number(number) and isinstance(base, str) and base and base.isprintable() and " " not in base:
            return number, base
    raise GitHubFailed("GitHub lists the open pull requests of the branch in a form that jackline does not know")


def parse_remote(listed: str, branch: str, base: str) -> RemoteState:
    """The state of a remote from the output of `git ls-remote --symref`."""
    default, refs = "", {}
    for line in listed.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            default = value.removeprefix("ref: ").removeprefix(HEADS)
        else:
            refs[name] = value
    found = refs.get(f"{HEADS}{base or default}", "")
    return RemoteState(default=default, branch=refs.get(f"{HEADS}{branch}", ""), base=found)
