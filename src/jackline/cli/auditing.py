"""Prints `jackline policy audit`, as Markdown or as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import policy_audit
from jackline.app.policy_audit import MOST_VALUES
from jackline.cli.commands.list import parse_since
from jackline.formatting import make_printable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from jackline.app.home import Home
    from jackline.app.policy_audit import Audit, ToolUse
    from jackline.cli.output import Output

_LONGEST_CELL = 80


def audit(args: Namespace, home: Home, out: Output) -> int:
    """Run `policy audit`."""
    found = policy_audit.audit(home, parse_since(args.since) if args.since else None)
    if out.json or args.format == "json":
        tools = [{**tool._asdict(), "fields": {one.name: one.values for one in tool.fields}} for tool in found.tools]
        record = {
            **found._asdict(),
            "tools": tools,
            "rules": [rule._asdict() for rule in found.rules],
            "programs": dict(found.programs),
            "default": dict(found.default),
        }
        out.json_line(record)
    else:
        out.line("\n".join(_render_page(found)).rstrip())
    return 0


def _render_page(found: Audit) -> Iterator[str]:
    yield "# Policy audit"
    yield ""
    yield f"{pluralize(found.runs, 'run')}, {pluralize(found.calls, 'call')}."
    if not found.calls:
        return
    unknown = [tool for tool in found.tools if tool.unknown]
    yield from _render_table(
        "Tools without a rule",
        "tool calls unknown example",
        [(t.tool, t.calls, t.unknown, t.example) for t in unknown],
    )
    yield from _render_table("Shell commands without a rule", "program times", found.programs)
    if found.unread:
        yield f"\n{pluralize(found.unread, 'shell call')} could not be parsed."
    yield from _render_table("Calls with the default decision", "decision calls", found.default)
    rules = [(one.rule, one.calls, one.allowed, one.asked, one.denied, one.stored) for one in found.rules]
    yield from _render_table("Used rules", "rule calls allowed asked denied stored", rules)
    inputs = [(one.tool, _format_count(one.inputs), one.repeated, _describe_fields(one)) for one in found.tools]
    yield from _render_table("Variation of inputs", "tool inputs repeated_keys fields", inputs)


def _describe_fields(tool: ToolUse) -> str:
    return ", ".join(f"{one.name} {_format_count(one.values)}" for one in tool.fields) or "-"


def _format_count(count: int) -> str:
    return str(count) if count < MOST_VALUES else f"{MOST_VALUES} or more"


def _render_table(title: str, columns: str, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"\n## {title}\n"
    names = [name.replace("_", " ") for name in columns.split()]
    lines = [f"| {' | '.join(_format_cell(one) for one in row)} |" for row in rows]
    if not lines:
        yield "None."
        return
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    yield from lines


def _format_cell(value: object) -> str:
    """Escape and truncate a value for a table cell."""
    text = make_printable(str(value)).replace("|", "\\|")
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"
