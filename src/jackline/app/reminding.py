"""What an agent is given back when its context was compacted: the active case of its run. It changes nothing.

It is called by a hook of the agent, in the middle of a session: where there is nothing to say, nothing is said.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.adapter import Moment
from jackline.domain.case import HypothesisStatus

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.adapter import Compaction
    from jackline.domain.case import Case, Entry
    from jackline.views.case_handoff import Handoff

_BACK = "You keep a case (a notebook) with `jackline case`; this is how it stands, and it is to be trusted over memory:"
_KEEP = (
    "jackline keeps the case {case} with its hypotheses, evidence, commands and learnings, and gives it back after the "
    "summary: do not retell it. Keep what is not in it yet, and the next step."
)
_MOST_REQUEST = 1_000
_SIZES = ((100, 400), (20, 300), (20, 150), (10, 150), (10, 80), (5, 60))  # how many entries, and letters of each
_CUT = "\n… (`jackline case handoff` prints the rest)"


def said(home: Home, agent: str, words: bytes) -> str:
    """What the agent's hook is answered; nothing without an active case, or to words that mean nothing here."""
    from jackline.app import agents
    from jackline.app.case import place

    compaction: Compaction | None = getattr(agents.load(home.config, agent), "compaction", None)
    moment = None if compaction is None else compaction.moment(_fields(words))
    case = None if moment is None else place.active(home)
    if compaction is None or moment is None or case is None:
        return ""
    text = _KEEP.format(case=case.id) if moment is Moment.BEFORE else _handoff(home, case, compaction.most_bytes)
    return compaction.said(moment, text)


def _fields(words: bytes) -> dict[str, object]:
    try:
        fields = json.loads(words)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _handoff(home: Home, case: Case, most: int) -> str:
    from jackline.app.case.handing_over import handoff
    from jackline.views.case_handoff import text_of

    told = handoff(home, case_id=case.id)
    # The whole request was in the first prompt, and may be as long as all that is given back.
    told = told._replace(case=case._replace(request=shortened(case.request, _MOST_REQUEST)))
    text = ""
    for entries, letters in _SIZES:
        text = f"{_BACK}\n\n{text_of(_less(told, entries, letters))}"
        if len(text.encode()) <= most:
            break
    return shortened(text, most)


def _less(told: Handoff, entries: int, letters: int) -> Handoff:
    """The newest entries, each cut; of hypotheses the open ones, and as many of the others."""
    decided = [one for one in told.hypotheses if one.status != HypothesisStatus.OPEN]
    kept = {one.id for one in (*told.still_open[-entries:], *decided[-entries:])}
    return told._replace(
        hypotheses=[_cut(one, letters) for one in told.hypotheses if one.id in kept],
        evidence=[_cut(one, letters) for one in told.evidence[-entries:]],
        commands=[_cut(one, letters) for one in told.commands[-entries:]],
        learnings=[_cut(one, letters) for one in told.learnings[-entries:]],
        unresolved=[one._replace(entry=_cut(one.entry, letters)) for one in told.unresolved[-entries:]],
        dirty=told.dirty[-entries:],
    )


def _cut(entry: Entry, letters: int) -> Entry:
    return entry if len(entry.text) <= letters else entry._replace(text=f"{entry.text[:letters]}…")


def shortened(text: str, most: int) -> str:
    """The text, cut at a line so that it has no more than so many bytes."""
    if len(text.encode()) <= most:
        return text
    kept = text.encode()[: most - len(_CUT.encode())].decode("utf-8", "ignore")
    return (kept.rpartition("\n")[0] or kept) + _CUT
