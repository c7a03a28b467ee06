"""What the five predecessors leave behind, in their exact shapes: files and databases as their own code writes them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]

AGENT_STATE_SCHEMA = """
CREATE TABLE work_items (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, payload TEXT NOT NULL, status TEXT NOT NULL, owner_agent TEXT,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, notes TEXT
);
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, ts INTEGER NOT NULL, type TEXT NOT NULL, actor TEXT, work_item_id TEXT,
  payload TEXT NOT NULL
);
CREATE INDEX idx_events_work_item ON events(work_item_id);
CREATE TABLE schema_migrations (version TEXT PRIMARY KEY, applied_at INTEGER NOT NULL);
INSERT INTO schema_migrations VALUES ('0001', 1767000000000);
"""
ITEMS = (
    ("msg-1", "reply", '{"to": "ada", "n": 1}', "pending", None, 1767000000000, 1767000000000, None),
    ("msg-2", "reply", "not json at all", "in_flight", "forge", 1767000001000, 1767000002000, "half done"),
    ("msg-3", "deploy", "[1, 2]", "waiting_human", "forge", 1767000003000, 1767000004000, "which region?"),
    ("msg-4", "deploy", "{}", "done", "forge", 1767000005000, 1767000006000, None),
    ("msg-5", "deploy", "{}", "failed", "forge", "2025-12-29T09:20:05Z", "2025-12-29T09:20:06.5Z", None),
    ("msg-6", "deploy", "null", "cancelled", None, 1767000005, 1767000006, None),
)
EVENTS = (
    (1767000000000, "agent_started", "forge", None, '{"host": "grove"}'),
    (1767000000000, "work_item_created", None, "msg-1", '{"kind": "reply", "status": "pending"}'),
    (1767000001000, "work_item_created", "forge", "msg-2", "{}"),
    (1767000002000, "work_item_claimed", "forge", "msg-2", '{"status": "in_flight"}'),
    ("2025-12-29T09:21:00Z", "run.succeeded", "forge", None, "{}"),
    (1767000009000, "Odd Type!", "forge", "gone-1", "no json"),
)

UNIVERSAL_SCHEMA = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, status TEXT NOT NULL,
  entrypoint TEXT NOT NULL, run_spec_json TEXT NOT NULL, workspace_dir TEXT, run_kind TEXT, terminal_reason TEXT,
  run_mode TEXT, job_path TEXT, last_job_prompt TEXT, provider_session_id TEXT, parent_run_id TEXT,
  cancel_reason TEXT, total_tokens INTEGER DEFAULT 0
);
CREATE TABLE run_attempts (
  attempt_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, attempt_number INTEGER NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, status TEXT NOT NULL, lease_owner TEXT, started_at TEXT, ended_at TEXT,
  failure_class TEXT, failure_reason TEXT, retry_reason TEXT, retry_backoff_seconds INTEGER
);
CREATE TABLE run_steps (
  step_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, step_index INTEGER NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, status TEXT NOT NULL, phase TEXT NOT NULL, error_code TEXT, error_detail TEXT
);
CREATE TABLE tool_calls (
  tool_call_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, step_id TEXT NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, raw_tool_name TEXT, tool_name TEXT NOT NULL, tool_namespace TEXT NOT NULL,
  side_effect_class TEXT NOT NULL, replay_policy TEXT NOT NULL DEFAULT 'REPLAY_EXACT', replay_status TEXT,
  policy_rule_id TEXT, normalized_args_hash TEXT NOT NULL, idempotency_key TEXT NOT NULL, status TEXT NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0, request_ref TEXT, response_ref TEXT, external_correlation_id TEXT,
  error_code TEXT, error_detail TEXT
);
CREATE TABLE tool_receipts (
  tool_call_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, tool_name TEXT NOT NULL, tool_namespace TEXT NOT NULL,
  idempotency_key TEXT NOT NULL, created_at TEXT NOT NULL, response_ref TEXT, external_correlation_id TEXT
);
CREATE TABLE checkpoints (
  checkpoint_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, step_id TEXT NOT NULL, created_at TEXT NOT NULL,
  checkpoint_type TEXT NOT NULL, state_snapshot_json TEXT NOT NULL, cursor_json TEXT
);
"""


