"""`jackline import`: imports the data of the five predecessors once, including damaged data."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.support import predecessors as old
from tests.support.skips import obey_permissions

SECRET = "sk-ant-api03-" + "a1B2" * 8


def take(place: Place, *words: str) -> Ended:
    return place.type("import", *words, "--json")


def summary(ended: Ended) -> dict[str, Any]:
    last = ended.rows[-1]
    assert last["outcome"] == "summary", ended
    return last


def of(ended: Ended, outcome: str) -> list[dict[str, Any]]:
    return [row for row in ended.rows if row["outcome"] == outcome]


def only_id(ended: Ended) -> str:
    (row,) = of(ended, "imported")
    return str(row["id"])


def is_sound(place: Place) -> bool:
    return place.type("db", "check").code == 0


def everything(place: Place) -> Path:
    """One folder with all five."""
    base = place.folder / "old"
    old.agent_state(base / "agents" / "forge" / "state.sqlite")
    old.notebook(base / "repository")
    old.pair(base / ".agentpair", 1)
    old.pair(base / ".agentpair", 2, state="working", completed_at=None)
    old.runner(base / "tool")
    old.runner(base / "tool", "20260219_150003", metadata={})
    old.universal(base / "runtime_state.db", "e7339747:succeeded", "56e5bcb9:waiting_for_human")
    return base


# --- all of it


def test_a_folder_with_all_of_it_is_imported_once(place: Place) -> None:
    base = everything(place)
    first = take(place, str(base))
    told = summary(first)
    assert (first.code, told["run"], told["case"], told["item"], told["events"]) == (0, 6, 1, 6, 3), first
    assert (told["unreadable"], told["taken"], told["already"]) == (0, 0, 0)
    before = [place.type("list", "--all-repos", "--json").out, place.type("events", "tail", "--json").out]
    second = take(place, str(base))
    again = summary(second)
    assert (second.code, again["already"]) == (0, 6 + 1 + 6 + 3)
    assert {again[what] for what in ("run", "case", "item", "events")} == {0}
    assert [place.type("list", "--all-repos", "--json").out, place.type("events", "tail", "--json").out] == before
    assert is_sound(place)


def test_nothing_of_theirs_is_changed(place: Place) -> None:
    base = everything(place)
    before = contents(base)
    assert take(place, str(base)).code == 0
    assert contents(base) == before


def contents(base: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(base.rglob("*")) if path.is_file()}


def test_a_dry_run_says_the_same_and_writes_nothing(place: Place) -> None:
    base = everything(place)
    dry = take(place, str(base), "--dry-run")
    assert not place.home.exists()
    told = [(row["outcome"], row.get("id")) for row in dry.rows[:-1]]
    assert place.type("import", str(base), "--dry-run").out.splitlines()[-1].startswith("would import 6 runs, 1 case")
    assert [(row["outcome"], row.get("id")) for row in take(place, str(base)).rows[:-1]] == told
    listed = place.type("list", "--all-repos", "--json").out
    assert summary(take(place, str(base), "--dry-run"))["already"] == 16
    assert place.type("list", "--all-repos", "--json").out == listed


def test_a_person_reads_what_became_of_each(place: Place) -> None:
    old.notebook(place.folder / "repo")
    (place.folder / "repo" / ".agents" / "runs" / "20260102T030405Z-fix-overlay" / "commands.jsonl").write_text("{")
    ended = place.type("import", str(place.folder / "repo"))
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert any(line.startswith("imported    case    20260102T030405Z-fix-overlay  from ") for line in lines)
    assert any("commands.jsonl, line 1: it is not JSON" in line for line in lines)
    assert any(line.startswith("noted") and "its id H002 was given twice: it is H003 now" in line for line in lines)
    assert lines[-1] == "imported 1 case; 1 place could not be read"


def test_one_kind_alone_can_be_asked_for(place: Place) -> None:
    base = everything(place)
    assert summary(take(place, str(base), "--as", "agentpair"))["run"] == 2
    assert summary(take(place, str(base), "--as", "agent-state"))["item"] == 6
    nothing = place.type("import", str(base / "tool"), "--as", "notebook")
    assert (nothing.code, is_one_line(nothing), "no data of notebook" in nothing.err) == (2, True, True)


def test_links_are_not_followed(place: Place) -> None:
    folder = old.pair(place.folder / "elsewhere")
    trap = place.folder / "trap"
    trap.mkdir()
    os.symlink(folder.parent.parent, trap / "runs")
    os.symlink(trap, trap / "loop")
    ended = place.type("import", str(trap))
    assert (ended.code, is_one_line(ended)) == (2, True)


# --- agent-state


def test_items_keep_ids_and_statuses_and_their_events(place: Place) -> None:
    path = old.agent_state(place.folder / "forge" / "state.sqlite")
    assert take(place, str(path)).code == 0
    items = {row["id"]: row for row in place.type("work", "list", "--json").rows}
    assert {name: row["status"] for name, row in items.items()} == {
        "msg-1": "pending", "msg-2": "in_flight", "msg-3": "waiting_human", "msg-4": "done", "msg-5": "failed",
        "msg-6": "cancelled",
    }  # fmt: skip
    rows = place.type("events", "tail", "--limit", "50", "--json").rows
    kinds = [row.get("type", row.get("kind")) for row in rows]
    assert {"agent_started", "work_item_created", "work_item_claimed", "work.imported", "import.event"} <= set(kinds)
    assert "run.succeeded" not in kinds  # reserved for events that jackline wrote
    assert is_sound(place)


def test_events_that_came_later_are_added(place: Place) -> None:
    path = old.agent_state(place.folder / "forge" / "state.sqlite")
    assert summary(take(place, str(path)))["events"] == 3
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO events (ts, type, payload) VALUES (1767000010000, 'later', '{}')")
        connection.execute("INSERT INTO work_items VALUES ('msg-9', 'x', '{}', 'pending', NULL, 1, 1767000010000, '')")
    connection.close()
    again = summary(take(place, str(path)))
    assert (again["events"], again["item"], again["already"]) == (1, 1, 6)


def test_an_item_that_is_another_one_here_is_reported_and_left(place: Place) -> None:
    path = old.agent_state(place.folder / "forge" / "state.sqlite")
    assert place.type("work", "enqueue", "--id", "msg-4", "--kind", "deploy", "--payload", '{"mine": 1}').code == 0
    ended = take(place, str(path))
    (taken,) = of(ended, "taken")
    assert (ended.code, taken["id"], summary(ended)["item"]) == (1, "msg-4", 5)
    assert place.type("work", "get", "msg-4", "--json").json["status"] == "pending"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE work_items SET status = 'lost' WHERE id = 'msg-4'", "its status is none of"),
        ("UPDATE work_items SET created_at = 'soon' WHERE id = 'msg-4'", "its created_at is not a time"),
        ("UPDATE work_items SET kind = x'ff00' WHERE id = 'msg-4'", "its kind is not a name"),
        ("UPDATE work_items SET kind = CAST(x'ff41' AS TEXT) WHERE id = 'msg-4'", "it is not UTF-8"),
        ("UPDATE events SET ts = 'soon' WHERE id = 1", "its ts is not a time"),
        ("UPDATE events SET type = '' WHERE id = 1", "its type is not a word"),
    ],
)
def test_a_damaged_row_costs_only_itself(place: Place, change: str, reason: str) -> None:
    path = old.agent_state(place.folder / "forge" / "state.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    ended = take(place, str(path))
    troubles = of(ended, "unreadable")
    assert ended.code == 1
    assert any(reason in row["reason"] and "row" in row["place"] for row in troubles), troubles
    assert summary(ended)["item"] >= 5
    assert is_sound(place)


def test_events_of_an_item_that_cannot_be_read_are_kept(place: Place) -> None:
    path = old.agent_state(place.folder / "forge" / "state.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE work_items SET status = 'lost' WHERE id = 'msg-2'")
    connection.close()
    assert summary(take(place, str(path)))["events"] == 3 + 2


def test_our_own_database_is_refused(place: Place) -> None:
    assert place.play(SAY).code == 0
    for words in ((), ("--as", "agent-state")):
        ended = place.type("import", str(place.home / "state.sqlite"), *words)
        assert "jackline" in ended.err + ended.out
        assert ended.code in {1, 2}
        assert "Traceback" not in ended.err
    assert is_sound(place)


# --- the notebook


def test_a_closed_notebook_becomes_a_closed_case(place: Place) -> None:
    old.notebook(place.repository)
    ended = take(place, str(place.repository))
    assert ended.code == 0
    name = only_id(ended)
    (case,) = [row for row in place.type("case", "list", "--json").rows if row["id"] == name]
    assert case["status"] == "closed"
    assert place.type("case", "hypothesis", "add", "more").code != 0  # nothing is active


def test_an_open_notebook_can_be_gone_on_with(place: Place) -> None:
    old.notebook(place.repository, closed=False)
    name = only_id(take(place, str(place.repository)))
    assert place.type("case", "switch", name).code == 0
    added = place.type("case", "hypothesis", "add", "one more")
    assert (added.code, "H004" in added.out) == (0, True), added
    assert summary(take(place, str(place.repository)))["already"] == 1
    assert is_sound(place)


def test_two_repositories_may_have_a_case_of_the_same_name(place: Place) -> None:
    for name in ("one", "two"):
        (place.folder / name / ".git").mkdir(parents=True)
        old.notebook(place.folder / name)
    ended = take(place, str(place.folder / "one"), str(place.folder / "two"))
    first, second = [row["id"] for row in of(ended, "imported")]
    assert second.startswith(f"{first}-")
    assert summary(take(place, str(place.folder / "two")))["already"] == 1


@pytest.mark.parametrize("name", ["problem.json", "closeout.json", "hypotheses.jsonl", "learning.jsonl"])
@pytest.mark.parametrize("damage", [b"\xff\xfe{", b'{"id": ', b"[1, 2]\n", b'"text"\n', b"[" * 100_000])
def test_a_damaged_file_of_a_notebook_is_reported(place: Place, name: str, damage: bytes) -> None:
    folder = old.notebook(place.repository)
    (folder / name).write_bytes(damage)
    ended = take(place, str(place.repository))
    (trouble,) = of(ended, "unreadable")
    assert (ended.code, os.path.basename(trouble["path"])) == (1, name)
    assert summary(ended)["case"] == 1
    assert is_sound(place)


def test_a_notebook_without_its_capsule_is_imported_with_what_is_known(place: Place) -> None:
    folder = old.notebook(place.repository)
    (folder / "problem.json").unlink()
    ended = take(place, str(place.repository))
    assert (ended.code, only_id(ended)) == (1, folder.name)


# --- agentpair


def test_a_pair_s_run_can_be_read_like_ours(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    name = only_id(take(place, str(folder.parent.parent)))
    shown = place.type("show", name, "--json").json
    assert (shown["state"], shown["agent"], shown["proof"], shown["prompt"]) == (
        "succeeded", "claude", "unverified", "mend the till",
    )  # fmt: skip
    assert [(turn["role"], turn["agent"], turn["last_message"]) for turn in shown["turns"]] == [
        ("work", "claude", "mended"),
        ("review", "codex", "good: PASS"),
    ]
    assert (shown["sessions"], shown["cost_usd"]) == ({}, None)
    assert place.type("logs", name).out == "mended\ngood: PASS\n"
    events = place.type("logs", "--events", name, "--json").rows
    times = {row["kind"]: row["at"] for row in events}
    assert times["agent.message"] == "2026-01-02T03:05:04.000Z"
    assert times["agent.bridge"] == "2026-01-02T03:05:06.500Z"
    assert place.type("verify", name).code == 0
    exported = Path(place.type("export", name).out.strip())
    assert {"start", "execute", "result", "end"} <= {
        json.loads(line)["type"] for line in (exported / "transcript.jsonl").read_text().splitlines()
    }
    assert not (exported / "RESUME.md").exists()
    assert (exported / "imported" / "transcript.jsonl").read_bytes() == (folder / "transcript.jsonl").read_bytes()


@pytest.mark.parametrize("state", ["submitted", "working", "reviewing", "never heard of", 7, None])
def test_what_was_not_finished_has_failed(place: Place, state: object) -> None:
    folder = old.pair(place.folder / ".agentpair", state=state, completed_at=None)
    name = only_id(take(place, str(folder)))
    shown = place.type("show", name, "--json").json
    assert (shown["state"], shown["failure"]) == ("failed", "crashed")
    assert shown["detail"].startswith("imported: its last state was ")
    for words in (("resume", name), ("fork", name, "go on")):
        refused = place.type(*words)
        assert (refused.code, is_one_line(refused), "was imported from agentpair" in refused.err) == (2, True, True)
    assert "resume" not in place.type("show", name).out
    assert is_sound(place)


def test_two_machines_may_have_a_run_of_the_same_number(place: Place) -> None:
    old.pair(place.folder / "here")
    old.pair(place.folder / "there", created_at="2026-05-05T05:05:05Z")
    ended = take(place, str(place.folder / "here"), str(place.folder / "there"))
    assert len({row["id"] for row in of(ended, "imported")}) == 2
    assert summary(take(place, str(place.folder / "there"), str(place.folder / "here")))["already"] == 2


def test_a_run_that_ended_since_the_first_import_stays_as_it_was_imported(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair", state="working")
    name = only_id(take(place, str(folder)))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "state": "completed"}))
    assert summary(take(place, str(folder)))["already"] == 1
    assert place.type("show", name, "--json").json["state"] == "failed"


def test_one_bad_line_costs_only_itself(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    lines = (folder / "transcript.jsonl").read_bytes().splitlines(keepends=True)
    lines[4] = b'{"type": "message", "content": \xff\n'
    (folder / "transcript.jsonl").write_bytes(b"".join(lines)[:-20])
    ended = take(place, str(folder))
    assert [(os.path.basename(row["path"]), row["place"]) for row in of(ended, "unreadable")] == [
        ("transcript.jsonl", "line 5"),
        ("transcript.jsonl", "line 12"),
    ]
    assert ended.code == 1
    shown = place.type("show", only_id(ended), "--json").json
    assert len(shown["turns"]) == 2


def test_without_a_manifest_the_run_is_unknown(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    old.pair(place.folder / ".agentpair", 2)
    (folder / "manifest.json").unlink()
    ended = take(place, str(place.folder / ".agentpair"))
    (trouble,) = of(ended, "unreadable")
    assert (ended.code, summary(ended)["run"]) == (1, 1)
    assert trouble["reason"].startswith("it is missing")


def test_our_own_runs_are_not_taken_for_theirs(place: Place) -> None:
    assert place.play(SAY).code == 0
    ended = place.type("import", str(place.home / "runs"))
    assert (ended.code, is_one_line(ended), "runs of jackline itself" in ended.err) == (2, True, True)
    name = only_id(take(place, str(old.pair(place.folder / ".agentpair"))))
    ended = place.type("import", str(place.home / "runs" / name))
    assert (ended.code, is_one_line(ended)) == (2, True)


# --- agent_runner


def test_a_runner_s_run_has_its_output_its_commits_and_its_tokens(place: Place) -> None:
    folder = old.runner(place.folder / "tool")
    name = only_id(take(place, str(place.folder / "tool")))
    shown = place.type("show", name, "--json").json
    assert (shown["state"], shown["task"], shown["tokens"]) == ("succeeded", "document_coverage", 1234)
    assert (shown["changes"]["commits"], shown["changes"]["files_changed"]) == (["940ecea fix it"], 2)
    assert (shown["created_at"], shown["finished_at"]) == ("2026-02-19T14:40:03.794Z", "2026-02-19T14:45:00.504Z")
    assert place.type("logs", name).out == (folder / "stdout.log").read_text()
    assert place.type("receipts", name).code == 0


@pytest.mark.parametrize(
    ("told", "failure", "code"),
    [
        ({"classified_error": "usage_limit", "exit_code": None, "error": "limit"}, "limit", 10),
        ({"classified_error": "timeout", "exit_code": None}, "timeout", 11),
        ({"classified_error": None, "exit_code": None, "error": "No git commits detected"}, "no_commit", 1),
        ({"exit_code": 12}, "connectivity", 12),
        ({"exit_code": 1, "error": "it says 429 somewhere"}, "agent_error", 1),
        ({"exit_code": "seven", "commits": 7, "files_changed": "x", "token_count": -5}, "agent_error", 1),
    ],
)
def test_a_failure_gets_its_class(place: Place, told: dict[str, Any], failure: str, code: int) -> None:
    old.runner(place.folder / "tool", **told)
    shown = place.type("show", only_id(take(place, str(place.folder / "tool"))), "--json").json
    assert (shown["state"], shown["failure"], shown["exit_code"]) == ("failed", failure, code)


def test_a_run_without_metadata_is_imported_with_what_is_known(place: Place) -> None:
    folder = old.runner(place.folder / "tool", metadata={})
    first = take(place, str(place.folder / "tool"))
    (noted,) = of(first, "noted")
    assert (first.code, "it is missing" in noted["reason"]) == (0, True)
    shown = place.type("show", only_id(first), "--json").json
    assert (shown["agent"], shown["task"], shown["created_at"]) == (
        "claude", "document_coverage", "2026-02-19T14:40:03.000Z",
    )  # fmt: skip
    old.runner(place.folder / "late")
    (folder / "metadata.json").write_bytes(next((place.folder / "late").rglob("metadata.json")).read_bytes())
    assert summary(take(place, str(place.folder / "tool")))["already"] == 1


# --- universal_agent


def test_calls_and_receipts_come_with_the_run(place: Place) -> None:
    path = old.universal(place.folder / "runtime_state.db")
    name = only_id(take(place, str(path)))
    shown = place.type("show", name, "--json").json
    states = {
        call["id"].partition("-")[2]: (call["call_class"], call["state"], call["replay"]) for call in shown["calls"]
    }
    assert states == {
        "read": ("read", "done", "exact"),
        "mail": ("effect", "done", "ask"),
        "upload": ("effect", "in_doubt", "idempotent"),
        "receipted": ("effect", "done", "idempotent"),
        "task": ("local", "abandoned", "relaunch"),
        "list": ("local", "abandoned", "exact"),
        "fails": ("local", "failed", "exact"),
        "orphan": ("effect", "done", "ask"),
    }
    assert {one["external_id"] for one in shown["receipts"]} == {"message-9", "file-receipted", "file-orphan"}
    assert [one["outcome"] for one in shown["attempts"]] == ["timeout", "succeeded"]
    effects = place.type("receipts", name, "--json").json["effects"]
    assert sorted(one["status"] for one in effects) == ["confirmed", "confirmed", "confirmed", "in doubt"]
    assert place.type("verify", name).code == 0
    assert is_sound(place)


def test_an_older_schema_is_read_too(place: Place) -> None:
    path = place.folder / "runtime_state.db"
    with sqlite3.connect(path) as connection:
        connection.executescript("CREATE TABLE runs (run_id TEXT, status TEXT); CREATE TABLE tool_calls (x TEXT);")
        connection.execute("INSERT INTO runs VALUES ('one', 'queued'), (NULL, 'failed'), ('two', 'failed')")
    connection.close()
    ended = take(place, str(path))
    assert (ended.code, summary(ended)["run"], summary(ended)["unreadable"]) == (1, 2, 1)
    assert summary(take(place, str(path)))["already"] == 2


# --- what cannot be read


@pytest.mark.parametrize("name", ["state.sqlite", "runtime_state.db"])
@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\x7f" * 4096])
def test_an_invalid_database_is_reported_and_the_rest_is_imported(place: Place, name: str, content: bytes) -> None:
    base = place.folder / "old"
    old.runner(base)
    (base / name).write_bytes(content)
    ended = take(place, str(base))
    (trouble,) = of(ended, "unreadable")
    assert (ended.code, summary(ended)["run"], os.path.basename(trouble["path"])) == (1, 1, name)
    alone = place.type("import", str(base / name))
    assert (alone.code, "Traceback" in alone.err) == (2, False)
    assert (base / name).read_bytes() == content


def test_a_database_of_another_program_is_ignored(place: Place) -> None:
    base = place.folder / "old"
    old.runner(base)
    with sqlite3.connect(base / "cookies.db") as connection:
        connection.execute("CREATE TABLE jar (x)")
    connection.close()
    (base / "other.sqlite").write_text("text")
    assert take(place, str(base)).code == 0


@pytest.mark.parametrize("words", [(), ("nowhere",), (".",), ("/dev/null",)])
def test_nothing_to_import_is_one_line(place: Place, words: tuple[str, ...]) -> None:
    ended = place.type("import", *words)
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert not place.home.exists()


def test_a_path_with_nothing_stops_before_anything_is_written(place: Place) -> None:
    old.runner(place.folder / "old")
    (place.folder / "empty").mkdir()
    assert place.type("import", str(place.folder / "old"), str(place.folder / "empty")).code == 2
    assert not place.home.exists()


def test_a_file_without_permission_is_reported(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    (folder / "bridge.jsonl").chmod(0)
    ended = place.type("import", str(folder), "--json", preexec_fn=obey_permissions)
    assert (ended.code, summary(ended)["run"]) == (1, 1)


def test_a_pipe_is_not_waited_for(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    (folder / "bridge.jsonl").unlink()
    os.mkfifo(folder / "bridge.jsonl")
    ended = take(place, str(folder))
    assert summary(ended)["run"] == 1


def test_secrets_do_not_come_along(place: Place) -> None:
    base = place.folder / "old"
    folder = old.pair(base, prompt=f"use {SECRET}")
    (folder / "transcript.jsonl").write_text(json.dumps({"type": "message", "content": f"key {SECRET}"}) + "\n")
    log = old.runner(base, last_message=SECRET)
    (log / "stdout.log").write_text(f"printed {SECRET}\n")
    case = old.notebook(base / "repo", request=f"why {SECRET}")
    (case / "evidence.jsonl").write_text(json.dumps({"id": "E001", "text": SECRET}) + "\n")
    old.agent_state(base / "state.sqlite", items=[("a", "k", f'{{"x": "{SECRET}"}}', "pending", None, 1, 1, SECRET)])
    assert take(place, str(base)).code == 0
    held = [path for path in place.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == []
    assert place.type("logs", "agent-runner").out.startswith("printed [redacted")


def test_a_crash_between_files_and_database_is_mended_by_the_next_import(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    dry = take(place, str(folder), "--dry-run")
    half = place.home / "runs" / only_id(dry) / "imported"
    half.mkdir(parents=True)
    (half / "transcript.jsonl").write_text("half")
    name = only_id(take(place, str(folder)))
    assert (half / "transcript.jsonl").read_bytes() == (folder / "transcript.jsonl").read_bytes()
    (place.home / "runs" / name / "manifest.json").unlink()
    assert summary(take(place, str(folder)))["already"] == 1
    assert (place.home / "runs" / name / "manifest.json").exists()


def test_a_huge_file_is_bounded(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    line = json.dumps({"type": "message", "timestamp": "2026-01-02T03:05:04Z", "content": "x" * 100}).encode() + b"\n"
    with (folder / "transcript.jsonl").open("ab") as file:
        for _ in range(6_000):
            file.write(line)
        file.write(b'{"type": "message", "content": "' + b"y" * 3_000_000 + b'"}\n' + line)
    ended = take(place, str(folder))
    (trouble,) = of(ended, "unreadable")
    assert trouble["place"] == "line 6013"
    name = only_id(ended)
    shown = place.type("show", name, "--json").json
    assert shown["event_seq"] < 5_100
    kept = place.home / "runs" / name / "imported" / "transcript.jsonl"
    assert kept.stat().st_size == (folder / "transcript.jsonl").stat().st_size


def test_much_damage_is_reported_in_a_few_lines(place: Place) -> None:
    folder = old.pair(place.folder / ".agentpair")
    (folder / "bridge.jsonl").write_bytes(b"garbage\n" * 5_000)
    ended = take(place, str(folder))
    troubles = of(ended, "unreadable")
    assert len(troubles) == 21
    assert troubles[-1]["reason"] == "and 4980 more places"
