"""The request of a run: what to do, where, by whom, and what "done" means. Pure data, with its stored form.

They are NamedTuples because every command imports them: a frozen dataclass takes four times as long to define.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.domain.limits import Limits, RetryPolicy
from jackline.named import NamedTuple, split_stored, stored_as, stored_changes, stored_dict
from jackline.policy.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

REPORT, INSIST = "report", "insist"  # what a run does with a read or a local call that a crash interrupted
NO_REVIEW = "none"  # in place of reviewers
CLAUDEX, CLAUDEX_AGENTS = "claudex", ("claude", "codex")  # one word for two reviewers
ALL_PASS, ANY_PASS = "all", "any"  # review modes: which of the reviewers have to pass
READY, DRAFT = "ready", "draft"  # kinds of pull requests
GREEN, APPROVED, MERGED = "green", "approved", "merged"  # what a run may wait for


@stored_as("model effort arguments passes tells_cost")
class AgentOptions(NamedTuple):
    """The options of one agent; empty ones are left to the CLI's own defaults."""

    model: str = ""
    effort: str = ""
    arguments: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()  # environment variables it may see besides those that it declares
    tells_cost: bool = True  # otherwise a cost of 0 means unknown


@stored_as("name branch base base_branch copy setup setup_timeout_ms path source")
class WorktreeSpec(NamedTuple):
    """The worktree that jackline makes for a run. Without a name, the run works in an existing folder."""

    name: str = ""
    branch: str = ""
    base: str = ""  # the commit that the branch starts from
    base_branch: str = ""  # checked out where the run was created; empty if none was
    copy: tuple[str, ...] = ()  # untracked files, relative to the root of the repository
    setup: str = ""
    setup_timeout_ms: int = 600_000
    path: str = ""  # its root, without links
    source: str = ""  # the root of the checkout where the run was created: files are copied from there


