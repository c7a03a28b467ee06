"""Builds a new run from a request: every default becomes explicit. It creates and starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import agents, policy_files
from jackline.app.accounts import AUTO
from jackline.app.agent_settings import build_options, reject_flag_like
from jackline.app.agents import choose_agents, split_names
from jackline.app.config import add_run_settings
from jackline.app.preflight import reject_secret_proof
from jackline.app.text_files import shorten_name
from jackline.digests import hash_text
from jackline.domain import ids
from jackline.domain.agent_ref import split_agent
from jackline.domain.events import NOTHING, canonical
from jackline.domain.limits import Limits, RetryPolicy, count_units
from jackline.domain.spec import (
    ALL_PASS,
    ANY_PASS,
    APPROVED,
    CLAUDEX,
    CLAUDEX_AGENTS,
    DRAFT,
    GREEN,
    MERGED,
    NO_REVIEW,
    READY,
    AgentOptions,
    Spec,
    WorktreeSpec,
)
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

_LONGEST_SIGNAL = 200
_LONGEST_PROMPT = 4 * 1024 * 1024
_LAST_OLD_FIELD = "allowed"
_TIMEOUTS, _OLD_TIMEOUTS = (0, 900_000), (900_000, 600_000)  # the defaults per turn and idle, now and before 0009
_NEW_ID = "new"  # of a run that is planned, and not created
_LISTS = ("fallback", "allow", "labels", "copy", "review")  # fields that hold several names
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
    labels: tuple[str, ...] = ()  # words by which channels select the run's notices
    worktree: bool | None = None  # whether it works in a new worktree; None: the settings decide
    worktree_name: str = ""  # empty: from its id
    worktree_base: str = ""  # a commit; empty: HEAD
    copy: tuple[str, ...] = ()  # untracked files for that worktree
    pr: str = ""  # the kind of the pull request to open; empty: none
    pr_base: str = ""
    until: str = ""  # what it waits for then
    setup: str = ""  # a command that prepares it
    review: tuple[str, ...] = ()  # agents that review the work
    review_mode: str = ""  # empty: all have to pass
    done_signal: str = ""
    plan: bool = False
    proof_must_fail_first: bool = False
    commit_work: bool = False


def build_new_run(request: Request, home: Home) -> NewRun:
    """Build the run to create."""
    run_id = request.run_id or new_id()
    if not ids.is_chosen(run_id):
        raise UsageError(f"'{shorten_name(run_id)}' cannot be a run's id: {_NAMES}")
    spec = build_spec(request, home, run_id)
    # Neither a newer policy nor another remote makes it another request, nor a commit on the branch it starts from.
    base = spec.worktree._replace(base=request.worktree_base, base_branch="")
    asked = spec._replace(policy_version=1, own_remotes={}, pr_remote="", worktree=base)
    names = _list_asked(request, home)
    if any(split_agent(name).account == AUTO or name == AUTO for name in names):  # the choice may differ the next time
        asked = asked._replace(agent=names[0], fallback=names[1:], agent_options={})
    return NewRun(
        id=run_id,
        repository=find_repository(spec.worktree.source or spec.workspace),
        spec=spec,
        request=_digest(asked.changes()),
        old_requests=_list_old_digests(asked),
        ping=home.config.get_text("ping"),
    )


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
    del values["limits"]["repeats"]  # a limit that they did not know
    names = list(values)
    return {name: values[name] for name in names[: names.index(_LAST_OLD_FIELD) + 1]}


def _digest(values: Mapping[str, object]) -> str:
    return hash_text(canonical(values))


def build_spec(request: Request, home: Home, run_id: str = _NEW_ID) -> Spec:
    """Build the spec of the run; notes about the policy go to the home's warnings."""
    config = add_run_settings(home.config, request.settings)
    _refuse_invalid(request, home)
    agent, *fallback = choose_agents(home, config, *_choose_names(request, config))
    review = _choose_reviewers(request, home)
    workspace = os.path.realpath(request.workspace or os.getcwd())
    if not os.path.isdir(workspace):
        raise UsageError(f"{workspace} is not a folder: name an existing one with --workspace")
    worktree, place = _plan_worktree(request, home, config, workspace, run_id)
    layers = policy_files.load_layers(os.environ, home.path, home.config.get_text("database"), workspace)
    home.warnings += layers.notes
    rules = policy_files.merge_layers(request.rules, layers)
    remotes = read_own_remotes(workspace, os.environ)
    pr_branch, pr_remote = _plan_pull_request(request, workspace, worktree.branch, remotes)
    return Spec(
        prompt=request.prompt,
        workspace=place,
        worktree=worktree,
        agent=agent,
        task=request.task,
        proof=request.proof,
        turn_timeout_ms=_read_ms(config, "timeout_seconds"),
        idle_timeout_ms=_read_ms(config, "idle_seconds"),
        grace_ms=_read_ms(config, "grace_seconds"),
        limits=Limits(
            wall_ms=count_units(config.get_float("max_seconds"), 1000) or None,
            iterations=config.get_int("max_iterations") or None,
            steps=config.get_int("max_steps") or None,
            calls=config.get_int("max_calls") or None,
            tokens=config.get_int("max_tokens") or None,
            usd_micros=_limit_usd(home, config, (agent, *fallback, *review)),
            repeats=config.get_int("max_repeats") or None,
        ),
        retry=RetryPolicy(most=config.get_int("retries"), base_ms=_read_ms(config, "retry_seconds")),
        rules=rules,
        options=dict(request.options),
        fallback=tuple(fallback),
        agent_options=_build_agent_options(request, config, (agent, *fallback, *review)),
        session=request.session,
        ungated=request.ungated,
        share_workspace=request.share_workspace,
        mode=request.mode or MODES[0],
        requires_commit=request.requires_commit,
        job=request.job,
        strict=config.get_text("strict") == "true",
        approval_timeout_ms=_read_ms(config, "approval_timeout"),
        approval_answer=config.get_text("approval_answer"),
        allowed=policy_files.check_allowed_rules(request.allow, rules),
        replay=config.get_text("replay"),
        policy_version=POLICY_VERSION,
        unmatched=config.get_text("unmatched"),
        profile=config.get_text("profile").removeprefix(NONE),
        labels=request.labels,
        review=review,
        review_mode=request.review_mode or ALL_PASS,
        review_rounds=config.get_int("review_rounds"),
        plan=request.plan,
        done_signal=request.done_signal.strip(),
        proof_must_fail_first=request.proof_must_fail_first,
        commit_work=request.commit_work,
        own_remotes=remotes,
        pr=request.pr,
        pr_base=request.pr_base,
        until=request.until,
        pr_branch=pr_branch,
        pr_remote=pr_remote,
    )


