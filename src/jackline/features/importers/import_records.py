"""Records of an import: kinds of sources, found data, and problems. It reads nothing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

from jackline.domain.events import canonical
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.importers.imported_records import ImportedEvent, ImportedRun
    from jackline.features.work.work_item import WorkItem


AGENT_STATE, NOTEBOOK, AGENTPAIR = "agent-state", "notebook", "agentpair"
AGENT_RUNNER, UNIVERSAL_AGENT = "agent-runner", "universal-agent"
KINDS = {
    AGENT_STATE: "state.sqlite with work_items and events",
    NOTEBOOK: ".agents/runs/ID with problem.json",
    AGENTPAIR: "runs/REPOSITORY/N with manifest.json",
    AGENT_RUNNER: "logs/TASK/AGENT/RUN with metadata.json",
    UNIVERSAL_AGENT: "runtime_state.db with runs and tool_calls",
}
_ID_DIGITS = 16
_LONGEST_REASON = 300
_TIMES = frozenset(
    {"at", "created_at", "updated_at", "started_at", "ended_at", "finished_at", "closed_at", "prepared_at"}
)
_MOST_REPORTED = 20  # problems reported per file

T = TypeVar("T")


class Source(NamedTuple):
    """A file or folder of a known kind."""

    kind: str
    path: str


class Trouble(NamedTuple):
    """A problem with a source."""

    path: str
    place: str  # `line 3`, `row 7 of events`; empty: all of it
    reason: str
    is_note: bool = False  # it was read, but changed


class SourceFile(NamedTuple):
    """A file to keep, with secrets redacted: below `imported`, and as the output of a turn if one is named."""

    source: str
    name: str
    turn: str = ""


class FoundRun(NamedTuple):
    """A run, its output, and a second id in case the first is in use."""

    run: ImportedRun
    other_id: str
    files: tuple[SourceFile, ...] = ()
    said: tuple[tuple[str, str], ...] = ()  # a turn's file, and its text


class FoundItem(NamedTuple):
    """A work item and its events."""

    item: WorkItem
    events: tuple[ImportedEvent, ...] = ()


class FoundCase(NamedTuple):
    """A case and its entries, the second id, and the files that it was read from."""

    case: Case
    entries: tuple[CaseEntry, ...]
    other_id: str
    files: tuple[SourceFile, ...] = ()


class FoundEvents(NamedTuple):
    """Events without an owner, with their numbers in the source, in ascending order."""

    stream: str
    events: tuple[tuple[int, ImportedEvent], ...]


Found = FoundRun | FoundItem | FoundCase | FoundEvents


class Troubles:
    """Collects problems: a few per file, and their number."""

    def __init__(self) -> None:
        self.count = 0
        self._reported: list[Trouble] = []
        self._counts: dict[str, int] = {}

    def add(self, path: str, place: str, reason: object) -> None:
        """Report unreadable data."""
        self._report(Trouble(path=path, place=place, reason=_to_line(reason)))

    def note(self, path: str, place: str, reason: object) -> None:
        """Report data that was changed by the import."""
        self._report(Trouble(path=path, place=place, reason=_to_line(reason), is_note=True))

    def _report(self, trouble: Trouble) -> None:
        self.count += 1
        count = self._counts[trouble.path] = self._counts.get(trouble.path, 0) + 1
        if count <= _MOST_REPORTED:
            self._reported.append(trouble)

    def take(self) -> list[Trouble]:
        """What was added since the last time."""
        more = [
            Trouble(path=path, place="", reason=f"and {count - _MOST_REPORTED} more places")
            for path, count in self._counts.items()
            if count > _MOST_REPORTED
        ]
        reported, self._reported, self._counts = [*self._reported, *more], [], {}
        return reported


def _to_line(reason: object) -> str:
    return " ".join(str(reason).split())[:_LONGEST_REASON]


def build_digest(*identity: str) -> str:
    """A short digest of what identifies a record in its source: the same for every import."""
    return hashlib.sha256(canonical(list(identity)).encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def limit_times(found: T, now: int) -> T:
    """The record without times later than now; the same object if nothing changes."""
    made = _limit_values(found, now)
    return found if made == found else made


def _limit_values(value: Any, now: int) -> Any:  # noqa: ANN401 - whatever records are made of
    if hasattr(value, "_fields"):
        return value._replace(
            **{
                name: min(one, now) if name in _TIMES and isinstance(one, int) else _limit_values(one, now)
                for name, one in value._asdict().items()
            }
        )
    return tuple(_limit_values(one, now) for one in value) if isinstance(value, tuple) else value