@stored_as(
    "prompt workspace agent task mode proof turn_timeout_ms idle_timeout_ms grace_ms limits retry rules options "
    "fallback manners session requires_commit job strict approval_timeout_ms approval_answer ungated preface "
    "fork_of allowed replay share_workspace policy_version unmatched own_remotes profile labels "
    "review review_mode review_rounds plan done_signal proof_must_fail_first commit_work worktree pr pr_base until "
    "pr_branch pr_remote"
)
class Spec(NamedTuple):
    """The request, frozen when the run starts: later changes of the settings must not affect a resume.

    Only a person changes it, between two attempts (see `domain.amendment`).
    """

    prompt: str
    workspace: str
    agent: str = "scripted"
    task: str = "adhoc"
    mode: str = "job"
    proof: str = ""
    turn_timeout_ms: int = 0  # 0: only the budget of the run limits a turn
    idle_timeout_ms: int = 900_000  # 0: no limit
    grace_ms: int = 5_000
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    rules: tuple[Rule, ...] = ()
    options: Mapping[str, str] = NOTHING
    fallback: tuple[str, ...] = ()  # the agents that take over, in this order, when the agent cannot continue
    agent_options: Mapping[str, AgentOptions] = NOTHING
    session: str = ""  # an existing session of the agent to continue
    requires_commit: bool = False
    job: str = ""  # the text of the job file
    strict: bool = False  # an unknown call that a crash interrupted is in doubt, like an effect
    approval_timeout_ms: int = 0  # after which `approval_answer` applies; 0: no timeout
    approval_answer: str = "deny"
    ungated: bool = False  # a person accepts that an agent without an enforced gate is not held back
    preface: str = ""  # what the agent of a fork reads about the parent run
    fork_of: str = ""  # the session of the parent's agent, if this run's session starts as a copy of it
    allowed: tuple[str, ...] = ()  # what was approved in advance: RULE, RULE=PATTERN or RULE=any
    replay: str = REPORT  # `insist`: an interrupted read or local call has to be made again
    share_workspace: bool = False  # it may work while another run works in the same worktree
    policy_version: int = 1  # under which the run began; its keys, classes and agreements stay the same
    unmatched: str = "allow"  # the decision for calls that no rule matches
    own_remotes: Mapping[str, str] = NOTHING  # addresses of the repository's remotes → default branch, if known
    profile: str = ""  # see `policy.profiles`
    labels: tuple[str, ...] = ()  # a person's words, by which channels select notices
    review: tuple[str, ...] = ()  # the agents that review the work, one for each seat
    review_mode: str = ALL_PASS
    review_rounds: int = 3  # without a pass, before a person decides
    plan: bool = False  # the agent plans before it works
    done_signal: str = ""  # the last line of an agent that is done; empty: the end of its turn is enough
    proof_must_fail_first: bool = False
    commit_work: bool = False  # the host commits what the agent did not commit
    worktree: WorktreeSpec = WorktreeSpec()
    pr: str = ""  # the kind of the pull request to open; empty: none
    pr_base: str = ""
    until: str = ""  # what the run waits for once the pull request is open; empty: nothing
    pr_branch: str = ""  # the only branch that the host may push
    pr_remote: str = ""  # the only address that it may push to, in normal form; empty in runs of earlier versions
    unknown: tuple[str, ...] = ()  # stored names of a newer version; not stored again, because such a run is refused

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents that may work on it, in order."""
        return (self.agent, *self.fallback)

    @property
    def imported(self) -> str:
        """The program that the run was imported from; such a run has no policy, and is never continued."""
        return self.options.get("imported", "")

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON values, by stored name."""
        return {
            **stored_dict(self),
            "limits": stored_dict(self.limits),
            "retry": stored_dict(self.retry),
            "rules": [stored_dict(rule) for rule in self.rules],
            "options": dict(self.options),
            "manners": {agent: stored_dict(options) for agent, options in self.agent_options.items()},
            "own_remotes": dict(self.own_remotes),
            "worktree": stored_dict(self.worktree),
        }

    def changes(self) -> dict[str, Any]:
        """Return the values of `to_dict` that differ from the defaults, so that a later field does not change it."""
        nested = {
            "limits": stored_changes(self.limits),
            "retry": stored_changes(self.retry),
            "rules": [stored_changes(rule) for rule in self.rules],
            "options": dict(self.options),
            "manners": {agent: stored_changes(options) for agent, options in self.agent_options.items()},
            "own_remotes": dict(self.own_remotes),
            "worktree": stored_changes(self.worktree),
        }
        plain = {name: value for name, value in stored_changes(self).items() if name not in nested}
        return plain | {name: value for name, value in nested.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spec:
        """Build a spec from the values of `to_dict`; missing names get their defaults, unknown ones go to `unknown`."""
        values, unknown = split_stored(cls, data)

        def known_values(record: type, place: str, inner: Mapping[str, Any]) -> dict[str, Any]:
            known, others = split_stored(record, inner)
            unknown.extend(f"{place}.{name}" for name in others)
            return known

        rules = data.get("rules", ())
        for rule in rules:
            known_values(Rule, f"rules.{rule['name']}", rule)
        agent_options: dict[str, AgentOptions] = {}
        for name, stored in data.get("manners", {}).items():
            options = AgentOptions(**known_values(AgentOptions, f"manners.{name}", stored))
            agent_options[name] = options._replace(arguments=tuple(options.arguments), passes=tuple(options.passes))
        worktree = WorktreeSpec(**known_values(WorktreeSpec, "worktree", data.get("worktree", {})))
        values |= {
            "worktree": worktree._replace(copy=tuple(worktree.copy)),
            "limits": Limits(**known_values(Limits, "limits", data.get("limits", {}))),
            "retry": RetryPolicy(**known_values(RetryPolicy, "retry", data.get("retry", {}))),
            "rules": tuple(Rule.from_dict(rule) for rule in rules),
            "agent_options": agent_options,
            "own_remotes": dict(data.get("own_remotes", {})),
        }
        for name in ("review", "fallback", "allowed", "labels"):
            values[name] = tuple(data.get(name, ()))
        return cls(**values, unknown=tuple(unknown))
