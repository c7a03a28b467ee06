"""Dry runs: the command line, files and limits of a run. No agent gets a prompt, and no run is created.

A real run gets its id and session id when it starts; here they are the words RUN and SESSION.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.app.agent_env import build_mcp_argv, find_agent_database
from jackline.app.agent_logins import find_login_problem
from jackline.app.config import add_run_settings
from jackline.app.environment import read_agent_environ
from jackline.app.preflight import refuse_taken_session, refuse_unready_workspace
from jackline.app.request import build_spec
from jackline.app.setting_keys import KEYS
from jackline.app.trust import read_untrusted_settings
from jackline.domain.changes import VARIABLE
from jackline.domain.records import Turn
from jackline.domain.states import Role
from jackline.engine import run_env
from jackline.engine.launch import build_mcp_server
from jackline.engine.settings import select_inherited_variables
from jackline.engine.turn_plan import LaunchContext, build_request
from jackline.worktrees import find_settings_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.app.setting_keys import Setting

RUN, SESSION, GATE, TOKEN = "RUN", "SESSION", "GATE", "TOKEN"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The first turn of a run that was not created."""

    agent: str
    fallback: tuple[str, ...]
    task: str
    workspace: str
    argv: tuple[str, ...]
    environment: tuple[str, ...]  # names only: values may be secrets
    files: tuple[str, ...]
    stdin: bool  # whether it reads standard input
    prompt: str
    model: str = ""  # empty: the agent's default
    effort: str = ""
    proof: str = ""
    plan: bool = False
    reviewers: tuple[str, ...] = ()
    review_mode: str = ""
    branch: str = ""  # of the run's own worktree
    base: str = ""  # the commit that the branch starts from
    copy: tuple[str, ...] = ()
    setup: str = ""
    pr: str = ""  # the kind of the pull request
    pr_branch: str = ""
    pr_base: str = ""
    until: str = ""
    limits: Mapping[str, Setting] = field(default_factory=dict)
    problem: str = ""  # why the first agent cannot start here
    stuck: bool = False  # and no fallback could take over


def plan_run(request: Request, home: Home) -> PlannedRun:
    """Work out what `home.start` and `home.work` would do first."""
    spec = build_spec(request, home)
    if not request.run_id:  # a run that has started may have changed its workspace
        if not spec.worktree.name:
            refuse_unready_workspace(request, spec.workspace)
        refuse_taken_session(home, spec)
    adapter = agents.load_adapter(home.config, spec.agent)
    environ = read_agent_environ(home.config, adapter.declaration)
    found = agents.find_program(home.path, home.config, adapter, environ)
    run_id = request.run_id or RUN
    inside_run = {run_env.RUN: run_id, run_env.HOME: home.path, **run_env.build_actor_env(spec.agent, environ)}
    context = LaunchContext(
        folder=os.path.join(home.folder(run_id), "agent"),
        gate=GATE,
        token=TOKEN,
        binary=found.binary or adapter.declaration.binary,
        environ=environ,
        mcp=build_mcp_server(build_mcp_argv(home.config, os.environ)[0], inside_run),
        untrusted=read_untrusted_settings(
            home.path, home.config.get_text("database"), adapter.declaration, find_settings_folder(spec), environ
        ),
    )
    resumes = bool(spec.session) and adapter.declaration.resumes
    session = spec.session if resumes else SESSION if adapter.declaration.chooses_session else None
    turn = Turn(
        run_id=run_id,
        number=1,
        step=1,
        attempt=1,
        role=Role.WORK,
        agent=spec.agent,
        session=session,
        prompt=spec.prompt,
        started_at=0,
    )
    asked = build_request(spec, turn, adapter, context, resumes=resumes)
    launch = adapter.launch(asked)
    database = (run_env.DATABASE,) if find_agent_database(home.config) else ()
    own_names = (run_env.TAG_VARIABLE, run_env.ATTEMPT_VARIABLE, *run_env.NAMES, run_env.ACTOR, *database, VARIABLE)
    limits = add_run_settings(home.config, request.settings).values
    redact = home.make_redactor().redact
    return PlannedRun(
        agent=spec.agent,
        fallback=spec.fallback,
        task=spec.task,
        workspace=spec.workspace,
        argv=tuple(redact(word) for word in launch.argv),
        environment=tuple(sorted({*select_inherited_variables(environ), *own_names, *asked.environ, *launch.env})),
        files=tuple(launch.files),
        stdin=launch.stdin is not None,
        prompt=redact(spec.prompt),
        model=asked.model,
        effort=asked.effort,
        proof=redact(spec.proof),
        plan=spec.plan,
        reviewers=spec.review,
        review_mode=spec.review_mode if spec.review else "",
        branch=spec.worktree.branch,
        base=spec.worktree.base,
        copy=spec.worktree.copy,
        setup=redact(spec.worktree.setup),
        pr=spec.pr,
        pr_branch=spec.pr_branch,
        pr_base=spec.pr_base,
        until=spec.until,
        limits={key.name: limits[key.name] for key in KEYS if key.bounds and not (key.choices or key.grows)},
        problem=found.why or find_login_problem(adapter.declaration, found.binary, environ, find_settings_folder(spec)),
        stuck=bool(found.why)
        and all(
            agents.find_program(home.path, home.config, agents.load_adapter(home.config, name), os.environ).why
            for name in spec.fallback
        ),
    )
