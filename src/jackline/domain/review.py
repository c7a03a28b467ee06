"""Reviews: reads a reviewer's answer, keeps the list of findings, and decides about a round. Pure.

An answer is one JSON object with a verdict, new findings, and what became of the reviewer's earlier findings. Its text
is untrusted: it is cut and cleaned here, and anything unclear is malformed, never a pass.

Each seat settles its own findings: it sees those of the others, but cannot resolve them, and they do not block it. An
earlier finding that an answer does not mention stays open. Only blocking findings block.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING, Fact
from jackline.domain.review_records import Finding, Verdict
from jackline.domain.spec import ANY_PASS
from jackline.formatting import join_some, make_printable, make_readable, pluralize
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BLOCKING, MINOR, NIT = "blocking", "minor", "nit"
SEVERITIES = (BLOCKING, MINOR, NIT)
PASS, FAIL = "pass", "fail"
OPEN, RESOLVED, UNRESOLVED, DISMISSED = "open", "resolved", "unresolved", "dismissed"

_MOST_TEXT = 200_000  # characters of a message, from its end
_MOST_FINDINGS = 50
_MOST_FINDING, _MOST_SUMMARY, _MOST_FILE = 2_000, 2_000, 300
_MOST_LINE = 10_000_000
_MOST_STARTS = 200  # braces in prose that are tried as the start of the object
_MOST_SHOWN = 40  # characters of a wrong value
_STALLED_ROUNDS = 2  # in a row without a resolved finding
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_VERDICT_KEY = re.compile(r'"verdict"\s*:', re.IGNORECASE)
_VERDICT_IN_PROSE = re.compile(r"(?:\bverdict\b(?:\s+is)?\W{1,8}|<review>\s*)(pass|fail)(?:ed)?\b", re.IGNORECASE)
_FAIL_LINE = re.compile(r"^[^\w\n]*fail(?:ed)?[^\w\n]*$", re.IGNORECASE | re.MULTILINE)


class MalformedReview(ValueError):
    """A reviewer's answer has no clear verdict; the message says why, in a sentence for the reviewer."""


class RoundResult(StrEnum):
    """What a review round says about the work."""

    PASSED = "passed"
    BLOCKED = "blocked"


class NewFinding(NamedTuple):
    """A finding as a reviewer reports it."""

    severity: str
    text: str
    file: str = ""
    line: int = 0  # 0: the whole file


class ParsedReview(NamedTuple):
    """The parsed answer of a reviewer."""

    outcome: str  # PASS or FAIL
    findings: tuple[NewFinding, ...] = ()
    earlier: Mapping[str, bool] = NOTHING  # ids of earlier findings → whether the reviewer calls them resolved
    summary: str = ""


class ReviewTurn(NamedTuple):
    """The turn of a reviewer: who reviews what, and when."""

    run_id: str
    turn: int
    iteration: int
    review_round: int
    seat: int
    agent: str
    tree: str
    at: int


# reading an answer


def parse_review(text: str, findings: Sequence[Finding] = (), seat: int = 0, folder: str = "") -> ParsedReview:
    """Parse the last message of the reviewer in a seat; MalformedReview unless it is clear.

    `findings` are all findings of the run. Paths inside of `folder`, the reviewer's copy, become relative.
    """
    values, before, after = _find_object(text[-_MOST_TEXT:])
    answer = ParsedReview(
        outcome=_parse_outcome(values, before, after),
        findings=_parse_findings(values.get("findings"), folder),
        earlier=_parse_earlier(values.get("earlier"), {finding.id for finding in findings}),
        summary=_clean_text(_expect_text(values.get("summary"), "summary"), _MOST_SUMMARY),
    )
    _refuse_contradiction(answer, [finding for finding in find_open(findings) if finding.seat == seat])
    return answer


def _find_object(text: str) -> tuple[dict[str, Any], str, str]:
    """The object in the last fenced block, or at the end of the text; with the text before and after it."""
    block = _find_last_block(text)
    if block is not None and text[block].lstrip().startswith("{"):
        _fence, *rest = text[block.stop :].splitlines()
        return _load_object(text[block]), text[: block.start], "\n".join(rest)
    start = _find_trailing_object(text)
    if start is None:
        raise MalformedReview("The answer does not end with a JSON object in the required form.")
    return _load_object(text[start:]), text[:start], ""


