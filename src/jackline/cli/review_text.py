"""Verdicts and findings of reviewers in words, for `findings`, `show` and the next steps of a run. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.inbox import find_blocking_reviews
from jackline.formatting import make_printable, make_readable, pluralize, wrap_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Run
    from jackline.domain.review_records import Acceptance, Finding, Verdict

_INDENT = 4
_STYLES = {"open": "yellow", "resolved": "green", "dismissed": "dim"}
_MOST_NAMED = 3  # findings in a command


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict in one line."""
    resolved = f", {verdict.resolved} resolved" if verdict.resolved else ""
    summary = f": {make_printable(verdict.summary)}" if verdict.summary else ""
    return f"round {verdict.review_round}, {verdict.agent}: {verdict.outcome}{resolved}{summary}"


def format_finding(finding: Finding, out: Output) -> Iterator[str]:
    """Return the lines of a finding: what it is and where, then its text."""
    from jackline.domain.review import locate_finding

    state = out.colorize(finding.state, _STYLES.get(finding.state, "cyan"))
    where = make_printable(locate_finding(finding))
    yield f"{finding.id} {state} {finding.severity}, {where} ({finding.agent}, round {finding.review_round})"
    texts = [finding.text, *([f"dismissed: {finding.reason}"] if finding.reason else [])]
    columns = out.terminal_width() - _INDENT
    for text in texts:
        lines = make_readable(text).splitlines()
        if out.stdout.is_terminal:
            lines = [part for line in lines for part in wrap_text(line, columns)]
        yield from (" " * _INDENT + line for line in lines)


def format_reviews(home: Home, run: Run) -> str:
    """Return the reviewers of a run and what is open, in one line; empty without reviewers."""
    if not run.spec.review:
        return ""
    mode = f", {run.spec.review_mode} must pass" if len(run.spec.review) > 1 else ""
    who = f"{', '.join(run.spec.review)}{mode}"
    if not run.status.review_round:
        return who
    from jackline.domain.review import find_blocking, find_open

    findings = home.store().reviews.list_findings(run.id)
    blocking, others = len(find_blocking(findings)), len(find_open(findings))
    counted = pluralize(blocking, "open blocking finding") if blocking else "no open blocking finding"
    more = f", {others - blocking} others" if others > blocking else ""
    accepted = home.store().reviews.find_acceptance(run.id)
    by_person = f"; {format_acceptance(accepted)}" if accepted else ""
    return f"{who}; round {run.status.review_round}, {counted}{more}{by_person}"


def format_acceptance(accepted: Acceptance) -> str:
    """Return why a person has accepted the work, in one line."""
    return f"accepted by a person (round {accepted.review_round}): {make_printable(accepted.reason)}"


def acceptance_to_json(accepted: Acceptance | None) -> dict[str, object] | None:
    """Convert an acceptance; null if there is none."""
    return {"round": accepted.review_round, "reason": accepted.reason} if accepted else None


def list_review_steps(home: Home, run: Run, out: Output) -> list[str]:
    """Return what a person can do about a run that its reviewers block; empty for others."""
    ids = [finding.id for finding in find_blocking_reviews(home.store(), run)]
    if not ids:
        return []
    dismiss = out.format_command("findings", run.id, "--dismiss", *ids[:_MOST_NAMED], "--reason", "WHY")
    return [f"read: {out.format_command('findings', run.id)}", f"drop a finding that is wrong: {dismiss}"]
