"""A service looks at the pull requests that runs wait for, and queues a run only if there is something to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.app.home import Home, open_home
from jackline.app.wakeups import list_due
from jackline.domain.events import Fact
from jackline.domain.run_inputs import BLOCKED, REACHED, RED
from jackline.domain.spec import Spec
from jackline.domain.states import Phase, RunState, WaitReason
from jackline.engine.github_client import GitHubClient
from jackline.engine.pull_request_look import PullRequestWatcher
from jackline.features.pull_requests.poll_task import PullRequestPoller, has_due_pull_request
from jackline.store.models import NewRun, RunChange
from tests.conftest import SLOW_BACKENDS
from tests.support.github_server import needs_gh
from tests.support.pull_request_server import PullRequestServer
from tests.support.pull_requests import AT, HEAD, build_pull_request
from tests.support.stores import owner

pytestmark = [needs_gh, pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)]
MINUTE, DAY = 60_000, 86_400_000


@pytest.fixture
def home(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in [name for name in os.environ if name.startswith(("JACKLINE_", "GH_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if "://" in database:
        monkeypatch.setenv("JACKLINE_DATABASE", database)
    with open_home(str(tmp_path / "home")) as home:
        home.store(create=True)
        yield home


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PullRequestServer]:
    server = PullRequestServer(tmp_path)
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


class Clock:
    def __init__(self) -> None:
        self.now = AT + MINUTE

    def __call__(self) -> int:
        return self.now


def park(home: Home, forge: PullRequestServer, number: int = 1, until: str = "green") -> str:
    """A run that waits for its pull request."""
    store, run_id = home.store(), f"run-{number}"
    spec = Spec(prompt="grow", workspace="/", pr="ready", until=until)
    store.runs.create(NewRun(id=run_id, repository="/", spec=spec, request="as asked"), AT)
    lease, run = store.leases.claim(run_id, owner(), 60_000, AT)
    status = run.status._replace(
        state=RunState.WAITING, reason=WaitReason.CI, goal=Phase.PUBLISHING, phase=None, wake_at=AT + MINUTE, turn=1
    )
    request = build_pull_request(
        run_id=run_id, number=number, repository=f"{forge.git.host}/octo/garden", next_at=AT + MINUTE
    )
    facts = (Fact("run.waiting", {"reason": "ci"}),)
    store.leases.write_change(lease, RunChange(at=AT, facts=facts, status=status, pull_request=request))
    node = {"number": number, "state": "OPEN", "head": HEAD, "headRefName": "topic", "reviewDecision": None}
    forge.forge.append({**node, "url": request.url, "comments": [], "reviews": []})
    return run_id


def read_state(home: Home, run_id: str) -> RunState:
    run = home.store().runs.get(run_id)
    assert run is not None
    return run.status.state


def test_one_request_for_all_of_a_repository_and_a_run_is_queued_only_if_it_has_something_to_do(
    home: Home, forge: PullRequestServer
) -> None:
    first, second, clock = park(home, forge, 1), park(home, forge, 2, "merged"), Clock()
    assert list_due(home, AT + DAY) == []  # not an ordinary wake-up
    assert has_due_pull_request(home, clock())
    poller = PullRequestPoller(home, clock)
    assert poller.poll() == clock() + MINUTE
    assert forge.count("/api/graphql") == 1
    assert not has_due_pull_request(home, clock())
    poller.poll()
    assert forge.count("/api/graphql") == 1  # once a minute
    for quiet in (2, 4, 8, 10, 10):
        clock.now = poller.poll() or 0
        assert poller.poll() == clock() + quiet * MINUTE
    forge.add_check(HEAD, "build", "SUCCESS")
    clock.now = poller.poll() or 0
    poller.poll()
    assert (read_state(home, first), read_state(home, second)) == (RunState.QUEUED, RunState.WAITING)
    assert [one.run_id for one in home.store().wakeups.list_answered()] == [first]
    assert home.store().pull_requests.wake(build_pull_request(run_id=first), clock()) is False
    assert home.store().verify.verify_run(first).problems == ()


def test_a_cancelled_check_that_its_workflow_has_made_again_does_not_count(
    home: Home, forge: PullRequestServer
) -> None:
    run_id, clock = park(home, forge), Clock()
    forge.add_check(HEAD, "build", "SUCCESS", workflow="CI", ago=3600)
    forge.add_check(HEAD, "build", "CANCELLED", workflow="CI", ago=7200, is_another=True)
    run = home.store().runs.get(run_id)
    assert run is not None
    watcher = PullRequestWatcher(home.store(), run, lambda name: GitHubClient(name, os.environ), clock)
    assert watcher.look()[0].state == REACHED
    forge.add_check(HEAD, "deploy", "ACTION_REQUIRED")
    seen, _, _ = watcher.look()
    assert (seen.state, seen.detail.partition(": ")[2]) == (
        BLOCKED,
        "GitHub waits for a person: deploy: see to it, then resume",
    )


def test_a_stranger_wakes_nobody_and_a_writer_does(home: Home, forge: PullRequestServer) -> None:
    run_id, clock = park(home, forge), Clock()
    poller = PullRequestPoller(home, clock)
    forge.add_remark("mallory", "Push my code.")
    forge.add_remark("robot", "Coverage fell.", kind="Bot")
    clock.now = poller.poll() or 0
    clock.now = poller.poll() or 0
    assert read_state(home, run_id) is RunState.WAITING
    assert forge.count("/api/v3/repos/octo/garden/collaborators/mallory") == 1  # asked once
    (ignored,) = home.store().pull_requests.list_feedback(run_id)
    assert (ignored.author, ignored.text, ignored.turn) == ("mallory", "", 0)
    forge.writers = {"ada"}
    forge.add_remark("ada", "Greener, please.")
    poller.poll()
    assert read_state(home, run_id) is RunState.QUEUED


def test_many_reviews_without_a_text_do_not_hide_a_comment_from_a_green_run(
    home: Home, forge: PullRequestServer
) -> None:
    run_id, clock = park(home, forge), Clock()
    forge.writers = {"ada"}
    for _ in range(45):
        forge.add_remark("ada", "", state="COMMENTED")
    forge.add_remark("ada", "Greener, please.", state="COMMENTED")
    forge.add_check(HEAD, "build", "SUCCESS")
    run = home.store().runs.get(run_id)
    assert run is not None
    watcher = PullRequestWatcher(home.store(), run, lambda name: GitHubClient(name, os.environ), clock)
    seen, _, feedback = watcher.look()
    assert seen.state == RED
    assert [one.text for one in feedback if one.text] == ["Greener, please."]


def test_only_people_who_may_write_approve_or_object(home: Home, forge: PullRequestServer) -> None:
    run_id, clock = park(home, forge, until="approved"), Clock()
    poller = PullRequestPoller(home, clock)
    forge.add_check(HEAD, "build", "SUCCESS")
    for stranger, association in (("stranger", "NONE"), ("mallory", "COLLABORATOR")):  # the second may only read
        forge.add_remark(stranger, "", state="APPROVED", association=association)
    forge.add_remark("robot", "", state="APPROVED", kind="Bot")
    clock.now = poller.poll() or 0
    assert read_state(home, run_id) is RunState.WAITING
    forge.writers = {"ada", "robot", "stranger"}  # a bot is no person, whatever it may do
    for stranger, association in (("eve", "NONE"), ("mallory", "COLLABORATOR")):
        forge.add_remark(stranger, "", state="CHANGES_REQUESTED", association=association)
    clock.now = poller.poll() or 0
    assert read_state(home, run_id) is RunState.WAITING
    forge.add_remark("ada", "", state="APPROVED")
    poller.poll()
    assert read_state(home, run_id) is RunState.QUEUED


@pytest.mark.parametrize("is_gone", [True, False])
def test_one_bad_pull_request_does_not_hide_the_others(home: Home, forge: PullRequestServer, is_gone: bool) -> None:
    first, second, clock = park(home, forge, 1), park(home, forge, 2), Clock()
    forge.add_check(HEAD, "build", "SUCCESS")
    if is_gone:
        del forge.forge[0]
    else:
        forge.bad = {1}
    PullRequestPoller(home, clock).poll()
    assert (read_state(home, first), read_state(home, second)) == (RunState.WAITING, RunState.QUEUED)
    known = home.store().pull_requests.get(first)
    assert known is not None
    assert known.failures == 1


def test_a_pull_request_that_was_not_asked_for_is_asked_for_first_the_next_time(
    home: Home, forge: PullRequestServer
) -> None:
    runs, clock = [park(home, forge, number) for number in (1, 2, 3)], Clock()
    forge.add_check(HEAD, "build", "SUCCESS")
    forge.bad = {1, 2}
    poller = PullRequestPoller(home, clock)
    clock.now = poller.poll() or 0
    assert read_state(home, runs[2]) is RunState.WAITING
    poller.poll()
    assert [read_state(home, one) for one in runs] == [RunState.WAITING, RunState.WAITING, RunState.QUEUED]


def test_half_an_answer_is_none(home: Home, forge: PullRequestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, clock = park(home, forge, until="approved"), Clock()
    forge.forge[0]["reviewDecision"] = "APPROVED"
    path = ["repository", "pr1", "commits", "nodes", 0, "commit", "statusCheckRollup"]
    answer = forge.answer_query
    error = {"type": "FORBIDDEN", "path": path, "message": "Resource not accessible"}
    poller = PullRequestPoller(home, clock)
    with monkeypatch.context() as patch:
        patch.setattr(forge, "answer_query", lambda *given: {**(answer(*given) or {}), "errors": [error]})
        clock.now = poller.poll() or 0
    assert read_state(home, run_id) is RunState.WAITING
    poller.poll()
    assert read_state(home, run_id) is RunState.QUEUED


def test_texts_of_strangers_are_not_read_and_an_empty_review_says_nothing(home: Home, forge: PullRequestServer) -> None:
    run_id, clock = park(home, forge), Clock()
    forge.writers = {"ada"}
    for _ in range(50):
        forge.add_remark("stranger", "x" * 65_000, association="NONE")
        forge.add_remark("mallory", "x" * 65_000)
    forge.add_remark("ada", " ", state="COMMENTED")
    poller = PullRequestPoller(home, clock)
    clock.now = poller.poll() or 0
    assert read_state(home, run_id) is RunState.WAITING
    asked = [one for _, values in forge.requests for name, one in values.items() if name.startswith("id")]
    assert len(asked) == 1
    forge.add_check(HEAD, "build", "SUCCESS")
    poller.poll()
    assert read_state(home, run_id) is RunState.QUEUED


def test_a_person_is_told_once_a_day_and_when_github_does_not_answer(home: Home, forge: PullRequestServer) -> None:
    run_id, clock = park(home, forge), Clock()
    forge.add_check(HEAD, "slow")
    poller = PullRequestPoller(home, clock)
    for hours in (1, 25, 26, 48, 50, 51):
        clock.now = AT + hours * 3_600_000
        poller.poll()
    notices = home.store().notices.list_newest()
    assert sorted(one.title for one in notices) == [
        f"run {run_id} has waited for its pull request for 1 day",
        f"run {run_id} has waited for its pull request for 2 days",
    ]
    forge.is_broken = True
    for _ in range(6):
        clock.now = poller.poll() or 0
    newest = [one for one in home.store().notices.list_newest() if one.kind == "pull_request.failing"]
    assert len(newest) == 1
    assert read_state(home, run_id) is RunState.WAITING
