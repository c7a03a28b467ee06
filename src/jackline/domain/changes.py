"""Finds the commits of a run in git's reflogs, and sums up what they changed. Pure: it only parses the output of git.

Every process of a run has GIT_REFLOG_ACTION=jackline/RUN, and git writes it into the reflog of each ref that it moves.
A move alone proves nothing (a pull, a checkout and a reset move refs to other people's commits), so a commit counts
only if the entry shows that this move created it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VARIABLE = "GIT_REFLOG_ACTION"
# One entry of a reflog: its selector, its text, the email; then of the commit: id, parents, committer's email and time,
# message. The message comes last, because only it may contain a newline.
ENTRY_FORMAT = "%gD%n%gs%n%ge%n%H%n%P%n%ce%n%ct%n%B"
_ENTRY_LINES = 7
_SELECTOR = re.compile(r"(.*)@\{(\d+)\}")
_REBASE_ACTIONS = frozenset({"pick", "reword", "edit", "squash", "fixup", "continue", "merge"})  # that create a commit
_MERGED = ("Merge made by", "In-index merge")
_FORWARDED = "fast-forward"
_MOST_SUBJECT = 200


@stored_as("commits files_changed insertions deletions")
class Changes(NamedTuple):
    """What a run changed in its repository; a commit is its id and its subject, as in `git log --oneline`."""

    commits: tuple[str, ...] = ()
    files_changed: int = 0
    insertions: int = 0
    deletions: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the commits."""
        return tuple(commit.partition(" ")[0] for commit in self.commits)


UNCHANGED = Changes()


class ReflogEntry(NamedTuple):
    """One move of a ref, with the commit that it moved to."""

    ref: str
    at: int
    text: str  # what git wrote about the move
    email: str
    commit: str
    parents: int
    committer: str
    committed_at: int
    message: str

    @property
    def subject(self) -> str:
        """The first line of the message, with its spaces normalized as in a reflog."""
        return " ".join(self.message.strip().partition("\n")[0].split())

    @property
    def is_head(self) -> bool:
        """Whether the ref is the HEAD of a worktree, which every commit moves."""
        return self.ref == "HEAD" or self.ref.endswith("/HEAD")


def reflog_action(run_id: str) -> str:
    """The action that git writes into the reflog for every move by this run."""
    return f"jackline/{run_id}"


def build_reflog_env(run_id: str) -> dict[str, str]:
    """The environment that attributes commits to a run."""
    return {VARIABLE: reflog_action(run_id)}


def parse_reflog(listing: str) -> list[ReflogEntry]:
    """Parse a reflog listing in ENTRY_FORMAT with NULs between the entries; incomplete entries are skipped."""
    entries: list[ReflogEntry] = []
    for record in listing.split("\0"):
        lines = record.split("\n", _ENTRY_LINES)
        selector = _SELECTOR.fullmatch(lines[0])
        if selector is None or len(lines) <= _ENTRY_LINES or not lines[6].isdigit():
            continue
        _, text, email, commit, parents, committer, committed_at, message = lines
        ref, at, count = selector[1], int(selector[2]), len(parents.split())
        entries.append(ReflogEntry(ref, at, text, email, commit, count, committer, int(committed_at), message))
    return entries


def find_created_commits(run_id: str, entries: Iterable[ReflogEntry]) -> dict[str, str]:
    """Return the commits that the run created, by id, oldest first, each with its subject."""
    own = [entry for entry in entries if creates_commit(run_id, entry)]
    # A reflog is newest first, also within one second. HEAD's has nearly everything.
    own.reverse()
    ordered = sorted(own, key=lambda entry: (entry.at, not entry.is_head))
    return {entry.commit: entry.subject[:_MOST_SUBJECT] for entry in ordered}


def creates_commit(run_id: str, entry: ReflogEntry) -> bool:
    """Whether a process of this run created the commit by this move."""
    found = re.fullmatch(rf"{re.escape(reflog_action(run_id))}(?: \((\w+)\))?:(.*)", entry.text)
    if found is None:
        return False
    kind, text = found[1], found[2].strip()
    # git takes the time once: the process that creates a commit writes the same time into the commit and the reflog.
    same_moment = (entry.email, entry.at) == (entry.committer, entry.committed_at)
    if kind is not None:  # `rebase` may keep the old dates, and a squashed commit has another subject meanwhile
        return kind in _REBASE_ACTIONS and text != _FORWARDED and (same_moment or text == entry.subject)
    merged = entry.parents > 1 and text.startswith(_MERGED)
    # git's own texts are ASCII: an undecodable one is a subject in another encoding.
    return same_moment and (merged or text == entry.subject or "\N{REPLACEMENT CHARACTER}" in text)


def sum_changes(commits: Mapping[str, str], numstat: str) -> Changes:
    """Sum up the changed lines and the distinct files of commits; `numstat` is the output of `--numstat -z`."""
    files: set[str] = set()
    sums = [0, 0]
    fields = iter(numstat.split("\0"))
    for field in fields:
        parts = field.split("\t", 2)
        if len(parts) != len(("insertions", "deletions", "path")):
            continue
        if not parts[2]:  # a renamed file: its old and its new name follow
            next(fields, "")
        files.add(parts[2] or next(fields, ""))
        for column in (0, 1):
            sums[column] += int(parts[column]) if parts[column].isdigit() else 0  # a binary file has dashes
    lines = tuple(f"{commit} {subject}".rstrip() for commit, subject in commits.items())
    return Changes(lines, len(files), *sums)
