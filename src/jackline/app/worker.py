"""Works on runs in this process: one attempt after the other, with short waits between, then writes the run's files."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING

from jackline import clock, crash_points
from jackline.app import agents, diagnostics
from jackline.app.agent_env import build_mcp_argv, find_agent_database
from jackline.app.environment import read_agent_environ, read_home_environ
from jackline.app.own_files import watch_own_files
from jackline.app.paths import find_cache_folder
from jackline.app.run_wait import (
    DENY,
    ON_ASK,
    STOP,
    WAIT,
    WaitSteps,
    build_pause,
    wait_for_person,
    wait_while_busy,
    work_and_wait,
)
from jackline.app.trust import read_untrusted_settings
from jackline.diagnostic_log import LOG
from jackline.domain.limits import count_units
from jackline.domain.prices import Price, PriceTable
from jackline.domain.run_inputs import StopReason
from jackline.domain.states import RunState, WaitReason
from jackline.engine.dead_attempts import find_dead_attempt
from jackline.engine.settings import EngineSettings, new_id
from jackline.engine.supervise import supervise
from jackline.errors import AgentUnavailable, Busy, JacklineError, Overtaken, UsageError
from jackline.extensions import call_hook
from jackline.files import NotWritten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.app.home import Home
    from jackline.domain.adapter import Adapter, UntrustedSettings
    from jackline.domain.amendment import Amendment
    from jackline.domain.records import Run
    from jackline.engine.supervise import Interrupt

    OnStart = Callable[[Interrupt], None]


def build_settings(home: Home, on_ask: str = STOP) -> EngineSettings:
    """Build the engine settings of a home. `on_ask`: what happens when a call needs approval.

    Each attempt adds its environment: a run can be cancelled while the home's env_file cannot be read.
    """
    server, missing = build_mcp_argv(home.config, os.environ)
    logged_in: set[str] = set()  # agents that need not be asked again

    def read_environ(reference: str) -> dict[str, str]:
        try:
            declaration = agents.load_adapter(home.config, reference).declaration
        except UsageError as error:  # described in settings that are gone
            raise AgentUnavailable(reference, why=error) from None
        return read_agent_environ(home.config, declaration)

    def find_binary(adapter: Adapter, workspace: str) -> str:
        environ, name = read_environ(adapter.declaration.name), adapter.declaration.name
        binary = agents.require_program(home.path, home.config, adapter, environ)
        if name not in logged_in:
            agents.require_login(adapter.declaration, binary, environ, workspace)
            logged_in.add(name)
        return binary

    def read_untrusted(adapter: Adapter, workspace: str) -> UntrustedSettings | None:
        environ, database = read_environ(adapter.declaration.name), home.config.get_text("database")
        return read_untrusted_settings(home.path, database, adapter.declaration, workspace, environ)

    return EngineSettings(
        home=home.path,
        host=clock.host_name(),
        lease_ms=round(home.config.get_float("lease_seconds") * 1000),
        other_host_s=home.config.get_float("other_host_seconds"),
        preload=_preload,
        on_change=home.notify_change,
        on_phase=partial(_write_manifest, home),
        warn=home.warnings.append,
        database=find_agent_database(home.config),
        server=server,
        server_missing=missing,
        asks=on_ask != DENY,
        usd_micros_per_day=count_units(home.config.get_float("max_usd_per_day"), 1_000_000),
        prices=PriceTable({pattern: _build_price(table) for pattern, table in home.config.prices.items()}),
        find_binary=find_binary,
        read_untrusted=read_untrusted,
        read_environ=read_environ,
        share_workspace=home.share_workspace,
        keep_awake=home.config.get_text("keep_awake") == "true",
        cache=find_cache_folder(os.environ),
    )


def _build_price(table: Mapping[str, float]) -> Price:
    return Price(input=table["input"], cached=table.get("cached", table["input"]), output=table["output"])


def _preload() -> None:
    """Import what the first call and the end of the run need, while the agent starts."""
    import jackline.engine.intents
    import jackline.exports.run_folder  # noqa: F401


def work_on_run(home: Home, run: Run, on_start: OnStart, on_ask: str = STOP) -> Run:
    """Make attempts until the run ends, or waits for more than the backoff of a transient failure.

    With `wait`, also wait for a person, and continue when the run is answered from anywhere.
    """
    if on_ask not in ON_ASK:
        raise UsageError(f"unknown on_ask '{on_ask}': use {', '.join(ON_ASK)}")
    home.create()
    diagnostics.start_log(home)
    home.store(create=True)
    settings = build_settings(home, on_ask)
    with home.update_in_background():
        if on_ask != WAIT:
            return _make_attempts(home, run, on_start, settings)
        steps = WaitSteps(
            work=lambda run: _make_attempts(home, run, on_start, settings),
            ask=lambda run: wait_for_person(home, run, build_pause(on_start)),
            follow=lambda run: wait_while_busy(home, run, build_pause(on_start)),
        )
        return work_and_wait(home, run, steps)


def _make_attempts(home: Home, run: Run, on_start: OnStart, settings: EngineSettings) -> Run:
    store, is_interrupted = home.store(), False

    def start(interrupt: Interrupt) -> None:
        def interrupt_and_leave(why: StopReason = StopReason.INTERRUPT) -> None:
            nonlocal is_interrupted
            is_interrupted = True
            interrupt(why)

        on_start(interrupt_and_leave)
        _log_start(home, run)
        if store.notices.find_ping(run.id):
            call_hook("run_started", home)

    while True:
        settings = settings._replace(environ=read_home_environ(home.config))  # its env_file may have changed
        with watch_own_files(home, run.id):
            run = supervise(store, run, partial(agents.load_adapter, home.config), settings, start)
        home.notify_change()
        _end_dependents(home, run)
        _export(home, run)
        crash_points.crash_point("views.written")
        if run.status.reason is not WaitReason.RETRY or is_interrupted:
            return run
        if build_pause(on_start)(max(0, (run.status.wake_at or 0) - clock.wall_ms()) / 1000):
            return run  # interrupted: the run keeps waiting until its wake time
        run = store.runs.get(run.id) or run
        if run.status.reason is not WaitReason.RETRY:  # cancelled, or continued by another process meanwhile
            return run


def make_attempt(home: Home, run: Run, on_start: OnStart) -> Run:
    """Make one attempt at a run that is still as it was seen, and wait for nothing: the way of a service."""
    home.create()
    settings = build_settings(home)._replace(from_queue=True, environ=read_home_environ(home.config))

    def start(interrupt: Interrupt) -> None:
        on_start(interrupt)
        _log_start(home, run)

    with home.update_in_background(), watch_own_files(home, run.id):
        run = supervise(home.store(), run, partial(agents.load_adapter, home.config), settings, start)
    home.notify_change()
    _end_dependents(home, run)
    _export(home, run)
    crash_points.crash_point("views.written")
    return run


def cancel_run(home: Home, run: Run) -> Run:
    """Store the cancel request; if the run's supervisor is dead, take the run over and end it."""
    store = home.store(create=True)
    run = store.runs.request_cancel(run.id, clock.wall_ms(), new_id())
    if run.status.state is RunState.RUNNING and find_dead_attempt(store, run, build_settings(home)) is not None:
        with contextlib.suppress(Busy, Overtaken):  # another process took it over meanwhile and will see the request
            settings = build_settings(home)._replace(share_workspace=True)  # it starts no agent
            run = supervise(home.store(), run, partial(agents.load_adapter, home.config), settings)
    _end_dependents(home, run)
    if run.status.state is not RunState.RUNNING and os.path.isdir(home.folder(run.id)):
        _export(home, run)
    home.notify_change()
    return run


