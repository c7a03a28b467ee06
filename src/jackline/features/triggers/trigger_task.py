"""The service's task for triggers: polls, records each finding, and starts one run for it.

A delivery is recorded before its run is created, and the id of the run follows from it: a process that dies in between
leaves a delivery that the next look finishes, and two services that look at the same time start one run.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.environment import read_home_environ
from jackline.app.own_files import find_unconfirmed
from jackline.app.service_tasks import ServiceTask
from jackline.cli.stored_args import enqueue_stored_run
from jackline.diagnostic_log import LOG
from jackline.domain.records import SubjectNotice
from jackline.domain.states import TERMINAL, RunState, WorkStatus
from jackline.engine.github_client import GitHubFailed
from jackline.errors import ConfigError, ItemRefused, JacklineError, StoreError
from jackline.features.triggers.github_events import GitHubEvents
from jackline.features.triggers.trigger_model import (
    CLAIMED,
    ENDED,
    FAILED,
    IGNORED,
    ISSUES,
    ON_GITHUB,
    RUN_END,
    STARTED,
    WORK,
    TriggerDelivery,
    TriggerFinding,
    build_item_finding,
    build_run_id,
    build_variables,
    compute_next_poll,
    describe_finding,
    fill_prompt_with_finding,
    get_old_event_id,
    may_poll,
)
from jackline.features.triggers.trigger_store import TriggerStore
from jackline.features.work import work_queue
from jackline.formatting import DAY_MS
from jackline.policy.profiles import CI

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Iterable, Iterator

    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.domain.records import Run
    from jackline.features.triggers.trigger_model import Trigger
    from jackline.features.work.work_item import WorkItem

_LOOK_SECONDS = 5.0
_IDLE_SECONDS = 60.0
_MOST_AT_ONCE = 10  # runs that one look starts for a trigger
_ENDED_PAGE = 500
_LOOK_BACK_MS = 600_000  # the clocks of two hosts may differ, and a run may be written later than it ended
_ITEM_LEASE_MS = 3_600_000
_LONGEST_CHAIN = 5  # runs that start each other
_FAILURES_NOTICED = 5  # polls in a row that fail before a person is notified


def list_service_tasks(_home: Home) -> list[ServiceTask]:
    """The task of this feature in a service."""
    return [ServiceTask("triggers", run_triggers)]


def run_triggers(context: ServiceContext) -> float:
    """Look at every trigger once; the seconds until the next look."""
    home = context.home
    if home.is_new:
        return _IDLE_SECONDS
    watcher = TriggerWatcher(home)
    return _LOOK_SECONDS if watcher.look() else _IDLE_SECONDS


def create_run(home: Home, trigger: Trigger, finding: TriggerFinding, run_id: str) -> None:
    """Put the run of a finding into the queue, with the settings, task and files as they are now."""
    definition = trigger.definition
    given = {"profile": CI, **definition.run}
    if definition.kind in ON_GITHUB:  # no call that a stranger's text led to needs a person
        given["profile"] = CI
    workspace = definition.workspace
    enqueue_stored_run(home, workspace, given, run_id, lambda args: fill_arguments(args, workspace, finding))


def fill_arguments(args: Namespace, workspace: str, finding: TriggerFinding) -> None:
    """Give what was found to the task's variables, or to the prompt; a shell never sees it."""
    if not args.task:
        args.prompt = fill_prompt_with_finding(args.prompt or "", finding)
        return
    from jackline.app import tasks

    task = tasks.find_task(args.task, os.path.realpath(workspace), os.environ)
    named = {word.partition("=")[0] for word in args.var}
    values = build_variables(finding)
    known = {name for name in (*task.variables, *task.needs) if name in values and name not in named}
    args.var = [*args.var, *(f"{name}={values[name]}" for name in sorted(known))]
    if not known & finding.texts.keys():
        args.prompt = "\n\n".join(part for part in (args.prompt or "", describe_finding(finding)) if part)


