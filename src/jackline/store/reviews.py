"""Iterations, verdicts and findings, which workers write; findings that people dismiss, and work that they accept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.events import PERSON, Event, Fact
from jackline.domain.records import Message, Run
from jackline.domain.review import DISMISSED, OPEN, RoundResult, decide_round, describe_blocking, find_blocking
from jackline.domain.review_records import Acceptance, Finding, Iteration, Verdict
from jackline.domain.states import Failure, Phase, RunState, WaitReason, format_run_state
from jackline.errors import NotFound, Refused
from jackline.store import rows
from jackline.store.driver import clean
from jackline.store.parts import StorePart, append_run_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.store.driver import Statements


_ACCEPTED = "review.accepted"


class Reviews(StorePart):
    """The part of the store that knows iterations, verdicts and findings."""

    def get_last_iteration(self, run_id: str) -> Iteration | None:
        """The newest iteration of the run that is over."""
        row = self._one("last_iteration", {"run_id": clean(run_id)})
        return Iteration(*row) if row else None

    def list_iterations(self, run_id: str) -> list[Iteration]:
        """The iterations of the run that are over."""
        return [Iteration(*row) for row in self._all("all_iterations", {"run_id": clean(run_id)})]

    def list_verdicts(self, run_id: str) -> list[Verdict]:
        """The verdicts about the run, oldest first."""
        return [Verdict(*row) for row in self._all("all_verdicts", {"run_id": clean(run_id)})]

    def list_findings(self, run_id: str) -> list[Finding]:
        """The findings of the run's reviewers, oldest first."""
        return self._driver.read(lambda statements: _read_findings(statements, run_id))

    def find_acceptance(self, run_id: str) -> Acceptance | None:
        """The last time that a person has accepted the work."""
        row = self._one("last_event_of_kind", {"stream": clean(run_id), "kind": _ACCEPTED})
        data = json.loads(Event(*row).data) if row else None
        return Acceptance(review_round=int(data["round"]), reason=data["reason"]) if data else None

    def accept(self, run_id: str, reason: str, at: int) -> Run:
        """A person accepts the work of the current review round, although a reviewer gave no clear verdict.

        Busy if the run is being worked on, Refused if it does not wait for such a decision.
        """
        redacted = clean(self.redactor.redact(reason))
        return self._driver.write(lambda statements: self._accept(statements, run_id, redacted, at))

    def _accept(self, statements: Statements, run_id: str, reason: str, at: int) -> Run:
        run = self._lock_run(statements, run_id)
        self._refuse_busy(statements, run, run_id)
        status = run.status
        if (status.state, status.reason, status.goal) != (RunState.WAITING, WaitReason.HUMAN, Phase.REVIEWING):
            raise Refused(f"run {run_id} does not wait for a decision about its review: there is nothing to accept")
        findings = _read_findings(statements, run_id)
        if blocking := find_blocking(findings):
            dismiss = f"`jackline findings {run_id} --dismiss {blocking[0].id} --reason TEXT`"
            raise Refused(f"{describe_blocking(findings)}: dismiss what is wrong first, {dismiss}")
        fact = Fact(_ACCEPTED, {"round": status.review_round, "tree": status.tree, "reason": reason})
        append_run_events(statements, run, (fact,), at, PERSON)
        return self._get_run(statements, run_id)

    def dismiss(self, run_id: str, ids: Sequence[str], reason: str, at: int) -> tuple[list[Finding], Run]:
        """A person drops open findings, such as F2; all of them or none. Returns them and the run.

        Busy if the run is being worked on, Refused if it cannot continue or a finding is not open.
        """
        redacted = clean(self.redactor.redact(reason))
        return self._driver.write(lambda statements: self._dismiss(statements, run_id, ids, redacted, at))

    def _refuse_busy(self, statements: Statements, run: Run, run_id: str) -> None:
        from jackline.store.leases import refuse_claim

        refuse_claim(statements, run, {"id": run_id, **statements.clock()}, None)

    def _dismiss(
        self, statements: Statements, run_id: str, ids: Sequence[str], reason: str, at: int
    ) -> tuple[list[Finding], Run]:
        from jackline.store.record_digests import cover, digest_finding

        run = self._lock_run(statements, run_id)
        if run.status.state in {RunState.SUCCEEDED, RunState.CANCELLED}:
            raise Refused(f"run {run_id} {format_run_state(run.status.state)}: its findings no longer have an effect")
        self._refuse_busy(statements, run, run_id)
        known = {finding.id: finding for finding in _read_findings(statements, run_id)}
        dismissed = [
            _require_open(known, one, run_id)._replace(
                state=DISMISSED, settled_round=run.status.review_round, reason=reason
            )
            for one in dict.fromkeys(name.upper() for name in ids)
        ]
        facts: list[Fact] = []
        for finding in dismissed:
            statements.run("put_finding", rows.build_parameters(finding))
            fact = Fact("finding.dismissed", {"finding": finding.id, "reason": reason})
            facts += cover((fact,), digest_finding(finding))
        append_run_events(statements, run, facts, at, PERSON)
        if _passes_now(statements, run):
            statements.run("set_goal", {"id": run_id, "goal": str(Phase.REVIEWING)})
        return dismissed, self._get_run(statements, run_id)


def _read_findings(statements: Statements, run_id: str) -> list[Finding]:
    return [Finding(*row) for row in statements.all("all_findings", {"run_id": clean(run_id)})]


def _passes_now(statements: Statements, run: Run) -> bool:
    """Whether the review that ended the last iteration would pass without the findings that were dismissed since.

    Not while the agent has yet to read a person's message.
    """
    row = statements.one("last_iteration", {"run_id": run.id})
    over = Iteration(*row) if row else None
    if over is None or run.status.goal is not Phase.WORKING:
        return False
    if (over.number, over.failure) != (run.status.iteration, Failure.REVIEW):
        return False
    if any(Message(*one).turn is None for one in statements.all("all_messages", {"run_id": run.id})):
        return False
    verdicts = [Verdict(*one) for one in statements.all("all_verdicts", {"run_id": run.id})]
    verdicts = [one for one in verdicts if one.review_round == run.status.review_round]
    findings, spec = _read_findings(statements, run.id), run.spec
    return decide_round(verdicts, findings, spec.review_mode, len(spec.review)) is RoundResult.PASSED


def _require_open(known: dict[str, Finding], finding_id: str, run_id: str) -> Finding:
    finding = known.get(finding_id)
    if finding is None:
        raise NotFound(finding_id, what="finding", hint=f"jackline findings {run_id}")
    if finding.state != OPEN:
        raise Refused(f"{finding.id} is {finding.state} already: there is nothing to dismiss")
    return finding
