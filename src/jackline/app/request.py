"""From what a person asked to what is written down: the request of a new run, with every default made explicit."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import agents, places, policies
from jackline.app.choose import AUTO, choose, listed
from jackline.app.config import beneath_flags
from jackline.app.manner import manner_of, refuse_as_word
from jackline.app.secrecy import refuse_secret_proof
from jackline.app.texts import named
from jackline.domain import ids
from jackline.domain.budget import Limits
from jackline.domain.events import NOTHING, canonical
from jackline.domain.records import Manner, Spec
from jackline.domain.retry import RetryPolicy
from jackline.domain.task import MODES
from jackline.engine.settings import fresh_id
from jackline.errors import UsageError
from jackline.named import NamedTuple
from jackline.store.contract import NewRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.app.keys import Setting
    from jackline.domain.rule import Rule

_LONGEST_PROMPT = 4 * 1024 * 1024
_NAMES = "use up to 64 letters, digits, '.', '_' and '-'"


class Request(NamedTuple):
    """What is asked for; everything else comes from the settings."""

    prompt: str
    agent: str = ""
    workspace: str = ""
    task: str = "adhoc"
    run_id: str = ""
    proof: str = ""
    rules: tuple[Rule, ...] = ()
    options: Mapping[str, str] = NOTHING
    manner: Manner = Manner()
    fallback: tuple[str, ...] = ()
    session: str = ""
    mode: str = ""  # empty: job
    requires_commit: bool = False
    requires_clean: bool = False
    job: str = ""
    # Those of a task and a job, each with where they stand; the later wins, and a flag wins over them all.
    settings: tuple[tuple[str, Mapping[str, Setting]], ...] = ()
    allow: tuple[str, ...] = ()  # rules, by name, whose asking is answered beforehand
    ungated: bool = False


def new_run(request: Request, home: Home) -> tuple[NewRun, int]:
    """The run to be created, and when."""
    at = clock.wall_ms()
    spec = spec_of(request, home)
    run_id = request.run_id or fresh_id()
    if not ids.is_chosen(run_id):
        raise UsageError(f"'{named(run_id)}' cannot be a run's id: {_NAMES}")
    asked = _requested_spec(spec, request, home.config)
    new = NewRun(
        id=run_id,
        repository=places.repository_of(spec.workspace),
        spec=spec,
        request=_digest(asked.changes()),
        old_request=_digest(asked.to_dict()),
    )
    return new, at


def _requested_spec(spec: Spec, request: Request, config: Config) -> Spec:
    """Return the spec as it was requested: with `auto`, which agents are ready may differ the next time."""
    if (request.agent or config.text("agent")) == AUTO:
        return spec._replace(agent=AUTO, fallback=_fallback(request, config), manners={})
    return spec


def _digest(values: Mapping[str, object]) -> str:
    return hashlib.sha256(canonical(values).encode()).hexdigest()


def spec_of(request: Request, home: Home) -> Spec:
    """What is asked, with every default made explicit."""
    config = beneath_flags(home.config, request.settings)
    _refuse_unfit(request)
    agent, *fallback = choose(home, request.agent or config.text("agent"), _fallback(request, config))
    workspace = _workspace(request)
    rules = _rules(request, workspace, home)
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
        rules=rules,
        options=dict(request.options),
        fallback=tuple(fallback),
        manners=_manners(request, config, (agent, *fallback)),
        session=request.session,
        ungated=request.ungated,
        mode=request.mode or MODES[0],
        requires_commit=request.requires_commit,
        job=request.job,
        strict=config.text("strict") == "true",
        approval_timeout_ms=_ms(config, "approval_timeout"),
        approval_answer=config.text("approval_answer"),
        allowed=policies.agreed(request.allow, rules),
    )


def _rules(request: Request, workspace: str, home: Home) -> tuple[Rule, ...]:
    """Those of every layer, as they are now; what a person should know of them goes to the home's warnings."""
    found = policies.load(os.environ, home.path, workspace)
    home.warnings += found.notes
    return policies.combined(request.rules, found)


def _fallback(request: Request, config: Config) -> tuple[str, ...]:
    return request.fallback or listed(config.text("fallback"))


def _manners(request: Request, config: Config, chosen: Sequence[str]) -> dict[str, Manner]:
    """A model that a flag names is the first agent's: the others would not know it."""
    found = {}
    for name in chosen:
        asked = request.manner if name == chosen[0] else Manner()
        declaration = agents.load(config, name).declaration
        _refuse_without_script(name, request)
        manner = manner_of(declaration, asked, os.environ, config.agents.get(name, {}))
        found[name] = manner._replace(tells_cost=declaration.cost)
    return found


def _refuse_without_script(name: str, request: Request) -> None:
    if name == "scripted" and not request.options.get("script"):
        raise UsageError("the scripted agent has no script to play: leave it out, or run it alone with --script FILE")


def _workspace(request: Request) -> str:
    workspace = os.path.realpath(request.workspace or os.getcwd())
    if not os.path.isdir(workspace):
        raise UsageError(f"{workspace} is not a folder: name an existing one with --workspace")
    return workspace


def _refuse_unfit(request: Request) -> None:
    if not ids.is_chosen(request.task):  # it becomes a folder's name
        raise UsageError(f"'{named(request.task)}' cannot be a task's name: {_NAMES}")
    if len(request.prompt) > _LONGEST_PROMPT:
        raise UsageError(f"the prompt is longer than {_LONGEST_PROMPT} characters: put it into a file")
    refuse_as_word("the session", request.session)
    refuse_secret_proof(request.proof)
    for name, text in (("prompt", request.prompt), ("proof", request.proof)):
        _refuse_unwritable(name, text)


def _refuse_unwritable(name: str, text: str) -> None:
    """What no database keeps is refused: changed silently, the agent would get another prompt than was given."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the {name} is not text in UTF-8") from None
    if "\0" in text:
        raise UsageError(f"the {name} contains a NUL character: remove it")


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
