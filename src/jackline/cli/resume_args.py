"""Builds the amendment of `jackline resume` from its arguments and stdin. It stores nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.amendment import LIMIT_SETTINGS, Amendment
from jackline.domain.limits import count_units
from jackline.domain.spec import AgentOptions
from jackline.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run


def add_amendment_arguments(parser: CommandParser) -> None:
    """Add the arguments that change a run."""
    parser.add_argument("-m", "--message", metavar="TEXT", help="a message to the agent; - reads it from stdin")
    for setting, _ in LIMIT_SETTINGS.values():
        is_total = setting != "max_repeats"
        what = "a new total for the run, not an addition" if is_total else "how often in a row from now on"
        parser.add_setting(setting, help=f"{what}; 0: no limit")
    parser.add_setting("review_rounds", help="review rounds without a pass from now on, until a person decides again")
    parser.add_setting("timeout_seconds", help="how long one turn may take from now on")
    parser.add_setting("idle_seconds", help="how long the agent may print nothing from now on; 0: no limit")
    parser.add_argument("--model", metavar="NAME", help="the model of the run's agent from now on")
    parser.add_argument("--effort", metavar="WORD", help="the reasoning effort, in the agent's own words")
    parser.add_argument(
        "--commit",
        action="store_true",
        dest="commit_work",
        help="from now on, let the host commit what the agent left uncommitted",
    )
    parser.add_argument(
        "--allow",
        metavar="TEXTS",
        action="append",
        default=[],
        help="approve calls from now on: RULE, RULE=PATTERN or RULE=any, separated by commas",
    )


def has_amendment(args: Namespace) -> bool:
    """Whether an argument changes the run."""
    names = (*(setting for setting, _ in LIMIT_SETTINGS.values()), "timeout_seconds", "idle_seconds", "review_rounds")
    given = (args.text, args.message, args.model, args.effort, *(getattr(args, name) for name in names))
    return bool(args.allow) or args.commit_work or any(value is not None for value in given)


def build_amendment(args: Namespace, home: Home, run: Run) -> Amendment:
    """Build what the arguments change; empty if they change nothing. UsageError if a value cannot be used."""
    config = home.config
    options = _check_agent_options(args, home, run)
    if args.review_rounds is not None and not run.spec.review:
        raise UsageError(f"--review-rounds: run {run.id} has no reviewers")
    return Amendment(
        message=_read_message(args),
        limits={
            field: count_units(config.get_float(setting), unit) or None
            for field, (setting, unit) in LIMIT_SETTINGS.items()
            if getattr(args, setting) is not None
        },
        turn_timeout_ms=None if args.timeout_seconds is None else round(config.get_float("timeout_seconds") * 1000),
        idle_timeout_ms=None if args.idle_seconds is None else round(config.get_float("idle_seconds") * 1000),
        model=options.model,
        effort=options.effort,
        allow=_check_rules(args.allow, run),
        commit_work=args.commit_work,
        review_rounds=None if args.review_rounds is None else config.get_int("review_rounds"),
    )


def _read_message(args: Namespace) -> str:
    if args.text is not None and args.message is not None:
        raise UsageError("two messages given: use TEXT or --message, not both")
    text = args.text if args.message is None else args.message
    if text is None:
        return ""
    from jackline.cli.payload_arg import read_stdin

    text = read_stdin("the message") if text == "-" else str(text)
    if not text.strip():
        raise UsageError("the message is empty: write one, or leave it out")
    from jackline.app.request import refuse_unstorable

    refuse_unstorable("message", text)
    return text


def _check_agent_options(args: Namespace, home: Home, run: Run) -> AgentOptions:
    options = AgentOptions(model=args.model or "", effort=args.effort or "")
    for flag, value in (("--model", args.model), ("--effort", args.effort)):
        if value is not None and not value.strip():
            raise UsageError(f"{flag} is empty: give it a value, or leave it out")
    if args.model is None and args.effort is None:
        return options
    from jackline.app.agent_settings import check_options
    from jackline.app.agents import load_adapter

    check_options(load_adapter(home.config, run.agent).declaration, options)
    return options


def _check_rules(given: list[str], run: Run) -> tuple[str, ...]:
    if not given:
        return ()
    from jackline.app.agents import split_names
    from jackline.app.policy_files import check_allowed_rules

    if not all(split_names(names) for names in given):
        raise UsageError("--allow is empty: give it a value, or leave it out")
    allowed = check_allowed_rules([name for names in given for name in split_names(names)], run.spec.rules)
    patterns = [text for text in allowed if "=" in text]
    if patterns and run.spec.policy_version == 1:
        raise UsageError(f"--allow {patterns[0]}: run {run.id} is older than patterns: name the rule alone")
    return allowed
