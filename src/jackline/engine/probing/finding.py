"""What a probe found, and how the findings about several parts of one call come together. Pure data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

HAPPENED, DID_NOT, UNKNOWN = "happened", "did_not", "unknown"
SENT_AGAIN = "idempotent: sent again with its key"


class Finding(NamedTuple):
    """Whether an effect took place, by what evidence, and what it is called where it took place."""

    verdict: str
    evidence: str = ""
    external_id: str = ""
    probe: str = ""  # which one it was, with how it ended; empty: none ran, the rule itself says so
    again: bool = False  # nobody knows that it did not happen: to send it again does no harm


def unknown(evidence: str) -> Finding:
    """Nobody knows; a person shall see why."""
    return Finding(UNKNOWN, evidence)


def together(findings: Sequence[Finding]) -> Finding:
    """All of them happened, or none did; anything else only a person can sort out."""
    if len(findings) == 1:
        return findings[0]
    verdicts = {one.verdict for one in findings}
    return Finding(
        verdict=verdicts.pop() if len(verdicts) == 1 else UNKNOWN,
        evidence="\n".join(_told(one) for one in findings if one.evidence),
        external_id=next((one.external_id for one in reversed(findings) if one.external_id), ""),
        probe=", ".join(dict.fromkeys(one.probe for one in findings if one.probe)),
        again=any(one.again for one in findings),
    )


def _told(finding: Finding) -> str:
    return f"{finding.verdict.replace('_', ' ')}: {finding.evidence}"
