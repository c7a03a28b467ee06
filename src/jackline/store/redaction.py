"""Redacts secrets before a write: one function for each kind of write. It reads and writes nothing.

Ids, keys and words of closed sets stay unchanged: they are compared, and hold no secrets. So does
everything that a run needs to be executed: the check, the rules, and the instructions for its agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.events import Fact

if TYPE_CHECKING:
    from jackline.domain.call_gate import Intent
    from jackline.domain.records import Checkpoint
    from jackline.domain.spec import Spec
    from jackline.features.cases.case_model import CaseEntry, NewCase
    from jackline.features.work.work_item import NewItem
    from jackline.secrets.redactor import Redactor
    from jackline.store.models import NewRun, RunChange, Settlement

# The free text of the records of a change.
_CHANGE_TEXTS = {
    "status": ("detail",),
    "turn": ("prompt", "detail", "last_message"),
    "check": ("command", "output"),
    "health": ("detail",),
    "notice": ("title", "body"),
    "iteration": ("detail",),
    "verdict": ("summary",),
}


def redact_new_run(redactor: Redactor, new: NewRun) -> NewRun:
    """A run to be created."""
    return new._replace(spec=redact_spec(redactor, new.spec))


def redact_spec(redactor: Redactor, spec: Spec) -> Spec:
    """A spec; the agent gets the stored prompt."""
    return spec._replace(prompt=redactor.redact(spec.prompt), job=redactor.redact(spec.job))


def redact_change(redactor: Redactor, change: RunChange) -> RunChange:
    """A write of a worker; most have few of these parts."""
    redact = redactor.redact
    clean: dict[str, Any] = {}
    for name, texts in _CHANGE_TEXTS.items():
        record = getattr(change, name)
        if record is not None:
            clean[name] = record._replace(**{text: redact(getattr(record, text)) for text in texts})
    if change.facts:
        clean["facts"] = tuple([Fact(fact.kind, redactor.redact_value(dict(fact.data))) for fact in change.facts])
    if change.checkpoint is not None:
        clean["checkpoint"] = _redact_checkpoint(redactor, change.checkpoint)
    if change.findings:
        clean["findings"] = tuple(one._replace(file=redact(one.file), text=redact(one.text)) for one in change.findings)
    if change.feedback:
        clean["feedback"] = tuple(one._replace(text=redact(one.text)) for one in change.feedback)
    if change.changes is not None:
        clean["changes"] = change.changes._replace(commits=tuple(redact(one) for one in change.changes.commits))
    return change._replace(**clean)


def redact_intent(redactor: Redactor, intent: Intent) -> Intent:
    """The intent of a call; its key was made from the whole input."""
    return intent._replace(
        tool=redactor.redact(intent.tool),  # a model chooses it
        input=redactor.redact_json(intent.input),
        target=redactor.redact(intent.target),
        external=redactor.redact_json(intent.external) if intent.external else "",
        mistake=redactor.redact(intent.mistake),
        waits_for=redactor.redact(intent.waits_for),
        company=redactor.redact(intent.company),
        question=redactor.redact(intent.question),
    )


def redact_new_case(redactor: Redactor, new: NewCase) -> NewCase:
    """A case to be started."""
    clean = redactor.redact_value(new.problem._asdict())
    lists = {name: tuple(clean[name]) for name, one in new.problem._asdict().items() if isinstance(one, tuple)}
    return new._replace(request=redactor.redact(new.request), problem=new.problem._replace(**{**clean, **lists}))


def redact_entry(redactor: Redactor, entry: CaseEntry) -> CaseEntry:
    """An entry of a case."""
    return entry._replace(text=redactor.redact(entry.text), data=redactor.redact_value(dict(entry.data)))


def redact_settlement(redactor: Redactor, settlement: Settlement) -> Settlement:
    """The outcome of a call."""
    return settlement._replace(
        output=redactor.redact(settlement.output),
        external_id=redactor.redact(settlement.external_id),
        external=redactor.redact_json(settlement.external) if settlement.external else "",
        reason=redactor.redact(settlement.reason),
    )


def redact_new_item(redactor: Redactor, new: NewItem) -> NewItem:
    """A work item to be enqueued; its id and kind are compared, and stay unchanged."""
    return new._replace(
        payload=redactor.redact_json(new.payload),
        notes=redactor.redact(new.notes),
        question=redactor.redact(new.question),
    )


def _redact_checkpoint(redactor: Redactor, checkpoint: Checkpoint) -> Checkpoint:
    return checkpoint._replace(
        status=redactor.redact_json(checkpoint.status), cursor=redactor.redact_json(checkpoint.cursor)
    )
