"""Prints `jackline policy explain` and `jackline policy audit`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from jackline.app import policy_audit
from jackline.app.policy_audit import MOST_VALUES
from jackline.cli.commands.list import parse_since
from jackline.domain.states import CallClass, Decision, Replay
from jackline.engine.program_links import make_resolver
from jackline.errors import UsageError
from jackline.formatting import format_command, make_printable, pluralize
from jackline.named import stored_dict
from jackline.policy import keys
from jackline.policy.agreements import list_rule_names
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.profiles import NONE, describe_rule
from jackline.policy.rule_lookup import is_unmatched

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from jackline.app.home import Home
    from jackline.app.policy_audit import PolicyAudit
    from jackline.cli.output import Output
    from jackline.policy.classify import Classification
    from jackline.policy.rules import Rule

DEFAULT_TOOL = "Bash"


def print_explanation(
    args: Namespace, home: Home, rules: tuple[Rule, ...], problems: tuple[str, ...], out: Output
) -> int:
    """Run `policy explain`; it runs no call and stores nothing."""
    tool, given = _parse_call(args, rules)
    folder = os.path.realpath(os.getcwd())
    unmatched = Decision(home.config.get_text("unmatched"))
    where = CallContext(folder, folder, unmatched=unmatched, resolve_link=make_resolver(folder))
    judged = classify_call(rules, tool, given, where)
    if not given:  # the tool in general: a missing input is valid
        judged = judged._replace(mistake="")
    redact = home.make_redactor().redact
    matches = tuple(one._replace(words=redact(one.words), why=redact(one.why)) for one in judged.matches)
    judged = judged._replace(mistake=redact(judged.mistake), matches=matches)
    record = _build_record(redact(tool), given, judged, folder)
    profile = home.config.get_text("profile")
    is_asked = judged.rule.decision is Decision.ASK and profile != NONE
    record["profile"] = f"{profile}: {describe_rule(profile, judged.rule.name)}" if is_asked else ""
    is_asking = judged.rule.decision is Decision.ASK and not judged.mistake
    names = list_rule_names(judged.rule.name) if is_asking else []
    record["agree"] = " ".join(format_command("--allow", name) for name in names)
    record["unmatched"] = str(unmatched) if is_unmatched(judged.rule) else ""
    record["target_here"] = redact(record["target_here"])
    if out.json:
        out.print_json({**record, "problems": list(problems)})
        return 0
    for problem in problems:
        out.print_note(f"jackline: {problem}")
    _print_record(record, judged, out)
    return 0


def _parse_call(args: Namespace, rules: tuple[Rule, ...]) -> tuple[str, Any]:
    """Return the tool and its input. Without --input and --command, words that name no tool are a shell command."""
    words = [*args.words, *args.arguments]
    if args.command is None and args.input is None:
        if not words:
            raise UsageError("no call given; use `jackline policy explain git push`, or TOOL with --input JSON")
        if args.arguments or len(words) > 1 or not _is_tool(words[0], rules):
            return DEFAULT_TOOL, {"command": words[0] if len(words) == 1 else format_command(*words)}
        return words[0], {}
    if len(words) > 1:
        raise UsageError(f"{' '.join(words)} is not one tool; with --input or --command give at most one TOOL")
    if args.command is not None:
        return words[0] if words else DEFAULT_TOOL, {"command": args.command}
    if not words:
        raise UsageError("--input needs a TOOL, such as `jackline policy explain Edit --input JSON`")
    try:
        return words[0], json.loads(args.input)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is not valid JSON: {error}") from None


def _is_tool(word: str, rules: tuple[Rule, ...]) -> bool:
    """Whether one word names a tool: one that a rule names, an MCP tool, or a name with capitals, unlike a program."""
    from jackline.policy.builtin.agent_tools import TOOL_RULES
    from jackline.policy.tool_names import SHELL_TOOLS

    named = any(rule.tool == word for rule in (*rules, *TOOL_RULES))
    has_name_of_tool = word in SHELL_TOOLS or "__" in word or word != word.lower()
    return named or (has_name_of_tool and len(word.split()) == 1)  # `curl -X POST …` in quotes is a command


def _build_record(tool: str, given: object, judged: Classification, folder: str) -> dict[str, Any]:
    rule = judged.rule
    # Fields that only the host knows are shown by name.
    fields = {**{name: f"<{name}>" for name in judged.host_inputs}, **judged.fields}
    target = keys.build_target(rule, keys.normalize_input(given, folder), fields)
    return {
        "tool": tool,
        "rule": rule.name,
        "layer": rule.layer,
        "class": str(rule.call_class),
        "decision": "deny" if judged.mistake else str(rule.decision),
        "mistake": judged.mistake,
        "matches": [stored_dict(match) for match in judged.matches],
        "key": list(rule.key),
        "target": rule.target,
        "target_here": target,
        "probe": rule.probe,
        "replay": str(rule.replay),
        "max": rule.most,
        "host": sorted(judged.host_inputs),
        "hint": rule.hint,
        "after_a_crash": _describe_crash(rule),
    }


def _describe_crash(rule: Rule) -> str:
    if rule.decision is Decision.DENY:
        return "nothing, because it never runs"
    match rule.call_class, rule.replay:
        case ((CallClass.READ | CallClass.LOCAL), Replay.EXACT):
            return "the agent has to repeat it before any other call"
        case ((CallClass.READ | CallClass.LOCAL), (Replay.REPORT | Replay.ASK)):
            return "it is abandoned; the agent is told once, and may repeat it"
        case CallClass.UNKNOWN, _:
            return (
                "its outcome is unknown; the agent is told, and an identical call is denied once (--strict: in doubt)"
            )
        case _, Replay.RELAUNCH:
            return "it is abandoned and started again; a finished output is reused"
        case _:
            fallback = "it is repeated with the same key" if rule.replay is Replay.IDEMPOTENT else "a person decides"
            if rule.probe:
                return f"the probe checks whether it happened; if it cannot tell, {fallback}"
            return f"it is in doubt: {fallback}"


def _print_record(record: dict[str, Any], judged: Classification, out: Output) -> None:
    facts = {
        "tool": record["tool"],
        "mistake": record["mistake"] and f"{record['mistake']}; the call is denied",
        "rule": f"{record['rule']} ({record['layer']})",
        "class": record["class"],
        "decision": record["decision"],
        "agree": record["agree"],
        "unmatched": record["unmatched"] and f"{record['unmatched']}: the setting for calls that no rule matches",
        "profile": record["profile"],
        "key": ", ".join(record["key"]) or "the whole input",
        "target": record["target"] and f"{record['target_here']}    from {record['target']}",
        "host": record["host"] and f"{', '.join(record['host'])}: looked up at call time",
        "probe": record["probe"],
        "replay": record["replay"],
        "max": "" if record["max"] is None else f"{record['max']} per run",
        "hint": record["hint"],
        "crash": record["after_a_crash"],
    }
    for name, text in facts.items():
        if text:
            out.print_line(f"{name:<9} {make_printable(text)}")
    for match in judged.matches:
        out.print_line(f"{'command':<9} {make_printable(match.words)}: {match.rule}, {make_printable(match.why)}")


_LONGEST_CELL = 80


def print_audit(args: Namespace, home: Home, out: Output) -> int:
    """Run `policy audit`."""
    found = policy_audit.audit_policy(home, parse_since(args.since) if args.since else None)
    if out.json or args.format == "json":
        tools = [{**stored_dict(tool), "fields": {one.name: one.values for one in tool.fields}} for tool in found.tools]
        record = {
            **stored_dict(found),
            "tools": tools,
            "rules": [stored_dict(rule) for rule in found.rules],
            "programs": dict(found.programs),
            "default": dict(found.default),
        }
        out.print_json(record)
    else:
        out.print_line("\n".join(_render_page(found)).rstrip())
    return 0


def _render_page(found: PolicyAudit) -> Iterator[str]:
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
    inputs = []
    for tool in found.tools:
        varying = ", ".join(f"{one.name} {_format_count(one.values)}" for one in tool.fields) or "-"
        inputs.append((tool.tool, _format_count(tool.inputs), tool.repeated, varying))
    yield from _render_table("Variation of inputs", "tool inputs repeated_keys fields", inputs)


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
