"""Dry runs: the command line, files and limits of a run. No agent gets a prompt, and no run is created.

A real run gets its id and session id when it starts; here they are the words RUN and SESSION.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.app.config import beneath_flags
from jackline.app.handing import handed_over
from jackline.app.keys import KEYS
from jackline.app.offering import offered
from jackline.app.preflight import refuse_taken, refuse_unready
from jackline.app.request import spec_of
from jackline.domain.changes import VARIABLE
from jackline.domain.records import Turn
from jackline.domain.states import Role
from jackline.engine import inside, marks
from jackline.engine.launch import LaunchContext, build_mcp_server, build_request
from jackline.engine.settings import inherited

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.app.keys import Setting
    from jackline.app.request import Request

RUN, SESSION, GATE, TOKEN = "RUN", "SESSION", "GATE", "TOKEN"


@dataclass(frozen=True, slots=True)
class Planned:
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
    limits: Mapping[str, Setting] = field(default_factory=dict)
    problem: str = ""  # why the first agent cannot start here
    stuck: bool = False  # and no fallback could take over


def plan(request: Request, home: Home) -> Planned:
    """Work out what `home.start` and `home.work` would do first."""
    spec = spec_of(request, home)
    if not request.run_id:  # a run that has started may have changed its workspace
        refuse_unready(request, spec.workspace)
        refuse_taken(home, spec)
    adapter = agents.load(home.config, spec.agent)
    found = agents.find(home.path, home.config, adapter, os.environ)
    run_id = request.run_id or RUN
    inside_run = {inside.RUN: run_id, inside.HOME: home.path, **inside.acting(spec.agent, os.environ)}
    context = LaunchContext(
        folder=os.path.join(home.folder(run_id), "agent"),
        gate=GATE,
        token=TOKEN,
        binary=found.binary or adapter.declaration.binary,
        environ=os.environ,
        mcp=build_mcp_server(offered(home.config, os.environ)[0], inside_run),
    )
    resumes = bool(spec.session) and adapter.declaration.resumes
    session = spec.session if resumes else SESSION if adapter.declaration.chooses_session else None
    turn = Turn(run_id, 1, 1, 1, Role.WORK, spec.agent, session, spec.prompt, 0)
    asked = build_request(spec, turn, adapter, context, resumes=resumes)
    launch = adapter.launch(asked)
    database = (inside.DATABASE,) if handed_over(home.config) else ()
    own_names = (marks.NAME, marks.ATTEMPT, *inside.NAMES, inside.ACTOR, *database, VARIABLE)
    limits = beneath_flags(home.config, request.settings).values
    return Planned(
        agent=spec.agent,
        fallback=spec.fallback,
        task=spec.task,
        workspace=spec.workspace,
        argv=launch.argv,
        environment=tuple(sorted({*inherited(os.environ), *own_names, *asked.environ, *launch.env})),
        files=tuple(launch.files),
        stdin=launch.stdin is not None,
        prompt=spec.prompt,
        model=asked.model,
        effort=asked.effort,
        proof=spec.proof,
        limits={key.name: limits[key.name] for key in KEYS if key.bounds and not (key.choices or key.grows)},
        problem=found.why,
        stuck=bool(found.why) and not any(_is_usable(home, name) for name in spec.fallback),
    )


def _is_usable(home: Home, name: str) -> bool:
    return not agents.find(home.path, home.config, agents.load(home.config, name), os.environ).why
