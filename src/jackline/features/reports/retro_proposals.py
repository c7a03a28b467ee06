"""Turns the findings of a week into questions for a person. Pure; the caller enqueues them.

The slug and subject of a proposal depend on its topic, never on a number, so that a second report finds the same one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from jackline.features.reports import retro_report
from jackline.features.reports.retro_report import WeekReport
from jackline.formatting import format_duration, format_line, pluralize
from jackline.named import NamedTuple

PROPOSAL_KIND = "retro.proposal"
_OFTEN = 3
_MOST = 10  # per finding: a long list of questions stays unanswered
_POOR = 0.5
_HOUR_MS = 3_600_000
_SHARE = 0.25
_LONGEST_SLUG = 60
_UNFIT = re.compile(r"[^a-z0-9]+")


class Proposal(NamedTuple):
    """A question for a person."""

    slug: str
    subject: Mapping[str, str]  # its topic
    question: str


def build_proposals(report: WeekReport) -> list[Proposal]:
    """All proposals; none for a week that is not over."""
    if not report.is_over:
        return []
    findings = (
        _propose_learnings(report),
        _propose_proofs(report),
        _propose_tasks(report),
        _propose_limits(report),
        _propose_failures(report),
        _propose_waits(report),
    )
    return [one for finding in findings for one in islice(finding, _MOST)]


def build_item_id(week: str, slug: str) -> str:
    """The id of its work item."""
    return f"retro:{week}:{slug}"


def _propose_learnings(report: WeekReport) -> Iterator[Proposal]:
    for one in report.repeated:
        first = one.learnings[0]
        question = (
            f"'{format_line(one.summary)}' ({one.kind}) was learned in {pluralize(len(one.cases), 'case')}, and no "
            f"file in the repository records it: should it become a test, a lint rule, a skill or a page? "
            f"Name the file, or the reason for none."
        )
        about = f"{first.case_id} {first.id}"
        yield _build_proposal("learning", about, question, kind=one.kind, learning=first.id, case=first.case_id)


def _propose_proofs(report: WeekReport) -> Iterator[Proposal]:
    for one in report.flaky:
        question = (
            f"The proof '{format_line(one.command)}' {one.why} ({pluralize(len(one.runs), 'run')}): "
            f"should it be fixed or replaced?"
        )
        yield _build_proposal("flaky", one.command, question, command=one.command)


def _propose_tasks(report: WeekReport) -> Iterator[Proposal]:
    for one in report.successes:
        judged = one.succeeded + one.failed
        if one.rate is not None and judged >= _OFTEN and one.rate < _POOR:
            question = (
                f"{format_line(one.agent)} succeeded at {format_line(one.task)} in {one.succeeded} of {judged} runs: "
                f"should another agent take the task, or should the task change?"
            )
            yield _build_proposal("success", f"{one.agent} {one.task}", question, agent=one.agent, task=one.task)


def _propose_limits(report: WeekReport) -> Iterator[Proposal]:
    for one in report.limits:
        if one.turns >= _OFTEN:
            question = (
                f"{format_line(one.agent)} reached its limit {one.turns} times: should its runs name a fallback agent, "
                f"or be spread over the day?"
            )
            yield _build_proposal("limit", one.agent, question, agent=one.agent)


def _propose_failures(report: WeekReport) -> Iterator[Proposal]:
    for one in report.failures:
        if one.runs >= _OFTEN:
            question = f"{one.runs} runs failed with {one.failure}: should someone look for a common cause?"
            yield _build_proposal("failure", one.failure, question, failure=one.failure)


def _propose_waits(report: WeekReport) -> Iterator[Proposal]:
    waited, whole = report.times.of(retro_report.PEOPLE), report.times.running + report.times.lost
    if waited >= _HOUR_MS and waited >= _SHARE * whole:
        question = (
            f"Runs waited {format_duration(waited)} for people, {waited / whole:.0%} of their time: should a rule "
            f"allow what is always approved, or should a timeout answer?"
        )
        yield _build_proposal("people", "people", question)


def _build_proposal(finding: str, about: str, question: str, **subject: str) -> Proposal:
    words = _UNFIT.sub("-", about.lower()).strip("-")[:_LONGEST_SLUG].rstrip("-")
    digest = hashlib.sha256(about.encode("utf-8", "replace")).hexdigest()[:8]
    slug = finding if about == finding else f"{finding}-{words}-{digest}".replace("--", "-")
    return Proposal(slug=slug, subject={"finding": finding, **subject}, question=question)
