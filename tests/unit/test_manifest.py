"""The manifest: every field of the predecessor's, from a run and back from a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jackline.domain.limits import Limits, Spent
from jackline.domain.records import RunStatus
from jackline.domain.run_totals import Tally
from jackline.domain.states import Failure, Phase, Proof, RunState, WaitReason
from jackline.errors import UsageError
from jackline.exports import manifest
from jackline.exports.manifest import Manifest, load_manifest, manifest_state
from tests.support.view_records import AT, SPEC, run

ALWAYS = [
    "id", "repo_path", "repo_id", "prompt", "state", "primary_agent", "review_mode", "max_iterations",
    "current_iteration", "done_signal", "created_at", "updated_at",
]  # fmt: skip
GO_FIELDS = [
    "id", "repo_path", "repo_id", "prompt", "state", "primary_agent", "review_mode", "max_iterations",
    "current_iteration", "claude_session_id", "codex_session_id", "worktree_path", "tmux_session",
    "proof_command", "done_signal", "created_at", "updated_at", "completed_at", "error", "metadata",
]  # fmt: skip


def test_the_record_has_every_field_of_the_go_manifest_in_its_order() -> None:
    assert list(Manifest._fields) == GO_FIELDS


def test_empty_optional_fields_are_left_out_and_the_others_are_not() -> None:
    assert list(Manifest().to_dict()) == ALWAYS


def test_a_failed_run() -> None:
    spent = Spent(wall_ms=4_500, tokens_input=10, tokens_output=5, usd_micros=1_500)
    life = RunStatus(
        RunState.FAILED,
        failure=Failure.TIMEOUT,
        detail="the turn took too long",
        attempt=2,
        iteration=1,
        spent=spent,
    )
    ended = run(life, finished_at=AT + 9_000)
    sessions = {"claude": "s-1", "codex": "s-2", "qwen": "s-3"}
    tally = Tally(calls=3, tools=2, failed=1, steps=4)
    found = manifest.build_manifest(ended, "/srv/repository", sessions, tally=tally)
    assert found.to_dict() == {
        "id": 12,
        "repo_path": "/srv/repository",
        "repo_id": "0123456789abcdef",
        "prompt": "mend it",
        "state": "failed",
        "primary_agent": "claude",
        "review_mode": "none",
        "max_iterations": 20,
        "current_iteration": 1,
        "claude_session_id": "s-1",
        "codex_session_id": "s-2",
        "proof_command": "make test",
        "done_signal": "DONE",
        "created_at": "2023-11-14T22:13:20.000Z",
        "updated_at": "2023-11-14T22:13:20.500Z",
        "completed_at": "2023-11-14T22:13:29.000Z",
        "error": "timeout: the turn took too long",
        "metadata": {
            "run_id": "run-1",
            "lineage": "run-1",
            "task": "chores",
            "workspace": "/srv/repository",
            "jackline_state": "failed",
            "failure": "timeout",
            "detail": "the turn took too long",
            "proof": "unverified",
            "attempt": 2,
            "step": 0,
            "turn": 0,
            "sessions": {"claude": "s-1", "codex": "s-2", "qwen": "s-3"},
            "tokens_input": 10,
            "tokens_output": 5,
            "tokens_cached": 0,
            "cost_usd": 0.0015,
            "worked_seconds": 4.5,
            "chain_head": "ab",
            "completion": Tally(calls=3, tools=2, failed=1, steps=4)._asdict(),
        },
    }
    assert found.is_complete
    assert found.is_single_agent


def test_a_waiting_run_says_for_what_and_until_when() -> None:
    life = RunStatus(RunState.WAITING, WaitReason.LIMIT, wake_at=10**18, detail="resets 7pm", proof=Proof.REFUTED)
    found = manifest.build_manifest(run(life), "/r", {})
    assert found.error == ""
    assert not found.is_complete
    assert found.metadata["reason"] == "limit"
    assert found.metadata["wake_at"] == "9999-12-31T23:59:59.999Z"
    assert found.metadata["proof"] == "refuted"


def test_no_limit_of_iterations_is_zero() -> None:
    endless = SPEC._replace(limits=Limits(iterations=None))
    assert manifest.build_manifest(run(spec=endless), "/r", {}).max_iterations == 0


@pytest.mark.parametrize(
    ("state", "reason", "phase", "word"),
    [
        (RunState.QUEUED, None, None, "submitted"),
        (RunState.RUNNING, None, Phase.WORKING, "working"),
        (RunState.RUNNING, None, Phase.RECOVERING, "working"),
        (RunState.RUNNING, None, Phase.REVIEWING, "reviewing"),
        (RunState.WAITING, WaitReason.HUMAN, None, "input-required"),
        (RunState.WAITING, WaitReason.APPROVAL, None, "input-required"),
        (RunState.WAITING, WaitReason.IN_DOUBT, None, "input-required"),
        (RunState.WAITING, WaitReason.BUDGET, None, "input-required"),
        (RunState.WAITING, WaitReason.PAUSED, None, "input-required"),
        (RunState.WAITING, WaitReason.LIMIT, None, "submitted"),
        (RunState.WAITING, WaitReason.RETRY, None, "submitted"),
        (RunState.WAITING, WaitReason.DEPENDENCY, None, "submitted"),
        (RunState.SUCCEEDED, None, None, "completed"),
        (RunState.FAILED, None, None, "failed"),
        (RunState.CANCELLED, None, None, "cancelled"),
    ],
)
def test_states(state: RunState, reason: WaitReason | None, phase: Phase | None, word: str) -> None:
    assert manifest_state(state, reason, phase) == word


def test_what_was_written_is_read_back_the_same(tmp_path: Path) -> None:
    written = manifest.build_manifest(run(RunStatus(RunState.SUCCEEDED), finished_at=AT + 1), "/r/é", {"codex": "s"})
    (tmp_path / "manifest.json").write_text(written.to_json())
    assert load_manifest(str(tmp_path / "manifest.json")) == written
    assert load_manifest(str(tmp_path)) == written


def test_a_manifest_of_the_predecessor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(
        """{"id": 3, "repo_path": "/r", "state": "reviewing", "primary_agent": "codex",
        "review_mode": "claudex",
        "created_at": "2026-02-19T17:50:43.123456789+01:00", "updated_at": "2026-02-19T17:50:43Z",
        "completed_at": null, "new_field": [1]}"""
    )
    found = load_manifest(str(path))
    assert (found.id, found.state, found.review_mode, found.completed_at) == (3, "reviewing", "claudex", None)
    assert found.updated_at == datetime(2026, 2, 19, 17, 50, 43, tzinfo=UTC)
    assert found.created_at.microsecond == 123456
    assert found.prompt == ""
    assert not found.is_single_agent
    assert not found.is_complete


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "Expecting value"),
        (b'{"id": 3', "Expecting"),
        (b"[]", "it is not a JSON object"),
        (b'{"id": "3"}', "'id' is not a whole number"),
        (b'{"id": true}', "'id' is not a whole number"),
        (b'{"prompt": 3}', "'prompt' is not a text"),
        (b'{"created_at": "yesterday"}', "'created_at' is not an RFC 3339 time"),
        (b'{"created_at": "2026-02-19T17:50:43"}', "'created_at' is not an RFC 3339 time"),
        (b'{"metadata": []}', "'metadata' is not an object"),
        (b"\xff\xfe\x00", "decode"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path: Path, text: bytes, why: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(text)
    with pytest.raises(UsageError) as caught:
        load_manifest(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path} is not a manifest (")
    assert why in message
    assert "\n" not in message


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_manifest(str(tmp_path / "manifest.json"))


def test_half_a_character_in_a_prompt_still_gives_a_file() -> None:
    broken = SPEC._replace(prompt="a\ud800")
    text = manifest.build_manifest(run(spec=broken), "/r", {}).to_json()
    assert json.loads(text.encode())["prompt"] == "a\ud800"