def _find_last_block(text: str) -> slice | None:
    """The content of the last fenced block of Markdown that is closed."""
    found, start, fence, place = None, 0, "", 0
    for line in text.splitlines(keepends=True):
        opened = _FENCE.match(line)
        place += len(line)
        if not fence and opened:
            fence, start = opened[1], place
        elif fence and opened and opened[1].startswith(fence) and not line[opened.end() :].strip():
            found, fence = slice(start, place - len(line)), ""
    return found


def _find_trailing_object(text: str) -> int | None:
    """Where the outermost JSON object begins that ends the text."""
    text = text.rstrip()
    if not text.endswith("}"):
        return None
    starts = (found.start() for found in re.finditer(r"\{", text))
    for _, start in zip(range(_MOST_STARTS), starts, strict=False):
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if end == len(text):
            return start
    return None


def _load_object(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text, object_pairs_hook=_refuse_repeated, parse_constant=_refuse_constant)
    except MalformedReview:
        raise
    except (ValueError, RecursionError) as error:
        where = f" ({error.msg}, line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise MalformedReview(f"The JSON object cannot be read{where}.") from None
    if not isinstance(values, dict):
        raise MalformedReview("The answer is not a JSON object.")
    return values


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object, unless a name comes twice in it, also in other letters: `Verdict` beside `verdict` is unclear."""
    seen: set[str] = set()
    for name, _ in pairs:
        if (plain := name.strip().casefold()) in seen:
            raise MalformedReview(f"{_show(name)} appears more than once in an object.")
        seen.add(plain)
    return dict(pairs)


def _refuse_constant(word: str) -> None:
    raise MalformedReview(f"{word} is not allowed in JSON.")


def _parse_outcome(values: Mapping[str, Any], before: str, after: str) -> str:
    others = f"{before}\n{after}"
    if "verdict" not in values:
        raise MalformedReview('The object has no "verdict".')
    word = values["verdict"]
    outcome = word.strip().lower() if isinstance(word, str) else ""
    if outcome not in {PASS, FAIL}:
        raise MalformedReview(f'The verdict {_show(word)} is not "{PASS}" or "{FAIL}".')
    if _VERDICT_KEY.search(others):
        raise MalformedReview("The answer has more than one verdict; give exactly one.")
    said = {found[1].lower() for found in _VERDICT_IN_PROSE.finditer(others)}
    # A line PASS is no contradiction: it may be the output of the proof.
    if said - {outcome} or (outcome == PASS and _FAIL_LINE.search(others)):
        raise MalformedReview(f'The text and the object disagree: the object\'s verdict is "{outcome}".')
    if after.strip():  # it may take the verdict back
        raise MalformedReview("There is text after the JSON object; write nothing after it.")
    return outcome


def _parse_findings(values: object, folder: str) -> tuple[NewFinding, ...]:
    if values is None:
        return ()
    if not isinstance(values, list):
        raise MalformedReview('"findings" is not a list.')
    if len(values) > _MOST_FINDINGS:
        raise MalformedReview(
            f"There are {len(values)} findings; report the {_MOST_FINDINGS} most important ones at most."
        )
    found = [_parse_finding(value, number, folder) for number, value in enumerate(values, 1)]
    mildest_first = sorted(found, key=_rank_severity, reverse=True)
    severest = {_identify(finding.file, finding.text): finding for finding in mildest_first}
    return tuple(finding for finding in found if severest[_identify(finding.file, finding.text)] is finding)


def _parse_finding(value: object, number: int, folder: str) -> NewFinding:
    where = f"finding {number}"
    if not isinstance(value, dict):
        raise MalformedReview(f"{where.capitalize()} is not an object.")
    word = value.get("severity")
    severity = word.strip().lower() if isinstance(word, str) else ""
    if severity not in SEVERITIES:
        raise MalformedReview(f"The severity of {where}, {_show(word)}, is not one of {', '.join(SEVERITIES)}.")
    text = _clean_text(_expect_text(value.get("text"), f"text of {where}"), _MOST_FINDING)
    if not text:
        raise MalformedReview(f"{where.capitalize()} has no text.")
    line = 0 if value.get("line") is None else value["line"]
    if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= _MOST_LINE:
        raise MalformedReview(f"The line of {where}, {_show(line)}, is not a line number.")
    file = _expect_text(value.get("file"), f"file of {where}")
    if folder:
        file = file.removeprefix(f"{folder.rstrip('/')}/")
    return NewFinding(severity=severity, text=text, file=make_printable(file).strip()[:_MOST_FILE], line=line)


def _parse_earlier(values: object, known: set[str]) -> dict[str, bool]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise MalformedReview(f'"earlier" is not an object such as {{"F1": "{RESOLVED}"}}.')
    earlier: dict[str, bool] = {}
    for name, word in values.items():
        finding = name.strip().upper()
        if finding not in known:
            raise MalformedReview(f"There is no earlier finding {_show(name)}.")
        state = word.strip().lower() if isinstance(word, str) else ""
        if state not in {RESOLVED, UNRESOLVED}:
            raise MalformedReview(f'{finding} is {_show(word)}; use "{RESOLVED}" or "{UNRESOLVED}".')
        earlier[finding] = state == RESOLVED
    return earlier


def _refuse_contradiction(answer: ParsedReview, own: Sequence[Finding]) -> None:
    """Refuse a pass with open blocking findings, and a fail without any finding."""
    kept = [finding for finding in own if not _is_resolved(finding, answer)]
    if answer.outcome == PASS:
        new = sum(finding.severity == BLOCKING for finding in answer.findings)
        if new:
            raise MalformedReview(f'The verdict is "{PASS}", but there are new blocking findings.')
        ids = [finding.id for finding in kept if finding.severity == BLOCKING]
        if ids:
            what = "is blocking and is" if len(ids) == 1 else "are blocking and are"
            raise MalformedReview(f'The verdict is "{PASS}", but {", ".join(ids)} {what} not listed as {RESOLVED}.')
    elif not answer.findings and not kept:
        raise MalformedReview(f'The verdict is "{FAIL}", but there is no finding that says why.')


def _expect_text(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedReview(f"The {name} is not text.")
    return value


def _clean_text(text: str, most: int) -> str:
    cleaned = make_readable(text[: 2 * most]).strip()
    return cleaned if len(cleaned) <= most else f"{cleaned[: most - 1]}…"


def _show(value: object) -> str:
    """A wrong value, in few characters."""
    text = make_printable(value if isinstance(value, str) else json.dumps(value))
    return f"'{text}'" if len(text) <= _MOST_SHOWN else f"'{text[: _MOST_SHOWN - 1]}…'"


# the findings of a run


def apply_review(
    answer: ParsedReview, turn: ReviewTurn, findings: Sequence[Finding]
) -> tuple[Verdict, tuple[Finding, ...]]:
    """The verdict, and the findings that are new, resolved or more severe; `findings` are all findings of the run.

    A finding that is reported again in the same words is the same finding, and still open; the higher severity counts.
    """
    own = [finding for finding in find_open(findings) if finding.seat == turn.seat]
    resolved = [
        finding._replace(state=RESOLVED, settled_round=turn.review_round)
        for finding in own
        if _is_resolved(finding, answer)
    ]
    known = {_identify(finding.file, finding.text): finding for finding in own}
    again = [(known.get(_identify(new.file, new.text)), new) for new in answer.findings]
    raised = [
        finding._replace(severity=new.severity)
        for finding, new in again
        if finding is not None and _rank_severity(new) < _rank_severity(finding)
    ]
    first = max((finding.number for finding in findings), default=0) + 1
    fresh = (new for finding, new in again if finding is None)
    added = [
        Finding(
            run_id=turn.run_id,
            number=number,
            review_round=turn.review_round,
            seat=turn.seat,
            agent=turn.agent,
            severity=new.severity,
            file=new.file,
            line=new.line,
            text=new.text,
        )
        for number, new in enumerate(fresh, first)
    ]
    verdict = Verdict(**turn._asdict(), outcome=answer.outcome, resolved=len(resolved), summary=answer.summary)
    return verdict, (*resolved, *raised, *added)


def build_review_facts(verdict: Verdict, changed: Iterable[Finding]) -> tuple[Fact, ...]:
    """The events of a verdict: the verdict, and each finding that it adds, resolves or raises."""
    findings = tuple(_build_finding_fact(finding, verdict) for finding in changed)
    data = {
        "agent": verdict.agent,
        "round": verdict.review_round,
        "seat": verdict.seat,
        "turn": verdict.turn,
        "outcome": verdict.outcome,
        "tree": verdict.tree,
        "text": verdict.summary,
    }
    return (Fact("review.verdict", data), *findings)


def _build_finding_fact(finding: Finding, verdict: Verdict) -> Fact:
    if finding.state == RESOLVED:
        return Fact("finding.resolved", {"finding": finding.id})
    data = {"finding": finding.id, "severity": finding.severity}
    if finding.review_round < verdict.review_round:
        return Fact("finding.raised", data)
    return Fact("finding.added", {**data, "where": locate_finding(finding), "text": finding.text})


def merge_findings(findings: Iterable[Finding], changed: Iterable[Finding]) -> list[Finding]:
    """The findings of a run after a change, by number."""
    merged = {finding.number: finding for finding in (*findings, *changed)}
    return [merged[number] for number in sorted(merged)]


def find_open(findings: Iterable[Finding]) -> list[Finding]:
    """The open findings, the blocking ones first."""
    found = (finding for finding in findings if finding.state == OPEN)
    return sorted(found, key=lambda finding: (_rank_severity(finding), finding.number))


def find_blocking(findings: Iterable[Finding]) -> list[Finding]:
    """The open findings that block."""
    return [finding for finding in find_open(findings) if finding.severity == BLOCKING]


def _is_resolved(finding: Finding, answer: ParsedReview) -> bool:
    """Whether an answer resolves an open finding: it says so, and does not report the same again."""
    again = {_identify(new.file, new.text) for new in answer.findings}
    return answer.earlier.get(finding.id, False) and _identify(finding.file, finding.text) not in again


def _rank_severity(finding: Finding | NewFinding) -> int:
    return SEVERITIES.index(finding.severity) if finding.severity in SEVERITIES else len(SEVERITIES)


def _identify(file: str, text: str) -> tuple[str, str]:
    return file, " ".join(text.casefold().split())


# deciding about a round


def decide_round(verdicts: Sequence[Verdict], findings: Sequence[Finding], mode: str, seats: int) -> RoundResult | None:
    """Decide from the verdicts of one round about one tree; None: another seat has to review first.

    A seat passes if it gave a verdict and none of its blocking findings is open, so a fail without one is a pass.
    With `any`, the first pass is enough. With `all`, every seat is heard: the worker gets all findings at once.
    """
    heard = {verdict.seat for verdict in verdicts if verdict.seat < seats}
    passed = heard - {finding.seat for finding in find_blocking(findings)}
    if mode == ANY_PASS and passed:
        return RoundResult.PASSED
    if len(heard) < seats:
        return None
    return RoundResult.PASSED if len(passed) == seats else RoundResult.BLOCKED


def is_stalled(verdicts: Iterable[Verdict], review_round: int, since: int, most: int) -> bool:
    """Whether a person has to decide after this blocked round, counting the rounds after round `since`.

    Either there were `most` rounds, or nothing was resolved in two in a row.
    """
    if review_round - since >= most:
        return True
    last = range(review_round - _STALLED_ROUNDS + 1, review_round + 1)
    resolved = {verdict.review_round for verdict in verdicts if verdict.resolved}
    return last.start > since and resolved.isdisjoint(last)


def describe_blocking(findings: Iterable[Finding]) -> str:
    """The open blocking findings, in one line."""
    blocking = find_blocking(findings)
    names = [f"{finding.id} ({locate_finding(finding)})" for finding in blocking]
    return f"{pluralize(len(blocking), 'blocking finding')}: {join_some(names, 5)}"


def locate_finding(finding: Finding) -> str:
    """Where a finding is, such as `a.py:3`."""
    if not finding.file:
        return "no file"
    return f"{finding.file}:{finding.line}" if finding.line else finding.file
