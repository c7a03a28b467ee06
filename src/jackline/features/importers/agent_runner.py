"""agent_runner's `logs/TASK/AGENT/RUN`: a run of one turn, with its output. Read-only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.domain.changes import Changes
from jackline.domain.limits import Spent
from jackline.domain.states import Failure, RunState
from jackline.features.importers import imported_runs, source_files
from jackline.features.importers.clean_values import (
    clean_integer,
    clean_name,
    clean_number,
    clean_text,
    parse_moment,
    parse_stamp,
)
from jackline.features.importers.import_records import AGENT_RUNNER, FoundRun, Source, SourceFile, Troubles
from jackline.features.importers.imported_records import ImportedEvent, ImportedRun
from jackline.named import NamedTuple
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.records import Turn

METADATA, OUTPUT, TRANSCRIPT, ERRORS = "metadata.json", "stdout.log", "transcript.log", "stderr.log"
_KEPT = (METADATA, "summary.txt", TRANSCRIPT, OUTPUT, ERRORS, "runner.log", "last_message.txt")
_EXITS = {10: Failure.LIMIT, 11: Failure.TIMEOUT, 12: Failure.CONNECTIVITY, 13: Failure.UNAVAILABLE}
_NO_COMMIT = "no git commits"
_MOST_COMMITS = 1_000


class _RunNames(NamedTuple):
    """Values from the path of a run."""

    task: str
    agent: str
    run: str
    path: str  # of the repository around the logs

    @classmethod
    def of(cls, folder: str, metadata: Mapping[str, Any]) -> _RunNames:
        parts = folder.rstrip(os.sep).split(os.sep)
        task, agent, run = ["", "", *parts][-3:]
        root = os.sep.join(parts[:-4]) if parts[-4:-3] == ["logs"] else os.path.dirname(folder)
        return cls(
            clean_name(metadata.get("task"), task or "adhoc"),
            clean_name(metadata.get("agent"), agent or "command"),
            clean_name(metadata.get("run_id"), run),
            find_repository(root or os.sep),
        )


def read(source: Source, troubles: Troubles) -> Iterator[FoundRun]:
    """Read the run of the folder; a run without metadata was interrupted and is imported from its files."""
    path = os.path.join(source.path, METADATA)
    metadata = source_files.read_optional_object(path, troubles)
    if metadata is None and not os.path.lexists(path):
        troubles.note(path, "", "it is missing: imported from the other files")
    yield _build_run(source.path, metadata or {}, has_metadata=metadata is not None)


def _build_run(folder: str, metadata: Mapping[str, Any], *, has_metadata: bool) -> FoundRun:
    names = _RunNames.of(folder, metadata)
    # Runs of two repositories in the same second have the same name, so the path is part of the origin.
    origin = f"{names.path} {names.task}/{names.agent}/{names.run}"
    since = clean_name(metadata.get("start_time"), "")
    run_id, other_id = imported_runs.build_ids(AGENT_RUNNER, origin, since)
    started, ended = _find_span(folder, names, metadata)
    ending = _find_ending(folder, metadata if has_metadata else None)
    turn = _build_turn(folder, names, metadata, ending, (started, ended))
    tokens = clean_integer(metadata.get("token_count"))
    spent = Spent(wall_ms=ended - started, iterations=1, steps=1, tokens_output=tokens)
    original = f"{names.task}/{names.agent}/{names.run}"
    options = {"original": original, "path": folder, "dry_run": "true" if metadata.get("dry_run") is True else ""}
    spec = imported_runs.build_spec(AGENT_RUNNER, f"task {names.task}", names.path, names.agent, options)
    run = ImportedRun(
        id=run_id,
        origin=f"{AGENT_RUNNER} {origin}",
        since=since,
        repository=names.path,
        spec=spec._replace(task=names.task, requires_commit=metadata.get("requires_commit") is True),
        status=imported_runs.build_status(ending, (turn,), names.agent, spent)._replace(iteration=1),
        created_at=started,
        updated_at=ended,
        finished_at=ended,
        started_at=started,
        events=(*imported_runs.build_turn_events(turn), *_build_events(turn, ending)),
        turns=(turn,),
        attempts=(imported_runs.build_attempt(1, started, ended, str(ending.state)),),
        changes=_build_changes(metadata),
        about={"from": AGENT_RUNNER, "original": original, "path": folder, "has_metadata": has_metadata},
    )
    return FoundRun(run=run, other_id=other_id, files=tuple(_list_kept_files(folder, turn)))


def _find_span(folder: str, names: _RunNames, metadata: Mapping[str, Any]) -> tuple[int, int]:
    """Its start and end; if they are not recorded, from its name and its files."""
    last = max(
        (source_files.get_modified(path) for path in _list_files(folder) if source_files.get_size(path)), default=0
    )
    started = parse_moment(metadata.get("start_time")) or parse_stamp(names.run) or last
    elapsed = round(clean_number(metadata.get("elapsed_seconds")) * 1000)
    # Copied files are newer than the run: their times are used only if nothing else is known.
    ended = parse_moment(metadata.get("end_time")) or (started + elapsed)
    return started, max(started, ended)


def _list_files(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in _KEPT]


def _build_turn(
    folder: str, names: _RunNames, metadata: Mapping[str, Any], ending: imported_runs.RunEnding, span: tuple[int, int]
) -> Turn:
    started, ended = span
    code = metadata.get("exit_code")
    turn = imported_runs.build_turn(1, names.agent, f"task {names.task}", started)
    return turn._replace(
        ended_at=ended,
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31 else None,
        failure=None if ending.failure is None else str(ending.failure),
        detail=ending.detail,
        last_message=clean_text(metadata.get("last_message"), source_files.MOST_LINE),
        stdout_bytes=source_files.get_size(_find_output(folder)),
        stderr_bytes=source_files.get_size(os.path.join(folder, ERRORS)),
        spent=Spent(wall_ms=ended - started, tokens_output=clean_integer(metadata.get("token_count"))),
    )


def _find_output(folder: str) -> str:
    """The file with the agent's output, else the transcript."""
    path = os.path.join(folder, OUTPUT)
    return path if source_files.get_size(path) else os.path.join(folder, TRANSCRIPT)


