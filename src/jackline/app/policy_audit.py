"""What the ledgers of a home tell about the policy: what no rule knew, what was asked and denied, how inputs vary.

It reads run after run and keeps counts, never calls: its memory does not grow with the number of runs.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple, stored_as
from jackline.store.contract import RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.domain.records import Call, Run

PAGE = 200
MOST_NAMES = 500  # different tools, rules or programs that are told apart; the rest is one number
MOST_VALUES = 1_000  # different inputs, or values of one field, that are counted
MOST_FIELDS = 40
REST = "(more)"
_EXAMPLE = 200


class FieldUse(NamedTuple):
    """One field of a tool's inputs, and how many values it had; no more than MOST_VALUES are counted."""

    name: str
    values: int


@stored_as("tool calls unknown inputs repeated fields example")
class ToolUse(NamedTuple):
    """How one tool was used."""

    tool: str
    calls: int
    unknown: int
    inputs: int  # different ones
    repeated: int  # keys that were used more than once in one run
    fields: tuple[FieldUse, ...]
    example: str  # an input that no rule knew, cut


@stored_as("rule calls allowed asked denied stored")
class RuleUse(NamedTuple):
    """How often a rule decided, and what."""

    rule: str
    calls: int
    allowed: int
    asked: int
    denied: int
    stored: int


@stored_as("runs calls tools rules programs unread default")
class Audit(NamedTuple):
    """Everything that was counted, the most frequent first."""

    runs: int
    calls: int
    tools: tuple[ToolUse, ...]
    rules: tuple[RuleUse, ...]
    programs: tuple[tuple[str, int], ...]  # commands in shells that no rule knew, by program
    unread: int  # shell calls whose commands could not be told
    default: tuple[tuple[str, int], ...]  # calls that nobody's rule knew, by the decision that they got


def audit(home: Home, since: int | None = None) -> Audit:
    """Read every ledger since then."""
    count = _Count()
    for run in _runs(home, since):
        count.take(run, home.store().calls(run.id))
    return count.told()


def _runs(home: Home, since: int | None) -> Iterator[Run]:
    before = None
    while page := home.list_runs(RunQuery(since=since, before=before, limit=PAGE)):
        for row in page:
            run = home.store().run(row.id)
            if run is not None:
                yield run
        before = (page[-1].created_at, page[-1].id)


class _Values:
    """How many different things were seen, of which no more than so many are kept, as hashes."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def add(self, text: str) -> None:
        if len(self._seen) < MOST_VALUES:
            self._seen.add(hash(text))

    def __len__(self) -> int:
        return len(self._seen)


class _Tool:
    """What was seen of one tool so far."""

    def __init__(self) -> None:
        self.calls = self.unknown = self.repeated = 0
        self.inputs, self.fields, self.example = _Values(), dict[str, _Values](), ""

    def take(self, call: Call) -> None:
        self.calls += 1
        self.inputs.add(call.input)
        for name, value in _object(call.input).items():
            if name in self.fields or len(self.fields) < MOST_FIELDS:
                self.fields.setdefault(name, _Values()).add(json.dumps(value, sort_keys=True))
        if call.call_class is CallClass.UNKNOWN:
            self.unknown += 1
            self.example = self.example or call.input[:_EXAMPLE]

    def told(self, name: str) -> ToolUse:
        fields = tuple(FieldUse(one, len(values)) for one, values in sorted(self.fields.items()))
        return ToolUse(name, self.calls, self.unknown, len(self.inputs), self.repeated, fields, self.example)


class _Count:
    """All that was seen so far."""

    def __init__(self) -> None:
        self.runs = self.calls = self.unread = 0
        self._tools: dict[str, _Tool] = {}
        self._rules: dict[str, Counter[str]] = {}
        self._programs: Counter[str] = Counter()
        self._default: Counter[str] = Counter()

    def take(self, run: Run, calls: list[Call]) -> None:
        self.runs += 1
        self.calls += len(calls)
        for call in calls:
            self._tool(call.tool).take(call)
            self._rules.setdefault(_known(call.rule, self._rules), Counter())[call.decision] += 1
            if call.call_class is CallClass.UNKNOWN:
                self._take_unknown(run, call)
        for (tool, _), times in Counter((call.tool, call.key) for call in calls).items():
            self._tool(tool).repeated += times > 1

    def told(self) -> Audit:
        tools = sorted((one.told(name) for name, one in self._tools.items()), key=_by_calls)
        rules = sorted((_rule_use(name, said) for name, said in self._rules.items()), key=_by_calls)
        return Audit(
            self.runs,
            self.calls,
            tuple(tools),
            tuple(rules),
            tuple(self._programs.most_common()),
            self.unread,
            tuple(self._default.most_common()),
        )

    def _tool(self, name: str) -> _Tool:
        return self._tools.setdefault(_known(name, self._tools), _Tool())

    def _take_unknown(self, run: Run, call: Call) -> None:
        if call.rule not in {rule.name for rule in run.spec.rules}:
            self._default[call.decision] += 1
        found = _unknown_programs(run, call)
        if found is None:
            self.unread += 1
        for program in found or ():
            self._programs[_known(program, self._programs)] += 1


def _by_calls(use: ToolUse | RuleUse) -> tuple[int, str]:
    return (-use.calls, use[0])


def _known(name: str, seen: dict[str, _Tool] | dict[str, Counter[str]] | Counter[str]) -> str:
    return name if name in seen or len(seen) < MOST_NAMES else REST


def _rule_use(name: str, said: Counter[str]) -> RuleUse:
    decided = [said[one] for one in (Decision.ALLOW, Decision.ASK, Decision.DENY, Decision.STORED)]
    return RuleUse(name, sum(decided), *decided)


def _object(text: str) -> dict[str, object]:
    """An input's fields; the beginning of a large one is no JSON, and has none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _unknown_programs(run: Run, call: Call) -> list[str] | None:
    """The programs in a shell's call that no rule knows; None if it is one, and cannot be told."""
    from jackline.domain import builtin, policy
    from jackline.domain.builtin.tools import SHELLS
    from jackline.domain.judging import Where, judge

    if call.tool not in SHELLS:
        return []
    folder = run.spec.workspace
    judged = judge(run.spec.rules, call.tool, _object(call.input), Where(folder, folder))
    if not judged.matches or any(match.rule == builtin.UNPARSED.name for match in judged.matches):
        return None
    return [match.words.split()[0] for match in judged.matches if match.rule == policy.UNKNOWN.name and match.words]
