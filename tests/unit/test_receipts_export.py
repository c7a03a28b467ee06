"""The receipts of a run: what each effect's status is, and how they are told."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision
from jackline.exports.receipts import (
    STATUS_MEANINGS,
    Receipts,
    RunLedger,
    build_receipts,
    receipts_to_json,
    render_receipts,
)
from tests.support.view_records import AT, call


def proof(one: Call, external_id: str = "", origin: str = "agent") -> Receipt:
    return Receipt(one.id, one.run_id, one.key, one.target, one.rule, "", external_id, origin, AT)


def told(*calls: Call, receipts: tuple[Receipt, ...] = ()) -> Receipts:
    return build_receipts(RunLedger("run-1", calls, receipts))


DONE = call()
VOID = call("void", state=CallState.VOID)


@pytest.mark.parametrize(
    ("one", "receipt", "status", "evidence"),
    [
        (DONE, proof(DONE), "claimed", "agent"),
        (DONE, proof(DONE, "message-7"), "confirmed", "external id"),
        (DONE, proof(DONE, origin="probe"), "confirmed", "probe"),
        (DONE, proof(DONE, origin="person"), "confirmed", "person"),
        (DONE, None, "claimed", ""),
        (call(state=CallState.IN_DOUBT), None, "in doubt", ""),
        (call(state=CallState.PREPARED), None, "in doubt", ""),
        (call(door="stream"), proof(DONE, "message-7"), "ungated", "external id"),
        (call(door="stream", state=CallState.IN_DOUBT), None, "in doubt", ""),
        (call(decision=Decision.STORED, original="first"), None, "replayed", ""),
        (call(original="void"), proof(DONE), "replayed", "agent"),
        (call(original="asked"), proof(DONE), "claimed", "agent"),
    ],
)
def test_the_status_is_what_the_evidence_allows(one: Call, receipt: Receipt | None, status: str, evidence: str) -> None:
    asked = call("asked", state=CallState.DENIED, decision=Decision.ASK, answer="allow")
    found = told(VOID, asked, one, receipts=(receipt,) if receipt else ())
    (effect,) = found.effects
    assert (effect.status, effect.evidence) == (status, evidence)
    assert effect.original == (one.original if status == "replayed" else None)
    assert status in STATUS_MEANINGS


def test_what_was_not_made_is_counted_and_not_listed() -> None:
    found = told(
        VOID,
        call("failed", state=CallState.FAILED),
        call("no", state=CallState.DENIED, decision=Decision.DENY),
        call("asked", state=CallState.DENIED, decision=Decision.ASK),
        call("read", call_class=CallClass.READ),
    )
    assert (found.effects, found.unknown) == ((), ())
    text = render_receipts(found)
    assert "This run has no effects." in text
    assert text.endswith("Not listed: 2 known not to have happened, 1 denied, 1 needed approval.\n")


def test_an_unknown_call_that_was_cut_off_stands_apart() -> None:
    cut_off = call("u", call_class=CallClass.UNKNOWN, state=CallState.IN_DOUBT, input='{"command":"./deploy|x"}')
    found = told(cut_off, call("v", call_class=CallClass.UNKNOWN))
    assert (found.effects, found.unknown) == ((), (cut_off,))
    assert "## Outcome unknown" in render_receipts(found)
    assert "mail command=./deploy\\|x" in render_receipts(found)
    assert receipts_to_json(found)["unknown"][0]["call"] == "u"


def test_a_fork_shows_what_it_inherits_up_to_the_fork() -> None:
    oldest = call("g", run_id="grandparent", step=3)
    later = call("p9", run_id="parent", step=9)
    doubt = call("p1", run_id="parent", step=1, state=CallState.IN_DOUBT)
    ancestors = [RunLedger("parent", [doubt, later], [proof(later)], 5), RunLedger("grandparent", [oldest], [], None)]
    found = build_receipts(RunLedger("run-1", [DONE], [proof(DONE)]), ancestors)
    assert [(one.call.id, one.inherited) for one in found.effects] == [("g", True), ("p1", True), ("call-1", False)]
    assert "claimed (inherited from grandparent)" in render_receipts(found)
    assert [one["run"] for one in receipts_to_json(found)["effects"]] == ["grandparent", "parent", "run-1"]


def test_json_has_whole_keys_and_every_external_id() -> None:
    one = call(key="k" * 64, external='{"pr":"12","url":"https://x/12"}', duration_ms=1_500, finished_at=AT + 9)
    (effect,) = receipts_to_json(told(one, receipts=(proof(one, "message-7"),)))["effects"]
    assert effect == {
        "status": "confirmed",
        "evidence": "external id",
        "original": None,
        "inherited": False,
        "external": {"pr": "12", "url": "https://x/12", "id": "message-7"},
        "run": "run-1",
        "call": "call-1",
        "at": "2023-11-14T22:13:20.000Z",
        "finished_at": "2023-11-14T22:13:20.009Z",
        "duration_ms": 1_500,
        "tool": "mail",
        "what": "mail to=bob",
        "rule": "mails",
        "key": "k" * 64,
        "target": "mail:bob",
        "door": "hook",
        "state": "done",
        "attempt": 1,
        "turn": 1,
        "step": 2,
    }


def test_an_external_id_that_has_a_name_is_told_once() -> None:
    one = call(external='{"pr":"12"}')
    assert told(one, receipts=(proof(one, "12"),)).effects[0].external == {"pr": "12"}


@pytest.mark.parametrize("external", ["not json", "[1]", "7"])
def test_external_ids_that_cannot_be_read_break_nothing(external: str) -> None:
    assert told(call(external=external)).effects[0].external == {}


def test_the_table_is_aligned_and_every_row_is_one_line() -> None:
    hostile: dict[str, Any] = {"target": "a|b\n# c\x1b[2J" + "x" * 500, "tool": "mail\t|"}
    long = call("second", key="0123456789abcdef", external='{"pr":"12"}', duration_ms=61_000, **hostile)
    lines = render_receipts(told(DONE, long)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert len({len(row) for row in rows}) == 1
    assert "| 0123456789ab |" in rows[3]
    assert "pr=12" in rows[3]
    assert "61.0 s" in rows[3]
    assert not any(ord(letter) < 32 for line in lines for letter in line)
    assert "- **claimed**: " in "\n".join(lines)
    assert "- **in doubt**" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\\|b|c", "a\\\\\\|b\\|c"),  # two backslashes before a bar would end the column
        ("<img src=x>", "\\<img src=x>"),
        ("![x](https://evil.example/x.png)", "!\\[x](https://evil.example/x.png)"),
        ("`x`", "\\`x\\`"),
        ("mail:\N{RIGHT-TO-LEFT OVERRIDE}bob", "mail:\N{REPLACEMENT CHARACTER}bob"),
    ],
)
@pytest.mark.parametrize("where", ["target", "tool", "external"])
def test_what_an_agent_wrote_is_nothing_but_text(text: str, shown: str, where: str) -> None:
    given = {where: json.dumps({"id": text}) if where == "external" else text}
    row = render_receipts(told(call(**given))).splitlines()[4]
    assert shown in row.replace("mail: bob", "mail:\N{REPLACEMENT CHARACTER}bob")
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 11
