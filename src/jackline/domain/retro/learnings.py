"""Finds learnings that were repeated without an artifact in the repository. Pure.

Two learnings are alike if they have the same kind and mostly the same words: a rough hint for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jackline.domain.reporting import Learning
from jackline.named import NamedTuple, stored_as

_WORD = re.compile(r"[^\W_]+")
_SHORTEST = 3
_ALIKE = 0.6
_COMMON = frozenset(
    {
        "the", "and", "for", "that", "this", "with", "was", "were", "are", "not", "but", "has", "have", "had", "when",
        "then", "than", "from", "into", "its", "must", "should",
    }
)  # fmt: skip
MOST = 2_000  # that are compared with each other


@stored_as("kind summary learnings")
class Repeated(NamedTuple):
    """A learning that several cases repeat."""

    kind: str
    summary: str  # of the first
    learnings: tuple[Learning, ...]  # those without an artifact, oldest first

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases with this learning."""
        return tuple(dict.fromkeys(one.case_id for one in self.learnings))


def repeated(learnings: Iterable[Learning], since: int) -> list[Repeated]:
    """Learnings of several cases, at least one of them since then, without an artifact after the last artifact."""
    groups: list[tuple[frozenset[str], list[Learning]]] = []
    for one in list(learnings)[-MOST:]:
        words = _split_words(one.summary)
        alike = (group for first, group in groups if group[0].kind == one.kind and _is_alike(first, words))
        group = next(alike, None)
        if group is None:
            groups.append((words, [one]))
        else:
            group.append(one)
    found = [made for _, group in groups if (made := _find_without_artifact(group, since)) is not None]
    return sorted(found, key=lambda one: (-len(one.cases), one.kind, one.summary))


def _find_without_artifact(group: list[Learning], since: int) -> Repeated | None:
    newest_first = sorted(group, key=lambda one: (one.at, one.case_id, one.number), reverse=True)
    since_artifact = newest_first[: next((place for place, one in enumerate(newest_first) if one.has_artifact), None)]
    if not since_artifact or since_artifact[0].at < since:
        return None
    made = Repeated(group[0].kind, group[0].summary, tuple(reversed(since_artifact)))
    return made if len(made.cases) > 1 else None


def _split_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    short = {word for word in one ^ other if len(word) < _SHORTEST}  # a number or a letter more makes no difference
    whole = (one | other) - short
    return bool(whole) and len(one & other) >= _ALIKE * len(whole)