def _end_dependents(home: Home, run: Run) -> None:
    """Cancel the queued runs that depend on a run that did not succeed."""
    if run.status.state in {RunState.FAILED, RunState.CANCELLED}:
        from jackline.app.queue import cancel_unreachable

        cancel_unreachable(home)


def amend_run(home: Home, run: Run, amendment: Amendment) -> Run:
    """Store a person's message and changes, before any process works on the run."""
    store = home.store(create=True)
    dead = find_dead_attempt(store, run, build_settings(home))
    run = store.amendments.amend(run.id, amendment, clock.wall_ms(), dead)
    home.notify_change()
    return run


def _log_start(home: Home, run: Run) -> None:
    from jackline.exports.task_log import append_line, describe_start

    try:
        append_line(home.path, run.spec.task, describe_start(run), clock.wall_ms())
    except JacklineError as error:
        home.warnings.append(str(error))


def _write_manifest(home: Home, run: Run) -> None:
    """Write what the run does now; a failure is only logged, because the end of the attempt writes all files."""
    from jackline.exports.run_folder import write_manifest

    try:
        write_manifest(home.store(), run, home.folder(run.id))
    except NotWritten as error:
        LOG.warning(str(error))


def _export(home: Home, run: Run) -> None:
    """Write the run's files; a failure is only a warning, because they can be written again."""
    from jackline.exports.task_log import append_line, describe_stop

    try:
        append_line(home.path, run.spec.task, describe_stop(run), clock.wall_ms())
        home.export(run)
    except JacklineError as error:
        home.warnings.append(f"{error}; `jackline export {run.id}` writes the files again")
