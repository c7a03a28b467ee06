"""`jackline policy`: shows, checks, explains and audits the rules of the gate. Read-only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import policy_files
from jackline.errors import PolicyError
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.policy.rules import Rule

_ACTIONS = {
    "show": "print the rules in matching order, as TOML",
    "check": "list all errors of a policy file",
    "explain": "show which rule matches a call, why, and what follows",
    "audit": "summarize the calls of all runs: unmatched, asked and denied",
}
_FORMATS = ("md", "json")
INSIDE_RUN = ("show", "check", "explain", "audit")


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    actions["show"].add_argument("--layer", choices=policy_files.LAYERS[1:], help="only the rules of this layer")
    actions["check"].add_argument("file", metavar="FILE")
    actions["explain"].add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="a shell command, such as git push; or a tool by the agent's name for it, such as Bash",
    )
    actions["explain"].add_setting("profile")
    actions["explain"].add_setting("unmatched")
    given = actions["explain"].add_mutually_exclusive_group()
    given.add_argument("--input", metavar="JSON", help="the input of the call")
    given.add_argument("--command", metavar="TEXT", help="a shell command (default TOOL: Bash)")
    actions["explain"].epilog = "Write a command with flags after --, or in quotes: policy explain -- git push --force"
    parser.takes_arguments = True
    actions["audit"].add_argument("--format", choices=_FORMATS, default=_FORMATS[0])
    actions["audit"].add_argument("--since", metavar="WHEN", help="45s, 30m, 2h, 3d, 1w, or a date such as 2026-11-01")


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.action == "show":
        return _show_rules(args, home, out)
    if args.action == "check":
        return _check_file(args.file, out)
    from jackline.cli import policy_reports

    if args.action == "audit":
        return policy_reports.print_audit(args, home, out)
    rules, problems = load_rules_here(home)
    return policy_reports.print_explanation(args, home, rules, problems, out)


def load_rules_here(home: Home) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Return the rules of a run in this folder, and the problems of skipped files."""
    found = policy_files.load_layers(os.environ, home.path, home.config.get_text("database"), os.getcwd())
    return policy_files.merge_layers((), found._replace(problems=())), (*found.problems, *found.notes)


def _show_rules(args: Namespace, home: Home, out: Output) -> int:
    from jackline.policy.toml_rules import build_record, render_toml

    own, problems = load_rules_here(home)
    rules = [rule for rule in (*own, *policy_files.load_built_in()) if args.layer in {None, rule.layer}]
    if out.json:
        out.print_json({"rules": [build_record(rule) for rule in rules], "problems": list(problems)})
        return 0
    for problem in problems:
        out.print_note(f"jackline: {problem}")
    if rules:
        out.print_line(render_toml(rules))
    else:
        out.print_note("no rules")
    return 0


def _check_file(path: str, out: Output) -> int:
    parsed = policy_files.check_policy(path)
    if out.json:
        mistakes = [stored_dict(one) for one in parsed.mistakes]
        record = {"file": path, "ok": not mistakes, "rules": len(parsed.rules), "mistakes": mistakes}
        out.print_json(record)
        return PolicyError.exit_code if mistakes else 0
    for mistake in parsed.mistakes:
        out.stderr.write(f"jackline: {mistake.format_error(path)}\n")
    if parsed.mistakes:
        return PolicyError.exit_code
    from collections import Counter

    from jackline.formatting import pluralize

    kinds = Counter(str(rule.call_class) for rule in parsed.rules)
    counts = f" ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})" if kinds else ""
    out.print_line(f"{path}: {pluralize(len(parsed.rules), 'rule')}{counts}, no errors")
    return 0