def _list_kept_files(folder: str, turn: Turn) -> Iterator[SourceFile]:
    as_turn = {
        _find_output(folder): imported_runs.build_turn_file_name(turn),
        os.path.join(folder, ERRORS): imported_runs.build_turn_file_name(turn, "stderr"),
    }
    for path in _list_files(folder):
        if source_files.get_size(path):
            yield SourceFile(source=path, name=os.path.basename(path), turn=as_turn.get(path, ""))


def _build_events(turn: Turn, ending: imported_runs.RunEnding) -> Iterator[ImportedEvent]:
    at = turn.ended_at or turn.started_at
    if turn.last_message:
        yield ImportedEvent(
            at=at,
            kind="agent.message",
            actor=imported_runs.AGENT,
            data={"text": clean_text(turn.last_message)},
        )
    if ending.state is RunState.FAILED:
        yield ImportedEvent(
            at=at, kind="agent.error", actor=imported_runs.AGENT, data={"text": ending.detail or str(ending.failure)}
        )


def _find_ending(folder: str, metadata: Mapping[str, Any] | None) -> imported_runs.RunEnding:
    """From the exit code or the recorded failure, never from the output."""
    if metadata is None:
        is_unreadable = os.path.lexists(os.path.join(folder, METADATA))
        return imported_runs.UNREADABLE_END if is_unreadable else imported_runs.CUT_OFF
    code, error = metadata.get("exit_code"), clean_text(metadata.get("error"))
    failure = imported_runs.parse_failure(clean_name(metadata.get("classified_error"), ""))
    if failure is None and code == 0:
        return imported_runs.SUCCEEDED
    if failure is None and _NO_COMMIT in error.lower():
        failure = Failure.NO_COMMIT
    if failure is None and isinstance(code, int):
        failure = _EXITS.get(code)
    return imported_runs.build_failure(failure or Failure.AGENT_ERROR, error)


def _build_changes(metadata: Mapping[str, Any]) -> Changes | None:
    listed = metadata.get("commits")
    commits = tuple(_format_commits(listed if isinstance(listed, list) else []))
    changed = metadata.get("files_changed")
    count = len(changed) if isinstance(changed, list) else clean_integer(changed)
    if not commits and not count:
        return None
    return Changes(
        commits=commits,
        files_changed=count,
        insertions=clean_integer(metadata.get("insertions")),
        deletions=clean_integer(metadata.get("deletions")),
    )


def _format_commits(commits: list[Any]) -> Iterator[str]:
    for one in commits[:_MOST_COMMITS]:
        if isinstance(one, dict):
            yield f"{clean_name(one.get('commit'), '-')} {clean_name(one.get('subject'), '', 200)}".rstrip()
        elif isinstance(one, str):
            yield clean_name(one, "-", 300)
