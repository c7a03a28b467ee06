"""The files of a case under `.agents/runs`, as the predecessor laid them out. They are written and never believed.

What was only added since the last time is appended, so that an entry costs the same however many there are; a file
that somebody altered or removed is written whole. `.built` says how far the files stand and what they looked like.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jackline.domain.case import CaseStatus, EntryKind, place_of, stream_of
from jackline.files import FILE_MODE, make_private_folder, remove_file, report_path, write_file, write_pieces
from jackline.named import NamedTuple, stored_as, stored_dict
from jackline.views import case_lines
from jackline.views.coalesce import once

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jackline.domain.case import Case, Entry
    from jackline.store.contract import Store

RUNS = os.path.join(".agents", "runs")
ACTIVE, IGNORE = "ACTIVE", ".gitignore"
LISTS = {
    EntryKind.HYPOTHESIS: "hypotheses.jsonl",
    EntryKind.EVIDENCE: "evidence.jsonl",
    EntryKind.COMMAND: "commands.jsonl",
    EntryKind.LEARNING: "learning.jsonl",
}
PROBLEM, CLOSEOUT, CLOSEOUT_TEXT = "problem.json", "closeout.json", "closeout.md"
BUILT, LOCK = ".built", ".lock"
NAMES = (*LISTS.values(), PROBLEM, CLOSEOUT, CLOSEOUT_TEXT, BUILT, LOCK, f"{LOCK}.next")
RUNS_NAMES = (ACTIVE, IGNORE, LOCK, f"{LOCK}.next")
_LONGEST_ACTIVE = 4096
_PAGE = 1000
_IGNORED = b"*\n"


@stored_as("seq lines marks")
class Standing(NamedTuple):
    """How far the files stand: the last event, how many lines of each kind, and what each file looks like."""

    seq: int = 0
    lines: Mapping[str, int] = {}
    marks: Mapping[str, list[int]] = {}


def bring_up_to_date(store: Store, case_id: str, root: str, user_name: str, *, anew: bool = False) -> None:
    """Make the files in the repository at `root` say what the store says; `anew` believes nothing that is there."""
    runs = os.path.join(root, RUNS)
    folder = os.path.join(runs, case_id)
    _make(root, folder)
    once(os.path.join(folder, LOCK), lambda: _build(store, case_id, folder, anew=anew))
    if anew or _read(os.path.join(runs, ACTIVE)) != _active(store, case_id, user_name):
        once(os.path.join(runs, LOCK), lambda: _write_active(store, case_id, user_name, runs))


def _build(store: Store, case_id: str, folder: str, *, anew: bool) -> None:
    case = store.case(case_id)  # before everything else: what is written later is for the next builder
    if case is not None:
        _Builder(store, case, folder).build(anew=anew)


class _Builder:
    """One look at the store, and what has to be written after it."""

    def __init__(self, store: Store, case: Case, folder: str) -> None:
        self._store, self._case, self._folder = store, case, folder

    def build(self, *, anew: bool) -> None:
        known = Standing() if anew else _standing(self._path(BUILT))
        if known.seq > self._case.event_seq:
            known = Standing()
        changed = self._changed_since(known.seq)
        for kind, name in LISTS.items():
            self._bring_list(kind, name, known, whole=str(kind) in changed)
        if self._is_other(PROBLEM, known):
            write_file(self._path(PROBLEM), _object(case_lines.problem_values(self._case)))
        self._bring_closeout(known, whole="closeout" in changed)
        self._keep(known)

    def _changed_since(self, seq: int) -> set[str]:
        """The kinds of which more happened than that entries were added."""
        changed: set[str] = set()
        while seq < self._case.event_seq:
            events = self._store.events(stream_of(self._case.id), seq, _PAGE)
            if not events:  # they were archived
                return {*(str(kind) for kind in EntryKind), "closeout"}
            seq = events[-1].seq
            changed.update(_touched(event.kind) for event in events if event.seq <= self._case.event_seq)
        return changed

    def _bring_list(self, kind: EntryKind, name: str, known: Standing, *, whole: bool) -> None:
        path, count = self._path(name), self._case.counts[str(kind)]
        written = known.lines.get(name, 0)
        if whole or written > count or self._is_other(name, known):
            write_pieces(path, _lines(self._entries(kind, 0, count)))
        elif written < count:
            _append(path, b"".join(_lines(self._entries(kind, written, count))))

    def _entries(self, kind: EntryKind, after: int, upto: int) -> Iterable[Entry]:
        return (one for one in self._store.entries(self._case.id, kind, after) if one.number <= upto)

    def _bring_closeout(self, known: Standing, *, whole: bool) -> None:
        if self._case.status is CaseStatus.OPEN:
            for name in (CLOSEOUT, CLOSEOUT_TEXT):
                remove_file(self._path(name))
            return
        if whole or self._is_other(CLOSEOUT, known) or self._is_other(CLOSEOUT_TEXT, known):
            write_file(self._path(CLOSEOUT), _object(case_lines.closeout_values(self._case)))
            text = case_lines.closeout_markdown(self._case)
            write_file(self._path(CLOSEOUT_TEXT), text.encode("utf-8", "replace"))

    def _is_other(self, name: str, known: Standing) -> bool:
        """Whether somebody else wrote the file since, or nobody did."""
        mark = _mark(self._path(name))
        return mark is None or mark != known.marks.get(name)

    def _keep(self, known: Standing) -> None:
        names = (*LISTS.values(), PROBLEM, CLOSEOUT, CLOSEOUT_TEXT)
        marks = {name: mark for name in names if (mark := _mark(self._path(name))) is not None}
        lines = {name: self._case.counts[str(kind)] for kind, name in LISTS.items()}
        now = Standing(self._case.event_seq, lines, marks)
        if now != known:
            _note(self._path(BUILT), json.dumps(stored_dict(now)).encode())

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _touched(event: str) -> str:
    """What an event changed besides adding to it."""
    _, _, rest = event.partition(".")
    kind, _, done = rest.partition(".")
    if kind in {"closed", "reopened"}:
        return "closeout"
    return kind if done and done != "added" else ""


def _active(store: Store, case_id: str, user_name: str) -> str:
    """The case that is active in the repository of this one: the user's; else, of a run's case, the run's."""
    case = store.case(case_id)
    if case is None:
        return ""
    places = [place_of(case.repository, user_name, None)]
    if case.run_id is not None:
        places.append(place_of(case.repository, user_name, case.run_id))
    found = (store.active_case(place) for place in places)
    return next((one.id for one in found if one is not None), "")


