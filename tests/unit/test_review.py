"""Reviewers' answers: what is read, what is malformed, what blocks, and when a person has to decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.review import (
    MalformedReview,
    NewFinding,
    ParsedReview,
    ReviewTurn,
    RoundResult,
    apply_review,
    build_review_facts,
    decide_round,
    describe_blocking,
    find_open,
    is_stalled,
    merge_findings,
    parse_review,
)
from jackline.domain.review_records import Finding, Verdict
from jackline.domain.spec import ALL_PASS, ANY_PASS


def answer(verdict: str = "pass", findings: Sequence[Any] = (), earlier: Any = None, **more: Any) -> str:
    return json.dumps({"verdict": verdict, "findings": list(findings), "earlier": earlier or {}, **more})


def raw(severity: Any = "blocking", text: Any = "it leaks", **more: Any) -> dict[str, Any]:
    return {"severity": severity, "file": "a.py", "line": 3, "text": text, **more}


def finding(number: int = 1, seat: int = 0, severity: str = "blocking", **more: Any) -> Finding:
    values: dict[str, Any] = {
        "run_id": "r",
        "review_round": 1,
        "agent": "codex",
        "file": "a.py",
        "line": 3,
        "text": f"text {number}",
    }
    return Finding(**{**values, "number": number, "seat": seat, "severity": severity, **more})


def verdict(seat: int = 0, review_round: int = 1, outcome: str = "fail", resolved: int = 0) -> Verdict:
    return Verdict(
        run_id="r", turn=review_round * 10 + seat, iteration=1, review_round=review_round, seat=seat, agent="codex",
        tree="t", outcome=outcome, resolved=resolved, summary="", at=1,
    )  # fmt: skip


def review_turn(review_round: int = 2, seat: int = 0) -> ReviewTurn:
    return ReviewTurn(
        run_id="r", turn=5, iteration=2, review_round=review_round, seat=seat, agent="codex", tree="t", at=9
    )


# reading


@pytest.mark.parametrize(
    "text",
    [
        answer("pass"),
        f"All good.\n\n{answer('pass')}\n",
        f"```json\n{answer('pass')}\n```",
        f"```python\nx = {{}}\n```\nThen:\n~~~\n{answer('PASS')}\n~~~ \n\n \t\n",
        f"````\n{answer('pass')}\n````",
        f"A dict {{}} and a set {{1}} in prose. Verdict: pass. {answer('pass')}",
        f"The block is not closed:\n```json\n{answer('pass')}",
        '{"verdict": "pass"}',
    ],
)
def test_a_clear_pass_is_read(text: str) -> None:
    assert parse_review(text) == ParsedReview(outcome="pass")


def test_findings_are_read_and_cleaned() -> None:
    text = answer(
        "fail",
        [
            raw(text="  red \x1b[31mtext\x00 "),
            raw("Minor", "whole file", line=None),
            {"severity": "nit", "text": "x" * 9_000},
        ],
        summary="two\u202e things",
    )
    read = parse_review(text)
    assert read.findings[0] == NewFinding("blocking", "red \ufffd[31mtext\ufffd", "a.py", 3)
    assert read.findings[1] == NewFinding("minor", "whole file", "a.py", 0)
    assert read.findings[2].file == ""
    assert len(read.findings[2].text) == 2_000
    assert read.findings[2].text.endswith("…")
    assert read.summary == "two\ufffd things"


def test_a_path_inside_of_the_reviewers_copy_becomes_relative() -> None:
    text = answer("fail", [raw(file="/cache/reviews/r/1-0/src/a.py"), raw(text="other", file="b\n.py")])
    assert [one.file for one in parse_review(text, folder="/cache/reviews/r/1-0").findings] == ["src/a.py", "b .py"]


def test_the_same_finding_twice_is_one() -> None:
    assert len(parse_review(answer("fail", [raw(), raw(text="It  leaks")])).findings) == 1


@pytest.mark.parametrize("severities", [("blocking", "nit"), ("nit", "blocking"), ("minor", "blocking", "nit")])
def test_of_the_same_finding_twice_the_most_severe_one_counts(severities: tuple[str, ...]) -> None:
    read = parse_review(answer("fail", [raw(one, line=line) for line, one in enumerate(severities)]))
    assert [(one.severity, one.line) for one in read.findings] == [("blocking", severities.index("blocking"))]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not end with a JSON object"),
        ("2 passed, 1 failed", "does not end with a JSON object"),
        ("LGTM, pass", "does not end with a JSON object"),
        ("<review>PASS</review>", "does not end with a JSON object"),
        ("I verified {everything}", "does not end with a JSON object"),
        (f"{answer('pass')}\nThat was all.", "does not end with a JSON object"),
        (f"```\n{answer('pass')}\n```\nThis must not be accepted: it fails.", "text after the JSON object"),
        (f"```\n{answer('pass')}\n```\n```\nno\n", "text after the JSON object"),
        ('```\n{"verdict": "pass"\n```', "cannot be read"),
        ('```\n{"verdict": "pass"} {}\n```', "cannot be read"),
        ("```\n" + '{"a":' * 20_000 + "\n```", "cannot be read"),
        ('{"line": ' + "9" * 5_000 + "}", "does not end with a JSON object"),
        ("{}", 'no "verdict"'),
        ('{"findings": []}', 'no "verdict"'),
        ('{"verdict": null}', "'null' is not"),
        ('{"verdict": true}', "'true' is not"),
        ('{"verdict": ["pass"]}', "is not"),
        ('{"verdict": "passed"}', "'passed' is not"),
        ('{"verdict": "pass|fail"}', "is not"),
        ('{"verdict": "2 passed, 1 failed"}', "is not"),
        ('{"verdict": "' + "x" * 9_000 + '"}', "…' is not"),
        ('{"verdict": "pass", "verdict": "fail"}', "more than once"),
        ('{"verdict": "pass", "Verdict": "fail"}', "more than once"),
        ('{"verdict": "pass", "score": NaN}', "NaN"),
        (f"{answer('fail', [raw()])}\n{answer('pass')}", "more than one verdict"),
        (f"```\n{answer('pass')}\n```\n```\n{answer('pass')}\n```", "more than one verdict"),
        (f"```\n{answer('pass')}\n```\n{answer('pass')}", "more than one verdict"),
        (f"Verdict: **FAIL**\n{answer('pass')}", "disagree"),
        (f"My verdict is failed.\n{answer('pass')}", "disagree"),
        (f"<review>FAIL</review>\n{answer('pass')}", "disagree"),
        (f"It loses data.\n**FAIL**\n{answer('pass')}", "disagree"),
        (f"Verdict: PASS\n{answer('fail', [raw()])}", "disagree"),
        (answer("fail"), "no finding that says why"),
        (answer("pass", [raw()]), "new blocking findings"),
        ('{"verdict": "fail", "findings": {}}', "not a list"),
        ('{"verdict": "fail", "findings": "none"}', "not a list"),
        (answer("fail", ["it leaks"]), "Finding 1 is not an object"),
        (answer("fail", [raw(), raw("critical", "b")]), "severity of finding 2, 'critical', is not one of blocking"),
        (answer("fail", [raw(None)]), "severity"),
        (answer("fail", [raw(text="")]), "Finding 1 has no text"),
        (answer("fail", [raw(text=" \x00".strip("\x00"))]), "Finding 1 has no text"),
        (answer("fail", [raw(text=7)]), "text of finding 1 is not text"),
        (answer("fail", [raw(file=["a"])]), "file of finding 1 is not text"),
        (answer("fail", [raw(line="3")]), "line of finding 1"),
        (answer("fail", [raw(line=True)]), "line of finding 1"),
        (answer("fail", [raw(line=3.5)]), "line of finding 1"),
        (answer("fail", [raw(line=-1)]), "line of finding 1"),
        (answer("fail", [raw(line=10**12)]), "line of finding 1"),
        (answer("fail", [raw(text=str(n)) for n in range(51)]), "51 findings"),
        (answer("pass", summary=[1]), "summary is not text"),
        ('{"verdict": "pass", "earlier": ["F1"]}', '"earlier" is not an object'),
        (answer("pass", earlier={"F9": "resolved"}), "no earlier finding 'F9'"),
        (answer("pass", earlier={"F1": "fixed"}), "F1 is 'fixed'"),
        (answer("pass", earlier={"F1": True}), "F1 is 'true'"),
        ('{"verdict": "fail", "earlier": {"F1": "resolved", "f1": "unresolved"}}', "more than once"),
        ('{"verdict": "fail", "earlier": {"F1": "resolved", "F1": "unresolved"}}', "more than once"),
        (answer("pass", earlier={"F1": "unresolved"}), "F1 is blocking and is not listed as resolved"),
        (answer("pass"), "F1 is blocking"),
    ],
)
def test_an_unclear_answer_is_malformed(text: str, reason: str) -> None:
    with pytest.raises(MalformedReview) as caught:
        parse_review(text, [finding(1)] if "F1" in text or "F1" in reason else [])
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


def test_only_the_end_of_a_huge_message_is_read() -> None:
    assert parse_review("x " * 500_000 + answer("pass")).outcome == "pass"
    with pytest.raises(MalformedReview):
        parse_review("{" * 400_000 + "}")
    with pytest.raises(MalformedReview):
        parse_review(answer("fail", [raw(text="x" * 300_000)]))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(["pass", "fail"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_WORDS = st.sampled_from(
    ["pass", "fail", "blocking", "nit", "resolved", "unresolved", "F1", "F2", "", 3, -1, None, True, 1e400]
)
_FINDINGS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("severity", "file", "line", "text"), _WORDS | _JSON))
)
_ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "verdict": _WORDS | _JSON,
        "findings": _FINDINGS | _JSON,
        "earlier": st.dictionaries(st.sampled_from(["F1", "F2", "f1", "x"]), _WORDS) | _JSON,
        "summary": _WORDS | _JSON,
    },
)
_PIECES = st.lists(
    st.text(max_size=20)
    | st.sampled_from(
        ["```", "\n```json\n", "\n```\n", "~~~\n", "{", "}", '{"verdict": "pass"}', "verdict: fail", "\\"]
    )
    | _ANSWERS.map(json.dumps),
    max_size=6,
).map("".join)


@given(text=_PIECES | _ANSWERS.map(json.dumps))
def test_any_text_is_an_answer_or_malformed(text: str) -> None:
    known = [finding(1), finding(2, seat=1)]
    try:
        read = parse_review(text, known)
    except MalformedReview:
        return
    assert '"verdict"' in text
    _, changed = apply_review(read, review_turn(), known)
    assert (read.outcome == "pass") <= (decide_round([verdict()], merge_findings(known, changed), "all", 1) == "passed")
    for one in read.findings:
        assert one.text == one.text.strip()
        assert one.file.isprintable()


# findings


def test_a_finding_that_is_not_listed_stays_open() -> None:
    known = [finding(1), finding(2)]
    judged, changed = apply_review(
        parse_review(answer("fail", earlier={"F2": "resolved"}), known), review_turn(), known
    )
    assert [(one.id, one.state, one.settled_round) for one in changed] == [("F2", "resolved", 2)]
    assert judged.resolved == 1
    assert decide_round([judged], merge_findings(known, changed), ALL_PASS, 1) is RoundResult.BLOCKED


def test_new_findings_get_the_next_ids() -> None:
    known = [finding(1, state="resolved"), finding(4, seat=1)]
    read = parse_review(answer("fail", [raw(), raw("nit", "name")]), known)
    judged, changed = apply_review(read, review_turn(), known)
    assert [(one.id, one.severity, one.review_round, one.state) for one in changed] == [
        ("F5", "blocking", 2, "open"),
        ("F6", "nit", 2, "open"),
    ]
    assert (judged.outcome, judged.tree, judged.turn, judged.review_round) == ("fail", "t", 5, 2)


def test_a_seat_settles_only_its_own_findings() -> None:
    known = [finding(1, seat=1)]
    judged, changed = apply_review(parse_review(answer(earlier={"F1": "resolved"}), known), review_turn(), known)
    assert changed == ()
    assert judged.resolved == 0


def test_what_is_settled_stays_settled() -> None:
    known = [finding(1, state="dismissed"), finding(2, state="resolved", settled_round=1)]
    read = parse_review(answer("pass", earlier={"F1": "unresolved", "F2": "resolved"}), known)
    assert apply_review(read, review_turn(), known)[1] == ()


def test_a_finding_reported_again_in_the_same_words_is_the_same_and_open() -> None:
    known = [finding(1, text="it leaks")]
    read = parse_review(answer("fail", [raw(text="It leaks")], {"F1": "resolved"}), known)
    judged, changed = apply_review(read, review_turn(), known)
    assert changed == ()
    assert judged.resolved == 0


@pytest.mark.parametrize("state", ["resolved", "unresolved"])
def test_a_finding_reported_again_as_more_severe_is_raised_and_blocks(state: str) -> None:
    known = [finding(1, severity="minor", text="there is no test"), finding(2)]
    new = raw(text="there is no test", file="a.py")
    read = parse_review(answer("fail", [new], {"F1": state, "F2": "resolved"}), known)
    judged, changed = apply_review(read, review_turn(), known)
    assert [(one.id, one.severity, one.state) for one in changed] == [
        ("F2", "blocking", "resolved"),
        ("F1", "blocking", "open"),
    ]
    assert [fact.kind for fact in build_review_facts(judged, changed)][1:] == ["finding.resolved", "finding.raised"]
    assert decide_round([judged], merge_findings(known, changed), ALL_PASS, 1) is RoundResult.BLOCKED


def test_a_finding_reported_again_as_less_severe_stays_as_it_is() -> None:
    known = [finding(1, text="it leaks")]
    assert apply_review(parse_review(answer("fail", [raw("nit")]), known), review_turn(), known)[1] == ()


# rounds


def test_a_fail_without_a_blocking_finding_does_not_block() -> None:
    read = parse_review(answer("fail", [raw("nit"), raw("minor", "other")]))
    judged, changed = apply_review(read, review_turn(1), [])
    assert judged.outcome == "fail"
    assert decide_round([judged], changed, ALL_PASS, 1) is RoundResult.PASSED
    assert len(find_open(changed)) == 2


def test_every_seat_has_to_pass_or_any() -> None:
    one, both = [verdict(0)], [verdict(0), verdict(1)]
    blocked = [finding(1, seat=0)]
    assert decide_round([], [], ALL_PASS, 2) is None
    assert decide_round(one, [], ALL_PASS, 2) is None
    assert decide_round(one, blocked, ALL_PASS, 2) is None
    assert decide_round(both, blocked, ALL_PASS, 2) is RoundResult.BLOCKED
    assert decide_round(both, [], ALL_PASS, 2) is RoundResult.PASSED
    assert decide_round([], [], ANY_PASS, 2) is None
    assert decide_round(one, [], ANY_PASS, 2) is RoundResult.PASSED
    assert decide_round(one, blocked, ANY_PASS, 2) is None
    assert decide_round(both, blocked, ANY_PASS, 2) is RoundResult.PASSED
    assert decide_round(both, [*blocked, finding(2, seat=1)], ANY_PASS, 2) is RoundResult.BLOCKED


def test_a_dismissed_finding_does_not_block() -> None:
    assert decide_round([verdict()], [finding(1, state="dismissed")], ALL_PASS, 1) is RoundResult.PASSED


def test_a_person_decides_after_the_last_round() -> None:
    resolving = [verdict(review_round=number, resolved=1) for number in (2, 3, 4, 5, 6)]
    assert [is_stalled(resolving, number, 0, 3) for number in (1, 2, 3)] == [False, False, True]
    assert [is_stalled(resolving, number, 3, 3) for number in (4, 5, 6)] == [False, False, True]


def test_a_person_decides_after_two_rounds_in_a_row_without_a_resolved_finding() -> None:
    rounds = [verdict(review_round=1), verdict(review_round=2), verdict(1, review_round=2, resolved=1)]
    assert not is_stalled(rounds, 2, 0, 9)
    assert is_stalled(rounds[:2], 2, 0, 9)
    assert not is_stalled([*rounds, verdict(review_round=3)], 3, 0, 9)
    assert is_stalled([*rounds, verdict(review_round=3), verdict(review_round=4)], 4, 0, 9)
    assert not is_stalled([*rounds, verdict(review_round=3), verdict(review_round=4)], 4, 3, 9)


@pytest.mark.parametrize(("severity", "rounds"), [("nit", 1), ("minor", 1), ("blocking", 3)])
def test_a_reviewer_that_invents_a_finding_each_round_is_stopped(severity: str, rounds: int) -> None:
    findings: list[Finding] = []
    verdicts: list[Verdict] = []
    for number in range(1, 10):
        earlier = {one.id: "resolved" for one in find_open(findings)}
        read = parse_review(answer("fail", [raw(severity, f"nit {number}")], earlier), findings)
        judged, changed = apply_review(read, review_turn(number), findings)
        findings, verdicts = merge_findings(findings, changed), [*verdicts, judged]
        if decide_round([judged], findings, ALL_PASS, 1) is RoundResult.PASSED or is_stalled(verdicts, number, 0, 3):
            break
    assert number == rounds


def test_blocking_findings_are_described_in_one_line() -> None:
    found = [finding(2, line=0), finding(1), finding(3, file=""), finding(4, severity="nit")]
    assert describe_blocking(found) == "3 blocking findings: F1 (a.py:3), F2 (a.py), F3 (no file)"
    assert describe_blocking([finding(number) for number in range(1, 8)]).endswith("F5 (a.py:3) and 2 more")
