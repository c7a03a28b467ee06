"""Writes the files of a case under `.agents/runs`, in the layout of the predecessor. It never trusts their content.

New entries are appended, so that an entry costs the same in a long case; an edited or removed file is written again
completely. `.built` records how far the files are and their stat values.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.app import identity, paths
from jackline.errors import CaseRefused, JacklineError, NoCase, UsageError
from jackline.exports.record_json import encode_json
from jackline.features.cases import case_values
from jackline.features.cases.case_model import CaseStatus, EntryKind, build_active_key, get_case_stream
from jackline.features.cases.case_queries import Cases
from jackline.files import FILE_MODE, make_private_folder, remove_file, report_path, write_file, write_pieces
from jackline.named import NamedTuple, stored_as, stored_dict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.store.store import Store


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
_HINT = "the case itself is safe; `jackline case files` writes them again"


@stored_as("seq lines marks")
class BuiltState(NamedTuple):
    """How far the files are: the last event, the lines of each kind, and the stat values of each file."""

    seq: int = 0
    lines: Mapping[str, int] = {}
    marks: Mapping[str, list[int]] = {}


def update_case(home: Home, case_id: str) -> None:
    """Update the files of a case and the dashboard after a change; a failure is only a warning."""
    refresh_files(home, case_id)
    home.notify_change()


def refresh_files(home: Home, case_id: str) -> None:
    """Write what changed or was edited or removed; a failure is only a warning."""
    try:
        _write(home, case_id, rewrite=False)
    except JacklineError as error:
        warning = f"the files of the case are not up to date: {_describe_error(error)}; {_HINT}"
        if warning not in home.warnings:  # some commands write more than once
            home.warnings.append(warning)


def rewrite_files(home: Home, case_id: str) -> str:
    """Write every file again; returns the folder."""
    try:
        return _write(home, case_id, rewrite=True)
    except JacklineError as error:
        raise CaseRefused(f"{_describe_error(error)}: fix that and try again; the case itself is safe") from None


def _describe_error(error: JacklineError) -> str:
    """The error without its hint, which is about runs."""
    why = error.facts.get("why")
    return f"{error.detail} cannot be written ({why})" if why else str(error)


def _write(home: Home, case_id: str, *, rewrite: bool) -> str:
    store = home.store()
    case = Cases(store).get(case_id)
    if case is None:
        raise NoCase(case_id, what="case", hint="jackline case list")
    folder = get_case_folder(case)
    _refuse_unsafe(case, folder)
    update_files(store, case.id, case.path, identity.find_user_name(), rewrite=rewrite)
    return folder


def get_case_folder(case: Case) -> str:
    """The folder of its files."""
    return os.path.join(case.path, RUNS, case.id)


def _refuse_unsafe(case: Case, folder: str) -> None:
    """A case can come from another machine, and a repository from a stranger."""
    if os.path.basename(folder) != case.id or case.id.startswith(".") or not case.id:
        raise UsageError(f"'{case.id}' cannot be the name of a folder")
    if not os.path.isdir(case.path):
        raise UsageError(f"{case.path} does not exist")

    runs = os.path.dirname(folder)
    for path in (*(os.path.join(folder, name) for name in NAMES), *(os.path.join(runs, name) for name in RUNS_NAMES)):
        paths.refuse_links(case.path, path)


def update_files(store: Store, case_id: str, root: str, user_name: str, *, rewrite: bool = False) -> None:
    """Update the files in the repository at `root` from the store; `rewrite` writes all of them."""
    from jackline.exports.rebuild import rebuild_once

    runs = os.path.join(root, RUNS)
    folder = os.path.join(runs, case_id)
    _make_folders(root, folder)

    def build() -> None:
        case = Cases(store).get(case_id)  # first: later changes are left to the next build
        if case is not None:
            _Builder(store, case, folder).build(rewrite=rewrite)

    rebuild_once(os.path.join(folder, LOCK), build)
    if rewrite or _read(os.path.join(runs, ACTIVE)) != _find_active(store, case_id, user_name):
        rebuild_once(os.path.join(runs, LOCK), lambda: _write_active(store, case_id, user_name, runs))


class _Builder:
    """Compares the store with the files once, and writes the differences."""

    def __init__(self, store: Store, case: Case, folder: str) -> None:
        self._store, self._case, self._folder = store, case, folder

    def build(self, *, rewrite: bool) -> None:
        known = BuiltState() if rewrite else _read_state(self._path(BUILT))
        if known.seq > self._case.event_seq:
            known = BuiltState()
        changed = self._find_changed(known.seq)
        for kind, name in LISTS.items():
            self._update_list(kind, name, known, whole=str(kind) in changed)
        if self._is_changed(PROBLEM, known):
            write_file(self._path(PROBLEM), encode_json(case_values.build_problem_values(self._case), indent=2))
        self._update_closeout(known, whole="closeout" in changed)
        self._save_state(known)

    def _find_changed(self, seq: int) -> set[str]:
        """The kinds with changes other than added entries."""
        changed: set[str] = set()
        while seq < self._case.event_seq:
            events = self._store.records.list_events(get_case_stream(self._case.id), seq, _PAGE)
            if not events:  # they were archived
                return {*(str(kind) for kind in EntryKind), "closeout"}
            seq = events[-1].seq
            for event in events:
                _, kind, done = f"{event.kind}..".split(".")[:3]
                if event.seq <= self._case.event_seq and kind in {"closed", "reopened"}:
                    changed.add("closeout")
                elif event.seq <= self._case.event_seq and done not in {"", "added"}:
                    changed.add(kind)
        return changed

    def _update_list(self, kind: EntryKind, name: str, known: BuiltState, *, whole: bool) -> None:
        path, count = self._path(name), self._case.counts[str(kind)]
        written = known.lines.get(name, 0)
        if whole or written > count or self._is_changed(name, known):
            write_pieces(path, _build_lines(self._list_entries(kind, 0, count)))
        elif written < count:
            _append(path, b"".join(_build_lines(self._list_entries(kind, written, count))))

    def _list_entries(self, kind: EntryKind, after: int, upto: int) -> Iterable[CaseEntry]:
        return (one for one in Cases(self._store).list_entries(self._case.id, kind, after) if one.number <= upto)

    def _update_closeout(self, known: BuiltState, *, whole: bool) -> None:
        if self._case.status is CaseStatus.OPEN:
            for name in (CLOSEOUT, CLOSEOUT_TEXT):
                remove_file(self._path(name))
            return
        if whole or self._is_changed(CLOSEOUT, known) or self._is_changed(CLOSEOUT_TEXT, known):
            write_file(self._path(CLOSEOUT), encode_json(case_values.build_closeout_values(self._case), indent=2))
            text = case_values.render_closeout(self._case)
            write_file(self._path(CLOSEOUT_TEXT), text.encode("utf-8", "replace"))

    def _is_changed(self, name: str, known: BuiltState) -> bool:
        """Whether the file is missing or was written by another program."""
        mark = _stat_file(self._path(name))
        return mark is None or mark != known.marks.get(name)

    def _save_state(self, known: BuiltState) -> None:
        names = (*LISTS.values(), PROBLEM, CLOSEOUT, CLOSEOUT_TEXT)
        marks = {name: mark for name in names if (mark := _stat_file(self._path(name))) is not None}
        lines = {name: self._case.counts[str(kind)] for kind, name in LISTS.items()}
        now = BuiltState(seq=self._case.event_seq, lines=lines, marks=marks)
        if now != known:
            _write_in_place(self._path(BUILT), json.dumps(stored_dict(now)).encode())

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _find_active(store: Store, case_id: str, user_name: str) -> str:
    """The active case in the repository of this case: the user's, else the one of its run."""
    case = Cases(store).get(case_id)
    if case is None:
        return ""
    places = [build_active_key(case.repository, user_name, None)]
    if case.run_id is not None:
        places.append(build_active_key(case.repository, user_name, case.run_id))
    found = (Cases(store).get_active(place) for place in places)
    return next((one.id for one in found if one is not None), "")


