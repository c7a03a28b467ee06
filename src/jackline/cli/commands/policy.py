"""`jackline policy`: the rules of the gate as a run here would get them, and what they made of calls. It only looks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import policies
from jackline.errors import PolicyError
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.policy_reading import Parsed
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.rule import Rule

_ACTIONS = {
    "show": "the rules in the order in which they are looked at, as TOML",
    "check": "everything that is wrong with a policy file",
    "explain": "which rule a call falls under, why, and what comes of it",
    "audit": "what the runs of this home did that no rule knew, and what was asked and denied",
}
_FORMATS = ("md", "json")


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made = {
        name: actions.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in _ACTIONS.items()
    }
    made["show"].add_argument("--layer", choices=policies.LAYERS[1:], help="only the rules of this layer")
    made["check"].add_argument("file", metavar="FILE")
    made["explain"].add_argument("tool", nargs="?", metavar="TOOL", help="as the agent names it, such as Bash")
    given = made["explain"].add_mutually_exclusive_group()
    given.add_argument("--input", metavar="JSON", help="the input of the call")
    given.add_argument("--command", metavar="TEXT", help="short for the input of a shell (default TOOL: Bash)")
    made["audit"].add_argument("--format", choices=_FORMATS, default=_FORMATS[0])
    made["audit"].add_argument("--since", metavar="WHEN", help="45s, 30m, 2h, 3d, 1w, or a date such as 2026-11-01")


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "show":
            return _show(args, home, out)
        case "check":
            return _check(args.file, out)
        case "explain":
            from jackline.cli import explaining

            rules, problems = rules_here(home)
            return explaining.explain(args, rules, problems, out)
        case _:
            from jackline.cli import auditing

            return auditing.audit(args, home, out)


def rules_here(home: Home) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """What a run in this folder would get, and why a file is left out: looking goes on without it."""
    found = policies.load(os.environ, home.path, os.getcwd())
    return policies.combined((), found._replace(problems=())), (*found.problems, *found.notes)


def _show(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.policy_text import record_of, toml_of

    own, problems = rules_here(home)
    rules = [rule for rule in (*own, *policies.built_in()) if args.layer in {None, rule.layer}]
    if out.json:
        out.json_line({"rules": [record_of(rule) for rule in rules], "problems": list(problems)})
        return 0
    _note(problems, out)
    if rules:
        out.line(toml_of(rules))
    else:
        out.note("no rules")
    return 0


def _note(problems: tuple[str, ...], out: Output) -> None:
    for problem in problems:
        out.note(f"jackline: {problem}")


def _check(path: str, out: Output) -> int:
    parsed = policies.check(path)
    if out.json:
        mistakes = [stored_dict(one) for one in parsed.mistakes]
        record = {"file": path, "ok": not mistakes, "rules": len(parsed.rules), "mistakes": mistakes}
        out.json_line(record)
        return PolicyError.exit_code if mistakes else 0
    for mistake in parsed.mistakes:
        out.errors.write(f"jackline: {mistake.told(path)}\n")
    if parsed.mistakes:
        return PolicyError.exit_code
    out.line(f"{path}: {_summary(parsed)}")
    return 0


def _summary(parsed: Parsed) -> str:
    from collections import Counter

    from jackline.formatting import pluralize

    kinds = Counter(str(rule.call_class) for rule in parsed.rules)
    said = f" ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})" if kinds else ""
    return f"{pluralize(len(parsed.rules), 'rule')}{said}, nothing is wrong with it"
