"""Triggers, and the findings that start their runs. Pure.

Text that other people wrote is only ever inserted as a quoted block, and only into the prompt.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.digests import hash_text
from jackline.domain.events import NOTHING
from jackline.domain.limits import compute_wait
from jackline.domain.quoted_text import quote_text
from jackline.domain.states import RunState
from jackline.errors import UsageError
from jackline.formatting import format_utc, make_printable, pluralize
from jackline.named import NamedTuple, load_stored, stored_as, stored_changes

if TYPE_CHECKING:
    from collections.abc import Mapping

ISSUES, COMMENTS, WORK, RUN_END = KINDS = ("issues", "comments", "work", "run-end")
ON_GITHUB = frozenset({ISSUES, COMMENTS})
ENDED_STATES = (str(RunState.SUCCEEDED), str(RunState.FAILED), str(RunState.CANCELLED))

# The states of a delivery.
CLAIMED = "claimed"  # recorded; its run is not created yet
STARTED = "started"
ENDED = "ended"  # its run has ended, and so has its work item
IGNORED = "ignored"  # its author may not start runs, or it would start itself
FAILED = "failed"  # its run cannot be created

LONGEST_NAME = 30
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_LOGIN = re.compile(r"[A-Za-z0-9-]{1,39}(\[bot\])?")
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HASH_CHARS = 16
_REPOSITORY_CHARS = 8  # of its hash
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/#@-]{0,79}")  # names that need no quotes
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_MOST_FIELDS = 20

_POLL_MS = 60_000
_LONGEST_POLL_MS = 3_600_000


@stored_as("kind workspace run repository label authors item_kind task states")
class TriggerDefinition(NamedTuple):
    """What a trigger watches, and the run that it starts; stored as JSON."""

    kind: str
    workspace: str
    run: Mapping[str, Any]  # arguments of `jackline run` by name
    repository: str = ""  # OWNER/NAME on GitHub
    label: str = ""
    authors: tuple[str, ...] = ()  # logins that count besides those with write access
    item_kind: str = ""  # of work items
    task: str = ""  # of the ended run; empty: any
    states: tuple[str, ...] = ENDED_STATES[:2]  # in which the ended run must be


@stored_as("name definition cursor next_at failures paused_at created_at updated_at")
class Trigger(NamedTuple):
    """A stored trigger; `next_at` is when it may ask the server again.

    `cursor` is how far it has read. A trigger on GitHub reads everything each time; it keeps there why it failed last.
    """

    name: str
    definition: TriggerDefinition
    cursor: str
    next_at: int
    failures: int
    paused_at: int | None
    created_at: int
    updated_at: int

    @property
    def problem(self) -> str:
        """Why its last request failed; empty if it did not."""
        return self.cursor if self.definition.kind in ON_GITHUB and self.failures else ""


@stored_as("trigger_name delivery state run_id reason at")
class TriggerDelivery(NamedTuple):
    """Something that a trigger found, by an id that is the same each time, and its result."""

    trigger_name: str
    delivery: str
    state: str
    run_id: str
    reason: str
    at: int


class TriggerFinding(NamedTuple):
    """Something that may start a run."""

    delivery: str
    variables: Mapping[str, str] = NOTHING  # plain words and numbers
    texts: Mapping[str, str] = NOTHING  # of other people
    author: str = ""
    source: str = ""  # what it is, in a few words
    at: int = 0
    node: str = ""  # on GitHub: its GraphQL id, by which its body is read
    own_texts: tuple[str, ...] = ("title", "body")  # those that the author wrote, if it has them


def dump_definition(definition: TriggerDefinition) -> dict[str, Any]:
    """A definition as JSON values, without what is the default."""
    return stored_changes(definition)


def load_definition(values: Mapping[str, Any]) -> TriggerDefinition:
    """A definition from JSON values."""
    found = load_stored(TriggerDefinition, values)
    return found._replace(authors=tuple(found.authors), states=tuple(found.states))


def check_definition(name: str, definition: TriggerDefinition) -> None:
    """Raise UsageError unless the trigger can work."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"'{_show(name)}' cannot be a trigger's name: use up to {LONGEST_NAME} letters, digits, _ and -"
        )
    if definition.kind in ON_GITHUB and not _REPOSITORY.fullmatch(definition.repository):
        raise UsageError(f"'{_show(definition.repository)}' is not a repository; write OWNER/NAME")
    if definition.kind == ISSUES and not definition.label.strip():
        raise UsageError("--issues needs a label: add --with-label LABEL")
    if definition.kind == WORK and not definition.item_kind.strip():
        raise UsageError("--work is empty: name a kind of work items; see `jackline work list`")
    for author in definition.authors:
        if not _LOGIN.fullmatch(author):
            raise UsageError(f"'{_show(author)}' is not a login on GitHub")
    for state in definition.states:
        if state not in ENDED_STATES:
            raise UsageError(f"'{_show(state)}' is not a final state of a run; use {', '.join(ENDED_STATES)}")


