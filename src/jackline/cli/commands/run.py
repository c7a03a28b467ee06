"""`jackline run`: start a run and stay with it. What is asked comes from words, files and stdin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from jackline.app.request import Request
from jackline.cli import carry, report
from jackline.cli.interrupt import Interrupts
from jackline.domain import policy
from jackline.domain.states import TERMINAL
from jackline.errors import PolicyError, ScriptError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.policy import Rule

SCRIPTED = "scripted"
_SETTINGS = (
    "timeout_seconds", "idle_seconds", "grace_seconds", "retries", "retry_seconds", "max_usd", "max_tokens",
    "max_calls", "max_steps", "max_seconds", "max_iterations",
)  # fmt: skip
_LONGEST_FILE = 16 * 1024 * 1024


def configure(parser: Parser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what the agent shall do; -: read it from stdin")
    parser.add_setting("agent", "NAME")
    parser.add_argument("--script", metavar="FILE", help="what the scripted agent plays")
    parser.add_argument("--workspace", metavar="DIR", default="", help="where the agent works (default: here)")
    parser.add_argument("--task", metavar="NAME", default="adhoc", help="a name to find such runs by")
    parser.add_argument("--proof", metavar="CMD", help="what must succeed on the final tree")
    parser.add_argument("--policy", metavar="FILE", help="TOML with [[rule]] tables: which calls are effects")
    parser.add_argument("--run-id", metavar="ID", help="choose the id, idempotently")
    for name in _SETTINGS:
        parser.add_setting(name)


def execute(args: Namespace, home: Home, out: Output) -> int:
    request = _request(args, home)
    with Interrupts() as interrupts:
        run = home.start(request)
        if run.life.state in TERMINAL:  # only with --run-id: it was done before, and is not done again
            return report.tell(home, run, out, carry.code_of(run))
        return carry.carry_on(home, run, out, interrupts)


def _request(args: Namespace, home: Home) -> Request:
    agent = args.agent or (SCRIPTED if args.script else home.config.text("agent"))
    options = _options(args, agent)
    return Request(
        prompt=_prompt(args),
        agent=agent,
        workspace=args.workspace,
        task=args.task,
        run_id=_said(args.run_id, "--run-id"),
        proof=_said(args.proof, "--proof"),
        rules=_rules(args.policy),
        options=options,
    )


def _said(text: str | None, flag: str) -> str:
    """A flag's text; an empty one is a variable that was not set, and would silently mean something else."""
    if text is not None and not text.strip():
        raise UsageError(f"{flag} is empty: give it a value, or leave it out")
    return text or ""


def _prompt(args: Namespace) -> str:
    if args.prompt is None:
        if args.script:
            return ""
        raise UsageError("what shall the agent do? `jackline run PROMPT --agent NAME`, or - to read stdin")
    text = args.prompt if args.prompt != "-" else _decoded(_stdin(), "the prompt on stdin")
    if not str(text).strip() and not args.script:
        raise UsageError("the prompt is empty: say what the agent shall do")
    return str(text)


def _stdin() -> bytes:
    if sys.stdin is None:
        raise UsageError("the prompt shall come from stdin, which is closed")
    data = sys.stdin.buffer.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise UsageError(f"the prompt on stdin is larger than {_LONGEST_FILE} bytes")
    return data


def _options(args: Namespace, agent: str) -> Mapping[str, str]:
    """What is frozen into the run for its agent."""
    if not args.script:
        if agent == SCRIPTED:
            raise UsageError("the scripted agent plays a script: name it with --script FILE")
        return {}
    if agent != SCRIPTED:
        raise UsageError(f"--script is for the scripted agent, not for '{agent}'")
    from jackline.agents.scripted import validate

    text = _text_of(args.script)
    try:
        validate(text)
    except ScriptError as error:
        raise ScriptError(f"{args.script}: {error}") from None
    return {"script": text}


def _rules(path: str | None) -> tuple[Rule, ...]:
    if path is None:
        return ()
    import tomllib

    try:
        tables: dict[str, Any] = tomllib.loads(_text_of(path))
    except ValueError as error:
        raise PolicyError(f"{path}: {error}") from None
    unknown = sorted(set(tables) - {"rule"})
    if unknown:
        raise PolicyError(f"{path}: unknown word '{unknown[0]}': a policy is a list of [[rule]] tables")
    return policy.from_tables(tables.get("rule", []), path)


def _text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _LONGEST_FILE:
        raise UsageError(f"{path} is larger than {_LONGEST_FILE} bytes")
    return _decoded(data, path)


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not text in UTF-8") from None
