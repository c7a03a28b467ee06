"""Executes the commands of the run machine that publish: their results as its inputs, with the records to store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.attempt import RunInput
from jackline.engine.git import Git, unbind_git_env
from jackline.engine.github_client import GitHubClient
from jackline.engine.host_calls import HostCaller
from jackline.engine.publish import Publisher
from jackline.engine.pull_request_look import PullRequestWatcher
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.records import Run
    from jackline.engine.call_ledger import CallLedger
    from jackline.engine.command_runner import StillWanted
    from jackline.engine.process import Warden
    from jackline.store.store import Store

_GIT_SECONDS = 60.0


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
