"""What a run changed in its repository, and how git's own records tell whose a commit is. Pure: it reads text only.

Every process of a run has GIT_REFLOG_ACTION=jackline/RUN, and git writes it into the reflog of each ref it moves. A
move alone proves nothing (a pull, a checkout and a reset move refs to other people's commits), so a commit counts only
where the entry tells that the commit was made by that very move.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VARIABLE = "GIT_REFLOG_ACTION"
# One entry of a reflog: where it stands, what was written, whose email; then of the commit: id, parents, committer's
# email and time, message. The message comes last, because nothing else may hold a newline.
ENTRY_FORMAT = "%gD%n%gs%n%ge%n%H%n%P%n%ce%n%ct%n%B"
_ENTRY_LINES = 7
_SELECTOR = re.compile(r"(.*)@\{(\d+)\}")
_MADE_BY_REBASE = frozenset({"pick", "reword", "edit", "squash", "fixup", "continue", "merge"})
_MERGED = ("Merge made by", "In-index merge")
_FORWARDED = "fast-forward"
_SUBJECT = 200


@stored_as("commits files_changed insertions deletions")
class Changes(NamedTuple):
    """What a run changed in its repository; a commit is its id and its subject, as `git log --oneline` has it."""

    commits: tuple[str, ...] = ()
    files_changed: int = 0
    insertions: int = 0
    deletions: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids alone."""
        return tuple(commit.partition(" ")[0] for commit in self.commits)


UNCHANGED = Changes()


class ReflogEntry(NamedTuple):
    """One move of a ref, with the commit that it moved to."""

    ref: str
    at: int
    told: str
    email: str
    commit: str
    parents: int
    committer: str
    committed_at: int
    message: str

    @property
    def subject(self) -> str:
        """The first line of the message, in the spaces that a reflog has."""
        return " ".join(self.message.strip().partition("\n")[0].split())

    @property
    def is_head(self) -> bool:
        """Whether it is of a worktree's HEAD, which every commit moves."""
        return self.ref == "HEAD" or self.ref.endswith("/HEAD")


def action(run_id: str) -> str:
    """What git shall call the moves that this run makes."""
    return f"jackline/{run_id}"


def marking(run_id: str) -> dict[str, str]:
    """The environment by which the commits of a run are told from everybody else's."""
    return {VARIABLE: action(run_id)}


def entries(text: str) -> list[ReflogEntry]:
    """The entries of a reflog listing in ENTRY_FORMAT with NULs between them; what is not whole is passed over."""
    found = (_entry(record) for record in text.split("\0"))
    return [entry for entry in found if entry is not None]


def _entry(record: str) -> ReflogEntry | None:
    parts = record.split("\n", _ENTRY_LINES)
    selector = _SELECTOR.fullmatch(parts[0])
    if selector is None or len(parts) <= _ENTRY_LINES or not parts[6].isdigit():
        return None
    _, told, email, commit, parents, committer, committed_at, message = parts
    place = (selector[1], int(selector[2]))
    return ReflogEntry(*place, told, email, commit, len(parents.split()), committer, int(committed_at), message)


def made_by(run_id: str, found: Iterable[ReflogEntry]) -> dict[str, str]:
    """The commits that the run made, by id, oldest first, each with its subject."""
    mine = [entry for entry in found if is_made(run_id, entry)]
    # Every reflog comes newest first, and is exact within one second, too; HEAD's has nearly everything.
    mine.reverse()
    ordered = sorted(mine, key=lambda entry: (entry.at, not entry.is_head))
    return {entry.commit: entry.subject[:_SUBJECT] for entry in ordered}


def is_made(run_id: str, entry: ReflogEntry) -> bool:
    """Whether this move of a ref was the making of the commit, by a process of this run."""
    told = re.fullmatch(rf"{re.escape(action(run_id))}(?: \((\w+)\))?:(.*)", entry.told)
    if told is None:
        return False
    kind, text = told[1], told[2].strip()
    # git asks for the time once: whoever makes a commit writes the same one into the commit and into the reflog.
    same_moment = (entry.email, entry.at) == (entry.committer, entry.committed_at)
    if kind is not None:  # `rebase` may keep the old dates, and calls a squashed commit by another name meanwhile
        return kind in _MADE_BY_REBASE and text != _FORWARDED and (same_moment or text == entry.subject)
    merged = entry.parents > 1 and text.startswith(_MERGED)
    # git's own words are plain: what is not readable is a subject in another encoding.
    return same_moment and (merged or text == entry.subject or "\N{REPLACEMENT CHARACTER}" in text)


def totals(commits: Mapping[str, str], numstat: str) -> Changes:
    """The commits, with the sum of their lines and the number of distinct files; `numstat` as -z gives it."""
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
        for place in (0, 1):
            sums[place] += int(parts[place]) if parts[place].isdigit() else 0  # a binary file has dashes
    told = tuple(f"{commit} {subject}".rstrip() for commit, subject in commits.items())
    return Changes(told, len(files), *sums)
