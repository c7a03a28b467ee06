"""The audit of the policy: it counts what the ledgers hold, and stays small however many runs and names there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from jackline.app import policy_audit
from jackline.app.policy_audit import MOST_FIELDS, MOST_NAMES, MOST_VALUES, PAGE, REST
from jackline.domain.records import Call, Run, RunStatus
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.store.models import RunQuery


def call(number: int, **fields: Any) -> Call:
    """A call that no rule knew."""
    plain: dict[str, Any] = {
        "id": f"c{number}", "run_id": "r", "attempt": 1, "turn": 1, "step": 1, "occurrence": 0, "tool": "t",
        "call_class": CallClass.UNKNOWN, "replay": Replay.ASK, "decision": Decision.ALLOW, "rule": "unmatched",
        "door": "d", "key": f"k{number}", "target": "", "input": "{}", "state": CallState.DONE, "prepared_at": 1,
    }  # fmt: skip
    return Call(**{**plain, **fields})


class Row:
    """A line of a list, as far as the audit looks at it."""

    def __init__(self, number: int) -> None:
        self.id, self.created_at = f"r{number:04}", number


class Ledgers:
    """A home with so many runs, each with these calls; `pages` is how often a list was asked for."""

    def __init__(self, runs: int, calls: list[Call]) -> None:
        self._rows = [Row(number) for number in range(runs, 0, -1)]
        self._calls, self.pages = calls, 0

    def list_runs(self, query: RunQuery) -> list[Row]:
        self.pages += 1
        before = query.before
        rest = [row for row in self._rows if before is None or (row.created_at, row.id) < before]
        return rest[: query.limit]

    def store(self) -> Ledgers:
        return self

    @property
    def runs(self) -> Ledgers:
        return self

    @property
    def calls(self) -> Ledgers:
        return self

    def get(self, run_id: str) -> Run:
        return Run(run_id, 1, "", "l", None, Spec("", "/w"), RunStatus(), None, 0, "", 0, 0)

    def list_all(self, _run_id: str) -> list[Call]:
        return self._calls


def audited(runs: int, calls: Iterator[Call] | list[Call]) -> policy_audit.PolicyAudit:
    return policy_audit.audit_policy(cast("Any", Ledgers(runs, list(calls))))


def test_runs_are_read_page_by_page_and_each_once() -> None:
    home = Ledgers(PAGE * 2 + 1, [call(1)])
    found = policy_audit.audit_policy(cast("Any", home))
    assert (found.runs, found.calls, home.pages) == (PAGE * 2 + 1, PAGE * 2 + 1, 4)


def test_many_names_become_one_line() -> None:
    found = audited(1, (call(number, tool=f"tool{number}", rule=f"rule{number}") for number in range(MOST_NAMES + 5)))
    assert len(found.tools) == len(found.rules) == MOST_NAMES + 1
    assert next(tool.calls for tool in found.tools if tool.tool == REST) == 5
    assert sum(rule.calls for rule in found.rules) == MOST_NAMES + 5


def test_many_values_and_fields_are_not_all_kept() -> None:
    inputs = [json.dumps({"a": number, f"f{number}": 1}) for number in range(MOST_VALUES + 5)]
    (tool,) = audited(1, [call(number, input=text) for number, text in enumerate(inputs)]).tools
    assert tool.inputs == MOST_VALUES
    assert len(tool.fields) == MOST_FIELDS
    assert next(field.values for field in tool.fields if field.name == "a") == MOST_VALUES


def test_a_key_counts_as_repeated_within_one_run_only() -> None:
    (tool,) = audited(3, [call(1, key="k"), call(2, key="k"), call(3, key="other")]).tools
    assert (tool.calls, tool.repeated) == (9, 3)


def test_the_beginning_of_a_large_input_and_one_that_is_no_object_are_no_error() -> None:
    texts = ['{"command": "ls', "[1]", '"x"', "", "not json"]
    (tool,) = audited(1, [call(number, input=text) for number, text in enumerate(texts)]).tools
    assert (tool.calls, tool.fields, tool.example) == (5, (), texts[0])
