"""The trees of a run: what its workspace holds, where it began, and what a proof changed. It changes no repository.

Trees are kept in a folder of the run, as objects of git.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.engine.git import GitFailed
from jackline.engine.tree_files import find_repository, list_absent
from jackline.engine.tree_id import (
    FOLDER,
    TreeState,
    TreeUnreadable,
    bind_trees,
    check_place,
    compute_tree,
    find_changes,
    find_place,
    list_changed_files,
    replace_files,
)
from jackline.files import make_private_folder, write_file
from jackline.formatting import pluralize
from jackline.named import NamedTuple
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from jackline.engine.git import Git
    from jackline.engine.tree_files import WorkingRepository

UNREADABLE = "unreadable"  # in place of an id: it equals no proved tree
_MARKER = "bound"  # its workspace was in a repository when the run began; it holds the place there, if it was known
_ABSENT = "absent.json"  # the names of the files that were absent then
_START = "start.json"  # where the run began
_PROOF = "proof.json"  # what the last proof wrote
_EARLIER = "earlier-proof.json"  # the same of the proof before the one that runs now
_RUNNING = "running-proof.json"  # the tree of the proof that runs now; a proof that was cut off leaves it
_NEW = "0 "  # begins the entry of a file that a tree lacks


class StartPoint(NamedTuple):
    """The workspace when the run began."""

    head: str = ""  # the commit; empty before the first one
    tree: str = ""  # of the files, with what was not committed


class ProofChanges(NamedTuple):
    """The names of the files that changed while a proof ran."""

    voiding: tuple[str, ...] = ()  # tracked ones, and untracked ones of the proved tree: it proves neither tree
    new: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()  # untracked ones of the proved tree that the proof before wrote, too


class TreeChanges(NamedTuple):
    """The size of the difference between two trees; binary files have no lines."""

    files: int
    insertions: int
    deletions: int


class WorkTrees:
    """The trees of one run: where it began, what was proved, and what it holds now."""

    def __init__(self, git: Git, run_folder: str) -> None:
        """`git` runs in the run's workspace."""
        self.git, self.run_folder = git, run_folder
        self.folder = os.path.join(run_folder, FOLDER)
        self._marker = os.path.join(self.folder, _MARKER)

    def compute(self) -> TreeState | None:
        """The files of the workspace now; None without a repository. May raise TreeUnreadable.

        Untracked files that the last proof wrote are as they were before it, unless they were changed since.
        """
        state = self.compute_raw()
        if state is None and os.path.exists(self._marker):
            raise TreeUnreadable("the workspace was in a git repository when the run began, and no longer is")
        names = self.find_proof_files(state) if state is not None else frozenset()
        if state is None or not names:
            return state
        written: dict[str, str] = json.loads(read_json(os.path.join(self.folder, _PROOF))["written"])
        entries = {name: written[name] for name in names}
        return state._replace(id=replace_files(self.git, self.folder, state.id, entries)) if entries else state

    def read_id(self) -> str:
        """The id of `compute`; empty without a repository, UNREADABLE if git cannot read it."""
        try:
            state = self.compute()
        except TreeUnreadable:
            return UNREADABLE
        return state.id if state else ""

    def begin_proof(self) -> TreeState | None:
        """The files before a proof; what an earlier proof wrote counts from now on."""
        with suppress(FileNotFoundError):
            os.replace(os.path.join(self.folder, _PROOF), os.path.join(self.folder, _EARLIER))
        state = self.compute()
        if state is not None:
            write_file(os.path.join(self.folder, _RUNNING), json.dumps({"before": state.id}).encode())
        return state

    def settle_interrupted_proof(self) -> None:
        """Record what a proof has written that was cut off: the host would take it for work, and commit it."""
        before = read_json(os.path.join(self.folder, _RUNNING)).get("before")
        if before:
            self._record_proof(before, frozenset())

    def find_proof_files(self, state: TreeState | None = None) -> frozenset[str]:
        """The untracked files that the last proof wrote and that have not changed since."""
        return self._find_recorded("written", state)

    def find_proof_only_files(self, state: TreeState | None = None) -> frozenset[str]:
        """The untracked files that did not exist before a proof, and that only proofs have written since."""
        return self._find_recorded("alone", state)

    def _find_recorded(self, key: str, state: TreeState | None) -> frozenset[str]:
        proof = read_json(os.path.join(self.folder, _PROOF))
        names = frozenset[str](json.loads(proof.get(key, "[]")))
        state = state or (self.compute_raw() if names else None)
        if not names or state is None:
            return frozenset()
        return names.difference(self.list_changed(proof["after"], state.id), state.tracked)

    def end_proof(self, before: TreeState) -> ProofChanges:
        """What a proof has changed. New files, and those that every proof writes, are ignored until the next one."""
        return self._record_proof(before.id, before.tracked)

    def _record_proof(self, before: str, tracked: frozenset[str]) -> ProofChanges:
        after = self.compute_raw()
        if after is None:
            raise TreeUnreadable("its repository is gone")
        changes = find_changes(self.git, self.folder, before, after.id)
        tracked |= after.tracked
        untracked = {name: entry for name, entry in changes.items() if name not in tracked}
        # Caches, databases and logs: two proofs in a row have written them, or nobody else since the last one did.
        always_rewritten = json.loads(read_json(os.path.join(self.folder, _EARLIER)).get("rewritten", "[]"))
        untouched = self._find_untouched("changed", before)
        written = {
            name: entry
            for name, entry in untracked.items()
            if entry.startswith(_NEW) or name in always_rewritten or name in untouched
        }
        new = tuple(name for name, entry in written.items() if entry.startswith(_NEW))
        rewritten = tuple(name for name in written if name not in new)
        facts = {
            "after": after.id,
            "written": json.dumps(written),
            "changed": json.dumps(sorted(untouched.union(untracked))),
            "rewritten": json.dumps(sorted({*always_rewritten, *rewritten})),
            "alone": json.dumps(sorted({*new, *self._find_untouched("alone", before)})),
        }
        write_file(os.path.join(self.folder, _PROOF), json.dumps(facts).encode())
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, _RUNNING))
        voiding = tuple(name for name in changes if name not in written)
        return ProofChanges(voiding=voiding, new=new, rewritten=rewritten)

    def _find_untouched(self, key: str, before: str) -> set[str]:
        """The files that the earlier proof recorded under this key and that nothing has changed since."""
        earlier = read_json(os.path.join(self.folder, _EARLIER))
        names = set[str](json.loads(earlier.get(key, "[]")))
        try:
            return names.difference(self.list_changed(earlier["after"], before)) if names else names
        except TreeUnreadable:  # an object of the earlier tree is gone
            return set()

    def list_changed(self, before: str, after: str) -> tuple[str, ...]:
        """The names of the files that differ between two trees of this run."""
        return list_changed_files(self.git, self.folder, before, after)

    def record_repository(self) -> None:
        """Remember that the workspace is in a repository, and which of its files are absent.

        An agent that removes the repository, or hides a file as outside of a sparse working tree, must not escape the
        comparison.
        """
        dot_git = os.path.join(find_worktree(self.git.workspace), ".git")
        if os.path.exists(self._marker) or not os.path.lexists(dot_git):
            return
        absent, place = [], ""
        try:
            found = find_repository(self.git)
            if found is None:
                return
            place = find_place(self.git, found.top)
            absent = list_absent(self.git, found)
        except GitFailed:  # a broken one is not the same as none
            pass
        make_private_folder(self.folder)
        if absent:
            write_file(os.path.join(self.folder, _ABSENT), json.dumps({"names": json.dumps(absent)}).encode())
        write_file(self._marker, os.fsencode(place))

    def record_start(self) -> None:
        """Remember the workspace as it is, unless an earlier attempt did."""
        path = os.path.join(self.folder, _START)
        if os.path.exists(path):
            return
        state = self.compute()
        if state is not None:
            point = StartPoint(head=self.read_head(), tree=state.id)
            write_file(path, json.dumps(point._asdict()).encode())

    def check_complete(self) -> None:
        """Raise TreeUnreadable if files of the start are missing: a sparse partial clone fetches only those it needs.

        No reviewer could get a copy, which shows only when the work is done.
        """
        tree = self.find_start().tree
        words = ("rev-list", "--objects", "--no-object-names", "--missing=print", tree)
        listed = bind_trees(self.git, self.folder).run(*words) if tree else None
        missing = sum(line.startswith("?") for line in (listed or "").splitlines())
        if missing:
            files = pluralize(missing, "file")
            raise TreeUnreadable(
                f"a reviewer gets all files of the repository, and this partial clone has not fetched {files}: "
                "`git sparse-checkout disable` fetches them"
            )

    def find_start(self) -> StartPoint:
        """Where the run began; HEAD if that was not recorded on this host."""
        found = read_json(os.path.join(self.folder, _START))
        return StartPoint(**found) if found else StartPoint(head=self.read_head())

    def count_changes(self, tree: str) -> TreeChanges | None:
        """What changed from the start of the run to a tree; None if the start, or either tree, is not on this host."""
        start = read_json(os.path.join(self.folder, _START)).get("tree", "")
        words = ("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", start, tree, "--")
        listed = bind_trees(self.git, self.folder).run(*words) if start and tree else None
        if listed is None:
            return None
        rows = [line.split("\t") for line in listed.split("\0") if line]
        added, deleted = (sum(int(row[column]) for row in rows if row[column].isdigit()) for column in (0, 1))
        return TreeChanges(files=len(rows), insertions=added, deletions=deleted)

    def compute_raw(self, *, always: bool = False) -> TreeState | None:
        """The files of the workspace now, with those that a proof wrote; `always`: also without a repository."""
        absent = json.loads(read_json(os.path.join(self.folder, _ABSENT)).get("names", "[]"))
        return compute_tree(self.git, self.folder, always=always, absent=frozenset(absent), place=self._read_place())

    def find_repository(self) -> WorkingRepository | None:
        """The repository of the workspace. TreeUnreadable if it is not that in which the run began."""
        found = find_repository(self.git)
        if found is not None:
            check_place(self.git, found.top, self._read_place())
        return found

    def _read_place(self) -> str:
        """Where the workspace was in its repository when the run began; empty if that is not known."""
        try:
            with open(self._marker, "rb") as file:
                return os.fsdecode(file.read())
        except FileNotFoundError:
            return ""

    def read_head(self) -> str:
        """The commit that is checked out; empty before the first one."""
        found = find_repository(self.git)
        return found.bind(self.git).resolve_commit("HEAD") if found else ""


def read_json(path: str) -> dict[str, str]:
    """Read a small file of the run; empty if it is missing or damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, str] = json.load(file)
    except (FileNotFoundError, ValueError):  # a crash while it was written
        return {}
    return found
