"""A service in this process: what it takes, how many, in which order, and what it does with what fails."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline import clock
from jackline.app import config
from jackline.app.config import Config, find_user_file, load_config
from jackline.app.home import Home, open_home
from jackline.app.inbox import list_entries
from jackline.app.own_files import UnconfirmedChange, watch_own_files
from jackline.app.request import Request
from jackline.app.service_tasks import ServiceContext, ServiceTask
from jackline.domain.events import Fact
from jackline.domain.records import Owner, Run
from jackline.domain.states import CallClass, Decision, Replay, RunState, WaitReason
from jackline.errors import Fenced, Refused, StoreFull, StoreUnavailable, WorkspaceBusy
from jackline.extensions import HOOKS
from jackline.features.service import presence, service_store
from jackline.features.service.dispatcher import Dispatcher, list_candidates
from jackline.features.service.service_runner import Service, ServiceOptions, TaskContext
from jackline.features.service.service_store import ServiceRecord, ServiceStore
from jackline.features.service.settings_watch import SettingsWatch
from jackline.features.service.wake_signal import WakeCondition, notify_pipe
from jackline.features.work import work_queue
from jackline.policy.rules import Rule
from jackline.store.models import QueueOptions, RunChange
from jackline.store.runs import RunStore
from tests.conftest import BACKENDS, SLOW_BACKENDS, make_database
from tests.support.helpers import wait_until

SAY = {"say": "hello"}
POLL = 0.05
NEVER = 3600.0  # a poll that no test waits for: only a signal can wake the service


class Stage:
    """A home with services in this process."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home, self.folder = home, folder
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._services: list[Service] = []
        self._homes: list[Home] = []

    def start(self, slots: int = 2, poll_seconds: float = POLL) -> Service:
        service = self._build(ServiceOptions(slots, poll_seconds))
        service.start()
        self._services.append(service)
        return service

    def work_once(self) -> Service:
        service = self._build(ServiceOptions(2, POLL))
        try:
            service.run_once()
        finally:
            service.close()
        return service

    def _build(self, options: ServiceOptions) -> Service:
        self._homes.append(self.home.reopen())
        service = Service(self._homes[-1], options, self.report, lambda: None, lambda: None)
        service.open()
        return service

    def report(self, event: str, text: str, **facts: object) -> None:
        with self._changed:
            self.events.append({"event": event, "text": text, **facts})
            self._changed.notify_all()

    def await_event(self, event: str, run_id: str = "", count: int = 1) -> dict[str, Any]:
        def find() -> list[dict[str, Any]]:
            return [one for one in self.events if one["event"] == event and one.get("run", "") in {run_id, ""}]

        with self._changed:
            assert self._changed.wait_for(lambda: len(find()) >= count, 60), (event, run_id, self.events)
        return find()[-1]

    def queue(self, run_id: str, *steps: dict[str, Any], repo: str = "repository", **more: Any) -> str:
        (self.folder / repo).mkdir(exist_ok=True)
        options = more.pop("options", QueueOptions())
        script = json.dumps({"version": 1, "steps": list(steps) or [SAY]})
        request = Request(
            prompt="do it",
            agent="scripted",
            run_id=run_id,
            workspace=str(self.folder / repo),
            options={"script": script},
            **more,
        )
        self.home.enqueue(request, options)
        return run_id

    def gated(self, run_id: str, **more: Any) -> str:
        """A run that creates a file of its name and waits for another one."""
        mark = {"call": {"tool": "mark", "input": {}, "run": ["touch", str(self.folder / run_id)]}}
        return self.queue(run_id, mark, {"wait_for": self.gate(run_id)}, **more)

    def gate(self, run_id: str) -> str:
        return str(self.folder / f"{run_id}.go")

    def let_go(self, *run_ids: str) -> None:
        for run_id in run_ids:
            Path(self.gate(run_id)).touch()

    def await_begun(self, run_id: str) -> None:
        wait_until((self.folder / run_id).exists, 60)

    def state(self, run_id: str) -> tuple[RunState, WaitReason | None]:
        run = self.home.store().runs.get(run_id)
        assert run is not None
        return run.status.state, run.status.reason

    def stop(self, service: Service) -> None:
        """As `jackline serve` does after a signal, without a drain."""
        service.refuse_work()
        service.interrupt_runs()
        wait_until(lambda: not service.is_busy, 60)
        service.close()
        if service in self._services:
            self._services.remove(service)

    def close(self) -> None:
        for service in list(self._services):
            self.stop(service)
        for home in (*self._homes, self.home):
            home.close()


