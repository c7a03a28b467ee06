"""The library of docs/library.md, as a program uses it: on both stores, and at no cost before its first use."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import jackline
from jackline import Home, Request
from jackline.diagnostic_log import LOG
from jackline.domain.records import Run
from jackline.domain.states import Proof, RunState, WaitReason
from jackline.errors import Ambiguous, ConfigError, Conflict, NotFound, UsageError
from jackline.exports.manifest import load_manifest
from jackline.exports.transcript import EntryType
from tests.conftest import SLOW_BACKENDS, make_database

HELLO = {"say": "hello"}
LIMIT = {"limit": {"resets_in": 3600}, "when": {"attempt": 1}}


def request(*steps: Mapping[str, object], run_id: str = "", proof: str = "", workspace: str = "") -> Request:
    options = {"script": json.dumps({"version": 1, "steps": list(steps)})}
    return Request("say hello", agent="scripted", options=options, run_id=run_id, proof=proof, workspace=workspace)


@pytest.fixture(params=SLOW_BACKENDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_database(request, tmp_path)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program runs; its HOME is nobody's."""
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.fixture
def quiet_log() -> Iterator[None]:
    """A process logs to the first home it works in; the next test has another."""
    yield
    LOG.path = ""


@pytest.fixture
def environ(tmp_path: Path, database: str) -> dict[str, str]:
    shared = {"JACKLINE_DATABASE": database} if "://" in database else {}
    return {"HOME": str(tmp_path), "JACKLINE_HOME": str(tmp_path / "home"), **shared}


@pytest.fixture
def home(environ: dict[str, str], repository: Path, quiet_log: None) -> Iterator[Home]:
    with jackline.open_home(environ=environ) as opened:
        yield opened


@pytest.fixture
def done(home: Home) -> Run:
    """A run that was started and worked on until its end."""
    return home.work(home.start(request(HELLO, proof="true")))


def test_a_run_from_start_to_end(home: Home, repository: Path) -> None:
    run = home.start(request(HELLO, proof="true"))
    assert (run.status.state, run.number) == (RunState.QUEUED, 1)
    ended = home.work(run)
    assert (ended.id, ended.status.state, ended.status.proof) == (run.id, RunState.SUCCEEDED, Proof.PROVED)
    assert ended.spec.workspace == str(repository)


def test_starting_the_same_run_id_again_gives_the_same_run(home: Home) -> None:
    first = home.start(request(HELLO, run_id="nightly"))
    assert home.start(request(HELLO, run_id="nightly")) == first
    with pytest.raises(Conflict):
        home.start(request({"say": "something else"}, run_id="nightly"))


def test_find_by_id_prefix_and_number(home: Home, done: Run) -> None:
    other = home.start(request(HELLO, run_id="another"))
    for text in (done.id, done.id[:12], "1", "#1"):
        assert home.find(text) == done
    assert home.find("ano") == home.find("2") == other
    with pytest.raises(NotFound):
        home.find("no-such-run")
    home.start(request(HELLO, run_id="another-one"))
    with pytest.raises(Ambiguous):
        home.find("anot")


def test_find_by_session(home: Home, done: Run) -> None:
    (session,) = home.store().records.get_sessions(done.id).values()
    assert home.find_by_session(session) == done
    assert home.find_by_session("no such session") is None


