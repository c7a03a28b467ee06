"""The result of a probe, and how the results for several parts of one call are combined. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

HAPPENED, DID_NOT, UNKNOWN = "happened", "did_not", "unknown"
SENT_AGAIN = "idempotent: sent again with its key"


class Finding(NamedTuple):
    """Whether an effect happened, the evidence, and its external id."""

    verdict: str
    evidence: str = ""
    external_id: str = ""
    probe: str = ""  # the probe and how it ended; empty: none ran, the rule decides
    again: bool = False  # it may have happened, but sending it again is harmless


def unknown(evidence: str) -> Finding:
    """A finding without a verdict; a person sees the evidence."""
    return Finding(UNKNOWN, evidence)


def together(findings: Sequence[Finding]) -> Finding:
    """Combine findings: all happened, or none did; anything else is unknown."""
    if len(findings) == 1:
        return findings[0]
    verdicts = {one.verdict for one in findings}
    return Finding(
        verdict=verdicts.pop() if len(verdicts) == 1 else UNKNOWN,
        evidence="\n".join(f"{one.verdict.replace('_', ' ')}: {one.evidence}" for one in findings if one.evidence),
        external_id=next((one.external_id for one in reversed(findings) if one.external_id), ""),
        probe=", ".join(dict.fromkeys(one.probe for one in findings if one.probe)),
        again=any(one.again for one in findings),
    )
