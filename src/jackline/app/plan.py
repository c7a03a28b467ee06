"""A dry run: what would be started, with which words and files. Nothing is started, nothing is written down.

The ids of the run and of its session are made when it begins: here they are the words RUN and SESSION.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.app.preflight import refuse_unready
from jackline.app.request import spec_of
from jackline.domain.changes import VARIABLE
from jackline.domain.records import Turn
from jackline.domain.states import Role
from jackline.engine import marks
from jackline.engine.launching import Place, request_of
from jackline.engine.settings import inherited

if TYPE_CHECKING:
    from jackline.app.home import Home
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
    problem: str = ""  # why it could not be started here


def plan(request: Request, home: Home) -> Planned:
    """What `home.start` and `home.work` would do first."""
    spec = spec_of(request, home)
    if not request.run_id:  # a run that has begun may have changed its workspace already
        refuse_unready(request, spec.workspace)
    adapter = agents.load(home.config, spec.agent)
    binary = agents.program(home.config, adapter, os.environ)
    place = Place(
        folder=os.path.join(home.folder(request.run_id or RUN), "agent"),
        gate=GATE,
        token=TOKEN,
        binary=binary or adapter.declaration.binary,
        environ=os.environ,
    )
    asked = request_of(spec, _turn(request, spec, adapter), adapter, place, resumes=_resumes(spec, adapter))
    launch = adapter.launch(asked)
    own = (marks.NAME, marks.ATTEMPT, "JACKLINE_RUN_ID", VARIABLE)
    return Planned(
        agent=spec.agent,
        fallback=spec.fallback,
        task=spec.task,
        workspace=spec.workspace,
        argv=launch.argv,
        environment=tuple(sorted({*inherited(os.environ), *own, *asked.environ, *launch.env})),
        files=tuple(launch.files),
        stdin=launch.stdin is not None,
        prompt=spec.prompt,
        problem="" if binary else f"'{adapter.declaration.binary}' is not here: `jackline agents` says what to do",
    )


def _turn(request: Request, spec: Spec, adapter: Adapter) -> Turn:
    fresh = SESSION if adapter.declaration.chooses_session else None
    session = spec.session if _resumes(spec, adapter) else fresh
    return Turn(request.run_id or RUN, 1, 1, 1, Role.WORK, spec.agent, session, spec.prompt, 0)


def _resumes(spec: Spec, adapter: Adapter) -> bool:
    return bool(spec.session) and adapter.declaration.resumes
