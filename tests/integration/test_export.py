"""A run's files, written from a real store: run machine, attempt loop and SQLite are real, the agent is played."""

from __future__ import annotations

import json
import os
import stat
import tracemalloc
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import Check, Lease, Run, SessionUse, Turn
from jackline.domain.run_inputs import CheckEnded, Recover, Recovered, RunCheck, RunCommand, StartTurn, TurnEnded
from jackline.domain.states import Decision, Failure, RunState, WaitReason
from jackline.engine.attempt import RunInput, run_attempt
from jackline.errors import JacklineError
from jackline.exports.manifest import load_manifest
from jackline.exports.run_folder import export_run
from jackline.exports.transcript import load_entries, read_transcript
from jackline.store.models import RunChange, Settlement
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, intent, made, owner

WRITTEN = {
    "manifest.json",
    "transcript.jsonl",
    "metadata.json",
    "summary.txt",
    "transcript.log",
    "stdout.log",
}
GARBAGE = b'{"type":"message"}\nbinary \0\xff\xfe no newline'


WELL = Outcome()


@dataclass(frozen=True, slots=True)
class Part:
    """What the agent prints in a turn, and how the turn ends."""

    stdout: bytes = b"done\n"
    stderr: bytes = b""
    outcome: Outcome = WELL
    asks: bool = False
    dies: bool = False


class Died(BaseException):
    """Everything of this attempt is gone."""


class Played:
    """The world of an attempt whose agent plays parts; a check that is run passes."""

    def __init__(self, store: Store, lease: Lease, home: Path, parts: deque[Part]) -> None:
        self._store, self._lease, self._parts = store, lease, parts
        self._folder = home / "runs" / lease.run_id / "turns"
        self._inbox: deque[RunInput] = deque()
        self._now = AT + 1_000 * lease.token

    def now(self) -> int:
        self._now += 1
        return self._now

    def new_id(self) -> str:
        return f"id-{self.now()}"

    def account_time(self) -> None:
        self._store.leases.renew(self._lease, LEASE_MS, 250)

    def next_input(self) -> RunInput:
        return self._inbox.popleft()

    def execute(self, command: RunCommand, run: Run) -> None:
        match command:
            case Recover():
                self._inbox.append(RunInput(Recovered(self.now(), self._doubts())))
            case StartTurn():
                self._inbox.append(self._turn(command, run, self._parts.popleft()))
            case RunCheck():
                self._inbox.append(self._check(command))

    def _doubts(self) -> tuple[str, ...]:
        found = self._store.calls.list_open(self._lease.run_id)
        return tuple(
            self._store.ledger.settle(self._lease, Settlement(call.id, "doubt", self.now(), reason="cut off")).id
            for call in found
        )

    def _turn(self, order: StartTurn, run: Run, part: Part) -> RunInput:
        run_id, token = self._lease.run_id, self._lease.token
        turn = Turn(run_id, order.turn, order.step, token, order.role, run.spec.agent, "s-1", "p", self.now())
        self._write(Fact("turn.launched", {"turn": turn.number, "argv": ["agent"], "resumes": False}), turn=turn)
        self._print(f"{order.turn:04d}-{order.role}", part)
        if part.asks:
            self._store.ledger.admit(
                self._lease, intent(f"call-{turn.number}"), decide_call, (turn.number, turn.step), self.now()
            )
        if part.dies:
            raise Died
        self._write(Fact("agent.message", {"text": "all good", "offset": 0}), actor="agent")
        self._write(Fact("agent.end", {"reason": "done", "text": "done", "offset": 9}), actor="agent")
        usage = Usage(tokens_input=70, tokens_output=30, usd_micros=1_500)
        ended = turn._replace(
            ended_at=self.now(),
            exit_code=0,
            failure=part.outcome.failure,
            last_message="all good",
            stdout_bytes=len(part.stdout),
            spent=Spent(tokens_input=70, tokens_output=30, usd_micros=1_500),
        )
        open_calls = len(self._store.calls.list_open(run_id))
        return RunInput(
            TurnEnded(self.now(), part.outcome, usage, open_calls), turn=ended, session=SessionUse("claude", "s-1")
        )

    def _check(self, order: RunCheck) -> RunInput:
        check = Check(self._lease.run_id, order.step, self._lease.token, order.command, self.now())
        self._write(Fact("check.launched", {"command": order.command}), check=check)
        ended = check._replace(ended_at=self.now(), exit_code=0, output="3 passed")
        return RunInput(CheckEnded(self.now(), 0), check=ended)

    def _print(self, name: str, part: Part) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{name}.stdout").write_bytes(part.stdout)
        (self._folder / f"{name}.stderr").write_bytes(part.stderr)

    def _write(self, fact: Fact, **more: Any) -> None:
        self._store.leases.write_change(self._lease, RunChange(self.now(), (fact,), **more))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = open_store(str(home / "state.sqlite"), create=True)
    yield opened
    opened.close()


