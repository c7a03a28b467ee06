"""Services that are killed, frozen and stopped at random: every run ends exactly once, and no effect happens twice.

A failed storm prints its seed; JACKLINE_SEED=n starts with it. The times at which the signals fall differ all the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.app.policy_files import load_run_policy
from jackline.app.request import Request
from jackline.app.run_creation import WantedRun
from jackline.domain.states import PERSON_NEEDED, TERMINAL, RunState, WaitReason
from jackline.engine import orphans, run_env
from jackline.store.models import QueueOptions, RunQuery
from tests.conftest import BACKENDS, SAID
from tests.crash import outbox

WORKTREES = 8
LEASE_SECONDS = 3.0  # a frozen service loses its runs within the storm
PAUSE = (0.3, 1.5)  # seconds between two blows
FROZEN = (0.5, 2 * LEASE_SECONDS)
BLOWS = ("kill", "freeze", "kill", "freeze", "stop")
ENDS = {0, -signal.SIGTERM}  # after SIGTERM: the second if it had not yet begun
END_SECONDS = 120.0
SECONDS = 1800.0


class Storm:
    """A home with a queue, services as processes, and the blows that they get."""

    def __init__(self, folder: Path, environ: dict[str, str], seed: int) -> None:
        self.folder, self.environ, self.random = folder, environ, random.Random(seed)
        self.home = Home(load_config(environ, str(folder)))
        self.outbox = folder / "outbox.jsonl"
        self.services: list[subprocess.Popen[bytes]] = []
        self.frozen: dict[subprocess.Popen[bytes], float] = {}
        self.counts: Counter[str] = Counter()
        self._log = open(folder / "services.log", "ab")  # noqa: SIM115 - closed with the storm

    # the work

    def fill_queue(self, names: list[str]) -> None:
        probe = f"{sys.executable} -I -S {outbox.__file__} probe {self.outbox}"
        rule = '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["to", "text"]\ntarget = "{to}"\n'
        policy = self.folder / "policy.toml"
        policy.write_text(f"{rule}probe = {json.dumps(probe)}\n")
        rules = load_run_policy(str(policy))
        wanted = [WantedRun(self._build_request(name, rules), queue=QueueOptions()) for name in names]
        from jackline.app.queue import enqueue_all

        enqueue_all(self.home, wanted)

    def _build_request(self, name: str, rules: tuple[object, ...]) -> Request:
        send = [sys.executable, "-I", "-S", outbox.__file__, "send", str(self.outbox), "{to}", "{text}"]
        steps = [
            {"call": {"tool": "send", "input": {"to": part, "text": name}, "run": send, "external_id": "{stdout}"}}
            for part in ("first", "second")
        ]
        script = {"version": 1, "session": False, "steps": [*steps, {"say": "done"}]}
        workspace = self.folder / f"repository-{sum(name.encode()) % WORKTREES}"
        workspace.mkdir(exist_ok=True)
        return Request(
            prompt=name,
            agent="scripted",
            run_id=name,
            workspace=str(workspace),
            options={"script": json.dumps(script)},
            rules=rules,  # type: ignore[arg-type]
        )

    # the services

    def start_service(self) -> None:
        self.services.append(self._start("serve", "--slots", "3"))
        self.counts["services"] += 1

    def strike(self, blow: str) -> None:
        """Kill, stop or freeze one service; one that has ended is followed by another."""
        service = self.random.choice([one for one in self.services if one not in self.frozen] or self.services)
        self.counts[blow] += 1
        if blow == "freeze":
            service.send_signal(signal.SIGSTOP)
            self.frozen[service] = time.monotonic() + self.random.uniform(*FROZEN)
            return
        self.thaw(service)
        service.send_signal(signal.SIGKILL if blow == "kill" else signal.SIGTERM)
        assert self.await_end(service) in (ENDS if blow == "stop" else {-signal.SIGKILL})
        self.services.remove(service)
        self.start_service()

    def await_end(self, service: subprocess.Popen[bytes]) -> int:
        """Its exit code. A frozen service may hold a lock that it needs, so that those must go on meanwhile."""
        until = time.monotonic() + END_SECONDS
        while (code := service.poll()) is None:
            if time.monotonic() > until:
                service.send_signal(signal.SIGABRT)  # with PYTHONFAULTHANDLER it tells where its threads are
                service.wait()
                raise AssertionError(f"a process did not end: {self.folder / 'services.log'}")
            self.thaw_due()
            time.sleep(0.02)
        return code

    def thaw(self, *services: subprocess.Popen[bytes]) -> None:
        for service in services:
            if self.frozen.pop(service, None) is not None:
                service.send_signal(signal.SIGCONT)

    def thaw_due(self) -> None:
        self.thaw(*[one for one, until in self.frozen.items() if until <= time.monotonic()])

    # what becomes of the runs

    def list_states(self) -> Counter[tuple[str, str | None]]:
        return Counter((row.state, row.reason) for row in self.home.list_runs(RunQuery(limit=10_000)))

    def count_ended(self) -> int:
        return sum(count for (state, _), count in self.list_states().items() if state in TERMINAL)

    def continue_parked(self) -> None:
        """What a person does: resume a run that was taken over in vain, and look outside for a call in doubt."""
        for row in self.home.list_runs(RunQuery(states=(str(RunState.WAITING),), limit=1000)):
            if row.reason == WaitReason.HUMAN:
                self.counts["resumed by a person"] += 1
                self._type("resume", row.id)
            elif row.reason == WaitReason.IN_DOUBT:
                self.counts["answered by a person"] += 1
                for call in self.home.store().calls.list_open(row.id):
                    wanted = json.loads(call.input)
                    has_happened = any((wanted["to"], wanted["text"]) == sent for sent in self.list_sent())
                    self._type("answer", row.id, call.id, "happened" if has_happened else "did-not")
            else:
                assert row.reason not in PERSON_NEEDED, (row.id, row.reason)

    def list_sent(self) -> list[tuple[str, str]]:
        lines = self.outbox.read_text().splitlines() if self.outbox.exists() else []
        return [(one["to"], one["text"]) for one in map(json.loads, lines)]

    def _type(self, *words: str) -> None:
        """A command of a person, whom a service may outrun."""
        self.await_end(self._start(*words))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "jackline", *words], cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log,
        )  # fmt: skip

    def blow_until_done(self, runs: int, blows: int) -> None:
        until = time.monotonic() + SECONDS
        left = [BLOWS[number % len(BLOWS)] for number in range(blows)]
        self.random.shuffle(left)
        while (ended := self.count_ended()) < runs:
            assert time.monotonic() < until, (ended, self.list_states())
            for service in [one for one in self.services if one.poll() is not None]:
                raise AssertionError(f"a service ended by itself with {service.returncode}")
            if left:
                self.strike(left.pop())
            self.continue_parked()
            time.sleep(self.random.uniform(*PAUSE))
            self.thaw_due()
        self.thaw(*self.frozen)

    def stop(self) -> None:
        self.thaw(*list(self.frozen))
        for service in self.services:
            service.send_signal(signal.SIGTERM)
        codes = [self.await_end(service) for service in self.services]
        self.services.clear()
        assert set(codes) <= ENDS, codes

    def close(self) -> None:
        for service in self.services:
            with contextlib.suppress(ProcessLookupError):
                service.send_signal(signal.SIGCONT)
                service.kill()
            service.wait()
        self.home.close()
        self._log.close()


@pytest.fixture(params=BACKENDS)
def storm(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Storm]:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "JACKLINE_HOME": str(tmp_path / "home"),
        "JACKLINE_LEASE_SECONDS": str(LEASE_SECONDS),
        "JACKLINE_POLL_SECONDS": "0.5",
        "JACKLINE_GRACE_SECONDS": "1",
        "JACKLINE_RETRIES": "100",  # a run that is frozen with its service loses its agent each time
        "JACKLINE_RETRY_SECONDS": "0.2",
        "PYTHONFAULTHANDLER": "1",
    }
    if request.param == "postgres":
        environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    seed = int(os.environ.get("JACKLINE_SEED") or random.randrange(1_000_000))
    request.node.user_properties.append((SAID, f"JACKLINE_SEED={seed}"))
    made = Storm(tmp_path, environ, seed)
    yield made
    made.close()


Say = Callable[[str, object], None]


def test_a_small_storm(storm: Storm, record_property: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    weather(storm, monkeypatch, services=2, runs=12, blows=5)
    record_property(SAID, describe(storm))


@pytest.mark.full
def test_a_storm(storm: Storm, record_property: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    weather(storm, monkeypatch, services=4, runs=300, blows=400)
    record_property(SAID, describe(storm))


def weather(storm: Storm, monkeypatch: pytest.MonkeyPatch, *, services: int, runs: int, blows: int) -> None:
    for name, value in storm.environ.items():
        monkeypatch.setenv(name, value)
    names = [f"run-{number:03}" for number in range(runs)]
    storm.fill_queue(names[: runs // 2])
    for _ in range(services):
        storm.start_service()
    storm.fill_queue(names[runs // 2 :])
    storm.blow_until_done(runs, blows)
    storm.stop()
    check(storm, names)


def check(storm: Storm, names: list[str]) -> None:
    store = storm.home.store()
    assert storm.list_states() == {(str(RunState.SUCCEEDED), None): len(names)}
    sent = Counter(storm.list_sent())
    assert sent == {(part, name): 1 for name in names for part in ("first", "second")}
    attempts = 0
    for name in names:
        kinds = Counter(event.kind for event in store.records.list_events(name, limit=10_000))
        assert kinds["run.succeeded"] == 1, (name, kinds)
        assert store.verify.verify_run(name).problems == ()
        attempts += kinds["run.claimed"]
        assert orphans.find_orphans(run_env.build_process_tag(store.secret, name)) == []
    died = [one for one in store.notices.list_newest(10_000) if one.kind == "service.died"]
    assert len({one.subject for one in died}) == len(died) <= storm.counts["kill"]
    storm.counts["runs"], storm.counts["attempts"] = len(names), attempts
    storm.counts["effects"], storm.counts["reported deaths"] = sum(sent.values()), len(died)


def describe(storm: Storm) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(storm.counts.items()))
