"""From the words of `jackline run` to a request: flags, files and stdin. It starts nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jackline.app import job as jobs
from jackline.app import policies
from jackline.app.choose import listed
from jackline.app.compose import compose, variables_of
from jackline.app.request import Request
from jackline.app.texts import LONGEST, decoded, text_of
from jackline.domain.records import Manner
from jackline.errors import ScriptError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.app.job import Job
    from jackline.domain.task import Task

SCRIPTED = "scripted"


def request_of(args: Namespace, home: Home) -> Request:
    """What is asked for: flags before the job file before the task before the settings."""
    home.refuse_problem()
    home.warnings += home.config.held
    job = jobs.load(_said(args.job, "--job")) if args.job is not None else jobs.NO_JOB
    typed = _typed(args, job)
    asked = compose(typed, job, _task(args, job, typed, home), variables_of(args.var))
    agent = asked.agent or home.config.text("agent")
    script = _said(args.script, "--script") or (job.script if agent == SCRIPTED else "")
    if not asked.prompt.strip() and not script:
        raise UsageError(_nothing_to_do(args, job))
    return asked._replace(agent=agent, options=_options(script, agent))


def _typed(args: Namespace, job: Job) -> Request:
    plays = args.script or (job.script and not job.agent)
    return Request(
        prompt=_prompt(args),
        agent=args.agent or (SCRIPTED if plays else ""),
        workspace=_said(args.workspace, "--workspace"),
        run_id=_said(args.run_id, "--run-id"),
        proof=_said(args.proof, "--proof"),
        rules=policies.run_file(_said(args.policy, "--policy")) if args.policy is not None else (),
        manner=Manner(_said(args.model, "--model"), _said(args.effort, "--effort"), tuple(args.arguments)),
        fallback=listed(args.fallback or ""),
        session=_said(args.session, "--session"),
        ungated=args.ungated,
        mode=args.mode or "",
        allow=_allowed(args.allow),
    )


def _allowed(said: list[str]) -> tuple[str, ...]:
    """Names of rules, with commas between or each with a flag of its own."""
    return tuple(name for one in said for name in listed(_said(one, "--allow")))


def _task(args: Namespace, job: Job, typed: Request, home: Home) -> Task | None:
    """The task, as far as its project is trusted; what a person should know of it goes to the home's warnings."""
    name = _said(args.task, "--task") or job.task
    if not name:
        return None
    from jackline.app import tasks
    from jackline.app.untrusted import restrained

    folder = os.path.realpath(args.workspace or job.workspace or os.getcwd())
    task = tasks.find(name, folder, os.environ)
    other = tasks.hidden_by(task, folder, os.environ)
    if other:
        home.warnings.append(f"task '{name}' is this project's own {task.source}, not {other}")
    task, notes = restrained(task, typed, job, home.config)
    home.warnings += notes
    return task


def _nothing_to_do(args: Namespace, job: Job) -> str:
    if args.prompt is not None:
        return "the prompt is empty: say what the agent shall do"
    if args.task or job.task:
        return f"task '{args.task or job.task}' has no prompt: say what the agent shall do"
    return "what shall the agent do? `jackline run PROMPT --agent NAME`, --task NAME, or - to read stdin"


def _said(text: str | None, flag: str) -> str:
    """A flag's text; an empty one is a variable that was not set, and would silently mean something else."""
    if text is not None and not text.strip():
        raise UsageError(f"{flag} is empty: give it a value, or leave it out")
    return text or ""


def _prompt(args: Namespace) -> str:
    if args.prompt != "-":
        return str(args.prompt or "")
    if sys.stdin is None:
        raise UsageError("the prompt shall come from stdin, which is closed")
    data = sys.stdin.buffer.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise UsageError(f"the prompt on stdin is larger than {LONGEST} bytes")
    return decoded(data, "the prompt on stdin")


def _options(script: str, agent: str) -> Mapping[str, str]:
    """What is frozen into the run for its agent."""
    if not script:
        if agent == SCRIPTED:
            raise UsageError("the scripted agent plays a script: name it with --script FILE")
        return {}
    if agent != SCRIPTED:
        raise UsageError(f"--script is for the scripted agent, not for '{agent}'")
    from jackline.agents.scripted.script_format import validate

    text = text_of(script)
    try:
        validate(text)
    except ScriptError as error:
        raise ScriptError(f"{script}: {error}") from None
    return {"script": text}
