"""Prints `jackline policy explain`: the rule of a call and why, its key, and what happens after a crash."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from jackline.domain import keys
from jackline.domain.judging import Where, judge
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import UsageError
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.cli.output import Output
    from jackline.domain.judging import Judgement
    from jackline.domain.rule import Rule

SHELL = "Bash"


def explain(args: Namespace, rules: tuple[Rule, ...], problems: tuple[str, ...], out: Output) -> int:
    """Run `policy explain`; it runs no call and stores nothing."""
    tool, given = _parse_call(args)
    folder = os.path.realpath(os.getcwd())
    judged = judge(rules, tool, given, Where(folder, folder))
    if (
        args.input is None and args.command is None
    ):  # the question is about the tool in general, so a missing input is valid
        judged = judged._replace(mistake="")
    record = _build_record(tool, given, judged, folder)
    if out.json:
        out.json_line({**record, "problems": list(problems)})
        return 0
    for problem in problems:
        out.note(f"jackline: {problem}")
    _print_record(record, judged, out)
    return 0


def _parse_call(args: Namespace) -> tuple[str, Any]:
    if args.command is not None:
        return args.tool or SHELL, {"command": args.command}
    if not args.tool:
        raise UsageError("no tool given; use `jackline policy explain TOOL --input JSON` or --command 'git push'")
    if args.input is None:
        return args.tool, {}
    try:
        return args.tool, json.loads(args.input)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is not valid JSON: {error}") from None


def _build_record(tool: str, given: object, judged: Judgement, folder: str) -> dict[str, Any]:
    rule = judged.rule
    # Fields that only the host knows are shown by name.
    fields = {**{name: f"<{name}>" for name in judged.wants}, **judged.fields}
    target = keys.target(rule, keys.normalise(given, folder), fields)
    return {
        "tool": tool,
        "rule": rule.name,
        "layer": rule.layer,
        "class": str(rule.call_class),
        "decision": "deny" if judged.mistake else str(rule.decision),
        "mistake": judged.mistake,
        "matches": [match._asdict() for match in judged.matches],
        "key": list(rule.key),
        "target": rule.target,
        "target_here": target,
        "probe": rule.probe,
        "replay": str(rule.replay),
        "max": rule.most,
        "host": sorted(judged.wants),
        "hint": rule.hint,
        "after_a_crash": _describe_crash(rule),
    }


def _describe_crash(rule: Rule) -> str:
    if rule.decision is Decision.DENY:
        return "nothing, because it never runs"
    match rule.call_class, rule.replay:
        case ((CallClass.READ | CallClass.LOCAL), Replay.EXACT):
            return "it is repeated"
        case ((CallClass.READ | CallClass.LOCAL), Replay.ASK):
            return "it is abandoned; the agent may repeat it"
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


def _print_record(record: dict[str, Any], judged: Judgement, out: Output) -> None:
    facts = {
        "tool": record["tool"],
        "mistake": record["mistake"] and f"{record['mistake']}; the call is denied",
        "rule": f"{record['rule']} ({record['layer']})",
        "class": record["class"],
        "decision": record["decision"],
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
            out.line(f"{name:<9} {make_printable(text)}")
    for match in judged.matches:
        out.line(f"{'command':<9} {make_printable(match.words)}: {match.rule}, {make_printable(match.why)}")