class TriggerWatcher:
    """Looks at the triggers of a home."""

    def __init__(
        self,
        home: Home,
        now: Callable[[], int] = clock.wall_ms,
        create: Callable[[Home, Trigger, TriggerFinding, str], None] = create_run,
    ) -> None:
        self._home, self._now, self._create = home, now, create
        self._store = TriggerStore(home.store())

    def look(self) -> bool:
        """Look at all triggers that are not paused, and at the runs that they started; False if there are none."""
        triggers = {one.name: one for one in self._store.list_all()}
        for delivery in self._store.list_open():
            self._follow(triggers.get(delivery.trigger_name), delivery)
        active = [one for one in triggers.values() if one.paused_at is None]
        if active and find_unconfirmed(self._home) is not None:  # no run is created now: leave it to another home
            return True
        complete = set[str]()
        for trigger in active:
            find = {WORK: self._find_items, RUN_END: self._find_ended}.get(trigger.definition.kind)
            if find is not None and self._start_all(trigger, find(trigger)):
                complete.add(trigger.name)
        on_github = [one for one in active if one.definition.kind in ON_GITHUB]
        for repository in sorted({one.definition.repository for one in on_github}):
            complete |= self._poll(repository, [one for one in on_github if one.definition.repository == repository])
        self._give_up_old(triggers.keys() - complete)
        return bool(active)

    # starting

    def _start_all(self, trigger: Trigger, findings: Iterable[TriggerFinding]) -> bool:
        """Start a run for each of the findings; False if some are left to the next look."""
        started = 0
        for finding in findings:
            if started == _MOST_AT_ONCE:
                return False
            started += self._start(trigger, finding)
        return True

    def _start(self, trigger: Trigger, finding: TriggerFinding) -> bool:
        """Record a finding and create its run; False if that was done before."""
        delivery = TriggerDelivery(
            trigger_name=trigger.name,
            delivery=finding.delivery,
            state=CLAIMED,
            run_id=build_run_id(trigger.name, finding.delivery),
            reason="",
            at=self._now(),
        )
        known = self._find_known(trigger, finding)
        if known is None and not self._store.add_delivery(delivery):
            known = self._find_known(trigger, finding)
        if known is not None:
            if known.state != CLAIMED:
                return False
            delivery = known._replace(at=self._now())
        try:
            if trigger.definition.kind == WORK and not self._hold_item(trigger, delivery):
                self._store.set_delivery(delivery, IGNORED, "somebody else has claimed the item")
                return False
            self._create(self._home, trigger, finding, delivery.run_id)
        except StoreError:
            raise  # the service tries again
        except JacklineError as error:
            if self._home.store().runs.get(delivery.run_id) is None:  # else another service has created it
                if find_unconfirmed(self._home) is None:  # else no run is created now, and the next look tries again
                    self._return_item(trigger, delivery, str(error))  # first: a crash in between must not keep it
                    self._fail(delivery, str(error))
                return True
        self._store.set_delivery(delivery, STARTED, finding.source)
        return True

    def _is_settled(self, trigger: Trigger, finding: TriggerFinding) -> bool:
        """Whether this was found before, and its run was created or will never be."""
        known = self._find_known(trigger, finding)
        return known is not None and known.state != CLAIMED

    def _find_known(self, trigger: Trigger, finding: TriggerFinding) -> TriggerDelivery | None:
        """What is recorded of a finding."""
        known = self._store.find_delivery(trigger.name, finding.delivery)
        if known is None and trigger.definition.kind in ON_GITHUB:
            known = self._store.find_delivery(trigger.name, get_old_event_id(finding.delivery))
        return known

    def _ignore(self, trigger: Trigger, finding: TriggerFinding, why: str) -> None:
        self._store.add_delivery(
            TriggerDelivery(
                trigger_name=trigger.name,
                delivery=finding.delivery,
                state=IGNORED,
                run_id="",
                reason=why,
                at=self._now(),
            )
        )

    def _fail(self, delivery: TriggerDelivery, why: str) -> None:
        title = f"trigger {delivery.trigger_name}: not started"
        notice = self._build_notice(delivery.trigger_name, "failed", delivery.delivery, title, why)
        self._store.set_delivery(delivery, FAILED, why, notice)

    def _build_notice(self, name: str, what: str, key: str, title: str, body: str) -> SubjectNotice:
        return SubjectNotice(
            id=f"trigger-{name}-{what}-{key}",  # the same event is reported once, by any service
            subject=f"trigger:{name}",
            kind=f"trigger.{what}",
            title=title,
            body=body,
            created_at=self._now(),
        )

    # following

    def _follow(self, trigger: Trigger | None, delivery: TriggerDelivery) -> None:
        """Close a delivery whose run has ended, with its work item; finish one that a dead process left."""
        run = self._home.store().runs.get(delivery.run_id)
        is_work = trigger is not None and trigger.definition.kind == WORK
        if run is None:
            if trigger is not None and is_work and (item := self._find_held_item(trigger, delivery)) is not None:
                self._start(trigger, build_item_finding(item.id, item.kind, item.payload, delivery.delivery))
            return
        if trigger is not None and is_work:
            self._follow_item(trigger, delivery, run)
        if run.status.state in TERMINAL:
            self._store.set_delivery(delivery, ENDED, run.status.state)
        elif delivery.state == CLAIMED:
            self._store.set_delivery(delivery, STARTED, delivery.reason)

    def _give_up_old(self, unsure: Collection[str]) -> None:
        """Fail the deliveries of which a look finds neither a run nor, a day later, the event.

        `unsure`: the triggers whose events this look has not seen, or not all of them.
        """
        for delivery in self._store.list_open():
            is_old = delivery.state == CLAIMED and delivery.at < self._now() - DAY_MS
            if is_old and delivery.trigger_name not in unsure and self._home.store().runs.get(delivery.run_id) is None:
                self._fail(delivery, "its run was never created, and the event that should have started it is gone")

    def _follow_item(self, trigger: Trigger, delivery: TriggerDelivery, run: Run) -> None:
        """Hold the work item until its run has ended, then end it, or return it to the queue if the run failed."""
        item = self._find_held_item(trigger, delivery)
        if item is None:
            return
        owner = _name_owner(trigger)
        with contextlib.suppress(ItemRefused):  # another service of the home has done it in the meantime
            if run.status.state is RunState.SUCCEEDED:
                work_queue.resolve_item(self._home, item.id, "done", owner, item.token, f"run {run.id}")
            elif run.status.state in TERMINAL:
                work_queue.release_item(self._home, item.id, owner, item.token, f"run {run.id}: {run.status.state}")
            elif item.updated_at < self._now() - _ITEM_LEASE_MS // 4:
                work_queue.renew_item(self._home, item.id, owner, item.token, _ITEM_LEASE_MS)

    def _return_item(self, trigger: Trigger, delivery: TriggerDelivery, why: str) -> None:
        """Return the work item of a delivery that has no run to the queue."""
        item = self._find_held_item(trigger, delivery) if trigger.definition.kind == WORK else None
        if item is not None:
            with contextlib.suppress(ItemRefused):  # as above
                work_queue.release_item(self._home, item.id, _name_owner(trigger), item.token, f"not started: {why}")

    def _hold_item(self, trigger: Trigger, delivery: TriggerDelivery) -> bool:
        """Hold the item of a delivery for its run; False if somebody else was faster.

        Another service of the home may claim it for the same run at the same moment: releasing it would start a second.
        """
        if self._find_held_item(trigger, delivery) is None:
            try:
                work_queue.claim_item(self._home, _read_item_id(delivery), _name_owner(trigger), _ITEM_LEASE_MS)
            except ItemRefused:
                return self._find_held_item(trigger, delivery) is not None
        return True

    def _find_held_item(self, trigger: Trigger, delivery: TriggerDelivery) -> WorkItem | None:
        """The item of a delivery, if this trigger holds it for its run, not for that of a later attempt."""
        from jackline.errors import NotFound

        try:
            item = work_queue.get_item(self._home, _read_item_id(delivery))
        except NotFound:
            return None
        is_held = item.status is WorkStatus.IN_FLIGHT and item.owner_agent == _name_owner(trigger)
        return item if is_held and delivery.delivery == f"{item.id}#{item.attempts - 1}" else None

    # finding

    def _find_items(self, trigger: Trigger) -> Iterator[TriggerFinding]:
        """Pending work items of a kind; one that was released is found again, with its next attempt."""
        for item in work_queue.list_pending(self._home, (trigger.definition.item_kind,), _MOST_AT_ONCE + 1):
            yield build_item_finding(item.id, item.kind, item.payload, f"{item.id}#{item.attempts}")

    def _find_ended(self, trigger: Trigger) -> Iterator[TriggerFinding]:
        """Runs that ended after the trigger was made."""
        definition, now = trigger.definition, self._now()
        newest = min(int(trigger.cursor or 0), now)  # never ahead: the clock may have been set back since
        since = max(trigger.created_at, newest - _LOOK_BACK_MS)
        for run_id, state, task, attempt, at in self._store.list_ended_runs(since, _ENDED_PAGE):
            newest = max(newest, min(at, now))
            finding = TriggerFinding(
                delivery=f"{run_id}#{attempt}",
                variables={"run": run_id, "state": state, "ended_task": task},
                source=f"the end of run {run_id} ({state})",
            )
            if state not in definition.states or definition.task not in {"", task}:
                continue
            if self._is_settled(trigger, finding):
                continue
            if why := self._find_loop(trigger.name, run_id):
                self._ignore(trigger, finding, why)
            else:
                yield finding
        if str(newest) != trigger.cursor:
            self._store.move_cursor(trigger.name, str(newest))

    def _find_loop(self, name: str, run_id: str) -> str:
        """Why the end of this run must not start another one: the chain would never end. Empty if it may."""
        for _ in range(_LONGEST_CHAIN):
            starter = self._store.find_starter(run_id)
            if starter is None:
                return ""
            if starter.trigger_name == name:
                return f"run {run_id} was started by this trigger"
            run_id = starter.delivery.rpartition("#")[0]
        return f"{_LONGEST_CHAIN} runs have started each other already"

    def _poll(self, repository: str, triggers: list[Trigger]) -> set[str]:
        """Ask GitHub once for all triggers of a repository, at most once a minute over all services.

        Returns the names of those of which every event was looked at.
        """
        at, failures = self._now(), max(one.failures for one in triggers)
        names = [one.name for one in triggers]
        if not all(may_poll(one, at) for one in triggers):
            return set()
        if not self._store.claim_poll(names, at, compute_next_poll(at, failures)):
            return set()
        try:
            github = GitHubEvents(repository, read_home_environ(self._home.config))
            found = github.find(triggers)
            complete = set[str]()
            for trigger in triggers:
                if self._start_all(trigger, self._select_allowed(trigger, github, found[trigger.name])):
                    complete.add(trigger.name)
        except (GitHubFailed, ConfigError) as error:
            self._note_failure(triggers, failures + 1, str(error), compute_next_poll(at, failures + 1))
            return set()
        if github.problems:  # with some events only: the next poll is not delayed
            self._note_failure(triggers, failures + 1, github.problems[0], compute_next_poll(at, 0))
            return set()
        for trigger in triggers:
            self._store.end_poll(trigger.name, compute_next_poll(at, 0), 0)
        return complete

    def _note_failure(self, triggers: list[Trigger], failures: int, why: str, next_at: int) -> None:
        for trigger in triggers:
            title = f"trigger {trigger.name}: GitHub does not answer"
            notice = None
            if failures == _FAILURES_NOTICED:
                notice = self._build_notice(trigger.name, "failing", str(self._now()), title, why)
            LOG.warning(f"trigger {trigger.name}: {why}")
            self._store.end_poll(trigger.name, next_at, failures, why, notice)

    def _select_allowed(
        self, trigger: Trigger, github: GitHubEvents, findings: list[TriggerFinding]
    ) -> Iterator[TriggerFinding]:
        """The findings whose author is on the list, first, or may write to the repository, with their texts.

        The others are recorded once. What gh cannot tell or read is found again by the next poll.
        """
        authors = {author.lower() for author in trigger.definition.authors}
        for finding in sorted(findings, key=lambda one: one.author.lower() not in authors):
            if self._is_settled(trigger, finding):
                continue
            login = finding.author
            is_allowed = login.lower() in authors or (bool(login) and github.may_write(login))
            if is_allowed is False:
                self._ignore(trigger, finding, f"{login or 'its author'} may not write to {github.repository}")
            if not is_allowed or (read := github.read_body(finding)) is None:
                continue
            if trigger.definition.kind == ISSUES or read.texts["body"].strip():
                yield read
            else:
                self._ignore(trigger, finding, "it has no text")


def _name_owner(trigger: Trigger) -> str:
    return f"trigger:{trigger.name}"


def _read_item_id(delivery: TriggerDelivery) -> str:
    return delivery.delivery.rpartition("#")[0]
