"""What `jackline policy explain` tells of a call: its rule and why, what makes it the same call, what a crash means."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from jackline.domain import keys
from jackline.domain.judging import Where, judge
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import UsageError
from jackline.formatting import make_printable
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.cli.output import Output
    from jackline.domain.judging import Judgement
    from jackline.domain.rule import Rule

SHELL = "Bash"


def explain(args: Namespace, rules: tuple[Rule, ...], problems: tuple[str, ...], out: Output) -> int:
    """Print it; nothing is run and nothing is written down."""
    tool, given = _call(args)
    folder = os.path.realpath(os.getcwd())
    judged = judge(rules, tool, given, Where(folder, folder))
    if args.input is None and args.command is None:  # asked about the tool as such: no input is no mistake
        judged = judged._replace(mistake="")
    told = _told(tool, given, judged, folder)
    if out.json:
        out.json_line({**told, "problems": list(problems)})
        return 0
    for problem in problems:
        out.note(f"jackline: {problem}")
    _print(told, judged, out)
    return 0


def _call(args: Namespace) -> tuple[str, Any]:
    if args.command is not None:
        return args.tool or SHELL, {"command": args.command}
    if not args.tool:
        raise UsageError("which tool? `jackline policy explain TOOL --input JSON`, or --command 'git push'")
    if args.input is None:
        return args.tool, {}
    try:
        return args.tool, json.loads(args.input)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is no JSON: {error}") from None


def _told(tool: str, given: object, judged: Judgement, folder: str) -> dict[str, Any]:
    rule = judged.rule
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
        "target_here": _target(rule, given, judged, folder),
        "probe": rule.probe,
        "replay": str(rule.replay),
        "max": rule.most,
        "host": sorted(judged.wants),
        "hint": rule.hint,
        "after_a_crash": _after(rule),
    }


def _target(rule: Rule, given: object, judged: Judgement, folder: str) -> str:
    """As far as it can be told without asking the host."""
    normal = keys.normalise(given, folder)
    return keys.target(rule, normal, {**{name: f"<{name}>" for name in judged.wants}, **judged.fields})


def _after(rule: Rule) -> str:
    if rule.decision is Decision.DENY:
        return "nothing: it never runs"
    match rule.call_class, rule.replay:
        case ((CallClass.READ | CallClass.LOCAL), Replay.EXACT):
            return "it is simply made again"
        case ((CallClass.READ | CallClass.LOCAL), Replay.ASK):
            return "it is given up: the agent may make it again, and need not"
        case CallClass.UNKNOWN, _:
            return "its outcome is unknown: the agent is told, and an identical call is denied once; --strict: in doubt"
        case _, Replay.RELAUNCH:
            return "it is abandoned and started again; an output that was finished is used again"
        case _:
            asked = "made again with the same key" if rule.replay is Replay.IDEMPOTENT else "a person is asked"
            return f"the probe says whether it happened; if it cannot, {asked}" if rule.probe else f"in doubt: {asked}"


def _print(told: dict[str, Any], judged: Judgement, out: Output) -> None:
    facts = {
        "tool": told["tool"],
        "mistake": told["mistake"] and f"{told['mistake']}; such a call is denied",
        "rule": f"{told['rule']} ({told['layer']})",
        "class": told["class"],
        "decision": told["decision"],
        "key": ", ".join(told["key"]) or "the whole input",
        "target": told["target"] and f"{told['target_here']}    from {told['target']}",
        "host": told["host"] and f"{', '.join(told['host'])}: looked up when it is called",
        "probe": told["probe"],
        "replay": told["replay"],
        "max": "" if told["max"] is None else f"{told['max']} in one run",
        "hint": told["hint"],
        "crash": told["after_a_crash"],
    }
    for name, text in facts.items():
        if text:
            out.line(f"{name:<9} {make_printable(text)}")
    for match in judged.matches:
        out.line(f"{'command':<9} {make_printable(match.words)}: {match.rule}, {make_printable(match.why)}")
