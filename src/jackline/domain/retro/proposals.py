"""What a week suggests to do, as questions to a person. Pure; who asks them keeps them in the queue.

A proposal's slug and subject depend on what it is about, never on a number: looked at twice, it is the same one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from jackline.domain.retro import spans
from jackline.domain.retro.report import Report
from jackline.formatting import format_duration, format_line, pluralize
from jackline.named import NamedTuple

KIND = "retro.proposal"
_OFTEN = 3
_MOST = 10  # of one finding: who is asked a hundred things answers none
_POOR = 0.5
_HOUR_MS = 3_600_000
_SHARE = 0.25
_LONGEST_SLUG = 60
_UNFIT = re.compile(r"[^a-z0-9]+")


class Proposal(NamedTuple):
    """Something to agree to, or not."""

    slug: str
    subject: Mapping[str, str]  # what it is about
    question: str


def proposals(report: Report) -> list[Proposal]:
    """All of them; none for a week that is not over."""
    return [*_all(report)] if report.is_over else []


def item_id(week: str, slug: str) -> str:
    """The id of the work item that asks it."""
    return f"retro:{week}:{slug}"


def _all(report: Report) -> Iterator[Proposal]:
    for found in (_repeated, _flaky, _poor, _limits, _failures, _people):
        yield from islice(found(report), _MOST)


def _repeated(report: Report) -> Iterator[Proposal]:
    for one in report.repeated:
        first = one.learnings[0]
        question = (
            f"'{format_line(one.summary)}' ({one.kind}) was learned in {pluralize(len(one.cases), 'case')} and nothing "
            f"in the repository came of it: shall it become a test, a lint rule, a skill or a page? "
            f"Say where, or why not."
        )
        about = f"{first.case_id} {first.id}"
        yield _made("learning", about, question, kind=one.kind, learning=first.id, case=first.case_id)


def _flaky(report: Report) -> Iterator[Proposal]:
    for one in report.flaky:
        question = (
            f"The proof '{format_line(one.command)}' {one.why} ({pluralize(len(one.runs), 'run')}): "
            f"shall somebody make it steady, or take another one?"
        )
        yield _made("flaky", one.command, question, command=one.command)


def _poor(report: Report) -> Iterator[Proposal]:
    for one in report.successes:
        judged = one.succeeded + one.failed
        if one.rate is not None and judged >= _OFTEN and one.rate < _POOR:
            question = (
                f"{format_line(one.agent)} succeeded at {format_line(one.task)} in {one.succeeded} of {judged} runs: "
                f"shall another agent take the task, or the task be changed?"
            )
            yield _made("success", f"{one.agent} {one.task}", question, agent=one.agent, task=one.task)


def _limits(report: Report) -> Iterator[Proposal]:
    for one in report.limits:
        if one.turns >= _OFTEN:
            question = (
                f"{format_line(one.agent)} reached its limit {one.turns} times: shall its runs name a fallback agent, "
                f"or be spread over the day?"
            )
            yield _made("limit", one.agent, question, agent=one.agent)


def _failures(report: Report) -> Iterator[Proposal]:
    for one in report.failures:
        if one.runs >= _OFTEN:
            question = f"{one.runs} runs failed with {one.failure}: shall somebody look into what they have in common?"
            yield _made("failure", one.failure, question, failure=one.failure)


def _people(report: Report) -> Iterator[Proposal]:
    waited, whole = report.times.of(spans.PEOPLE), report.times.running + report.times.lost
    if waited >= _HOUR_MS and waited >= _SHARE * whole:
        question = (
            f"Runs waited {format_duration(waited)} for people, {waited / whole:.0%} of their time: shall a rule allow "
            f"what is always agreed to, or silence be an answer after a while?"
        )
        yield _made("people", "people", question)


def _made(finding: str, about: str, question: str, **subject: str) -> Proposal:
    words = _UNFIT.sub("-", about.lower()).strip("-")[:_LONGEST_SLUG].rstrip("-")
    digest = hashlib.sha256(about.encode("utf-8", "replace")).hexdigest()[:8]
    slug = finding if about == finding else f"{finding}-{words}-{digest}".replace("--", "-")
    return Proposal(slug, {"finding": finding, **subject}, question)