def test_list_active_knows_every_repository(
    home: Home, done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = home.start(request(HELLO))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    parked = home.work(home.start(request(LIMIT, HELLO)))
    assert parked.status.state is RunState.WAITING
    assert [(row.id, row.state) for row in home.list_active()] == [(parked.id, "waiting"), (queued.id, "queued")]


def test_list_repositories(home: Home, done: Run, repository: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    home.start(request(HELLO, workspace=str(elsewhere)))
    assert {one.path for one in home.list_repositories()} == {str(repository), str(elsewhere)}


def test_load_manifest(home: Home, done: Run, repository: Path) -> None:
    manifest = home.load_manifest(done)
    assert (manifest.id, manifest.state, manifest.prompt) == (1, "completed", "say hello")
    assert (manifest.repo_path, manifest.primary_agent) == (str(repository), "scripted")
    assert manifest.is_complete
    assert manifest.is_single_agent
    assert manifest.metadata["run_id"] == done.id


def test_the_manifest_in_the_folder_says_the_same(home: Home, done: Run) -> None:
    assert load_manifest(home.folder(done.id)) == home.load_manifest(done)


def test_read_transcript(home: Home, done: Run) -> None:
    entries = home.read_transcript(done)
    assert (entries[0].type, entries[0].content) == (EntryType.START, "say hello")
    assert "hello" in [entry.content for entry in entries if entry.type is EntryType.MESSAGE]
    assert [entry.signal for entry in entries if entry.type is EntryType.SIGNAL] == ["DONE", "PASS"]
    assert (entries[-1].type, entries[-1].state) == (EntryType.END, "completed")


def test_another_opening_of_the_home_sees_the_same(home: Home, done: Run, environ: dict[str, str]) -> None:
    with jackline.open_home(environ=environ) as again:
        assert again.find(done.id) == done
        assert again.read_transcript(done) == home.read_transcript(done)


def test_a_run_that_was_parked_is_worked_on_again(home: Home, environ: dict[str, str]) -> None:
    parked = home.work(home.start(request(LIMIT, HELLO)))
    with jackline.open_home(environ=environ) as tomorrow:
        ended = tomorrow.work(tomorrow.find(parked.id))
    assert (ended.status.state, ended.status.attempt) == (RunState.SUCCEEDED, 2)


def test_looking_into_a_home_that_is_not_there_makes_nothing(tmp_path: Path, repository: Path) -> None:
    with jackline.open_home(str(tmp_path / "none"), environ={"HOME": str(tmp_path)}) as home:
        assert home.list_active() == []
        assert home.list_repositories() == []
        assert home.find_by_session("any") is None
        with pytest.raises(NotFound):
            home.find("1")
    assert not (tmp_path / "none").exists()


# --- handles -------------------------------------------------------------------------------------------------


def test_a_handle_follows_the_work_and_reads_the_result(home: Home) -> None:
    usage = {"usage": {"input": 100, "output": 50, "usd": 0.25}}
    run = home.new_run(request(usage, HELLO, {"say": "goodbye"}))
    assert (run.state, run.last_message, run.waiting, run.failure) == (RunState.QUEUED, "", None, None)
    events = list(run.follow())
    said = [event.data["text"] for event in events if event.kind == "agent.message"]
    assert said == ["hello", "goodbye"]
    assert [event.seq for event in events] == list(range(2, run.record.event_seq + 1))
    assert (run.state, run.exit_code, run.last_message, run.cost) == (RunState.SUCCEEDED, 0, "goodbye", 0.25)
    assert list(run.follow()) == []  # it has ended: nothing is done and nothing comes
    assert home.get_run("#1").record == run.record


def test_leaving_the_loop_parks_the_run_and_a_second_one_continues(home: Home, tmp_path: Path) -> None:
    run = home.new_run(request(HELLO, {"wait_for": str(tmp_path / "go")}, {"say": "goodbye"}))
    for event in run.follow():
        if event.kind == "agent.message":
            break
    assert (run.state, run.waiting) == (RunState.WAITING, WaitReason.PAUSED)
    (tmp_path / "go").touch()
    assert [event.kind for event in run.follow()][-1] == "run.succeeded"
    assert run.record.status.attempt == 2


def test_a_run_that_another_program_works_on_is_watched(home: Home, environ: dict[str, str], tmp_path: Path) -> None:
    run = home.new_run(request(HELLO, {"wait_for": str(tmp_path / "go")}, {"say": "goodbye"}))
    with jackline.open_home(environ=environ) as elsewhere:
        work = elsewhere.get_run(run.id).follow()
        assert next(work).kind == "run.claimed"
        seen = []
        for event in run.follow():
            seen.append(event.kind)
            (tmp_path / "go").touch()
        assert seen[-1] == "run.succeeded"
        assert [event.kind for event in work][-1] == "run.succeeded"


def test_an_error_of_the_work_reaches_the_loop(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = home.new_run(request(HELLO))
    home.config = home.config._replace(problem="jackline.toml cannot be read")
    with pytest.raises(ConfigError, match="cannot be read"):
        list(run.follow())


@pytest.mark.parametrize(("name", "value"), [("review", "critic"), ("copy", ".env"), ("fallback", "codex")])
def test_a_text_is_no_list_of_names(home: Home, name: str, value: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"{name} is a list of names: write {name}=('{value}',)")):
        home.new_run(request(HELLO)._replace(**{name: value}))  # type: ignore[arg-type]


def test_the_name_of_a_worktree_asks_for_one(home: Home, repository: Path) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "one"], cwd=repository, check=True)
    run = home.new_run(request(HELLO)._replace(worktree_name="ab"))
    assert (run.record.spec.worktree.name, run.record.spec.workspace != str(repository)) == ("ab", True)
    with pytest.raises(UsageError, match="leave one out"):
        home.new_run(request(HELLO)._replace(worktree_name="ab", worktree=False))


