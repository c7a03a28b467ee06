"""Builds a new run from a request: every default becomes explicit. It creates and starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import agents, policy_files
from jackline.app.agent_settings import build_options, reject_flag_like
from jackline.app.agents import AUTO, choose_agents, split_names
from jackline.app.config import add_run_settings
from jackline.app.preflight import reject_secret_proof
from jackline.app.text_files import shorten_name
from jackline.digests import hash_text
from jackline.domain import ids
from jackline.domain.events import NOTHING, canonical
from jackline.domain.limits import Limits, RetryPolicy
from jackline.domain.records import AgentOptions, Spec
from jackline.domain.states import Replay
from jackline.domain.task import MODES
from jackline.engine.remotes import read_own_remotes
from jackline.engine.settings import new_id
from jackline.errors import UsageError
from jackline.formatting import format_usd
from jackline.named import NamedTuple
from jackline.policy.profiles import NONE
from jackline.policy.rules import POLICY_VERSION
from jackline.store.models import NewRun
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.app.setting_keys import Setting
    from jackline.policy.rules import Rule

_LONGEST_PROMPT = 4 * 1024 * 1024
_LAST_OLD_FIELD = "allowed"
_TIMEOUTS, _OLD_TIMEOUTS = (0, 900_000), (900_000, 600_000)  # the defaults per turn and idle, now and before 0009
_NAMES = "use up to 64 letters, digits, '.', '_' and '-'"


class Request(NamedTuple):
    """The request for a run; everything else comes from the settings."""

    prompt: str
    agent: str = ""
    workspace: str = ""
    task: str = "adhoc"
    run_id: str = ""
    proof: str = ""
    rules: tuple[Rule, ...] = ()
    options: Mapping[str, str] = NOTHING
    agent_options: AgentOptions = AgentOptions()
    fallback: tuple[str, ...] = ()
    session: str = ""
    mode: str = ""  # empty: job
    requires_commit: bool = False
    requires_clean: bool = False
    job: str = ""
    # Those of a task and a job, each with its source; the later wins, and a flag wins over them all.
    settings: tuple[tuple[str, Mapping[str, Setting]], ...] = ()
    allow: tuple[str, ...] = ()  # names of rules whose calls are approved in advance
    ungated: bool = False
    share_workspace: bool = False  # work even if another run works in the same worktree


def build_new_run(request: Request, home: Home) -> tuple[NewRun, int]:
    """Build the run to create, and the time of its creation."""
    at = clock.wall_ms()
    spec = build_spec(request, home)
    run_id = request.run_id or new_id()
    if not ids.is_chosen(run_id):
        raise UsageError(f"'{shorten_name(run_id)}' cannot be a run's id: {_NAMES}")
    # Neither a newer policy nor another remote makes it another request.
    asked = spec._replace(policy_version=1, own_remotes={})
    if (request.agent or home.config.get_text("agent")) == AUTO:  # which agents are ready may differ the next time
        asked = asked._replace(agent=AUTO, fallback=_choose_fallback(request, home.config), agent_options={})
    new = NewRun(
        id=run_id,
        repository=find_repository(spec.workspace),
        spec=spec,
        request=_digest(asked.changes()),
        old_requests=_list_old_digests(asked),
    )
    return new, at


def _list_old_digests(spec: Spec) -> tuple[str, ...]:
    """The digests that earlier versions made of the same request: of every field, and from other defaults."""
    rules = tuple(rule._replace(replay=Replay.EXACT) if rule.replay is Replay.REPORT else rule for rule in spec.rules)
    before = spec._replace(rules=rules)
    oldest = before
    if (spec.turn_timeout_ms, spec.idle_timeout_ms) == _TIMEOUTS:
        turn, idle = _OLD_TIMEOUTS
        oldest = before._replace(turn_timeout_ms=turn, idle_timeout_ms=idle)
    return _digest(_list_old_values(spec)), _digest(before.changes()), _digest(_list_old_values(oldest))


def _list_old_values(spec: Spec) -> dict[str, object]:
    """The values of the fields that versions before 0008 knew; later fields come after them."""
    values = spec.to_dict()
    names = list(values)
    return {name: values[name] for name in names[: names.index(_LAST_OLD_FIELD) + 1]}


def _digest(values: Mapping[str, object]) -> str:
    return hash_text(canonical(values))


def build_spec(request: Request, home: Home) -> Spec:
    """Build the spec of the run; notes about the policy go to the home's warnings."""
    config = add_run_settings(home.config, request.settings)
    _refuse_invalid(request)
    agent, *fallback = choose_agents(home, request.agent or config.get_text("agent"), _choose_fallback(request, config))
    workspace = os.path.realpath(request.workspace or os.getcwd())
    if not os.path.isdir(workspace):
        raise UsageError(f"{workspace} is not a folder: name an existing one with --workspace")
    layers = policy_files.load_layers(os.environ, home.path, home.config.get_text("database"), workspace)
    home.warnings += layers.notes
    rules = policy_files.merge_layers(request.rules, layers)
    return Spec(
        prompt=request.prompt,
        workspace=workspace,
        agent=agent,
        task=request.task,
        proof=request.proof,
        turn_timeout_ms=_ms(config, "timeout_seconds"),
        idle_timeout_ms=_ms(config, "idle_seconds"),
        grace_ms=_ms(config, "grace_seconds"),
        limits=Limits(
            wall_ms=_ms(config, "max_seconds") or None,
            iterations=config.get_int("max_iterations") or None,
            steps=config.get_int("max_steps") or None,
            calls=config.get_int("max_calls") or None,
            tokens=config.get_int("max_tokens") or None,
            usd_micros=_limit_usd(home, config, (agent, *fallback)),
        ),
        retry=RetryPolicy(most=config.get_int("retries"), base_ms=_ms(config, "retry_seconds")),
        rules=rules,
        options=dict(request.options),
        fallback=tuple(fallback),
        agent_options=_build_agent_options(request, config, (agent, *fallback)),
        session=request.session,
        ungated=request.ungated,
        share_workspace=request.share_workspace,
        mode=request.mode or MODES[0],
        requires_commit=request.requires_commit,
        job=request.job,
        strict=config.get_text("strict") == "true",
        approval_timeout_ms=_ms(config, "approval_timeout"),
        approval_answer=config.get_text("approval_answer"),
        allowed=policy_files.check_allowed_rules(request.allow, rules),
        replay=config.get_text("replay"),
        policy_version=POLICY_VERSION,
        unmatched=config.get_text("unmatched"),
        profile=config.get_text("profile").removeprefix(NONE),
        own_remotes=read_own_remotes(workspace, os.environ),
    )