def _plan_worktree(
    request: Request, home: Home, config: Config, workspace: str, run_id: str
) -> tuple[WorktreeSpec, str]:
    """The run's own worktree and its folder there; without one, it works in the workspace itself."""
    if request.worktree is False and request.worktree_name:
        raise UsageError(
            f"worktree_name is '{shorten_name(request.worktree_name)}', and worktree is False: leave one out"
        )
    is_wanted = config.get_text("worktree") == "true" if request.worktree is None else request.worktree
    if is_wanted or request.worktree_name:
        from jackline.app.worktree_request import plan_worktree

        return plan_worktree(request, home, config, workspace, run_id)
    needs_worktree = request.worktree_base or request.copy or request.setup
    # Without one although a task prepares one: then a person wants to work here.
    if (request.worktree is None and needs_worktree) or config.sources["setup_timeout"].startswith("--"):
        raise UsageError("--worktree-base, --copy, --setup and --setup-timeout are for a worktree: add --worktree")
    return WorktreeSpec(), workspace


def _choose_reviewers(request: Request, home: Home) -> tuple[str, ...]:
    """The agents that review, one for each seat; an agent may have several. `none` overrides those of a task."""
    if request.review == (NO_REVIEW,):
        return ()
    if NO_REVIEW in request.review:
        raise UsageError(f"'{NO_REVIEW}' is for a run without reviewers: leave it or the others out")
    flag = "--review-mode" if request.review_mode else home.config.sources["review_rounds"]
    if flag in {"--review-mode", "--review-rounds"} and not request.review:
        raise UsageError(f"{flag} needs reviewers: name them with --review")
    if request.review_mode not in {"", ALL_PASS, ANY_PASS}:
        raise UsageError(f"the review mode '{request.review_mode}' is unknown: use {ALL_PASS} or {ANY_PASS}")
    named = (one for name in request.review for one in (CLAUDEX_AGENTS if name == CLAUDEX else (name,)))
    return tuple(agents.expand_account(home, agents.name_account(home.config, name))[0] for name in named)


