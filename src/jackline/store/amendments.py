"""Amendments: a person's message to the agent of a run, and changes of its limits and options. It runs nothing.

A change and the events that record it are one transaction. A run that is being worked on is refused: its worker holds
the spec that it claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.amendment import amend_spec, list_spec_changes
from jackline.domain.events import PERSON, Fact
from jackline.domain.records import Call, Message, Run
from jackline.domain.states import Phase, RunState, format_run_state
from jackline.errors import Refused
from jackline.named import stored_dict
from jackline.policy.agreements import is_agreed, is_rule_allowed, load_parts
from jackline.store import rows
from jackline.store.approvals import answer_asked, read_asked
from jackline.store.driver import clean
from jackline.store.leases import refuse_claim
from jackline.store.parts import StorePart, append_run_events
from jackline.store.record_digests import cover, digest_message, digest_run, digest_text

if TYPE_CHECKING:
    from jackline.domain.amendment import Amendment
    from jackline.store.driver import Statements

_OVER = frozenset({RunState.SUCCEEDED, RunState.CANCELLED})


class Amendments(StorePart):
    """The part of the store that stores what a person changes before a run continues."""

    def amend(self, run_id: str, amendment: Amendment, at: int, dead: int | None = None) -> Run:
        """Store a message and changes; Busy if the run is being worked on, unless its attempt is `dead`.

        Refused if the run cannot continue, or a new total is not above what is spent.
        """
        redacted = amendment._replace(message=clean(self.redactor.redact(amendment.message)))
        return self._driver.write(lambda statements: self._amend(statements, run_id, redacted, at, dead))

    def list_messages(self, run_id: str) -> list[Message]:
        """The messages of people to the run's agent, oldest first."""
        return [Message(*row) for row in self._all("all_messages", {"run_id": clean(run_id)})]

    def _amend(self, statements: Statements, run_id: str, amendment: Amendment, at: int, dead: int | None) -> Run:
        run = self._lock_run(statements, run_id)
        if run.status.state in _OVER:
            fork = f"`jackline fork {run_id} PROMPT` starts a new run from it"
            raise Refused(f"run {run_id} {format_run_state(run.status.state)} and cannot be changed: {fork}")
        refuse_claim(statements, run, {"id": run_id, **statements.clock()}, dead)
        statements.run("reset_windows", {"id": run_id})
        facts, records = _write_message(statements, run_id, amendment.message, at)
        if amendment.message and run.status.goal is not Phase.WORKING:  # the agent has to read it before the checks
            statements.run("set_goal", {"id": run_id, "goal": str(Phase.WORKING)})
        facts += _write_spec(statements, run, amendment)
        if amendment.allow:  # what waits for approval by these rules need not wait any more
            asked = {call.key: call for call in read_asked(statements, run_id)}
            calls = [call for call in asked.values() if _is_agreed(run, call, amendment.allow)]
            facts = [*(answer_asked(statements, call, "allow", at, PERSON)[1] for call in calls), *facts]
        if facts:
            covered = cover(tuple(facts), {**digest_run(run), **records})
            append_run_events(statements, run, covered, at, PERSON)
        return self._get_run(statements, run_id)


def _is_agreed(run: Run, call: Call, allow: tuple[str, ...]) -> bool:
    """Whether a call that waits need not wait any more."""
    if run.spec.policy_version == 1:
        return is_rule_allowed(call.rule, allow)
    parts = load_parts(call.external)
    return bool(parts) and all(is_agreed(part, (*run.spec.allowed, *allow)) for part in parts)


def _write_message(statements: Statements, run_id: str, text: str, at: int) -> tuple[list[Fact], dict[str, str]]:
    if not text:
        return [], {}
    message = Message(run_id, len(statements.all("all_messages", {"run_id": run_id})) + 1, text, at)
    statements.run("add_message", stored_dict(message))
    return [Fact("run.message", {"message": message.number, "text": text})], digest_message(message)


def _write_spec(statements: Statements, run: Run, amendment: Amendment) -> list[Fact]:
    """Write the changed spec; one event for each changed setting."""
    after = amend_spec(run, amendment)
    changes = list_spec_changes(run.spec, after, run.agent)
    if not changes:
        return []
    text = rows.dump_spec(after)
    statements.run("change_spec", {"run_id": run.id, "spec": text})
    return [Fact("run.changed", {**change._asdict(), "spec": digest_text(text)}) for change in changes]
