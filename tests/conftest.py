"""Fixtures that more than one folder of tests asks for; what only one needs stands there."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, settings

from jackline.diagnostic_log import LOG
from jackline.store.open import migrate, open_store
from jackline.store.store import Store
from tests.support.postgres import database_of_its_own, running_server, schema_of_its_own
from tests.support.skips import refuse_skip
from tests.support.stores import FakeClock

_PR_SET_PDEATHSIG = 1
_TIMEOUT_S = 180  # after which a test fails with the stacks of its threads, and the next one runs
_LONG_TIMEOUTS_S = {"full": 3600, "agents": 900}  # by marker or folder
# Their tests take longest: at the end of a run, a worker with a long one would be waited for.
_LONG_FIRST = frozenset({"agents", "crash", "docs", "migration", "package", "race", "simulation"})
_LONG = frozenset({"agents", "crash", "migration", "race", "simulation"})  # folders; their tests share no fixtures
BACKENDS = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
# For slow tests of what does not depend on the store: the second one is left to `make test-full`.
SLOW_BACKENDS = ("sqlite", pytest.param("postgres", marks=(pytest.mark.postgres, pytest.mark.full)))
Open = Callable[..., Store]

# A busy machine is no reason to fail: no property is about time.
settings.register_profile("unhurried", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM end the session as Ctrl-C does, with every fixture; a worker gets it when pytest itself dies.

    A shell that starts `make test &` lets it ignore SIGINT, and so would every command that a test interrupts.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup: so would the commands that a test hangs up
        signal.signal(signal.SIGHUP, lambda *_: None)
    if hasattr(config, "workerinput") and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@pytest.hookimpl(trylast=True)  # after those that are not wanted have been removed
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = _spread(items, getattr(config, "workerinput", {}).get("workercount", 1))
    if not config.pluginmanager.hasplugin("timeout"):  # an environment from before it was required
        return
    for item in items:
        seconds = next((seconds for name, seconds in _LONG_TIMEOUTS_S.items() if name in item.keywords), _TIMEOUT_S)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(seconds))


def _spread(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Long tests first in each worker's part: all would wait at the end for one that a worker began last."""
    long = [item for item in items if not _LONG.isdisjoint(item.nodeid.split("/"))]
    short = [item for item in items if _LONG.isdisjoint(item.nodeid.split("/"))]
    part = -(-len(short) // workers)
    parts = [(*long[number::workers], *short[number * part :][:part]) for number in range(workers)]
    return [item for one in parts for item in one]


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """A test that starts jackline's log in this process does not start it for the tests after it."""
    yield
    LOG.path = ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_skip(report)
    return report


SAID = "said"  # what a test wants to be read at the end of a run, also of one that many processes share


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have found out besides that they pass."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == SAID:
                terminalreporter.write_line(f"{report.nodeid}: {value}")


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the session's own PostgreSQL server; all workers of a session share one."""
    name = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    lock = str(tmp_path_factory.getbasetemp().parent / f"postgres-{name}.lock")
    with running_server(name, lock) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The address of an empty schema."""
    with schema_of_its_own(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> Iterator[str]:
    """The name of a database that nobody writes to, to be copied."""
    with database_of_its_own(postgres_server) as url:
        migrate(url)
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture
def postgres_database(postgres_server: str, migrated_postgres: str) -> Iterator[str]:
    """The address of a migrated, empty database."""
    with database_of_its_own(postgres_server, migrated_postgres) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a migrated, empty database, to be copied."""
    home = tmp_path_factory.mktemp("migrated") / "home"
    migrate(str(home / "state.sqlite"))
    return home


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated, empty database of each kind, as `open_store` wants it."""
    return make_database(request, tmp_path)


def make_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """For a module with a fixture `database` of its own, whose kinds are SLOW_BACKENDS."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_database"))
    shutil.copytree(request.getfixturevalue("migrated_home"), tmp_path / "home")
    return str(tmp_path / "home" / "state.sqlite")


@pytest.fixture
def clock() -> FakeClock:
    """The lease clock of the `store` fixture."""
    return FakeClock()


@pytest.fixture
def opened(database: str, clock: FakeClock) -> Iterator[Open]:
    """Open the same database once more; everything that was opened is closed at the end."""
    stores: list[Store] = []

    def open_it(*, lease_clock: FakeClock | None = clock, read_only: bool = False) -> Store:
        store = open_store(database, create=False, lease_clock=lease_clock, read_only=read_only)
        stores.append(store)
        return store

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Open) -> Store:
    """A store of each kind, whose leases are counted by `clock`."""
    return opened()