def describe_definition(definition: TriggerDefinition) -> str:
    """What a trigger watches, in words."""
    match definition.kind:
        case "issues":
            return f"issues of {definition.repository} with the label {definition.label}"
        case "comments":
            return f"review comments in {definition.repository}"
        case "work":
            return f"work items of the kind {definition.item_kind}"
        case _:
            task = f" of the task {definition.task}" if definition.task else ""
            return f"ends of runs{task}: {', '.join(definition.states)}"


def describe_state(trigger: Trigger) -> str:
    """Whether a trigger works, in words."""
    if trigger.paused_at is not None:
        return "paused"
    if not trigger.failures:
        return "watching"
    why = f": {make_printable(trigger.problem)}" if trigger.problem else ""
    return f"failed {pluralize(trigger.failures, 'time')}, next attempt at {format_utc(trigger.next_at)} UTC{why}"


def build_run_id(name: str, delivery: str) -> str:
    """The id of the run of a delivery: the same wherever it is created."""
    repository, _, event = delivery.rpartition(":")
    if len(event) > _HASH_CHARS or not _NAME.fullmatch(event):
        return f"{name}-{hash_text(delivery)[:_HASH_CHARS]}"
    return f"{name}-{event}-{hash_text(repository)[:_REPOSITORY_CHARS]}" if repository else f"{name}-{event}"


def build_event_id(repository: str, event: str) -> str:
    """The id of a delivery from GitHub: a name of a trigger may be used for another repository later."""
    return f"{repository.lower()}:{event}"


def get_old_event_id(delivery: str) -> str:
    """The id of a delivery from GitHub as older versions recorded it: without the repository."""
    return delivery.rpartition(":")[2]


def fill_prompt_with_finding(prompt: str, finding: TriggerFinding) -> str:
    """Replace `{name}` by the finding's variables; what the prompt does not name is added at its end."""
    values = build_variables(finding)
    named = {found for found in _PLACE.findall(prompt) if found in values}
    filled = _PLACE.sub(lambda found: values.get(found[1], found[0]), prompt)
    if named & finding.texts.keys() or (named and not finding.texts):
        return filled
    return "\n\n".join([filled, describe_finding(finding)]).strip()


def describe_finding(finding: TriggerFinding) -> str:
    """A section of a prompt about what started the run."""
    values = build_variables(finding)
    facts = [f"{name}: {value}" for name, value in finding.variables.items()]
    texts = [f"{name}:\n{values[name]}" for name in finding.texts]
    return "\n\n".join([f"This run was started by {finding.source}.", "\n".join(facts), *texts])


def build_variables(finding: TriggerFinding) -> dict[str, str]:
    """The variables of a finding for a prompt; texts of other people are quoted."""
    authors = dict.fromkeys(finding.own_texts, finding.author)
    quoted = {name: quote_text(text, authors.get(name, "")) for name, text in finding.texts.items()}
    return {**finding.variables, **quoted}


def compute_next_poll(at: int, failures: int) -> int:
    """When to ask a server again: every minute, after failures ever more rarely, at least once an hour."""
    return at + compute_wait(_POLL_MS, failures, _LONGEST_POLL_MS)


def may_poll(trigger: Trigger, at: int) -> bool:
    """Whether its server may be asked now. A time further ahead than any wait is from before the clock was set back."""
    return not at < trigger.next_at <= at + _LONGEST_POLL_MS


def build_item_finding(item_id: str, kind: str, payload: str, delivery: str) -> TriggerFinding:
    """The finding of a work item. Its author chose its id and the names of its fields: they may be sentences."""
    is_plain = _PLAIN.fullmatch(item_id) is not None
    return TriggerFinding(
        delivery=delivery,
        variables={"item": item_id if is_plain else quote_text(item_id, ""), "kind": kind},
        texts=_parse_payload(payload),
        source=f"work item {item_id}" if is_plain else "a work item",
    )


def _parse_payload(payload: str) -> dict[str, str]:
    """The fields of a payload as texts; what is not an object with a few plain names is one field `payload`."""
    values = json.loads(payload)
    if isinstance(values, dict) and (len(values) > _MOST_FIELDS or not all(_FIELD.fullmatch(name) for name in values)):
        return {"payload": payload}
    fields = values if isinstance(values, dict) else {"payload": values}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


def _show(text: str) -> str:
    return text[:60].encode("unicode_escape").decode()