@pytest.fixture(params=SLOW_BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_database(request, tmp_path)


@pytest.fixture
def stage(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name in [name for name in os.environ if name.startswith(("JACKLINE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JACKLINE_HOME", str(tmp_path / "home"))
    if "://" in database:
        monkeypatch.setenv("JACKLINE_DATABASE", database)
    monkeypatch.setitem(HOOKS, "service_tasks", ())  # those of other features have their own tests
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    made = Stage(open_home(), tmp_path)
    yield made
    made.close()


SUCCEEDED = (RunState.SUCCEEDED, None)


def test_a_queued_run_wakes_a_service_that_never_looks_by_itself(stage: Stage) -> None:
    stage.start(poll_seconds=NEVER)
    for run_id in ("one", "two"):
        stage.queue(run_id)
        stage.await_event("ended", run_id)
        assert stage.state(run_id) == SUCCEEDED


def test_a_lost_signal_costs_only_the_time_until_the_next_look(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start()
    monkeypatch.setitem(HOOKS, "wake_services", ())
    stage.queue("one")
    stage.await_event("ended", "one")


def test_at_most_as_many_runs_as_slots_are_worked_on(stage: Stage) -> None:
    names = [stage.gated(f"r{n}", repo=f"repo{n}") for n in range(3)]
    stage.start(slots=2)
    stage.await_begun("r0")
    stage.await_begun("r1")
    assert stage.state("r2") == (RunState.QUEUED, None)
    stage.let_go("r1")
    stage.await_begun("r2")
    stage.let_go("r0", "r2")
    for name in names:
        stage.await_event("ended", name)
        assert stage.state(name) == SUCCEEDED


def test_a_busy_worktree_delays_its_runs_and_no_others(stage: Stage) -> None:
    stage.gated("first")
    stage.gated("second")
    stage.gated("elsewhere", repo="other")
    stage.start(slots=9)
    for name in ("first", "elsewhere"):
        stage.await_begun(name)
    stage.gated("beside", share_workspace=True)  # later: while it works, no other run may begin in its worktree
    stage.await_begun("beside")
    assert stage.state("second") == (RunState.QUEUED, None)
    stage.let_go("first", "beside")
    stage.await_begun("second")
    stage.let_go("second", "elsewhere")
    stage.await_event("ended", "second")


def test_a_worktree_that_becomes_free_during_a_look_belongs_to_the_run_that_waited_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_room = Dispatcher.has_room

    def end_first(dispatcher: Dispatcher, worktree: str) -> bool:
        """The second run finds the worktree busy; the first one ends before the third is looked at."""
        found = has_room(dispatcher, worktree)
        if not found:
            stage.let_go("first")
            wait_until(lambda: not dispatcher.is_busy, 60)
        return found

    monkeypatch.setattr(Dispatcher, "has_room", end_first)
    stage.gated("first")
    stage.queue("second")
    stage.queue("third")
    stage.start()
    stage.await_event("ended", "third")
    stage.await_event("ended", "second")
    assert [one["run"] for one in stage.events if one["event"] == "claimed"] == ["first", "second", "third"]


def test_two_services_work_beside_each_other(stage: Stage) -> None:
    stage.start(poll_seconds=NEVER)
    stage.start()
    names = [stage.queue(f"r{n}", repo=f"repo{n}") for n in range(6)]
    for name in names:
        stage.await_event("ended", name)
        assert stage.state(name) == SUCCEEDED
    assert [event["event"] for event in stage.events if event["event"] in {"problem", "cannot_start"}] == []
    assert sorted(one["run"] for one in stage.events if one["event"] == "claimed") == names


def test_a_stopped_service_leaves_its_runs_to_the_next_one(stage: Stage) -> None:
    first = stage.start()
    stage.gated("one")
    stage.await_begun("one")
    stage.stop(first)
    assert stage.state("one") == (RunState.WAITING, WaitReason.RETRY)
    stage.let_go("one")
    stage.start()
    stage.await_event("ended", "one", count=2)
    assert stage.state("one") == SUCCEEDED
    assert len(ServiceStore(stage.home.store()).list_unended()) == 1


def test_a_run_that_a_person_paused_stays_paused(stage: Stage) -> None:
    stage.gated("one")
    run = stage.home.store().runs.get("one")
    assert run is not None
    worker = threading.Thread(target=lambda: pause(stage, "one"))
    worker.start()
    worker.join()
    assert stage.state("one") == (RunState.WAITING, WaitReason.PAUSED)
    stage.work_once()
    assert stage.state("one") == (RunState.WAITING, WaitReason.PAUSED)


def pause(stage: Stage, run_id: str) -> None:
    """Work on a run in the foreground, and press Ctrl-C once it has begun."""
    with stage.home.reopen() as home:
        run = home.store().runs.get(run_id)
        assert run is not None

        def on_start(interrupt: Callable[[], None]) -> None:
            def press() -> None:
                stage.await_begun(run_id)
                interrupt()

            threading.Thread(target=press, daemon=True).start()

        home.work(run, on_start)


def test_a_retry_gives_the_slot_back_until_it_is_due(stage: Stage) -> None:
    stage.queue(
        "failing", {"error": {"class": "overloaded"}}, settings=(("test", {"retries": 1, "retry_seconds": 0.1}),)
    )
    stage.start(poll_seconds=NEVER)  # the wake time of the retry is known
    stage.await_event("ended", "failing", count=2)
    assert stage.state("failing")[0] is RunState.FAILED


def test_a_run_that_is_due_during_a_look_does_not_wait_for_the_next_poll(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.queue("one", {"error": {"class": "overloaded"}}, settings=(("test", {"retries": 1, "retry_seconds": 300}),))
    stage.work_once()
    due_at = run_of(stage, "one").status.wake_at or 0

    def look_slowly(_dispatcher: Dispatcher, _context: ServiceContext) -> int:
        monkeypatch.setattr(clock, "wall_ms", lambda: due_at + 1)
        return 0

    monkeypatch.setattr(Dispatcher, "look", look_slowly)
    service = stage._build(ServiceOptions(2, NEVER))
    assert service._dispatch(TaskContext(stage.home, service.id, WakeCondition(), once=False)) <= 0
    service.close()


# limits, budgets and approvals

SOON = 1.5  # seconds until a limit resets: long enough to see that nothing starts before


def run_of(stage: Stage, run_id: str) -> Run:
    run = stage.home.store().runs.get(run_id)
    assert run is not None
    return run


def test_the_runs_of_an_agent_do_not_each_meet_its_limit(stage: Stage) -> None:
    stage.queue("first", {"limit": {"resets_in": SOON}, "when": {"attempt": 1}}, SAY)
    others = [stage.queue(f"other-{number}", repo=f"repo-{number}") for number in range(3)]
    stage.start(slots=1)
    stage.await_event("ended", "first")
    parked = run_of(stage, "first").status
    assert (parked.reason, parked.windows) == (WaitReason.LIMIT, 1)
    for run_id in ("first", *others):
        stage.await_event("ended", run_id, count=2 if run_id == "first" else 1)
        assert stage.state(run_id) == SUCCEEDED
    for run_id in others:
        run = run_of(stage, run_id)
        assert (run.status.attempt, run.status.windows) == (1, 0), "it met the limit, too"
        assert (run.started_at or 0) >= (parked.wake_at or 0), "it started before the reset"


def test_runs_that_wait_for_a_limit_are_not_read_at_each_look(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand of them would take seconds each time, of every run of the service."""
    stage.queue("first", {"limit": {"resets_in": 3600}, "when": {"attempt": 1}}, SAY)
    stage.work_once()
    waiting = {stage.queue(f"waiting-{number}", repo=f"repo-{number}") for number in range(3)}
    read: list[str] = []
    get = RunStore.get

    def record(runs: RunStore, run_id: str) -> Run | None:
        read.append(run_id)
        return get(runs, run_id)

    monkeypatch.setattr(RunStore, "get", record)
    service = stage.start()
    wait_until(lambda: waiting <= set(read), 60)
    read.clear()
    wait_for_looks(service, 2)
    assert not waiting & set(read)
    with stage.home.reopen() as home:
        assert home.work(run_of(stage, "first")).status.state is RunState.SUCCEEDED  # the limit is over sooner
    for run_id in waiting:
        stage.await_event("ended", run_id)


def test_after_five_limits_a_service_leaves_a_run_to_a_person(stage: Stage) -> None:
    stage.queue("limited", {"limit": {"resets_in": 3600}})
    store, owner = stage.home.store(), Owner("earlier", clock.host_name(), clock.boot_id(), 0)
    lease, run = store.leases.claim("limited", owner, 30_000, clock.wall_ms())
    waits = run.status._replace(state=RunState.WAITING, reason=WaitReason.LIMIT, wake_at=1, phase=None, windows=5)
    store.leases.write_change(lease, RunChange(1, (Fact("run.waiting"),), waits))
    stage.work_once()
    status = run_of(stage, "limited").status
    assert (status.reason, status.attempt, status.windows) == (WaitReason.HUMAN, 2, 5)
    assert "`jackline resume limited` continues it" in status.detail
    with stage.home.reopen() as home:
        resumed = home.work(run_of(stage, "limited")).status
    assert (resumed.reason, resumed.windows) == (WaitReason.LIMIT, 1), "a person counts anew"


def test_a_service_applies_the_answer_of_an_approval_whose_time_is_over(stage: Stage) -> None:
    rule = Rule("sends", "send", CallClass.EFFECT, Replay.ASK, Decision.ASK, key=("to",), target="mail:{to}")
    settings = (("test", {"approval_timeout": 0.3, "approval_answer": "allow"}),)
    mark = str(stage.folder / "sent")
    send = {"call": {"tool": "send", "input": {"to": "bob"}, "run": ["touch", mark]}}
    stage.queue("asking", send, SAY, rules=(rule,), settings=settings)
    stage.start(poll_seconds=NEVER)
    stage.await_event("ended", "asking", count=2)
    assert stage.state("asking") == SUCCEEDED
    assert os.path.exists(mark)


@pytest.mark.parametrize("database", BACKENDS[1:], indirect=True)
def test_a_service_listens_again_after_the_server_dropped_its_connections(stage: Stage, database: str) -> None:
    import psycopg

    stage.start(poll_seconds=NEVER)
    stage.queue("one")
    stage.await_event("ended", "one")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    stage.queue("two")
    stage.await_event("ended", "two")


# what cannot start


def test_a_run_whose_folder_is_gone_is_tried_again_with_one_notice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_store, "_FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(service_store, "LONGEST_PAUSE_MS", 1)
    stage.queue("one", repo="gone")
    (stage.folder / "gone").rmdir()
    stage.start()
    stage.await_event("cannot_start", "one")
    wait_until(lambda: ServiceStore(stage.home.store()).list_start_failures()[0].failures > 2, 60)
    assert [one.kind for one in stage.home.store().records.list_notices("one")] == ["run.cannot_start"]
    assert [(one.kind, one.run_id) for one in list_entries(stage.home)] == [("cannot_start", "one")]
    assert "gone does not exist" in list_entries(stage.home)[0].text
    (stage.folder / "gone").mkdir()
    stage.await_event("ended", "one")
    assert stage.state("one") == SUCCEEDED
    assert list_entries(stage.home) == []


def test_a_broken_project_file_stops_only_its_own_runs(stage: Stage) -> None:
    stage.queue("broken", repo="bad")
    stage.queue("fine", repo="good")
    (stage.folder / "bad" / "jackline.toml").write_text("home = 3")
    stage.work_once()
    assert stage.state("fine") == SUCCEEDED
    assert stage.state("broken") == (RunState.QUEUED, None)
    (failure,) = ServiceStore(stage.home.store()).list_start_failures()
    assert "jackline.toml" in failure.reason


def test_a_change_of_the_own_files_holds_every_run_and_is_reported_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jackline.features.service import dispatcher

    change = UnconfirmedChange(files=("config.toml",), digests={"config.toml": "1"})
    monkeypatch.setattr(dispatcher, "find_unconfirmed", lambda _home: change)
    stage.queue("one")
    stage.queue("two", repo="other")
    for service in (stage.start(), stage.start()):
        wait_for_looks(service, 3)
    monkeypatch.setattr(dispatcher, "find_unconfirmed", lambda _home: None)
    stage.await_event("ended", "one")
    stage.await_event("ended", "two")
    (notice,) = stage.home.store().notices.list_newest()
    assert (notice.kind, notice.subject) == ("service.held", "home")
    assert [one["event"] for one in stage.events].count("held") == 2  # once by each service


def test_a_start_failure_of_a_clock_that_was_ahead_does_not_hold_the_run(stage: Stage) -> None:
    stage.queue("one")
    tomorrow = clock.wall_ms() + 86_400_000
    ServiceStore(stage.home.store()).record_start_failure("one", "no folder", tomorrow, "notice")
    stage.start()
    stage.await_event("ended", "one")


def wait_for_looks(service: Service, count: int) -> None:
    """Wait until the service has looked for work again."""
    dispatcher = service._dispatcher
    looks: list[int] = []
    look = dispatcher.look

    def counted(context: ServiceContext) -> int:
        found = look(context)
        looks.append(found)
        return found

    dispatcher.look = counted  # type: ignore[method-assign]
    wait_until(lambda: len(looks) >= count, 60)


@pytest.mark.parametrize(
    ("error", "event"), [(StoreFull("/home"), "problem"), (ZeroDivisionError("a mistake"), "cannot_start")]
)
def test_an_error_in_one_run_costs_only_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception, event: str
) -> None:
    monkeypatch.setattr(service_store, "_FIRST_PAUSE_MS", 1)
    errors, attempt = [error, error], Home.make_attempt

    def make_attempt(home: Home, run: Run, on_start: Any) -> Run:
        if run.id == "one" and errors:
            raise errors.pop()
        return attempt(home, run, on_start)

    monkeypatch.setattr(Home, "make_attempt", make_attempt)
    stage.queue("one")
    stage.queue("two", repo="other")
    stage.start()
    for name in ("one", "two"):
        stage.await_event("ended", name)
        assert stage.state(name) == SUCCEEDED
    assert str(error) in stage.await_event(event, "one")["error"]
    assert [one["event"] for one in stage.events].count(event) == 1  # though it happened twice


def test_a_started_run_that_another_process_took_up_is_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    errors, attempt = [Fenced("one")], Home.make_attempt

    def make_attempt(home: Home, run: Run, on_start: Any) -> Run:
        if errors:
            on_start(lambda _: None)
            raise errors.pop()
        return attempt(home, run, on_start)

    monkeypatch.setattr(Home, "make_attempt", make_attempt)
    stage.queue("one")
    stage.start()
    stage.await_event("ended", "one")
    events = [one["event"] for one in stage.events if one.get("run") == "one"]
    assert events == ["claimed", "taken", "claimed", "ended"]


# tasks of features


def test_a_task_that_fails_is_reported_once_and_started_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from jackline.features.service import service_runner

    monkeypatch.setattr(service_runner, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(service_runner, "_LONGEST_PAUSE_S", 0.02)
    calls: list[str] = []

    def fail(context: ServiceContext) -> float:
        calls.append(context.service_id)
        if len(calls) < 4:
            raise StoreUnavailable("no route to host")
        if len(calls) < 7:
            raise ZeroDivisionError
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "flaky", fail)
    service = stage.start()
    stage.queue("one")
    stage.await_event("ended", "one")
    wait_until(lambda: len(calls) >= 7, 60)
    assert set(calls) == {service.id}
    problems = [one["error"] for one in stage.events if one["event"] == "problem"]
    assert problems == [str(StoreUnavailable("no route to host")), "unexpected ZeroDivisionError: "]


TASKS: dict[str, Callable[[ServiceContext], float]] = {}


def list_tasks(_home: Home) -> list[ServiceTask]:
    return [ServiceTask(name, run) for name, run in TASKS.items()]


def test_a_task_is_called_again_when_something_changes_and_waits_otherwise(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []

    def look(_context: ServiceContext) -> float:
        calls.append(time.monotonic())
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "looks", look)
    stage.start(poll_seconds=NEVER)
    wait_until(lambda: len(calls) >= 1, 60)
    before = len(calls)
    stage.home.wake_services()
    wait_until(lambda: len(calls) > before, 60)


def test_a_work_item_a_question_and_its_answer_wake_a_service(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def look(_context: ServiceContext) -> float:
        calls.append(time.monotonic())
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "looks", look)
    stage.start(poll_seconds=NEVER)
    wait_until(lambda: len(calls) >= 1, 60)
    for write in (
        lambda: work_queue.enqueue_item(stage.home, "one", "plant"),
        lambda: work_queue.wait_for_human(stage.home, "one", "Which one?"),
        lambda: work_queue.answer_item(stage.home, "one", "the rose"),
    ):
        before = len(calls)
        write()
        wait_until(lambda before=before: len(calls) > before, 60)  # type: ignore[misc]


def test_once_reports_a_failed_task(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_context: ServiceContext) -> float:
        raise StoreUnavailable("no route to host")

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "broken", fail)
    stage.queue("one")
    assert stage.work_once().has_failed
    assert stage.state("one") == SUCCEEDED


def test_once_that_breaks_off_has_failed_and_ends_its_runs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_service: Service) -> int:
        stage.await_begun("one")
        raise Refused("no more")

    monkeypatch.setattr(Service, "_finish_round", fail)
    stage.gated("one")
    service = stage._build(ServiceOptions(2, POLL))
    lost, ended = threading.Event(), threading.Event()
    service._on_lost = lost.set
    service.start_once(ended.set)
    assert ended.wait(60)
    stage.stop(service)
    assert (service.has_failed, lost.is_set()) == (True, True)
    assert [one["error"] for one in stage.events if one["event"] == "problem"] == ["no more"]


def test_once_ends_when_the_system_has_no_thread_for_a_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    refused: list[str] = []

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "run-one" and len(refused) < 20:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    stage.queue("one")
    assert stage.work_once().has_failed
    assert stage.state("one") == (RunState.QUEUED, None)


def test_a_service_without_a_thread_for_each_task_is_closed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "task-settings":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    stage.home.store(create=True)
    service = stage._build(ServiceOptions(2, POLL))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        service.start()
    service.close()
    assert ServiceStore(stage.home.store()).list_unended() == []


def test_while_it_works_once_does_the_tasks_of_every_service(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes see a living service, and leave their notices to it."""
    calls: list[RunState] = []

    def look(context: ServiceContext) -> float:
        calls.append(Stage(context.home, stage.folder).state("one")[0])
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "looks", look)
    stage.gated("one")
    thread = threading.Thread(target=stage.work_once)
    thread.start()
    stage.await_begun("one")
    assert stage.home.has_service()
    for _ in range(2):
        before = len(calls)
        stage.home.wake_services()
        wait_until(lambda before=before: len(calls) > before, 60)  # type: ignore[misc]
    stage.let_go("one")
    thread.join()
    assert calls[-1] is RunState.SUCCEEDED  # the last look comes after the run
    assert "task-looks" not in [one.name for one in threading.enumerate()]


def test_once_starts_what_its_last_look_creates(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[str] = []

    def create(context: ServiceContext) -> float:
        there = Stage(context.home, stage.folder)
        if not created and there.state("one") == SUCCEEDED:
            created.append(there.queue("two"))
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "creates", create)
    stage.queue("one")
    stage.work_once()
    assert stage.state("two") == SUCCEEDED


def test_once_does_not_leave_a_run_behind_that_another_one_overtook(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were chosen at once, and the one that shares its worktree was claimed first."""
    from jackline.features.service import dispatcher

    monkeypatch.setattr(dispatcher, "_FIRST_DELAY_S", 1.0)  # longer than the other run still takes
    refused: list[str] = []
    attempt = Home.make_attempt

    def start_late(home: Home, run: Run, on_start: Any) -> Run:
        if run.id == "one":
            stage.await_begun("beside")
        try:
            return attempt(home, run, on_start)
        except WorkspaceBusy:
            refused.append(run.id)
            raise
        finally:
            stage.let_go("beside")

    monkeypatch.setattr(Home, "make_attempt", start_late)
    stage.queue("one")
    stage.gated("beside", share_workspace=True)
    assert not stage.work_once().has_failed
    assert refused == ["one"]
    assert (stage.state("one"), stage.state("beside")) == (SUCCEEDED, SUCCEEDED)


def test_what_comes_when_once_has_nothing_left_to_do_is_not_left_behind(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that saw a living service may have written its notice after the last look of that service."""
    looks: list[bool] = []

    def look(context: ServiceContext) -> float:
        looks.append(context.home.has_service())
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "looks", look)
    stage.home.store(create=True)
    stage.work_once()
    assert (looks[0], looks[-1]) == (True, False)


def test_a_slow_look_of_once_delays_no_run_and_no_other_task(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a command of --only-if, or a channel that does not answer."""
    from jackline.features.service import service_runner

    monkeypatch.setattr(service_runner, "_RENEW_SECONDS", 0.01)
    looks: list[str] = []
    renew = ServiceStore.renew

    def record(services: ServiceStore, service_id: str, at: int) -> None:
        looks.append("presence")
        renew(services, service_id, at)

    def look_slowly(_context: ServiceContext) -> float:
        before = len(looks)
        stage.await_begun("one")
        wait_until(lambda: looks[before:].count("presence") > 2 and looks.count("other") > 1, 60)
        stage.let_go("one")
        return NEVER

    def look(_context: ServiceContext) -> float:
        looks.append("other")
        return POLL

    monkeypatch.setattr(ServiceStore, "renew", record)
    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "a-slow-one", look_slowly)
    monkeypatch.setitem(TASKS, "other", look)
    stage.gated("one")
    stage.work_once()
    assert stage.state("one") == SUCCEEDED


# presence


def test_a_living_service_is_seen_until_it_is_told_to_stop(stage: Stage) -> None:
    assert presence.find_living_service(stage.home) is None
    service = stage.start()
    living = presence.find_living_service(stage.home)
    assert living == (service.id, os.getpid())
    assert stage.home.has_service()
    service.refuse_work()
    assert presence.find_living_service(stage.home) is None
    stage.stop(service)
    assert os.listdir(presence.build_folder(stage.home.path)) == []


def test_a_service_that_was_stopped_without_its_database_has_not_died(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jackline.features.service import service_runner

    def fail(*_: object) -> None:
        raise StoreUnavailable("no route to host")

    monkeypatch.setattr(service_runner, "_UNSEEN_MS", -1)
    first = stage.start()
    with monkeypatch.context() as outage:
        outage.setattr(ServiceStore, "stop", fail)
        stage.stop(first)
    assert first.has_failed
    assert "no route to host" in stage.await_event("problem")["text"]
    folder = presence.build_folder(stage.home.path)
    assert os.listdir(folder) == [f"{first.id}.stopped"]
    assert list(presence.list_leftovers(stage.home)) == [(folder, "services", (folder,))]
    assert not stage.work_once().has_failed
    assert ServiceStore(stage.home.store()).list_unended() == []
    assert os.listdir(folder) == []
    assert "died" not in [one["event"] for one in stage.events]


@pytest.mark.parametrize("boot", ["this", "another"])
def test_a_dead_service_is_reported_once_and_forgotten(stage: Stage, boot: str) -> None:
    folder = Path(presence.build_folder(stage.home.path))
    folder.mkdir(parents=True)
    record = ServiceRecord(
        id="dead",
        host=clock.host_name(),
        boot=clock.boot_id() if boot == "this" else "another",
        pid=1,
        slots=2,
        started_at=1,
        seen_at=clock.wall_ms(),
    )
    ServiceStore(stage.home.store(create=True)).add(record)
    if boot == "this":  # after a reboot the lock may be there or not
        (folder / "dead.lock").write_text("1\n")
        os.mkfifo(folder / "dead.wake")
    stage.start()
    assert stage.await_event("died")["service"] == "dead"
    stage.work_once()
    assert [one["event"] for one in stage.events].count("died") == 1
    (notice,) = stage.home.store().notices.list_newest()
    assert (notice.kind, notice.subject) == ("service.died", "service:dead")
    assert "pid 1" in notice.body
    wait_until(lambda: not (folder / "dead.lock").exists() and not (folder / "dead.wake").exists(), 60)


def test_a_lost_run_is_taken_up_after_its_host_got_another_name(stage: Stage, database: str) -> None:
    """A file has one host, whatever its name is; another host of a shared database may still work on the run."""
    stage.queue("lost")
    stage.home.store().leases.claim("lost", Owner("earlier", "alpha", clock.boot_id(), 0), 0, clock.wall_ms())
    is_shared = "://" in database
    assert list(list_candidates(stage.home, clock.wall_ms())) == ([] if is_shared else ["lost"])
    if not is_shared:
        stage.work_once()
        assert stage.state("lost") == SUCCEEDED


def test_a_service_that_lives_is_not_reported(stage: Stage) -> None:
    stage.start()
    stage.work_once()
    assert "died" not in [one["event"] for one in stage.events]


def test_a_signal_never_waits_for_its_reader(tmp_path: Path) -> None:
    path = str(tmp_path / "x.wake")
    os.mkfifo(path)
    notify_pipe(path)  # nobody reads
    notify_pipe(str(tmp_path / "missing"))
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for _ in range(70_000):  # more than a pipe holds
            notify_pipe(path)
        assert len(os.read(reader, 1 << 20)) >= 4096
    finally:
        os.close(reader)


def test_changed_settings_are_used_without_a_restart(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    def look(context: ServiceContext) -> float:
        seen.append(tuple(context.home.config.channels))
        while not context.wait(NEVER):  # as a task that listens for long
            pass
        return NEVER

    monkeypatch.setitem(HOOKS, "service_tasks", (f"{__name__}:list_tasks",))
    monkeypatch.setitem(TASKS, "listens", look)
    path = Path(find_user_file(os.environ))
    path.parent.mkdir(parents=True, exist_ok=True)
    service = stage.start()
    wait_until(lambda: seen == [()], 60)
    path.write_text('[channels.phone]\ntype = "bell"\n')
    stage.await_event("reloaded")
    wait_until(lambda: seen == [(), ("phone",)], 60)
    wait_until(lambda: sum(thread.name == "task-listens" for thread in threading.enumerate()) == 1, 60)
    path.write_text("[channels.phone\n")
    assert "not used" in stage.await_event("problem")["text"]
    stage.stop(service)
    assert len(seen) == 2


def test_queued_runs_start_when_a_person_raises_the_budget_of_the_day(stage: Stage) -> None:
    path = Path(find_user_file(os.environ))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("max_usd_per_day = 0.5\n")
    stage.home.config = load_config(os.environ, os.getcwd())
    wait_until(lambda: clock.wall_ms() > path.stat().st_ctime_ns // 1_000_000, 60)  # not changed since it is read
    stage.queue("first", {"usage": {"input": 1, "output": 1, "usd": 0.6}})
    service = stage.start()
    stage.await_event("ended", "first")
    stage.queue("second")
    wait_for_looks(service, 2)
    assert stage.state("second") == (RunState.QUEUED, None)
    path.write_text("max_usd_per_day = 5\n")
    stage.await_event("ended", "second")
    assert stage.state("second") == SUCCEEDED


def test_a_channel_that_changed_settings_break_is_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOOKS, "service_tasks", ("jackline.features.notify.service_task:list_service_tasks",))
    path = Path(find_user_file(os.environ))
    path.parent.mkdir(parents=True, exist_ok=True)
    stage.start()
    path.write_text('[channels.hook]\ntype = "webhook"\n')
    assert "[channels.hook]: url is missing" in stage.await_event("problem")["text"]


def test_changed_settings_survive_an_outage_that_is_reported_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jackline.features.service import service_runner, settings_watch

    monkeypatch.setattr(service_runner, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(service_runner, "_LONGEST_PAUSE_S", 0.02)
    looks: list[Home] = []

    def fail(home: Home) -> None:
        looks.append(home)
        if len(looks) not in {4, 6, 7}:  # the fifth is that of the new settings
            raise StoreUnavailable("no route to host")

    monkeypatch.setattr(settings_watch, "find_unconfirmed", fail)
    path = Path(find_user_file(os.environ))
    path.parent.mkdir(parents=True, exist_ok=True)
    stage.start()
    path.write_text('[channels.phone]\ntype = "bell"\n')
    stage.await_event("reloaded")
    problems = [one["error"] for one in stage.events if one["event"] == "problem"]
    assert problems == [str(StoreUnavailable("no route to host"))]


def test_settings_that_an_agent_changes_for_a_moment_are_not_used(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(find_user_file(os.environ))
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = '[channels.phone]\ntype = "bell"\n'
    path.write_text("")
    watch = SettingsWatch(stage.home)
    path.write_text(mine)
    load = load_config

    def load_at_the_wrong_moment(*args: Any, **more: Any) -> Config:
        path.write_text('[channels.theirs]\ntype = "command"\ncommand = ["true"]\n')
        loaded = load(*args, **more)
        path.write_text(mine)
        return loaded

    monkeypatch.setattr(config, "load_config", load_at_the_wrong_moment)
    with watch_own_files(stage.home, "run-1"):
        assert not watch.reload()
        assert "theirs" not in watch.home.config.channels
        monkeypatch.setattr(config, "load_config", load)
        wait_until(lambda: clock.wall_ms() > path.stat().st_ctime_ns // 1_000_000, 60)
        assert watch.reload()
        assert tuple(watch.home.config.channels) == ("phone",)
