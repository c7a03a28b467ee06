"""The verdicts as people and programs read them: rows of a table, JSON objects, and one line for all. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jackline.app.drill.verdict import FAIL, PASS, SKIP
from jackline.formatting import pluralize
from jackline.named import stored_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.drill.verdict import Verdict

TITLES = "CASE RESULT* EFFECTS> REPLAYED> REFUSED> SECONDS> WHY~"


def row(verdict: Verdict) -> tuple[str, ...]:
    """One case; effects as seen of expected."""
    return (
        verdict.case,
        verdict.result,
        f"{verdict.effects_seen}/{verdict.effects_expected}",
        str(verdict.replayed),
        str(verdict.refused),
        f"{verdict.seconds:.1f}",
        "; ".join(verdict.reasons) or "-",
    )


def record(verdict: Verdict, agent: str) -> dict[str, object]:
    """The same for programs."""
    return {
        "agent": agent,
        **stored_dict(verdict),
        "reasons": list(verdict.reasons),
        "seconds": round(verdict.seconds, 3),
    }


def total(verdicts: Sequence[Verdict], agent: str, folder: str) -> dict[str, object]:
    """All of them in one object, the last one."""
    count = Counter(one.result for one in verdicts)
    return {
        "agent": agent,
        "total": len(verdicts),
        "passed": count[PASS],
        "failed": count[FAIL],
        "skipped": count[SKIP],
        "seconds": round(sum(one.seconds for one in verdicts), 3),
        "folder": folder,
    }


def summary(verdicts: Sequence[Verdict]) -> str:
    """All of them in one line."""
    count = Counter(one.result for one in verdicts)
    told = [f"{count[result]} {word}" for result, word in ((PASS, "passed"), (FAIL, "failed"), (SKIP, "left out"))
            if count[result] or result == PASS]  # fmt: skip
    return f"{pluralize(len(verdicts), 'case')}: {', '.join(told)}"


def all_passed(verdicts: Sequence[Verdict]) -> bool:
    """Whether the drill succeeded: a case that was left out is none that passed, and no case is no success."""
    return bool(verdicts) and all(one.result == PASS for one in verdicts)