def new(store: Store, **spec: Any) -> Run:
    return made(store, spec={"agent": "claude", "task": "chores", "proof": "make test", **spec})


def play(store: Store, home: Path, run: Run, *parts: Part) -> Run:
    """One attempt at the run."""
    dead = run.status.attempt if run.status.state is RunState.RUNNING else None
    lease, claimed = store.leases.claim(run.id, owner(), LEASE_MS, AT + 1_000 * (run.status.attempt + 1), dead)
    try:
        return run_attempt(store, lease, claimed, Played(store, lease, home, deque(parts)))
    except Died:
        return known(store, run)


def known(store: Store, run: Run) -> Run:
    found = store.runs.get(run.id)
    assert found is not None
    return found


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def kinds(folder: Path) -> list[str]:
    return [str(entry.type) for entry in read_transcript(str(folder / "transcript.jsonl"))]


def test_a_finished_run_has_every_file_and_they_agree(store: Store, home: Path) -> None:
    run = play(store, home, new(store), Part(GARBAGE, b"warning\n"))
    folder = Path(export_run(store, run, str(home)))
    assert folder == home / "runs" / "run-1"
    assert set(content(folder)) == WRITTEN
    manifest = load_manifest(str(folder))
    metadata = json.loads((folder / "metadata.json").read_bytes())
    assert (manifest.state, metadata["state"], metadata["exit_code"]) == ("completed", "succeeded", 0)
    assert manifest.id == run.number
    assert manifest.repo_path == "/srv/repository"
    assert manifest.claude_session_id == "s-1"
    assert manifest.completed_at is not None
    assert metadata["token_count"] == 100
    assert metadata["proof"] == manifest.metadata["proof"] == "proved"
    assert metadata["worked_seconds"] == 0.25
    assert (metadata["commits"], metadata["attempts"], metadata["turns"]) == ([], 1, 1)
    assert (folder / "summary.txt").read_text().startswith("run run-1 (#1) succeeded (proved)\n")
    assert kinds(folder) == [
        "start", "state", "message", "message", "iteration", "execute", "message", "result", "signal",
        "execute", "result", "signal", "state", "end",
    ]  # fmt: skip


def test_raw_output_is_untouched_and_a_single_turn_is_not_copied(store: Store, home: Path) -> None:
    run = play(store, home, new(store), Part(GARBAGE, b"warning\n"))
    folder = Path(export_run(store, run, str(home)))
    assert (folder / "transcript.log").read_bytes() == GARBAGE + b"warning\n"
    assert (folder / "stdout.log").samefile(folder / "turns" / "0001-work.stdout")


def test_only_the_owner_may_read_them(store: Store, home: Path) -> None:
    folder = Path(export_run(store, play(store, home, new(store), Part(b"a", b"b")), str(home)))
    modes = {stat.S_IMODE((folder / name).stat().st_mode) for name in WRITTEN - {"stdout.log"}}
    assert modes == {0o600}
    assert stat.S_IMODE((home / "logs" / "chores").stat().st_mode) == 0o700


