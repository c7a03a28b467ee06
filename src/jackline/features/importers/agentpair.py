"""agentpair's `runs/REPOSITORY/N`: manifest, transcript and bridge become a run with its turns. It changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.domain.limits import Spent
from jackline.domain.states import Failure, Role
from jackline.features.importers import imported_runs, source_files
from jackline.features.importers.clean_values import (
    SizeBudget,
    clean_integer,
    clean_json,
    clean_name,
    clean_text,
    parse_moment,
)
from jackline.features.importers.import_records import AGENTPAIR, FoundRun, Source, SourceFile, Troubles
from jackline.features.importers.imported_records import ImportedEvent, ImportedRun
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.records import Turn
    from jackline.domain.spec import Spec

MANIFEST, TRANSCRIPT, BRIDGE = "manifest.json", "transcript.jsonl", "bridge.jsonl"
_MOST_ENTRIES = 5_000  # that become events; the file is kept whole
_MOST_TURNS = 1_000
_MOST_RESULT = 65_536  # characters of a turn's result; the transcript has them all
_MS = 1_000_000  # nanoseconds: Go's durations
_REDUNDANT = frozenset({"start", "iteration", "end"})  # entries that the run's own events repeat


def read(source: Source, troubles: Troubles) -> Iterator[FoundRun]:
    """Read the run of the folder; without a manifest it cannot be identified."""
    path = os.path.join(source.path, MANIFEST)
    manifest = source_files.read_optional_object(path, troubles)
    if manifest is None:
        if not os.path.lexists(path):
            troubles.add(path, "", "it is missing: the run cannot be identified")
        return
    transcript = _Transcript(_ManifestValues.of(manifest, source.path))
    transcript.read_transcript(os.path.join(source.path, TRANSCRIPT), troubles)
    transcript.read_bridge(os.path.join(source.path, BRIDGE), troubles)
    if transcript.left_out:
        whole = len(transcript.events) + transcript.left_out
        reason = f"only {len(transcript.events)} of its {whole} events were taken: its files are kept whole"
        troubles.note(source.path, "", reason)
    yield _build_found(manifest, transcript, source.path)


class _ManifestValues(NamedTuple):
    """Values of the manifest that the other files need."""

    agent: str
    created: int

    @classmethod
    def of(cls, manifest: Mapping[str, Any], folder: str) -> _ManifestValues:
        created = parse_moment(manifest.get("created_at")) or parse_moment(manifest.get("updated_at"))
        return cls(
            clean_name(manifest.get("primary_agent"), "claude"),
            created or source_files.get_modified(folder),
        )


class _Transcript:
    """Collects turns and events from the transcript and the bridge."""

    def __init__(self, known: _ManifestValues) -> None:
        self.known = known
        self.turns: list[Turn] = []
        self.events: list[ImportedEvent] = []
        self.entries = self.left_out = 0
        self.last = known.created
        self._reviews = False
        self._room = SizeBudget()

    def read_transcript(self, path: str, troubles: Troubles) -> None:
        """Read the transcript."""
        for _, entry in source_files.read_lines(path, troubles):
            self.entries += 1
            self.last = parse_moment(entry.get("timestamp")) or self.last
            kind = entry.get("type")
            if kind == "execute" and len(self.turns) < _MOST_TURNS:
                self._begin_turn(entry)
            elif kind == "result" and len(self.turns) < _MOST_TURNS:
                self._end_turn(entry)
            elif kind not in _REDUNDANT:
                self._reviews = entry.get("state") == "reviewing" if kind == "state" else self._reviews
                self._add_entry(entry)

    def read_bridge(self, path: str, troubles: Troubles) -> None:
        """Read the messages between the two agents."""
        last = self.known.created
        for _, message in source_files.read_lines(path, troubles):
            self.entries += 1
            last = parse_moment(message.get("timestamp")) or last
            named = ("id", "type", "from", "to", "signal", "iteration", "metadata")
            data = {name: clean_json(message[name]) for name in named if message.get(name)}
            data["text"] = clean_text(message.get("content"))
            self._add(
                ImportedEvent(
                    at=last,
                    kind="agent.bridge",
                    actor=clean_name(message.get("from"), imported_runs.AGENT),
                    data=data,
                )
            )

    def _begin_turn(self, entry: Mapping[str, Any]) -> None:
        agent = clean_name(entry.get("agent"), self.known.agent)
        role = Role.REVIEW if self._reviews or agent != self.known.agent else Role.WORK
        turn = imported_runs.build_turn(len(self.turns) + 1, agent, clean_text(entry.get("content")), self.last, role)
        self.turns.append(turn)
        for event in imported_runs.build_turn_events(turn, clean_integer(entry.get("iteration"), 1)):
            self._add(event)

    def _end_turn(self, entry: Mapping[str, Any]) -> None:
        if not self.turns or self.turns[-1].ended_at is not None:  # its beginning was lost
            self._begin_turn({**entry, "content": ""})
        turn = self.turns[-1]
        took = clean_integer(entry.get("duration")) // _MS
        began = min(turn.started_at, max(self.known.created, self.last - took)) if took else turn.started_at
        said = clean_text(entry.get("content"), _MOST_RESULT)
        spent = Spent(wall_ms=took)
        self.turns[-1] = turn._replace(started_at=began, ended_at=self.last, last_message=said, spent=spent)

    def _add_entry(self, entry: Mapping[str, Any]) -> None:
        agent = clean_name(entry.get("agent"), self.known.agent)
        said = clean_text(entry.get("content")) or clean_text(entry.get("error"))
        named = ("type", "state", "signal", "iteration", "metadata", "agent")
        data = {name: clean_json(entry[name]) for name in named if entry.get(name)}
        kind = {"message": "agent.message", "error": "agent.error"}.get(str(entry.get("type")), "import.entry")
        self._add(ImportedEvent(at=self.last, kind=kind, actor=agent, data={**data, "text": said} if said else data))

    def _add(self, event: ImportedEvent) -> None:
        if len(self.events) < _MOST_ENTRIES and self._room.reserve(event.data):
            self.events.append(event)
        else:
            self.left_out += 1


class _Span(NamedTuple):
    """The start and the end of the work."""

    started: int
    finished: int

    @classmethod
    def of(cls, manifest: Mapping[str, Any], transcript: _Transcript, known: _ManifestValues) -> _Span:
        last = max((transcript.last, known.created, *(event.at for event in transcript.events)))
        finished = parse_moment(manifest.get("completed_at")) or parse_moment(manifest.get("updated_at")) or last
        started = min((turn.started_at for turn in transcript.turns), default=known.created)
        return cls(started, max(finished, last))


class _Origin(NamedTuple):
    """The identity of the run in its source."""

    folder: str
    repository: str
    name: str  # its repository's digits, and its number
    since: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any], folder: str) -> _Origin:
        repository = clean_text(manifest.get("repo_path"), 4096) or os.path.dirname(folder)
        repo_id = clean_name(manifest.get("repo_id"), os.path.basename(os.path.dirname(folder)))
        name = f"{repo_id}/{clean_integer(manifest.get('id'))}"
        return cls(folder, repository, name, clean_name(manifest.get("created_at"), ""))


def _build_found(manifest: Mapping[str, Any], transcript: _Transcript, folder: str) -> FoundRun:
    origin = _Origin.of(manifest, folder)
    run_id, other_id = imported_runs.build_ids(AGENTPAIR, origin.name, origin.since)
    kept = [name for name in (MANIFEST, TRANSCRIPT, BRIDGE) if source_files.get_size(os.path.join(folder, name))]
    raw = tuple(SourceFile(source=os.path.join(folder, name), name=name) for name in kept)
    said = tuple(
        (imported_runs.build_turn_file_name(turn), f"{turn.last_message}\n")
        for turn in transcript.turns
        if turn.last_message
    )
    return FoundRun(run=_build_run(run_id, origin, manifest, transcript), other_id=other_id, files=raw, said=said)


def _build_run(run_id: str, origin: _Origin, manifest: Mapping[str, Any], transcript: _Transcript) -> ImportedRun:
    known, turns = transcript.known, tuple(transcript.turns)
    span, ending = _Span.of(manifest, transcript, known), _find_ending(manifest)
    iteration = clean_integer(manifest.get("current_iteration"))
    spent = Spent(wall_ms=max(0, span.finished - span.started), iterations=iteration)
    return ImportedRun(
        id=run_id,
        origin=f"{AGENTPAIR} {origin.name}",
        since=origin.since,
        repository=os.path.abspath(origin.repository),
        spec=imported_runs.mark_unknown_cost(_build_spec(manifest, known, origin), turns),
        status=imported_runs.build_status(ending, turns, known.agent, spent)._replace(iteration=iteration),
        created_at=known.created,
        updated_at=span.finished,
        finished_at=span.finished,
        started_at=span.started,
        events=tuple(transcript.events),
        turns=turns,
        attempts=(imported_runs.build_attempt(1, span.started, span.finished, str(ending.state)),),
        about={
            "from": AGENTPAIR,
            "original": origin.name,
            "path": origin.folder,
            "stood_at": clean_name(manifest.get("state"), "-"),
            "entries": transcript.entries,
            "kept": len(transcript.events),
        },
    )


def _build_spec(manifest: Mapping[str, Any], known: _ManifestValues, origin: _Origin) -> Spec:
    workspace = clean_text(manifest.get("worktree_path"), 4096) or origin.repository
    named = ("review_mode", "claude_session_id", "codex_session_id", "done_signal", "tmux_session")
    options = {"original": origin.name, "path": origin.folder}
    options |= {name: clean_name(manifest.get(name), "") for name in named}
    prompt = clean_text(manifest.get("prompt"), source_files.MOST_LINE)
    spec = imported_runs.build_spec(AGENTPAIR, prompt, workspace, known.agent, options)
    iterations = clean_integer(manifest.get("max_iterations")) or None
    return spec._replace(
        proof=clean_text(manifest.get("proof_command")), limits=spec.limits._replace(iterations=iterations)
    )


def _find_ending(manifest: Mapping[str, Any]) -> imported_runs.RunEnding:
    error = clean_text(manifest.get("error"))
    match manifest.get("state"):
        case "completed":
            return imported_runs.SUCCEEDED
        case "cancelled":
            return imported_runs.CANCELLED._replace(detail=error)
        case "failed":
            return imported_runs.build_failure(Failure.AGENT_ERROR, error)
        case state:
            return imported_runs.build_unfinished(clean_name(state, ""))