def _write_active(store: Store, case_id: str, user_name: str, runs: str) -> None:
    path, wanted = os.path.join(runs, ACTIVE), _find_active(store, case_id, user_name)
    if wanted:
        write_file(path, f"{wanted}\n".encode())
    else:
        remove_file(path)


def _make_folders(root: str, folder: str) -> None:
    """Make the folders; `.agents` holds files of people and gets the default mode."""
    above = os.path.join(root, os.path.dirname(RUNS))
    with report_path(above), suppress(FileExistsError):
        os.mkdir(above)
    make_private_folder(folder)
    ignore = os.path.join(os.path.dirname(folder), IGNORE)
    if not os.path.lexists(ignore):
        write_file(ignore, _IGNORED)


def _read_state(path: str) -> BuiltState:
    """The content of `.built`; if it is invalid, everything is written again."""
    try:
        state = json.loads(_read(path, 1 << 20) or "{}")
        lines = {str(name): int(count) for name, count in state["lines"].items()}
        known = BuiltState(seq=int(state["seq"]), lines=lines, marks=dict(state["marks"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):  # also of an infinity
        return BuiltState()
    return known if min(known.seq, *lines.values(), 0) == 0 else BuiltState()


def _stat_file(path: str) -> list[int] | None:
    """Stat values that change with every write; None if the file does not exist."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return [seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]


def _read(path: str, longest: int = _LONGEST_ACTIVE) -> str:
    """The text of a small file; empty if it cannot be read. It follows no link and waits for no pipe."""
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
    """Append without a sync: after a power loss the stat values differ, and the file is written again."""
    with report_path(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)


def _write_in_place(path: str, data: bytes) -> None:
    """Write in place, because a rename forces a write to disk; a torn file is not JSON and is built again."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no pipe is waited for
    with report_path(path):
        descriptor = os.open(path, flags, FILE_MODE)
        try:
            os.ftruncate(descriptor, os.write(descriptor, data))
        finally:
            os.close(descriptor)


def _build_lines(entries: Iterable[CaseEntry]) -> Iterable[bytes]:
    return (encode_json(case_values.build_entry_values(one)) for one in entries)