def agent_state(
    path: Path, items: Iterable[tuple[Any, ...]] = ITEMS, events: Iterable[tuple[Any, ...]] = EVENTS
) -> Path:
    """agent-state's database; its times are milliseconds, and some here are other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(AGENT_STATE_SCHEMA)
        connection.executemany("INSERT INTO work_items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", items)
        connection.executemany(
            "INSERT INTO events (ts, type, actor, work_item_id, payload) VALUES (?, ?, ?, ?, ?)", events
        )
    connection.close()
    return path


def lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))


def notebook(repository: Path, name: str = "20260102T030405Z-fix-overlay", *, closed: bool = True, **more: Any) -> Path:
    """One folder of the notebook."""
    folder = repository / ".agents" / "runs" / name
    folder.mkdir(parents=True)
    (folder.parent / "ACTIVE").write_text(f"{name}\n")
    capsule = {
        "id": name, "created_at": "2026-01-02T03:04:05Z", "request": "fix overlay routing", "intent": "debug",
        "target_properties": ["verification"], "intake_plan": None, "expected_verification": ["pytest -q"],
        "risks": ["slow"], "non_goals": [], "dirty_worktree": {"available": True, "paths": [" M overlay.py"]},
    } | more  # fmt: skip
    (folder / "problem.json").write_text(json.dumps(capsule, indent=2))
    at = "2026-01-02T03:05:00Z"
    lines(
        folder / "hypotheses.jsonl",
        [
            {"event": "add", "id": "H001", "status": "open", "text": "docs outrank files", "timestamp": at},
            {"event": "add", "id": "H002", "status": "open", "text": "the cache is stale", "timestamp": at},
            {"event": "add", "id": "H002", "status": "open", "text": "written at the same time", "timestamp": at},
            {
                "event": "resolve",
                "id": "H001",
                "status": "accepted",
                "note": "seen",
                "timestamp": "2026-01-02T03:09:00Z",
            },
        ],
    )
    lines(
        folder / "evidence.jsonl",
        [
            {"event": "add", "id": "E001", "hypothesis": "H001", "text": "ranks below", "timestamp": at},
            {"event": "add", "id": "E002", "hypothesis": None, "text": "no more", "timestamp": at},
        ],
    )
    lines(
        folder / "commands.jsonl",
        [{"event": "add", "id": "C001", "command": "pytest -q", "status": "pass", "timestamp": at}],
    )
    lines(
        folder / "learning.jsonl",
        [
            {"event": "add", "id": "L001", "kind": "test-gap", "path": "tests/test_x.py", "reason": None,
             "repo_action": "test", "summary": "keep it", "timestamp": at},
        ],
    )  # fmt: skip
    if closed:
        told = {**capsule, "closed_at": "2026-01-02T04:00:00Z", "residual_risks": ["slow"], "summary": "routed",
                "verification": ["pytest -q"]}  # fmt: skip
        (folder / "closeout.json").write_text(json.dumps(told, indent=2))
        (folder / "closeout.md").write_text("# Agent Run\n")
    return folder


def pair(base: Path, number: int = 1, repository: str = "/srv/shop", **more: Any) -> Path:
    """One run of agentpair, with a worker and a reviewer."""
    repo_id = hashlib.sha256(repository.encode()).hexdigest()[:16]
    folder = base / "runs" / repo_id / str(number)
    folder.mkdir(parents=True)
    manifest = {
        "id": number, "repo_path": repository, "repo_id": repo_id, "prompt": "mend the till", "state": "completed",
        "primary_agent": "claude", "review_mode": "codex", "max_iterations": 20, "current_iteration": 2,
        "claude_session_id": "session-1", "proof_command": "make test", "done_signal": "DONE",
        "created_at": f"2026-01-02T03:04:05.12345678{number % 10}Z", "updated_at": "2026-01-02T03:30:00Z",
        "completed_at": "2026-01-02T03:29:59.5Z",
    } | more  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({name: one for name, one in manifest.items() if one is not None}))
    entries: list[Json] = [
        {"type": "start", "content": "mend the till", "metadata": {"agent": "claude"}},
        {"type": "state", "state": "working"},
        {"type": "iteration", "iteration": 1},
        {"type": "execute", "agent": "claude", "iteration": 1, "content": "do it"},
        {"type": "message", "agent": "claude", "iteration": 1, "content": "looking"},
        {"type": "result", "agent": "claude", "iteration": 1, "content": "mended", "duration": 2_500_000_000},
        {"type": "state", "state": "reviewing"},
        {"type": "execute", "agent": "codex", "iteration": 1, "content": "review it"},
        {"type": "result", "agent": "codex", "iteration": 1, "content": "good: PASS", "duration": 1_000_000_000},
        {"type": "signal", "agent": "codex", "iteration": 1, "signal": "PASS"},
        {"type": "error", "agent": "claude", "iteration": 2, "error": "connection lost"},
        {"type": "end", "state": "completed", "duration": 10_000_000_000},
    ]
    stamped = [
        {**entry, "timestamp": f"2026-01-02T03:05:{second:02}Z", "run_id": number}
        for second, entry in enumerate(entries)
    ]
    lines(folder / "transcript.jsonl", stamped)
    message = {
        "id": "ab12", "type": "task", "from": "claude", "to": "codex", "content": "please review",
        "timestamp": "2026-01-02T03:05:06.5Z", "run_id": number, "iteration": 1,
    }  # fmt: skip
    lines(folder / "bridge.jsonl", [message])
    return folder


def runner(
    base: Path, name: str = "20260219_144003", *, metadata: Mapping[str, Any] | None = None, **more: Any
) -> Path:
    """One run of agent_runner; of one that was cut off there is no metadata (`metadata={}`)."""
    task, agent = str(more.pop("task", "document_coverage")), str(more.pop("agent", "claude"))
    folder = base / "logs" / task / agent / name
    folder.mkdir(parents=True)
    told = {
        "agent": agent, "classified_error": None, "debug_prompt": None, "deletions": 46, "dry_run": False,
        "commits": [{"author": "Codex", "commit": "940ecea", "date": "2026-02-19T14:44:51+00:00", "subject": "fix it"}],
        "elapsed_seconds": 296.71, "end_time": "2026-02-19T14:45:00.503813+00:00", "exit_code": 0,
        "files_changed": ["a.md", "b.md"], "insertions": 7, "last_message": "all is documented",
        "requires_commit": True, "run_id": name, "start_time": "2026-02-19T14:40:03.793716+00:00", "task": task,
        "token_count": 1234,
    }  # fmt: skip
    if metadata is None or metadata:
        (folder / "metadata.json").write_text(json.dumps({**told, **more} if metadata is None else metadata))
    (folder / "summary.txt").write_text("2026-02-19 14:40:03 UTC [claude/document_coverage] elapsed=4m56s\n")
    (folder / "transcript.log").write_text("what it did\nall is documented\n")
    (folder / "stdout.log").write_text("all is documented\n")
    return folder


def universal(path: Path, *runs: str, workspace: str = "/srv/workspace") -> Path:
    """A runtime_state.db with these runs, each of them `id:status`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(UNIVERSAL_SCHEMA)
        for run in runs or ("e7339747:succeeded",):
            run_id, _, status = run.partition(":")
            _universal_run(connection, run_id, status, workspace)
    connection.close()
    return path