def test_written_again_they_are_the_same_bytes(store: Store, home: Path) -> None:
    run = play(store, home, new(store), Part(GARBAGE, b"warning\n", asks=True))
    folder = Path(export_run(store, run, str(home)))
    first = content(folder)
    assert "RESUME.md" in first
    export_run(store, known(store, run), str(home))
    assert content(folder) == first
    for name in first:
        (folder / name).unlink()
    export_run(store, known(store, run), str(home))
    assert content(folder) == first


def test_a_run_is_exported_without_writing_to_the_store(store: Store, home: Path) -> None:
    run = play(store, home, new(store), Part())
    reader = open_store(str(home / "state.sqlite"), create=False, read_only=True)
    try:
        export_run(reader, run, str(home))
    finally:
        reader.close()
    assert known(store, run) == run


def test_a_run_that_was_never_started_has_its_files_too(store: Store, home: Path) -> None:
    folder = Path(export_run(store, new(store), str(home)))
    assert set(content(folder)) == WRITTEN
    assert kinds(folder) == ["start"]
    assert (folder / "stdout.log").read_bytes() == b""


def test_several_turns_are_put_together_and_the_raw_ones_stay_as_they_are(store: Store, home: Path) -> None:
    limited = Outcome(Failure.LIMIT, "resets 7pm", resets_at=10**18)
    run = play(store, home, new(store), Part(b"one ", b"err1 ", outcome=limited))
    folder = Path(export_run(store, run, str(home)))
    assert run.status.reason is WaitReason.LIMIT
    assert load_manifest(str(folder)).state == "submitted"
    assert "waiting: limit" in (folder / "RESUME.md").read_text()
    run = play(store, home, run, Part(b"two ", b"err2 "))
    export_run(store, run, str(home))
    assert (folder / "stdout.log").read_bytes() == b"one two "
    assert (folder / "transcript.log").read_bytes() == b"one err1 two err2 "
    assert (folder / "turns" / "0001-work.stdout").read_bytes() == b"one "
    assert not (folder / "RESUME.md").exists()


def test_a_turn_that_died_is_told_and_the_effect_in_doubt_is_asked_about(store: Store, home: Path) -> None:
    run = play(store, home, new(store), Part(asks=True, dies=True))
    run = play(store, home, run)
    folder = Path(export_run(store, run, str(home)))
    page = (folder / "RESUME.md").read_text()
    assert page.startswith("# Run run-1 waiting: in_doubt\n\n> 1 call in doubt: call-1\n")
    assert f"\n    jackline answer run-1 call-1 happened --home {home}  # " in page
    assert f" && jackline resume run-1 --home {home}\n" in page
    errors = [entry.error for entry in read_transcript(str(folder / "transcript.jsonl")) if entry.error]
    assert errors == ["turn 1 was interrupted"]
    assert load_manifest(str(folder)).state == "input-required"
    _, run = store.approvals.answer(run.id, "call-1", "happened", AT + 9_000)
    export_run(store, run, str(home))
    assert not (folder / "RESUME.md").exists()
    assert json.loads((folder / "metadata.json").read_bytes())["receipts"] == 1


def test_a_call_that_was_asked_about_is_shown_with_its_answers(store: Store, home: Path) -> None:
    run = new(store)
    lease, claimed = store.leases.claim(run.id, owner(), LEASE_MS, AT)
    rule = MAIL._replace(decision=Decision.ASK)
    store.ledger.admit(lease, intent("call-7", rule, target="mail:bob"), decide_call, (1, 1), AT)
    waiting = claimed.status._replace(state=RunState.WAITING, reason=WaitReason.APPROVAL)
    run = store.leases.write_change(
        lease, RunChange(AT, (Fact("run.waiting", {"reason": "approval"}),), status=waiting)
    )
    page = (Path(export_run(store, run, str(home))) / "RESUME.md").read_text()
    assert "\n    jackline answer run-1 call-7 allow" in page
    assert "\n    jackline answer run-1 call-7 deny" in page