def _write_active(store: Store, case_id: str, user_name: str, runs: str) -> None:
    path, wanted = os.path.join(runs, ACTIVE), _active(store, case_id, user_name)
    if wanted:
        write_file(path, f"{wanted}\n".encode())
    else:
        remove_file(path)


def _make(root: str, folder: str) -> None:
    """The folders; `.agents` has files of people, and gets the mode that they want."""
    above = os.path.join(root, os.path.dirname(RUNS))
    with report_path(above), suppress(FileExistsError):
        os.mkdir(above)
    make_private_folder(folder)
    ignore = os.path.join(os.path.dirname(folder), IGNORE)
    if not os.path.lexists(ignore):
        write_file(ignore, _IGNORED)


def _standing(path: str) -> Standing:
    """What `.built` says; whatever is wrong with it, everything is written again."""
    try:
        told = json.loads(_read(path, 1 << 20) or "{}")
        lines = {str(name): int(count) for name, count in told["lines"].items()}
        known = Standing(int(told["seq"]), lines, dict(told["marks"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):  # also of an infinity
        return Standing()
    return known if min(known.seq, *lines.values(), 0) == 0 else Standing()


def _mark(path: str) -> list[int] | None:
    """What changes with every write; None if there is no such file."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return [seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]


def _read(path: str, longest: int = _LONGEST_ACTIVE) -> str:
    """What stands in a small file; nothing if it cannot be read. Never through a link, never waiting for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, longest).decode("utf-8", "replace").strip()
    except OSError:  # a folder
        return ""
    finally:
        os.close(descriptor)


def _append(path: str, data: bytes) -> None:
    """Not synced: what is lost with the power makes the file another one, and it is written whole."""
    with report_path(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)


def _note(path: str, data: bytes) -> None:
    """In place, because a rename makes the file system write at once; half of it is no JSON, and all is built again."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no pipe is waited for
    with report_path(path):
        descriptor = os.open(path, flags, FILE_MODE)
        try:
            os.ftruncate(descriptor, os.write(descriptor, data))
        finally:
            os.close(descriptor)


def _lines(entries: Iterable[Entry]) -> Iterable[bytes]:
    return (_object(case_lines.entry_values(one), indent=None) for one in entries)


def _object(values: Mapping[str, Any], indent: int | None = 2) -> bytes:
    """One JSON object and a newline; half a character, which UTF-8 has not, is escaped."""
    text = json.dumps(values, ensure_ascii=False, indent=indent)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(values, indent=indent).encode() + b"\n"
