"""What `jackline policy audit` prints: Markdown for people, one JSON object for programs. It counts nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import policy_audit
from jackline.app.policy_audit import MOST_VALUES
from jackline.cli.commands.list import parse_since
from jackline.formatting import make_printable, pluralize
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from jackline.app.home import Home
    from jackline.app.policy_audit import Audit, ToolUse
    from jackline.cli.output import Output

_LONGEST_CELL = 80


def audit(args: Namespace, home: Home, out: Output) -> int:
    """Count, then tell."""
    found = policy_audit.audit(home, parse_since(args.since) if args.since else None)
    if out.json or args.format == "json":
        out.json_line(_record(found))
    else:
        out.line("\n".join(_page(found)).rstrip())
    return 0


def _record(found: Audit) -> dict[str, object]:
    return {
        **stored_dict(found),
        "tools": [
            {**stored_dict(tool), "fields": {one.name: one.values for one in tool.fields}} for tool in found.tools
        ],
        "rules": [stored_dict(rule) for rule in found.rules],
        "programs": dict(found.programs),
        "default": dict(found.default),
    }


def _page(found: Audit) -> Iterator[str]:
    yield "# What the policy made of the calls"
    yield ""
    yield f"{pluralize(found.runs, 'run')}, {pluralize(found.calls, 'call')}."
    if not found.calls:
        return
    unknown = [tool for tool in found.tools if tool.unknown]
    yield from _table(
        "Tools that no rule knew",
        "tool calls unknown example",
        [(t.tool, t.calls, t.unknown, t.example) for t in unknown],
    )
    yield from _table("Commands in shells that no rule knew", "program times", found.programs)
    if found.unread:
        yield f"\n{pluralize(found.unread, 'shell call')} could not be taken apart."
    yield from _table("Calls that fell to the default", "decision calls", found.default)
    rules = [(one.rule, one.calls, one.allowed, one.asked, one.denied, one.stored) for one in found.rules]
    yield from _table("Rules that were used", "rule calls allowed asked denied stored", rules)
    inputs = [(one.tool, _most(one.inputs), one.repeated, _varying(one)) for one in found.tools]
    yield from _table("How inputs vary", "tool inputs repeated_keys fields", inputs)


def _varying(tool: ToolUse) -> str:
    return ", ".join(f"{one.name} {_most(one.values)}" for one in tool.fields) or "-"


def _most(count: int) -> str:
    return str(count) if count < MOST_VALUES else f"{MOST_VALUES} or more"


def _table(title: str, columns: str, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"\n## {title}\n"
    names = [name.replace("_", " ") for name in columns.split()]
    lines = [f"| {' | '.join(_cell(one) for one in row)} |" for row in rows]
    if not lines:
        yield "None."
        return
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    yield from lines


def _cell(value: object) -> str:
    """Foreign text in a table: in one line, not endless, and no column of its own."""
    text = make_printable(str(value)).replace("|", "\\|")
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"