def test_a_handle_answers_and_gives_a_message_and_a_new_limit(home: Home) -> None:
    push = {"call": {"tool": "Bash", "input": {"command": "git push origin main"}, "run": ["true"]}}
    run = home.new_run(request(push, HELLO))
    with pytest.raises(UsageError, match="0 calls"):
        run.answer("allow")
    run.work()
    assert run.waiting is WaitReason.APPROVAL
    ((call, answers),) = run.questions
    assert (call.tool, "allow" in answers) == ("Bash", True)
    run.answer("allow")
    with pytest.raises(TypeError, match="max_usd"):
        run.resume(max_euros=1)
    with pytest.raises(UsageError, match="max_iterations must be a whole number"):
        run.resume(max_iterations="x")  # type: ignore[arg-type]
    assert run.resume("go on", max_usd=1e-7) is RunState.SUCCEEDED
    assert (run.record.spec.limits.usd_micros, run.last_message) == (1, "hello")
    kinds = [event.kind for event in home.store().records.list_events(run.id)]
    assert "run.message" in kinds
    assert "run.changed" in kinds


def test_a_handle_cancels(home: Home) -> None:
    run = home.new_run(request(HELLO))
    assert run.cancel() is RunState.CANCELLED
    assert run.exit_code == 17


def test_an_editor_can_show_the_fields_of_a_request() -> None:
    parameters = inspect.signature(Request).parameters
    assert list(parameters)[:3] == ["prompt", "agent", "workspace"]
    assert (parameters["agent"].default, parameters["agent"].annotation) == ("", "str")


# --- what an import costs ------------------------------------------------------------------------------------


def loaded(program: str) -> set[str]:
    """The modules of jackline that are there after the program."""
    tell = "import sys\nprint(*(name for name in sys.modules if name.partition('.')[0] == 'jackline'))"
    words = [sys.executable, "-c", f"{program}\n{tell}"]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
    return set(ended.stdout.split())


def test_importing_jackline_costs_nothing() -> None:
    assert loaded("import jackline") == {"jackline", "jackline.version"}


@pytest.mark.parametrize("name", sorted(set(jackline.__all__) - {"__version__"}))
def test_every_name_of_the_api_is_loaded_on_use(name: str) -> None:
    assert len(loaded(f"from jackline import {name}")) > 2


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jackline.nothing


# The names of agentpair's Go package `run`, as its documentation lists them.
OF_AGENTPAIR = """
ListAllRepos EntryType Manager NewManager Manager.FindBySessionID Manager.ListActive Manifest LoadManifest
LoadManifestByPath NewManifest Manifest.IncrementIteration Manifest.IsComplete Manifest.IsSingleAgent Run State
Transcript NewTranscript Transcript.Append LogEnd LogError LogExecute LogIteration LogResult LogSignal LogStart LogState
Transcript.Path Transcript.ReadAll TranscriptEntry
"""


def test_every_name_of_the_predecessor_has_its_row() -> None:
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text()
    rows = [line.split("|")[1] for line in page.partition("## For users of agentpair")[2].splitlines() if "|" in line]
    named = {word.removeprefix("Transcript.") for row in rows for word in re.findall(r"`([\w.]+)`", row)}
    assert {name.removeprefix("Transcript.") for name in OF_AGENTPAIR.split()} == named - {"agentpair"}


def test_a_handle_has_the_manifest_and_the_transcript(home: Home) -> None:
    run = home.new_run(request(HELLO, run_id="r"))
    run.work()
    assert run.manifest == home.load_manifest(run.record)
    assert (run.manifest.state, run.manifest.is_complete) == ("completed", True)
    file = os.path.join(home.folder("r"), "transcript.jsonl")
    assert jackline.read_transcript(file) == run.transcript
    assert jackline.load_manifest(home.folder("r")).id == run.manifest.id
    session = next(iter(run.manifest.metadata["sessions"].values()))
    found = home.find_by_session(session)
    assert found is not None
    assert found.id == "r"
    assert home.list_active() == []
