"""A dry run: what would be started, with which words, files and limits. No agent gets a prompt, no run is made.

The ids of the run and of its session are made when it begins: here they are the words RUN and SESSION.
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
    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Spec

RUN, SESSION, GATE, TOKEN = "RUN", "SESSION", "GATE", "TOKEN"


@dataclass(frozen=True, slots=True)
class Planned:
    """The first turn of a run that was not made."""

    agent: str
    fallback: tuple[str, ...]
    task: str
    workspace: str
    argv: tuple[str, ...]
    environment: tuple[str, ...]  # names only: values may be secrets
    files: tuple[str, ...]
    stdin: bool  # whether something is written to its standard input
    prompt: str
    model: str = ""  # empty: the agent's own
    effort: str = ""
    proof: str = ""
    limits: Mapping[str, Setting] = field(default_factory=dict)
    problem: str = ""  # why the first agent could not be started here
    stuck: bool = False  # and nobody could take over


def plan(request: Request, home: Home) -> Planned:
    """What `home.start` and `home.work` would do first."""
    spec = spec_of(request, home)
    if not request.run_id:  # a run that has begun may have changed its workspace already
        refuse_unready(request, spec.workspace)
        refuse_taken(home, spec)
    adapter = agents.load(home.config, spec.agent)
    found = agents.find(home.path, home.config, adapter, os.environ)
    place = _place(request, home, spec.agent, found.binary or adapter.declaration.binary)
    asked = build_request(spec, _turn(request, spec, adapter), adapter, place, resumes=_resumes(spec, adapter))
    launch = adapter.launch(asked)
    return Planned(
        agent=spec.agent,
        fallback=spec.fallback,
        task=spec.task,
        workspace=spec.workspace,
        argv=launch.argv,
        environment=tuple(sorted({*inherited(os.environ), *_own(home), *asked.environ, *launch.env})),
        files=tuple(launch.files),
        stdin=launch.stdin is not None,
        prompt=spec.prompt,
        model=asked.model,
        effort=asked.effort,
        proof=spec.proof,
        limits=_limits(request, home),
        problem=found.why,
        stuck=bool(found.why) and not any(_is_usable(home, name) for name in spec.fallback),
    )


def _place(request: Request, home: Home, agent: str, binary: str) -> LaunchContext:
    return LaunchContext(
        folder=os.path.join(home.folder(request.run_id or RUN), "agent"),
        gate=GATE,
        token=TOKEN,
        binary=binary,
        environ=os.environ,
        mcp=build_mcp_server(offered(home.config, os.environ)[0], _inside(request, home, agent)),
    )


def _own(home: Home) -> tuple[str, ...]:
    """The variables that jackline itself sets."""
    database = (inside.DATABASE,) if handed_over(home.config) else ()
    return (marks.NAME, marks.ATTEMPT, *inside.NAMES, inside.ACTOR, *database, VARIABLE)


def _inside(request: Request, home: Home, agent: str) -> dict[str, str]:
    return {inside.RUN: request.run_id or RUN, inside.HOME: home.path, **inside.acting(agent, os.environ)}


def _limits(request: Request, home: Home) -> dict[str, Setting]:
    values = beneath_flags(home.config, request.settings).values
    return {key.name: values[key.name] for key in KEYS if key.bounds and not (key.choices or key.grows)}


def _is_usable(home: Home, name: str) -> bool:
    return not agents.find(home.path, home.config, agents.load(home.config, name), os.environ).why


def _turn(request: Request, spec: Spec, adapter: Adapter) -> Turn:
    fresh = SESSION if adapter.declaration.chooses_session else None
    session = spec.session if _resumes(spec, adapter) else fresh
    return Turn(request.run_id or RUN, 1, 1, 1, Role.WORK, spec.agent, session, spec.prompt, 0)


def _resumes(spec: Spec, adapter: Adapter) -> bool:
    return bool(spec.session) and adapter.declaration.resumes