def _plan_pull_request(request: Request, workspace: str, branch: str, remotes: Mapping[str, str]) -> tuple[str, str]:
    """The branch that the host will push, and the address that it will push to; empty without a pull request."""
    if not request.pr and (request.until or request.pr_base):
        raise UsageError(f"{'--until' if request.until else '--pr-base'} is for a pull request: add --pr")
    for name, value, known in (("pr", request.pr, (READY, DRAFT)), ("until", request.until, (GREEN, APPROVED, MERGED))):
        if value and value not in known:
            raise UsageError(f"{name} must be {', '.join(known[:-1])} or {known[-1]}, not '{shorten_name(value)}'")
    if not request.pr:
        return "", ""
    from jackline.app.pull_request_plan import find_target

    return find_target(request, workspace, branch, remotes)


def _limit_usd(home: Home, config: Config, names: Sequence[str]) -> int | None:
    """The budget in millionths of a dollar. Refuse one given for this run if an agent reports no usage."""
    limit = count_units(config.get_float("max_usd"), 1_000_000) or None
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


def _choose_names(request: Request, config: Config) -> tuple[str, tuple[str, ...]]:
    """The agent and the fallbacks that were asked for."""
    return request.agent or config.get_text("agent"), request.fallback or split_names(config.get_text("fallback"))


def _list_asked(request: Request, home: Home) -> tuple[str, ...]:
    """The names of a request before an agent or an account is chosen."""
    config = add_run_settings(home.config, request.settings)
    agent, fallback = _choose_names(request, config)
    return (agent if agent == AUTO else agents.name_account(config, agent), *fallback)


def _build_agent_options(request: Request, config: Config, chosen: Sequence[str]) -> dict[str, AgentOptions]:
    """A model given by a flag applies to the accounts of the first agent only: other agents would not know it."""
    found = {}
    for name in chosen:
        is_same = split_agent(name).name == split_agent(chosen[0]).name
        asked = request.agent_options if is_same else AgentOptions()
        declaration = agents.load_adapter(config, name).declaration
        if name == "scripted" and not request.options.get("script"):
            raise UsageError(
                "the scripted agent has no script to play: leave it out, or run it alone with --script FILE"
            )
        options = build_options(declaration, asked, os.environ, config.agents.get(declaration.agent, {}))
        found[name] = options._replace(tells_cost=declaration.cost)
    return found


def _refuse_invalid(request: Request, home: Home) -> None:
    for name in _LISTS:
        if isinstance(getattr(request, name), str):  # each of its letters would be a name
            raise UsageError(f"{name} is a list of names: write {name}=({getattr(request, name)!r},)")
    if not ids.is_chosen(request.task):  # it becomes a folder's name
        raise UsageError(f"'{shorten_name(request.task)}' cannot be a task's name: {_NAMES}")
    for label in request.labels:
        if not ids.is_chosen(label):
            raise UsageError(f"'{shorten_name(label)}' cannot be a label: {_NAMES}")
    if len(request.prompt) > _LONGEST_PROMPT:
        raise UsageError(f"the prompt is longer than {_LONGEST_PROMPT} characters: put it into a file")
    reject_flag_like("the session", request.session)
    reject_secret_proof(home, request.proof)
    if request.proof_must_fail_first and not request.proof:
        raise UsageError("--proof-must-fail-first needs a proof: name it with --proof")
    if len(request.done_signal.splitlines()) > 1 or len(request.done_signal) > _LONGEST_SIGNAL:
        raise UsageError(f"the done signal must be one line of at most {_LONGEST_SIGNAL} characters")
    # A text that a database cannot store is refused: if it were changed, the agent would get another prompt.
    for name, text in (("prompt", request.prompt), ("proof", request.proof), ("done signal", request.done_signal)):
        refuse_unstorable(name, text)


def refuse_unstorable(name: str, text: str) -> None:
    """Raise UsageError for a text that a database cannot store unchanged. `name`: a flag or a noun."""
    subject = name if name.startswith("-") else f"the {name}"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{subject} is not text in UTF-8") from None
    if "\0" in text:
        raise UsageError(f"{subject} contains a NUL character: remove it")


def _read_ms(config: Config, name: str) -> int:
    return round(config.get_float(name) * 1000)
