"""What a person may change about a run before it continues: limits, timeouts, rounds, model, rules, commits. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING
from jackline.domain.spec import AgentOptions
from jackline.domain.states import ENDS_ITERATION, Failure, Phase, WaitReason
from jackline.errors import Refused
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.limits import Limits, Spent
    from jackline.domain.records import Run
    from jackline.domain.spec import Spec

# Fields of `Limits`, each with its setting and the number of its units in one unit of the setting.
LIMIT_SETTINGS = {
    "usd_micros": ("max_usd", 1_000_000),
    "tokens": ("max_tokens", 1),
    "calls": ("max_calls", 1),
    "steps": ("max_steps", 1),
    "wall_ms": ("max_seconds", 1000),
    "iterations": ("max_iterations", 1),
    "repeats": ("max_repeats", 1),
}
_TIMEOUT_SETTINGS = {"turn_timeout_ms": "timeout_seconds", "idle_timeout_ms": "idle_seconds"}
_RECOVERY_STEPS = 1  # a resume begins with a recovery, which is a step


class Amendment(NamedTuple):
    """The changes of one `resume`; what is empty stays as it is. Limits are new totals, None for no limit."""

    message: str = ""  # for the agent
    limits: Mapping[str, int | None] = NOTHING  # by field of `Limits`
    turn_timeout_ms: int | None = None
    idle_timeout_ms: int | None = None
    model: str = ""
    effort: str = ""
    allow: tuple[str, ...] = ()  # names of rules
    commit_work: bool = False  # the host commits from now on
    review_rounds: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return self == Amendment()


class SpecChange(NamedTuple):
    """One changed setting, in the unit of the setting; a limit of 0 is no limit."""

    name: str
    old: object
    new: object


def amend_spec(run: Run, amendment: Amendment) -> Spec:
    """The spec with the changes; Refused if a total is not above what is spent. A model is for the current agent."""
    spec = run.spec
    _refuse_spent(amendment.limits, run.status.spent)
    timeouts = {name: getattr(amendment, name) for name in _TIMEOUT_SETTINGS}
    options = spec.agent_options.get(run.agent, AgentOptions())
    options = options._replace(model=amendment.model or options.model, effort=amendment.effort or options.effort)
    return spec._replace(
        **{name: value for name, value in timeouts.items() if value is not None},
        limits=spec.limits._replace(**amendment.limits),
        commit_work=spec.commit_work or amendment.commit_work,
        review_rounds=amendment.review_rounds or spec.review_rounds,
        allowed=tuple(dict.fromkeys((*spec.allowed, *amendment.allow))),
        agent_options={**spec.agent_options, run.agent: options}
        if amendment.model or amendment.effort
        else spec.agent_options,
    )


def list_spec_changes(before: Spec, after: Spec, agent: str) -> list[SpecChange]:
    """The settings that differ, by the names of their flags."""
    old, new = (_list_settings(spec, agent) for spec in (before, after))
    return [SpecChange(name, old[name], value) for name, value in new.items() if value != old[name]]


def suggest_totals(limits: Limits, spent: Spent) -> list[tuple[str, str]]:
    """For each limit that leaves no room, its setting and a total that does: twice the old one or what is spent."""
    found = []
    for name, (setting, unit) in LIMIT_SETTINGS.items():
        limit, needed = getattr(limits, name), _count_needed(name, spent)
        # The iteration that has begun may end: it was counted when it began.
        if limit is not None and needed >= limit and name != "iterations":
            total = 2 * (limit if 2 * limit > needed else needed)
            step = max(1, unit // 100)  # whole cents
            found.append((setting, _format(-(-total // step) * step, unit)))
    return found


def build_resume_words(run: Run) -> tuple[str, ...]:
    """The words of the `jackline` command that continues a run; after a budget was spent, with higher totals."""
    words = ["resume", run.id]
    # A check, review or publication that could not be made is made again first: its iteration is not over.
    most, needs_work = run.spec.limits.iterations, run.status.goal is Phase.WORKING
    has_ended = needs_work and run.status.failure in {*ENDS_ITERATION, Failure.NO_PROGRESS}
    if has_ended and most and run.status.spent.iterations >= most:
        words += ["--max-iterations", str(2 * run.status.spent.iterations)]
    if run.status.reason is WaitReason.BUDGET:
        for setting, total in suggest_totals(run.spec.limits, run.status.spent):
            words += [f"--{setting.replace('_', '-')}", total]
    return tuple(words)


def _refuse_spent(named: Mapping[str, int | None], spent: Spent) -> None:
    for name, limit in named.items():
        setting, unit = LIMIT_SETTINGS[name]
        needed = _count_needed(name, spent)
        if limit is not None and needed >= limit:
            used, flag = _format(getattr(spent, name), unit), f"--{setting.replace('_', '-')}"
            raise Refused(f"{flag} is a new total, and {used} is spent already: use more than {_format(needed, unit)}")


def _count_needed(name: str, spent: Spent) -> int:
    """What is spent when the next turn is about to start."""
    used: int = getattr(spent, name, 0)  # repeats are counted in each turn
    return used + _RECOVERY_STEPS if name == "steps" else used


def _list_settings(spec: Spec, agent: str) -> dict[str, object]:
    options = spec.agent_options.get(agent, AgentOptions())
    limits = {
        setting: _convert(getattr(spec.limits, name) or 0, unit) for name, (setting, unit) in LIMIT_SETTINGS.items()
    }
    timeouts = {setting: _convert(getattr(spec, name), 1000) for name, setting in _TIMEOUT_SETTINGS.items()}
    own = {"model": options.model, "effort": options.effort, "allow": list(spec.allowed), "commit": spec.commit_work}
    return {**limits, **timeouts, **own, "review_rounds": spec.review_rounds}


def _convert(value: int, unit: int) -> int | float:
    return value / unit if value % unit else value // unit


def _format(value: int, unit: int) -> str:
    return f"{value / unit:.4f}".rstrip("0").rstrip(".") if unit > 1 else str(value)
