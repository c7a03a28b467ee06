"""Redacts secrets before a write: one function for each kind of write. It reads and writes nothing.

Ids, keys and words of closed sets stay unchanged: they are compared, and hold no secrets. So does what a run needs to
be executed: the proof, the rules, and the instructions for its agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact

if TYPE_CHECKING:
    from jackline.domain.call_gate import Intent
    from jackline.domain.records import Check, Checkpoint, Notice, RunStatus, Spec, Turn
    from jackline.features.cases.case_model import CaseEntry, NewCase
    from jackline.features.work.work_item import NewItem
    from jackline.secrets.redactor import Redactor
    from jackline.store.models import NewRun, RunChange, Settlement


def redact_new_run(redactor: Redactor, new: NewRun) -> NewRun:
    """A run to be created."""
    return new._replace(spec=redact_spec(redactor, new.spec))


def redact_spec(redactor: Redactor, asked: Spec) -> Spec:
    """A spec; the agent gets the stored prompt."""
    return asked._replace(prompt=redactor.redact(asked.prompt), job=redactor.redact(asked.job))


def redact_change(redactor: Redactor, wanted: RunChange) -> RunChange:
    """A write of a worker."""
    changes = wanted.changes
    return wanted._replace(
        facts=tuple(Fact(fact.kind, redactor.redact_value(dict(fact.data))) for fact in wanted.facts),
        life=wanted.life and _redact_life(redactor, wanted.life),
        turn=wanted.turn and _redact_turn(redactor, wanted.turn),
        check=wanted.check and _redact_check(redactor, wanted.check),
        health=wanted.health and wanted.health._replace(detail=redactor.redact(wanted.health.detail)),
        checkpoint=wanted.checkpoint and _redact_checkpoint(redactor, wanted.checkpoint),
        notice=wanted.notice and _redact_notice(redactor, wanted.notice),
        changes=changes and changes._replace(commits=tuple(redactor.redact(one) for one in changes.commits)),
    )


def redact_intent(redactor: Redactor, wanted: Intent) -> Intent:
    """The intent of a call; its key was made from the whole input."""
    return wanted._replace(
        input=redactor.redact_json(wanted.input),
        target=redactor.redact(wanted.target),
        external=redactor.redact_json(wanted.external) if wanted.external else "",
        mistake=redactor.redact(wanted.mistake),
        waits_for=redactor.redact(wanted.waits_for),
    )


def redact_new_case(redactor: Redactor, new: NewCase) -> NewCase:
    """A case to be started."""
    clean = redactor.redact_value(new.problem._asdict())
    lists = {name: tuple(clean[name]) for name, one in new.problem._asdict().items() if isinstance(one, tuple)}
    return new._replace(request=redactor.redact(new.request), problem=new.problem._replace(**{**clean, **lists}))


def redact_entry(redactor: Redactor, added: CaseEntry) -> CaseEntry:
    """An entry of a case."""
    return added._replace(text=redactor.redact(added.text), data=redactor.redact_value(dict(added.data)))


def redact_settlement(redactor: Redactor, told: Settlement) -> Settlement:
    """The outcome of a call."""
    return told._replace(
        output=redactor.redact(told.output),
        external_id=redactor.redact(told.external_id),
        external=redactor.redact_json(told.external) if told.external else "",
        reason=redactor.redact(told.reason),
    )


def redact_new_item(redactor: Redactor, new: NewItem) -> NewItem:
    """A work item to be enqueued; its id and kind are compared, and stay unchanged."""
    return new._replace(
        payload=redactor.redact_json(new.payload),
        notes=redactor.redact(new.notes),
        question=redactor.redact(new.question),
    )


def _redact_life(redactor: Redactor, life: RunStatus) -> RunStatus:
    return life._replace(detail=redactor.redact(life.detail))


def _redact_turn(redactor: Redactor, turn: Turn) -> Turn:
    return turn._replace(
        prompt=redactor.redact(turn.prompt),
        detail=redactor.redact(turn.detail),
        last_message=redactor.redact(turn.last_message),
    )


def _redact_check(redactor: Redactor, check: Check) -> Check:
    return check._replace(command=redactor.redact(check.command), output=redactor.redact(check.output))


def _redact_checkpoint(redactor: Redactor, checkpoint: Checkpoint) -> Checkpoint:
    return checkpoint._replace(
        status=redactor.redact_json(checkpoint.status), cursor=redactor.redact_json(checkpoint.cursor)
    )


def _redact_notice(redactor: Redactor, notice: Notice) -> Notice:
    return notice._replace(title=redactor.redact(notice.title), body=redactor.redact(notice.body))