@pytest.mark.parametrize(
    ("task", "agent", "place"),
    [
        ("chores", "claude", "chores/claude"),
        ("../../../etc", "a/b\0c", "_._.._.._etc/a_b_c"),
        ("..", ".", "_./_"),
        ("", " ", "_/_"),
        ("täsk\udcff", "é" * 200, f"täsk_/{'é' * 60}"),
    ],
)
def test_the_folder_is_reachable_by_task_and_agent(store: Store, home: Path, task: str, agent: str, place: str) -> None:
    run = new(store, task=task, agent=agent)
    folder = Path(export_run(store, run, str(home)))
    link = home / "logs" / place / "run-1"
    assert os.readlink(link) == "../../../runs/run-1"
    assert link.samefile(folder)
    assert sorted(os.listdir(home.parent)) == ["home"]


def test_a_moved_home_keeps_its_links(store: Store, home: Path) -> None:
    export_run(store, new(store), str(home))
    home.rename(home.parent / "elsewhere")
    assert (home.parent / "elsewhere" / "logs" / "chores" / "claude" / "run-1" / "manifest.json").is_file()


@pytest.mark.parametrize("blocked", ["runs", "runs/run-1/manifest.json", "logs", "runs/run-1/stdout.log"])
def test_a_place_that_cannot_be_written_is_one_clear_line(store: Store, home: Path, blocked: str) -> None:
    run = play(store, home, new(store), Part()) if "/" in blocked else new(store)
    in_the_way = home / blocked
    if "/" in blocked:
        in_the_way.mkdir(parents=True)
    else:
        in_the_way.write_text("a file")
    with pytest.raises(JacklineError) as caught:
        export_run(store, run, str(home))
    assert f"{in_the_way}" in str(caught.value)
    assert "cannot be written" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(home.rglob("*.tmp"))


def test_a_long_history_is_read_page_by_page(store: Store, home: Path) -> None:
    run = new(store)
    lease, _ = store.leases.claim(run.id, owner(), LEASE_MS, AT)
    many = tuple(Fact("agent.message", {"text": f"{n} {'x' * 2_000}"}) for n in range(2_000))
    run = store.leases.write_change(lease, RunChange(AT, many, actor="agent"))
    tracemalloc.start()
    try:
        count = sum(1 for _ in load_entries(store, run))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2_002
    assert peak < 8_000_000  # the texts alone are twice as big in the events of the store


def test_what_was_archived_is_kept_by_the_file_and_goes_on_after_it(store: Store, home: Path) -> None:
    broken = Outcome(Failure.AGENT_ERROR, "exit code 1")
    run = play(store, home, new(store), Part(outcome=broken))
    folder = Path(export_run(store, run, str(home)))
    before = (folder / "transcript.jsonl").read_bytes()
    assert store.admin.drop_archived_events(run.id, run.chain_head, AT + 9_000) > 0
    export_run(store, known(store, run), str(home))
    assert (folder / "transcript.jsonl").read_bytes() == before
    run = play(store, home, known(store, run), Part())
    export_run(store, run, str(home))
    after = (folder / "transcript.jsonl").read_bytes()
    assert after.startswith(before)
    assert kinds(folder)[-2:] == ["state", "end"]
    assert kinds(folder).count("start") == 1
    assert kinds(folder).count("execute") == 3


def test_fifty_megabytes_of_output_take_no_memory(store: Store, home: Path) -> None:
    run = play(store, home, new(store), Part(b"", b"the end"))
    raw = home / "runs" / "run-1" / "turns" / "0001-work.stdout"
    os.truncate(raw, 50 * 1024 * 1024)
    tracemalloc.start()
    try:
        folder = Path(export_run(store, run, str(home)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    assert (folder / "transcript.log").stat().st_size == 50 * 1024 * 1024 + 7
