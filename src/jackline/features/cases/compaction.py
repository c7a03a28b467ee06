"""Reminds an agent of its active case when its context is compacted. It changes nothing.

A hook of the agent calls it in the middle of a session: without an active case it prints nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.adapter import CompactionMoment
from jackline.features.cases.case_model import HypothesisStatus

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.adapter import Compaction
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.cases.handoff import Handoff

_AFTER = "You keep a case (a notebook) with `jackline case`. This is its current state; trust it more than your memory:"
_BEFORE = (
    "jackline keeps the case {case} with its hypotheses, evidence, commands and learnings, and prints it again after "
    "the summary: do not repeat it. Keep only what is not in it yet, and the next step."
)
_MOST_REQUEST = 1_000
_SIZES = ((100, 400), (20, 300), (20, 150), (10, 150), (10, 80), (5, 60))  # how many entries, and characters of each
_CUT = "\n… (`jackline case handoff` prints the rest)"


def build_reminder(home: Home, agent: str, request: bytes) -> str:
    """The answer to an agent's hook; empty without an active case, or for an unknown request."""
    from jackline.app import agents
    from jackline.features.cases import location

    compaction: Compaction | None = getattr(agents.load_adapter(home.config, agent), "compaction", None)
    moment = None if compaction is None else compaction.parse_moment(_parse_fields(request))
    case = None if moment is None else location.find_active(home)
    if compaction is None or moment is None or case is None:
        return ""
    text = (
        _BEFORE.format(case=case.id)
        if moment is CompactionMoment.BEFORE
        else _render_handoff(home, case, compaction.most_bytes)
    )
    return compaction.render_reminder(moment, text)


def _parse_fields(request: bytes) -> dict[str, object]:
    try:
        fields = json.loads(request)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _render_handoff(home: Home, case: Case, most: int) -> str:
    from jackline.features.cases.handoff import build_handoff, render_handoff

    found = build_handoff(home, case_id=case.id)
    # The agent had the whole request in its prompt, and it may be longer than the limit.
    found = found._replace(case=case._replace(request=cut_to_bytes(case.request, _MOST_REQUEST)))
    text = ""
    for entries, letters in _SIZES:
        text = f"{_AFTER}\n\n{render_handoff(_limit_handoff(found, entries, letters))}"
        if len(text.encode()) <= most:
            break
    return cut_to_bytes(text, most)


def _limit_handoff(handoff: Handoff, entries: int, letters: int) -> Handoff:
    """The newest entries, each cut; of the hypotheses the newest open and the newest settled ones."""
    decided = [one for one in handoff.hypotheses if one.status != HypothesisStatus.OPEN]
    kept = {one.id for one in (*handoff.still_open[-entries:], *decided[-entries:])}
    return handoff._replace(
        hypotheses=[_cut_entry(one, letters) for one in handoff.hypotheses if one.id in kept],
        evidence=[_cut_entry(one, letters) for one in handoff.evidence[-entries:]],
        commands=[_cut_entry(one, letters) for one in handoff.commands[-entries:]],
        learnings=[_cut_entry(one, letters) for one in handoff.learnings[-entries:]],
        unresolved=[one._replace(entry=_cut_entry(one.entry, letters)) for one in handoff.unresolved[-entries:]],
        dirty=handoff.dirty[-entries:],
    )


def _cut_entry(entry: CaseEntry, letters: int) -> CaseEntry:
    return entry if len(entry.text) <= letters else entry._replace(text=f"{entry.text[:letters]}…")


def cut_to_bytes(text: str, most: int) -> str:
    """The text, cut at the end of a line to a number of bytes."""
    if len(text.encode()) <= most:
        return text
    kept = text.encode()[: most - len(_CUT.encode())].decode("utf-8", "ignore")
    return (kept.rpartition("\n")[0] or kept) + _CUT