def _limit_usd(home: Home, config: Config, names: Sequence[str]) -> int | None:
    """The budget in millionths of a dollar. One that nobody could keep is refused if it was named for this run."""
    limit = round(config.get_float("max_usd") * 1_000_000) or None
    declarations = [agents.load_adapter(config, name).declaration for name in names]
    blind = [one.name for one in declarations if not one.tokens and not one.cost]
    if limit is None or not blind:
        return limit
    source = config.sources["max_usd"]
    if source.startswith("--") or source != home.config.sources["max_usd"]:  # a flag, a task or a job
        raise UsageError(
            f"{source}: {blind[0]} reports no usage, so it cannot keep a budget in USD: leave max_usd out, and limit "
            "the run with --max-seconds or --max-calls"
        )
    home.warnings.append(f"{blind[0]} reports no usage: the budget of {format_usd(limit)} does not apply to it")
    return None if len(blind) == len(names) else limit


def _choose_fallback(request: Request, config: Config) -> tuple[str, ...]:
    return request.fallback or split_names(config.get_text("fallback"))


def _build_agent_options(request: Request, config: Config, chosen: Sequence[str]) -> dict[str, AgentOptions]:
    """A model given by a flag applies to the first agent only: the others would not know it."""
    found = {}
    for name in chosen:
        asked = request.agent_options if name == chosen[0] else AgentOptions()
        declaration = agents.load_adapter(config, name).declaration
        if name == "scripted" and not request.options.get("script"):
            raise UsageError(
                "the scripted agent has no script to play: leave it out, or run it alone with --script FILE"
            )
        options = build_options(declaration, asked, os.environ, config.agents.get(name, {}))
        found[name] = options._replace(tells_cost=declaration.cost)
    return found


def _refuse_invalid(request: Request) -> None:
    if not ids.is_chosen(request.task):  # it becomes a folder's name
        raise UsageError(f"'{shorten_name(request.task)}' cannot be a task's name: {_NAMES}")
    if len(request.prompt) > _LONGEST_PROMPT:
        raise UsageError(f"the prompt is longer than {_LONGEST_PROMPT} characters: put it into a file")
    reject_flag_like("the session", request.session)
    reject_secret_proof(request.proof)
    # A text that a database cannot store is refused: if it were changed, the agent would get another prompt.
    for name, text in (("prompt", request.prompt), ("proof", request.proof)):
        refuse_unstorable(name, text)


def refuse_unstorable(name: str, text: str) -> None:
    """Raise UsageError for a text that a database cannot store unchanged."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the {name} is not text in UTF-8") from None
    if "\0" in text:
        raise UsageError(f"the {name} contains a NUL character: remove it")


def _ms(config: Config, name: str) -> int:
    return round(config.get_float(name) * 1000)
