"""From what a person asked to what is written down: the request of a new run, with every default made explicit."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import places
from jackline.domain import ids
from jackline.domain.budget import Limits
from jackline.domain.events import canonical
from jackline.domain.records import Spec
from jackline.domain.retry import RetryPolicy
from jackline.errors import UsageError
from jackline.store.contract import NewRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.config import Config
    from jackline.domain.policy import Rule

_LONGEST_PROMPT = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; everything else comes from the settings."""

    prompt: str
    agent: str = ""
    workspace: str = ""
    task: str = "adhoc"
    run_id: str = ""
    proof: str = ""
    rules: tuple[Rule, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def new_run(request: Request, config: Config) -> tuple[NewRun, int]:
    """The run to be created, and when."""
    at = clock.wall_ms()
    spec = _spec(request, config)
    run_id = request.run_id or ids.make(at, os.urandom(ids.RANDOM_BYTES))
    if not ids.is_chosen(run_id):
        message = f"'{run_id}' cannot be a run's id: use up to 64 letters, digits, '.', '_' and '-'"
        raise UsageError(message)
    digest = hashlib.sha256(canonical(spec.to_dict()).encode()).hexdigest()
    return NewRun(run_id, places.repository_of(spec.workspace), spec, digest), at


def _spec(request: Request, config: Config) -> Spec:
    from jackline.agents import registry

    agent = request.agent or config.text("agent")
    if not agent:
        message = f"which agent? say --agent NAME ({', '.join(registry.names())})"
        raise UsageError(message)
    registry.load(agent)
    if not ids.is_chosen(request.task):  # it becomes a folder's name
        message = f"'{request.task}' cannot be a task's name: use up to 64 letters, digits, '.', '_' and '-'"
        raise UsageError(message)
    for name, text in (("prompt", request.prompt), ("proof", request.proof)):
        _refuse_unwritable(name, text)
    workspace = os.path.realpath(request.workspace or os.getcwd())
    if not os.path.isdir(workspace):
        message = f"{workspace} is not a folder: name an existing one with --workspace"
        raise UsageError(message)
    if len(request.prompt) > _LONGEST_PROMPT:
        message = f"the prompt has {len(request.prompt)} characters, {_LONGEST_PROMPT} are allowed: put it into a file of the workspace"
        raise UsageError(message)
    return Spec(
        prompt=request.prompt,
        workspace=workspace,
        agent=agent,
        task=request.task,
        proof=request.proof,
        turn_timeout_ms=_ms(config, "timeout_seconds"),
        idle_timeout_ms=_ms(config, "idle_seconds"),
        grace_ms=_ms(config, "grace_seconds"),
        limits=_limits(config),
        retry=RetryPolicy(config.whole("retries"), _ms(config, "retry_seconds")),
        rules=request.rules,
        options=dict(request.options),
    )


def _refuse_unwritable(name: str, text: str) -> None:
    """What no database keeps is refused: changed silently, the agent would get another prompt than was given."""
    try:
        text.encode()
    except UnicodeEncodeError:
        message = f"the {name} is not text in UTF-8"
        raise UsageError(message) from None
    if "\0" in text:
        message = f"the {name} contains a NUL character: remove it"
        raise UsageError(message)


def _limits(config: Config) -> Limits:
    return Limits(
        wall_ms=_ms(config, "max_seconds") or None,
        iterations=config.whole("max_iterations") or None,
        steps=config.whole("max_steps") or None,
        calls=config.whole("max_calls") or None,
        tokens=config.whole("max_tokens") or None,
        usd_micros=round(config.number("max_usd") * 1_000_000) or None,
    )


def _ms(config: Config, name: str) -> int:
    return round(config.number(name) * 1000)
