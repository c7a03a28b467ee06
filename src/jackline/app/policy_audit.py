"""Audits the policy against the recorded calls of a home: unmatched calls, decisions, variation of inputs.

It reads one run at a time and keeps only counts, so memory does not grow with the number of runs.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple, stored_as
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.records import Call, Run

PAGE = 200
MOST_NAMES = 500  # distinct tools, rules or programs; the rest is counted together
MOST_VALUES = 1_000  # distinct inputs, or values of one field, that are counted
MOST_FIELDS = 40
REST = "(more)"
_EXAMPLE = 200


class FieldUse(NamedTuple):
    """One field of a tool's inputs, and its number of distinct values, up to MOST_VALUES."""

    name: str
    values: int


@stored_as("tool calls unknown inputs repeated fields example")
class ToolUse(NamedTuple):
    """The usage of one tool."""

    tool: str
    calls: int
    unknown: int
    inputs: int  # distinct inputs
    repeated: int  # keys used more than once in one run
    fields: tuple[FieldUse, ...]
    example: str  # an unmatched input, truncated


@stored_as("rule calls allowed asked denied stored")
class RuleUse(NamedTuple):
    """The decisions of one rule."""

    rule: str
    calls: int
    allowed: int
    asked: int
    denied: int
    stored: int


@stored_as("runs calls tools rules programs unread default")
class PolicyAudit(NamedTuple):
    """All counts, most frequent first."""

    runs: int
    calls: int
    tools: tuple[ToolUse, ...]
    rules: tuple[RuleUse, ...]
    programs: tuple[tuple[str, int], ...]  # unmatched shell commands, by program
    unread: int  # shell calls that could not be parsed
    default: tuple[tuple[str, int], ...]  # unmatched calls, by decision


def audit_policy(home: Home, since: int | None = None) -> PolicyAudit:
    """Count the calls of all runs since then."""
    count = _AuditCounter()
    before = None
    while page := home.list_runs(RunQuery(since=since, before=before, limit=PAGE)):
        for row in page:
            run = home.store().runs.get(row.id)
            if run is not None:
                count.add_run(run, home.store().calls.list_all(run.id))
        before = (page[-1].created_at, page[-1].id)
    return count.build_audit()


class _DistinctCounter:
    """Counts distinct texts up to a limit; it keeps only their hashes."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def add(self, text: str) -> None:
        if len(self._seen) < MOST_VALUES:
            self._seen.add(hash(text))

    def __len__(self) -> int:
        return len(self._seen)


class _ToolCounter:
    """Running counts of one tool."""

    def __init__(self) -> None:
        self.calls = self.unknown = self.repeated = 0
        self.inputs, self.fields, self.example = _DistinctCounter(), dict[str, _DistinctCounter](), ""

    def add_call(self, call: Call) -> None:
        self.calls += 1
        self.inputs.add(call.input)
        for name, value in _parse_fields(call.input).items():
            if name in self.fields or len(self.fields) < MOST_FIELDS:
                self.fields.setdefault(name, _DistinctCounter()).add(json.dumps(value, sort_keys=True))
        if call.call_class is CallClass.UNKNOWN:
            self.unknown += 1
            self.example = self.example or call.input[:_EXAMPLE]

    def build_use(self, name: str) -> ToolUse:
        fields = tuple(FieldUse(one, len(values)) for one, values in sorted(self.fields.items()))
        return ToolUse(
            tool=name,
            calls=self.calls,
            unknown=self.unknown,
            inputs=len(self.inputs),
            repeated=self.repeated,
            fields=fields,
            example=self.example,
        )


class _AuditCounter:
    """Running counts of all runs."""

    def __init__(self) -> None:
        self.runs = self.calls = self.unread = 0
        self._tools: dict[str, _ToolCounter] = {}
        self._rules: dict[str, Counter[str]] = {}
        self._programs: Counter[str] = Counter()
        self._default: Counter[str] = Counter()

    def add_run(self, run: Run, calls: list[Call]) -> None:
        self.runs += 1
        self.calls += len(calls)
        for call in calls:
            self._find_tool(call.tool).add_call(call)
            self._rules.setdefault(_limit_name(call.rule, self._rules), Counter())[call.decision] += 1
            if call.call_class is CallClass.UNKNOWN:
                self._add_unknown(run, call)
        for (tool, _), times in Counter((call.tool, call.key) for call in calls).items():
            self._find_tool(tool).repeated += times > 1

    def build_audit(self) -> PolicyAudit:
        tools = sorted((one.build_use(name) for name, one in self._tools.items()), key=_rank_by_calls)
        rules = []
        for name, decisions in self._rules.items():
            counts = [decisions[one] for one in (Decision.ALLOW, Decision.ASK, Decision.DENY, Decision.STORED)]
            rules.append(RuleUse(name, sum(counts), *counts))
        return PolicyAudit(
            runs=self.runs,
            calls=self.calls,
            tools=tuple(tools),
            rules=tuple(sorted(rules, key=_rank_by_calls)),
            programs=tuple(self._programs.most_common()),
            unread=self.unread,
            default=tuple(self._default.most_common()),
        )

    def _find_tool(self, name: str) -> _ToolCounter:
        return self._tools.setdefault(_limit_name(name, self._tools), _ToolCounter())

    def _add_unknown(self, run: Run, call: Call) -> None:
        if call.rule not in {rule.name for rule in run.spec.rules}:
            self._default[call.decision] += 1
        found = _find_unknown_programs(run, call)
        if found is None:
            self.unread += 1
        for program in found or ():
            self._programs[_limit_name(program, self._programs)] += 1


def _rank_by_calls(use: ToolUse | RuleUse) -> tuple[int, str]:
    return (-use.calls, use[0])


def _limit_name(name: str, seen: dict[str, _ToolCounter] | dict[str, Counter[str]] | Counter[str]) -> str:
    return name if name in seen or len(seen) < MOST_NAMES else REST


def _parse_fields(text: str) -> dict[str, object]:
    """Return the fields of an input; a truncated large input is not valid JSON and has none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _find_unknown_programs(run: Run, call: Call) -> list[str] | None:
    """Return the unmatched programs of a shell call; None if it cannot be parsed."""
    from jackline.policy import builtin, rule_lookup
    from jackline.policy.call_context import build_context
    from jackline.policy.classify import classify_call
    from jackline.policy.tool_names import SHELL_TOOLS

    if call.tool not in SHELL_TOOLS:
        return []
    judged = classify_call(
        run.spec.rules, call.tool, _parse_fields(call.input), build_context(run.spec, run.spec.workspace)
    )
    if not judged.matches or any(match.rule == builtin.UNPARSED.name for match in judged.matches):
        return None
    return [
        match.words.split()[0] for match in judged.matches if match.rule == rule_lookup.UNMATCHED.name and match.words
    ]
