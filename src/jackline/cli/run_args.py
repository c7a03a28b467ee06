"""Builds the request of `jackline run` from its arguments, files and stdin. It starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import job_file as jobs
from jackline.app import policy_files
from jackline.app.agents import split_names
from jackline.app.job_file import compose_request, parse_variables
from jackline.app.request import Request
from jackline.app.text_files import read_text
from jackline.cli.payload_arg import read_stdin
from jackline.domain.records import AgentOptions
from jackline.errors import ScriptError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.app.job_file import Job
    from jackline.domain.task import Task

SCRIPTED = "scripted"


def build_request(args: Namespace, home: Home) -> Request:
    """Build the request: flags override the job file, which overrides the task, which overrides the settings."""
    home.refuse_broken_project()
    home.warnings += home.config.held
    job = jobs.load_job(_require_text(args.job, "--job")) if args.job is not None else jobs.NO_JOB
    typed = _build_typed_request(args, job)
    request = compose_request(typed, job, _load_task(args, job, typed, home), parse_variables(args.var))
    agent = request.agent or home.config.get_text("agent")
    script = _require_text(args.script, "--script") or (job.script if agent == SCRIPTED else "")
    if not request.prompt.strip() and not script:
        raise UsageError(_explain_missing_prompt(args, job))
    return request._replace(agent=agent, options=_load_script(script, agent))


def _build_typed_request(args: Namespace, job: Job) -> Request:
    """Build the part of the request that the command line gives."""
    is_scripted = args.script or (job.script and not job.agent)
    return Request(
        prompt=_read_prompt(args),
        agent=args.agent or (SCRIPTED if is_scripted else ""),
        workspace=_require_text(args.workspace, "--workspace"),
        run_id=_require_text(args.run_id, "--run-id"),
        proof=_require_text(args.proof, "--proof"),
        rules=policy_files.load_run_policy(_require_text(args.policy, "--policy")) if args.policy is not None else (),
        agent_options=AgentOptions(
            model=_require_text(args.model, "--model"),
            effort=_require_text(args.effort, "--effort"),
            arguments=tuple(args.arguments),
        ),
        fallback=split_names(args.fallback or ""),
        session=_require_text(args.session, "--session"),
        ungated=args.ungated,
        share_workspace=args.share_workspace,
        mode=args.mode or "",
        allow=tuple(name for names in args.allow for name in split_names(_require_text(names, "--allow"))),
    )


def _load_task(args: Namespace, job: Job, typed: Request, home: Home) -> Task | None:
    """Load the task, restricted if its project is not trusted; warnings about it go to the home."""
    name = _require_text(args.task, "--task") or job.task
    if not name:
        return None
    from jackline.app import tasks
    from jackline.app.job_file import restrict_task

    folder = os.path.realpath(args.workspace or job.workspace or os.getcwd())
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
    return "no prompt given: `jackline run PROMPT --agent NAME`, --task NAME, or - to read it from stdin"


def _require_text(text: str | None, flag: str) -> str:
    """Return a flag's value. An empty one is refused: it usually comes from an unset shell variable."""
    if text is not None and not text.strip():
        raise UsageError(f"{flag} is empty: give it a value, or leave it out")
    return text or ""


def _read_prompt(args: Namespace) -> str:
    return read_stdin("the prompt") if args.prompt == "-" else str(args.prompt or "")


def _load_script(script: str, agent: str) -> Mapping[str, str]:
    """Return the options that are frozen into the run for its agent: the checked script of the scripted one."""
    if not script:
        if agent == SCRIPTED:
            raise UsageError("the scripted agent needs a script: name it with --script FILE")
        return {}
    if agent != SCRIPTED:
        raise UsageError(f"--script is for the scripted agent, not for '{agent}'")
    from jackline.agents.scripted.script_format import validate

    text = read_text(script)
    try:
        validate(text)
    except ScriptError as error:
        raise ScriptError(f"{script}: {error}") from None
    return {"script": text}
