"""The flags that describe a run, and the request built from them, files and stdin. It starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app import job_file as jobs
from jackline.app import policy_files
from jackline.app.agents import split_names
from jackline.app.job_file import compose_request, parse_variables
from jackline.app.request import Request
from jackline.app.text_files import read_text
from jackline.cli.parser import SHARE_HELP
from jackline.cli.payload_arg import read_stdin
from jackline.domain.agent_ref import MARK
from jackline.domain.spec import ALL_PASS, ANY_PASS, APPROVED, DRAFT, GREEN, MERGED, READY, AgentOptions
from jackline.domain.task import MODES, fill_template, list_variables
from jackline.errors import ScriptError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.each_file import EachItem
    from jackline.app.home import Home
    from jackline.app.job_file import Job
    from jackline.cli.parser import CommandParser
    from jackline.domain.task import Task

SCRIPTED = "scripted"
_SETTINGS = (
    "timeout_seconds", "idle_seconds", "grace_seconds", "retries", "retry_seconds", "max_usd", "max_tokens",
    "max_calls", "max_steps", "max_seconds", "max_iterations", "max_repeats", "approval_timeout", "approval_answer",
    "replay", "unmatched", "profile", "review_rounds",
)  # fmt: skip


def add_request_flags(parser: CommandParser) -> None:
    """Add the flags that describe a run; `build_request` reads them."""
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the task for the agent; - reads it from stdin")
    parser.add_setting("agent", "NAME")
    parser.add_setting("account", "NAME")
    parser.add_setting("fallback", "NAMES")
    parser.add_argument("--model", metavar="NAME", help="the model to use (default: the agent's own)")
    parser.add_argument("--effort", metavar="WORD", help="the reasoning effort, in the agent's own words")
    parser.add_argument("--session", metavar="ID", help="continue an existing session of the agent")
    parser.add_argument("--script", metavar="FILE", help="the script of the scripted agent")
    parser.add_argument("--workspace", metavar="DIR", help="the agent's working directory (default: the current one)")
    parser.add_argument("--task", metavar="NAME", help="a run template; `jackline tasks list` shows them")
    parser.add_argument("--var", metavar="NAME=VALUE", action="append", default=[], help="set a variable of the task")
    parser.add_argument("--job", metavar="FILE", help="read these options from a TOML or JSON file; flags override it")
    parser.add_argument("--proof", metavar="CMD", help="a command that must succeed on the final tree")
    parser.add_argument(
        "--review", metavar="NAMES", help="agents that must accept the proved work, separated by commas; none: no agent"
    )
    parser.add_argument(
        "--review-mode", choices=(ALL_PASS, ANY_PASS), help="whether all reviewers must pass (default), or any one"
    )
    parser.add_argument("--plan", action="store_true", help="let the agent plan before it changes anything")
    parser.add_argument(
        "--done", metavar="SIGNAL", dest="done_signal", help="the last line that an agent must print when it is done"
    )
    parser.add_argument(
        "--proof-must-fail-first", action="store_true", help="end the run if the proof passes before any work"
    )
    parser.add_argument(
        "--commit", action="store_true", dest="commit_work", help="let the host commit what the agent left uncommitted"
    )
    parser.add_argument("--policy", metavar="FILE", help="a TOML file with [[rule]] tables: which calls are effects")
    parser.add_argument(
        "--allow",
        metavar="TEXTS",
        action="append",
        default=[],
        help="approve calls in advance: RULE, RULE=PATTERN or RULE=any, separated by commas",
    )
    parser.add_argument(
        "--strict",
        action="store_const",
        const="true",
        help="after a crash, treat calls of unknown class as in doubt, like effects",
    )
    parser.add_argument(
        "--mode", choices=MODES, help="interactive: ask at the terminal before the run is resumed (default: job)"
    )
    parser.add_argument(
        "--ungated",
        action="store_true",
        help="keep running even if an agent without an enforced gate makes a call that policy would block",
    )
    parser.add_argument(
        "--label",
        metavar="NAMES",
        action="append",
        default=[],
        help="words for channels to select the run's notices by, separated by commas",
    )
    parser.add_setting("ping", "URL")
    _add_worktree_flags(parser)
    _add_pull_request_flags(parser)
    parser.add_argument("--share-workspace", action="store_true", help=SHARE_HELP)
    for name in _SETTINGS:
        parser.add_setting(name)
    parser.takes_arguments = True
    parser.epilog = "Words after -- are passed to the agent unchanged."


def _add_worktree_flags(parser: CommandParser) -> None:
    group = parser.add_argument_group("worktree")
    group.add_argument(
        "--worktree",
        dest="worktree_name",
        metavar="NAME",
        nargs="?",
        const=True,
        help="work in a new git worktree, on the branch jackline/NAME (default: the end of the run's id)",
    )
    group.add_argument(
        "--no-worktree",
        action="store_true",
        help="work in the workspace itself, even if the settings ask for a worktree",
    )
    group.add_argument(
        "--worktree-base", metavar="COMMIT", help="the commit that its branch starts from (default: HEAD)"
    )
    group.add_argument(
        "--copy",
        metavar="PATHS",
        action="append",
        default=[],
        help="copy untracked files into the worktree, such as .env, separated by commas",
    )
    group.add_argument("--setup", metavar="CMD", help="a command that prepares the worktree before the agent starts")
    parser.add_setting("setup_timeout", "SECONDS")


def _read_worktree_flags(args: Namespace) -> dict[str, Any]:
    """The fields of the request that these flags give."""
    if args.worktree_name is not None and args.no_worktree:
        raise UsageError("--worktree and --no-worktree contradict each other: leave one out")
    wanted = True if args.worktree_name is not None else False if args.no_worktree else None
    return {
        "worktree": wanted,
        "worktree_name": "" if args.worktree_name is True else require_text(args.worktree_name, "--worktree"),
        "worktree_base": require_text(args.worktree_base, "--worktree-base"),
        "copy": tuple(name for names in args.copy for name in _require_names(names, "--copy")),
        "setup": require_text(args.setup, "--setup"),
    }


def _add_pull_request_flags(parser: CommandParser) -> None:
    group = parser.add_argument_group("pull request")
    group.add_argument(
        "--pr",
        nargs="?",
        const=READY,
        choices=(READY, DRAFT),
        help="push the branch and open a pull request, or a draft, once the work is proved and reviewed",
    )
    group.add_argument("--pr-base", metavar="BRANCH", help="the branch to merge into (default: the default branch)")
    group.add_argument(
        "--until",
        choices=(GREEN, APPROVED, MERGED),
        help="wait until the checks of the pull request pass, or it is approved or merged; repair what fails",
    )


def build_request(args: Namespace, home: Home, item: EachItem | None = None) -> Request:
    """Build the request: flags override the job file, which overrides the task, which overrides the settings.

    `item` is one of the input of `--each`; what it names overrides the flags.
    """
    home.refuse_broken_project()
    home.warnings += home.config.held
    job = jobs.load_job(require_text(args.job, "--job")) if args.job is not None else jobs.NO_JOB
    typed = _build_typed_request(args, job)
    if item is not None:
        typed = typed._replace(agent=item.agent or typed.agent, workspace=item.workspace or typed.workspace)
    task = _load_task(args, job, typed, home)
    variables = parse_variables(args.var)
    if item is not None:
        typed, more = _apply_item(typed, job, task, item)
        variables |= more
    request = compose_request(typed, job, task, variables)
    agent = request.agent or home.config.get_text("agent")
    script = require_text(args.script, "--script") or (job.script if agent == SCRIPTED else "")
    if not request.prompt.strip() and not script:
        raise UsageError(_explain_missing_prompt(args, job))
    return request._replace(agent=agent, options=_load_script(script, agent))


def _build_typed_request(args: Namespace, job: Job) -> Request:
    """Build the part of the request that the command line gives."""
    is_scripted = args.script or (job.script and not job.agent)
    return Request(
        prompt=read_stdin("the prompt") if args.prompt == "-" else str(args.prompt or ""),
        agent=args.agent or (SCRIPTED if is_scripted else ""),
        workspace=require_text(args.workspace, "--workspace"),
        run_id=require_text(args.run_id, "--run-id"),
        proof=require_text(args.proof, "--proof"),
        rules=policy_files.load_run_policy(require_text(args.policy, "--policy")) if args.policy is not None else (),
        agent_options=AgentOptions(
            model=require_text(args.model, "--model"),
            effort=require_text(args.effort, "--effort"),
            arguments=tuple(args.arguments),
        ),
        fallback=split_names(args.fallback or ""),
        session=require_text(args.session, "--session"),
        ungated=args.ungated,
        share_workspace=args.share_workspace,
        labels=tuple(name for names in args.label for name in _require_names(names, "--label")),
        mode=args.mode or "",
        review=_require_names(args.review, "--review"),
        review_mode=args.review_mode or "",
        done_signal=require_text(args.done_signal, "--done"),
        plan=args.plan,
        proof_must_fail_first=args.proof_must_fail_first,
        commit_work=args.commit_work,
        allow=tuple(name for names in args.allow for name in _require_names(names, "--allow")),
        **_read_worktree_flags(args),
        pr=args.pr or "",
        pr_base=require_text(args.pr_base, "--pr-base"),
        until=args.until or "",
    )


def _apply_item(typed: Request, job: Job, task: Task | None, item: EachItem) -> tuple[Request, dict[str, str]]:
    """Return the request with what the item adds to its prompt, and the variables for its task.

    A line of text fills {line}; without such a place it follows the prompt. Only the prompt is a template: what the
    item says is never one.
    """
    from jackline.app.each_file import LINE

    prompt, text, variables = typed.prompt or job.prompt, item.text or item.prompt, dict(item.variables)
    names = (*task.variables, *task.needs) if task else list_variables(prompt)
    if item.text and LINE in names:
        variables, text = {LINE: item.text}, ""
    if task is None:
        prompt, variables = fill_template(prompt, variables), {}
    return typed._replace(prompt="\n\n".join(part for part in (prompt, text) if part.strip())), variables


def _load_task(args: Namespace, job: Job, typed: Request, home: Home) -> Task | None:
    """Load the task, restricted if its project is not trusted; warnings about it go to the home."""
    name = require_text(args.task, "--task") or job.task
    if not name:
        return None
    from jackline.app import tasks
    from jackline.app.job_file import restrict_task

    folder = os.path.realpath(typed.workspace or job.workspace or os.getcwd())
    task = tasks.find_task(name, folder, os.environ)
    other = tasks.find_hidden_file(task, folder, os.environ)
    if other:
        home.warnings.append(f"task '{name}' is this project's own {task.source}, not {other}")
    task, notes = restrict_task(task, typed, job, home.config)
    home.warnings += notes
    return task


def _explain_missing_prompt(args: Namespace, job: Job) -> str:
    if args.prompt is not None:
        return "the prompt is empty"
    if args.task or job.task:
        return f"task '{args.task or job.task}' has no prompt: add one to the command line"
    return "no prompt given: add one in quotes, or - to read it from stdin, or name a task with --task"


def require_text(text: str | None, flag: str) -> str:
    """Return a flag's value. An empty one is refused: it usually comes from an unset shell variable."""
    if text is not None and not text.strip():
        raise UsageError(f"{flag} is empty: give it a value, or leave it out")
    return text or ""


def _require_names(text: str | None, flag: str) -> tuple[str, ...]:
    """Return the names in a flag's value. Nothing but commas is refused as an empty value is."""
    return split_names(require_text(text if text is None or split_names(text) else "", flag))


def _load_script(script: str, agent: str) -> Mapping[str, str]:
    """Return the options that are frozen into the run for its agent: the checked script of the scripted one."""
    if not script:
        if agent == SCRIPTED:
            raise UsageError("the scripted agent needs a script: name it with --script FILE")
        return {}
    if agent.partition(MARK)[0] != SCRIPTED:  # a missing account is refused later, as for every agent
        raise UsageError(f"--script is for the scripted agent, not for '{agent}'")
    from jackline.agents.scripted.script_format import validate

    text = read_text(script)
    try:
        validate(text)
    except ScriptError as error:
        raise ScriptError(f"{script}: {error}") from None
    return {"script": text}
