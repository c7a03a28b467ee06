"""The `Home`: the small typed API of the library, which the command line uses too.

Reading never creates anything; starting a run creates the home. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Self

from jackline.app import config as config_module
from jackline.app import paths
from jackline.app.text_files import shorten_name
from jackline.domain.states import ACTIVE, RunState
from jackline.errors import Ambiguous, ConfigError, NoHome, NotFound, SchemaMissing, StoreError, UsageError
from jackline.store.models import RunQuery
from jackline.store.open import open_store
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from jackline.app.config import Config
    from jackline.app.request import Request
    from jackline.app.run_creation import CreatedRun
    from jackline.app.run_handle import RunHandle
    from jackline.domain.amendment import Amendment
    from jackline.domain.records import Call, Repository, Run
    from jackline.domain.review_records import Finding
    from jackline.engine.supervise import Interrupt
    from jackline.exports.manifest import Manifest
    from jackline.exports.transcript import TranscriptEntry
    from jackline.secrets.redactor import Redactor
    from jackline.store.models import QueueOptions, RunSummary
    from jackline.store.store import Store

    OnStart = Callable[[Interrupt], None]


_PAGE = 500
_FIRST_PAGE = 4096  # bytes of a new database before its schema leaves the write-ahead log


def open_home(path: str | None = None, environ: Mapping[str, str] | None = None) -> Home:
    """Open the home at `path`, or the configured one."""
    environ = os.environ if environ is None else environ
    return Home(config_module.load_config(environ, os.getcwd(), {"home": path}))


class Home:
    """One instance: its settings, store and folders. Use it as a context manager, or close it."""

    def __init__(self, config: Config) -> None:
        """Open nothing yet."""
        self.config = config
        self.path = config.get_text("home")
        self.share_workspace = False  # whether runs may work here beside another one in the same worktree
        self.warnings: list[str] = []  # for the person, about things that did not stop the work
        self.on_change: Callable[[], None] | None = None  # a long-lived process is notified of changes through this
        self._store: Store | None = None
        self.known_agents: set[str] = set()  # agents of queued runs whose login was looked at
        self.has_confirmed_settings = False  # a person has confirmed the settings as this process has read them
        self._begun: set[str] = set()  # runs that this object has worked on

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    # the store

    @property
    def database(self) -> str:
        """The address of the store."""
        return paths.find_database(self.path, self.config.get_text("database"))

    @property
    def has_database_server(self) -> bool:
        """Whether the store is on a server, which several hosts may share, and not a file."""
        return "://" in self.database

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written here; StoreError if that cannot be determined."""
        size = self._measure_database()
        if size is None or size > _FIRST_PAGE:
            return size is None
        # The schema is still in the write-ahead log, or another process is creating it at this moment.
        try:
            self.store()
        except NoHome:
            return True
        except StoreError:  # an older schema, or a damaged file: who opens it finds out
            pass
        return False

    def _measure_database(self) -> int | None:
        """The size of the database, None where there is no file yet; a server has one always."""
        if self.has_database_server:
            return sys.maxsize
        try:
            return os.stat(self.database).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{self.database} cannot be read: {error.strerror}; check its permissions") from None

    def store(self, *, create: bool = False) -> Store:
        """The store, opened on first use."""
        if self._store is None:
            if not create and self._measure_database() is None:
                raise NoHome(self.path)
            if create:  # reading creates nothing
                self.create()
            try:
                self._store = open_store(self.database, create=create, redactor=self.make_redactor)
            except SchemaMissing:
                if self.has_database_server:
                    raise
                # Another process is creating the home at this very moment: it does not exist yet.
                raise NoHome(self.path) from None
        return self._store

    def migrate(self) -> None:
        """Bring the database of an older jackline up to date; a server's schema is left to `jackline db migrate`."""
        if not self.is_new:
            self.store(create=True)

    def make_redactor(self) -> Redactor:
        """A redactor that knows the secrets of this process and of the user's env files."""
        from jackline.app.environment import make_redactor

        return make_redactor(self.config)

    def create(self) -> None:
        """Create the home's folder if it does not exist."""
        try:
            for folder in (self.path, os.path.join(self.path, "runs")):  # the mode applies to the last folder only
                os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be a home ({error.strerror}): name another one with --home") from None

    def refuse_broken_project(self) -> None:
        """ConfigError if the project's file cannot be used: no work is started while it is ignored."""
        if self.config.problem:
            raise ConfigError(self.config.problem)

    def reopen(self) -> Home:
        """Open the same home again: for a thread that needs its own connection."""
        return Home(self.config)

    def reopen_in(self, folder: str, flags: Mapping[str, Any] | None = None, *, project: bool = True) -> Home:
        """Open the same home with the settings that apply in a folder, such as those of its project, and with flags.

        The database and the env file stay if the command line named them.
        """
        given = {**(flags or {}), "home": self.path}
        for name in ("database", "env_file"):
            if self.config.sources[name].startswith("--"):
                given[name] = self.config.get_text(name)
        return Home(config_module.load_config(os.environ, folder, given, project=project))

    def wake_services(self) -> None:
        """Let the services of this home look for work at once: after a run is queued, answered or has a notice."""
        if not self.has_database_server and not os.path.exists(os.path.join(self.path, paths.SERVICES_FOLDER)):
            return  # no service ever ran here, and most commands need not import how to wake one
        from jackline.extensions import call_hook

        call_hook("wake_services", self)

    def has_service(self) -> bool:
        """Whether a service of this home is running that starts queued runs."""
        from jackline.extensions import call_hook

        return any(call_hook("living_service", self))

    def finish_work(self) -> None:
        """Deliver what this process has to report, after its work; without channels this costs nothing."""
        if self.config.channels or (self._store is not None and self._store.notices.has_open_ping()):
            from jackline.extensions import call_hook

            call_hook("work_done", self)

    # reports

    def notify_change(self) -> None:
        """Update the dashboard after a write; a long-lived process does so a moment later."""
        if self.on_change is not None:
            self.on_change()
        else:
            from jackline.extensions import call_hook

            call_hook("home_changed", self)

    def update_in_background(self, *, seldom: bool = False) -> AbstractContextManager[object]:
        """For as long as the block lasts, a thread updates what shows this home. `seldom`: the first change at once."""
        from jackline.extensions import open_hook

        return open_hook("background_updates", self, seldom=seldom)

    # finding

    def find(self, text: str) -> Run:
        """A run by id, number in the current repository, or the unique beginning or end of an id."""
        run_id = self.find_id(text)  # before the store is opened: a new home has no store
        run = self.store().runs.get(run_id)
        if run is None:
            raise NotFound(text, what="run", hint="jackline list --all-repos")
        return run

    def find_id(self, text: str) -> str:
        """The id of a run, found in the same way, even if the rest of its record cannot be read."""
        rows = []
        if not self.is_new:
            rows = self.store().runs.find_matching(text, self.repository_here())
        if not rows:
            raise NotFound(shorten_name(text), what="run", hint="jackline list --all-repos")
        if len(rows) > 1:
            some = ", ".join(row.id for row in rows[:3])
            raise Ambiguous(text, what="run", count=len(rows), some=some)
        return rows[0].id

    def repository_here(self) -> str:
        """The id of the repository of the current directory."""
        from jackline.domain.ids import repository_id

        return repository_id(find_repository(os.getcwd()))

    def find_newest(self, *states: str, fits: Callable[[Run], bool] = lambda _run: True) -> Run | None:
        """The newest run of the current repository in one of these states (default: any) that fits."""
        query = RunQuery(states=states, repository=self.repository_here(), limit=_PAGE)
        while page := self.list_runs(query):
            found = (self.store().runs.get(row.id) for row in page)
            newest = next((run for run in found if run is not None and fits(run)), None)
            if newest is not None:
                return newest
            query = query._replace(before=(page[-1].created_at, page[-1].id))
        return None

    def find_call(self, run: Run, text: str) -> Call:
        """A call of a run by its id, or by the unique beginning or end of its id."""
        calls = self.match_calls(run, text)
        if not calls:
            raise NotFound(shorten_name(text), what="call", hint=f"jackline show {run.id}")
        if len(calls) > 1:
            raise Ambiguous(text, what="call", count=len(calls), some=", ".join(call.id for call in calls[:3]))
        return calls[0]

    def match_calls(self, run: Run, text: str) -> list[Call]:
        """The call of a run with this id, else those whose id begins or ends with the text."""
        known = self.store().calls.list_all(run.id)
        exact = [call for call in known if call.id == text]
        return exact or [call for call in known if text and (call.id.startswith(text) or call.id.endswith(text))]

    def find_by_session(self, session: str) -> Run | None:
        """The run that owns an agent's session."""
        rows = self.list_runs(RunQuery(session=session, limit=1))
        return self.store().runs.get(rows[0].id) if rows else None

    def list_runs(self, query: RunQuery) -> list[RunSummary]:
        """Runs, newest first; a waiting one with the time at which it continues."""
        if self.is_new:
            return []
        found = self.store().runs.list_page(query)
        return self.store().wakeups.adjust_wake_times(found) if any(row.wake_at for row in found) else found

    def list_active(self) -> list[RunSummary]:
        """Every run that has not ended, in all repositories."""
        found: list[RunSummary] = []
        before = None
        while page := self.list_runs(RunQuery(states=tuple(sorted(ACTIVE)), before=before, limit=_PAGE)):
            found += page
            before = (page[-1].created_at, page[-1].id)
        return found

    def find_lost(self, running: Iterable[str]) -> dict[str, str]:
        """The lost ones of these running runs, by id, each with the reason in words; see `app.lost_runs`."""
        from jackline.app.lost_runs import find_lost

        return find_lost(self, running)

    def explain_loss(self, run: Run) -> str:
        """Why the run is lost, in words; empty if it is not lost."""
        return self.find_lost([run.id]).get(run.id, "") if run.status.state is RunState.RUNNING else ""

    def list_repositories(self) -> list[Repository]:
        """Every repository with runs here."""
        return [] if self.is_new else self.store().runs.list_repositories()

    # runs for programs

    def new_run(self, request: Request) -> RunHandle:
        """Create the run, ready to be worked on, and return a handle of it."""
        from jackline.app.run_handle import RunHandle

        return RunHandle(self, self.start(request).id)

    def get_run(self, text: str) -> RunHandle:
        """A handle of a run, found by id, unique part of an id, or number in the current repository."""
        from jackline.app.run_handle import RunHandle

        return RunHandle(self, self.find_id(text))

    # doing

    def start(self, request: Request, *, at_once: bool = False) -> Run:
        """Create the run, ready to be worked on; the same run id and request return the same run.

        `at_once`: a new run is refused if another one works in its worktree now; otherwise it is queued anyway.
        """
        from jackline.app.run_creation import WantedRun, create_runs

        return create_runs(self, [WantedRun(request)], at_once=at_once)[0].run

    def enqueue(self, request: Request, options: QueueOptions | None = None) -> CreatedRun:
        """Create a run that a service starts; a run with the same dedupe key that has not ended is returned instead."""
        from jackline.app.queue import enqueue

        return enqueue(self, request, options)

    def work(self, run: Run, on_start: OnStart = lambda _interrupt: None, on_ask: str = "stop") -> Run:
        """Work on a run until it ends, or waits for more than a short time.

        `on_ask`: when a person is needed, `stop` returns the waiting run, `wait` waits for the answer and continues,
        `deny` denies the call for now and lets the agent continue with the rest.
        `on_start` receives the function that interrupts the current attempt or wait; it gets another one for the next.
        """
        from jackline.app.worker import work_on_run

        if run.id in self._begun:  # its settings are those that were read before the change
            self.refuse_inside_run("resume")
        else:
            self.refuse_unready("resume")
        self._begun.add(run.id)
        self.refuse_broken_project()
        return work_on_run(self, run, on_start, on_ask)

    def make_attempt(self, run: Run, on_start: OnStart) -> Run:
        """Make one attempt at a run, as a service does; Overtaken if the run is no longer as it was seen."""
        from jackline.app.worker import make_attempt

        self.refuse_unready("resume")
        self.refuse_broken_project()
        return make_attempt(self, run, on_start)

    def cancel(self, run: Run) -> Run:
        """Request the end of a run; a run whose supervisor is dead ends here."""
        from jackline.app.worker import cancel_run

        self.refuse_inside_run("cancel")
        return cancel_run(self, run)

    def answer(self, run: Run, call: Call, verdict: str) -> tuple[Call, Run]:
        """Record a person's answer about a call that is in doubt or needs approval."""
        from jackline.clock import wall_ms

        verdicts = ("happened", "did-not", "retry", "skip", "allow", "always", "deny")
        if verdict not in verdicts:
            raise UsageError(f"unknown answer '{verdict}': use one of {', '.join(verdicts)}")
        self.refuse_inside_run("answer")
        answered = self.store(create=True).approvals.answer(run.id, call.id, verdict, wall_ms())
        self.notify_change()
        self.wake_services()
        return answered

    def dismiss_findings(self, run: Run, ids: Sequence[str], reason: str) -> tuple[list[Finding], Run]:
        """Drop open findings of reviewers, such as F2, for a person's reason; Busy if the run is being worked on."""
        from jackline.clock import wall_ms

        self.refuse_inside_run("findings --dismiss")
        dismissed = self.store(create=True).reviews.dismiss(run.id, ids, reason, wall_ms())
        self.notify_change()
        return dismissed

    def accept_work(self, run: Run, reason: str) -> Run:
        """Accept the work of a run whose reviewer gave no clear verdict; Busy if the run is being worked on."""
        from jackline.clock import wall_ms

        self.refuse_inside_run("findings --accept")
        run = self.store(create=True).reviews.accept(run.id, reason, wall_ms())
        self.notify_change()
        return run

    def amend(self, run: Run, amendment: Amendment) -> Run:
        """Store a person's message to the run's agent and changes of the run; Busy if the run is being worked on."""
        from jackline.app.worker import amend_run

        self.refuse_unready("resume")
        return amend_run(self, run, amendment)

    def refuse_inside_run(self, command: str) -> None:
        """Refused if this process belongs to a run of this home."""
        from jackline.app.identity import refuse_inside_run

        refuse_inside_run(self, command)

    def refuse_unready(self, command: str) -> None:
        """Refused inside a run, and while a change of the user's own files is not confirmed."""
        from jackline.app.own_files import refuse_unconfirmed

        self.refuse_inside_run(command)
        refuse_unconfirmed(self)

    # reading

    def folder(self, run_id: str) -> str:
        """The run's folder."""
        return os.path.join(self.path, "runs", run_id)

    def load_manifest(self, run: Run) -> Manifest:
        """The run as one record, in the shape of agentpair's manifest."""
        from jackline.exports.manifest import load_run_manifest

        return load_run_manifest(self.store(), run)

    def read_transcript(self, run: Run) -> list[TranscriptEntry]:
        """The run as a list of transcript entries."""
        from jackline.exports.transcript import load_entries

        return list(load_entries(self.store(), run))

    def is_archived(self, run: Run) -> bool:
        """Whether events of the run were archived: files exported now would be incomplete."""
        first = self.store().records.list_events(run.id, limit=1)
        return run.event_seq > 0 and (not first or first[0].seq > 1)

    def export(self, run: Run) -> str:
        """Write every file of the run's folder again; returns the folder."""
        from jackline.exports.run_folder import export_run

        named = self.config.sources["database"]
        return export_run(self.store(), run, self.path, named if named.startswith("JACKLINE_") else "")