def _universal_run(connection: sqlite3.Connection, run_id: str, status: str, workspace: str) -> None:
    at, later = "2026-01-04T10:00:00.000001+00:00", "2026-01-04T10:10:00+00:00"
    connection.execute(
        "INSERT INTO runs (run_id, created_at, updated_at, status, entrypoint, run_spec_json, workspace_dir, run_kind,"
        " last_job_prompt, provider_session_id, total_tokens)"
        " VALUES (?, ?, ?, ?, 'cli', '{\"a\": 1}', ?, 'job', ?, 's-1', 77)",
        (run_id, at, later, status, workspace, "send the report"),
    )
    attempts = [(1, at, "failed", "timeout"), (2, "2026-01-04T10:05:00+00:00", "succeeded", None)]
    for number, began, ended, failure in attempts:
        connection.execute(
            "INSERT INTO run_attempts (attempt_id, run_id, attempt_number, created_at, updated_at, status, started_at,"
            " ended_at, failure_class) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (f"{run_id}-{number}", run_id, number, began, later, ended, began, later, failure),
        )
    connection.execute(
        "INSERT INTO run_steps VALUES (?, ?, 3, ?, ?, 'succeeded', 'execute', NULL, NULL)",
        (f"{run_id}-step", run_id, at, later),
    )
    calls = [
        ("read", "Read", "read_only", "REPLAY_EXACT", "succeeded", "read it", None),
        ("mail", "GMAIL_SEND_EMAIL", "external", "REPLAY_EXACT", "succeeded", "sent", "message-9"),
        ("upload", "workbench_upload", "external", "REPLAY_IDEMPOTENT", "running", "", None),
        ("receipted", "workbench_upload", "external", "REPLAY_IDEMPOTENT", "running", "", None),
        ("task", "Task", "local", "RELAUNCH", "abandoned_on_resume", "", None),
        ("list", "Bash", "local", "REPLAY_EXACT", "prepared", "", None),
        ("fails", "Bash", "local", "REPLAY_EXACT", "failed", "exit 1", None),
    ]
    for name, tool, kind, replay, stood, response, external in calls:
        connection.execute(
            "INSERT INTO tool_calls (tool_call_id, run_id, step_id, created_at, updated_at, raw_tool_name, tool_name,"
            " tool_namespace, side_effect_class, replay_policy, policy_rule_id, normalized_args_hash, idempotency_key,"
            " status, request_ref, response_ref, external_correlation_id, error_detail)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 'claude_code', ?, ?, 'rule-1', 'h', ?, ?, '{\"a\": 1}', ?, ?, NULL)",
            (f"{run_id}-{name}", run_id, f"{run_id}-step", "2026-01-04T10:06:00+00:00", later, tool, tool.lower(),
             kind, replay, f"key-{run_id}-{name}", stood, response, external),
        )  # fmt: skip
    for name in ("receipted", "orphan"):
        connection.execute(
            "INSERT INTO tool_receipts VALUES (?, ?, 'workbench_upload', 'composio', ?, ?, 'uploaded', ?)",
            (f"{run_id}-{name}", run_id, f"key-{run_id}-{name}", later, f"file-{name}"),
        )
    connection.execute(
        "INSERT INTO checkpoints VALUES (?, ?, ?, ?, 'step_boundary', '{\"n\": 1}', NULL)",
        (f"{run_id}-checkpoint", run_id, f"{run_id}-step", later),
    )
