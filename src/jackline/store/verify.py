"""Verification: recomputes the chains of events and compares every row with its newest digest. It only reads.

An event holds the digests of the rows that it wrote (see `record_digests`). Rows whose newest event has no digest were
written by an older jackline: they are counted as not covered, never reported as altered.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jackline.domain.states import TERMINAL, CallClass, CallState, Decision
from jackline.errors import MigrationChanged
from jackline.store import schema
from jackline.store.driver import clean
from jackline.store.parts import RUNNING, StorePart, build_not_found
from jackline.store.run_verifier import RunChain, RunVerifier
from jackline.store.stream_check import StreamKind, check_streams, read_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jackline.domain.events import Event
    from jackline.store.driver import Statements
    from jackline.store.models import VerificationResult

    Archive = Callable[[str], Iterable[Event] | None]  # the archived events of a run, by its id; None: not available

# Functions that return the StreamKind of a feature, by the name to import them by.
_FEATURE_STREAMS = (
    "jackline.features.work.item_queries:describe_item_streams",
    "jackline.features.cases.case_queries:describe_case_streams",
)


class Verification(StorePart):
    """The part of the store that detects damage and tampering."""

    def check_all(self, archive: Archive | None = None) -> list[str]:
        """Every problem: damage, broken chains, altered rows, rows that contradict each other. Empty is good.

        `archive` returns the archived events of a run, or None; without them only their head is known.
        """
        damaged = self._driver.damage()
        if damaged:
            return damaged  # nothing that is read from a damaged file is evidence
        try:
            schema.verify_checksums(self._driver)
        except MigrationChanged as error:
            changed = [str(error)]
        else:
            changed = []
        return [*changed, *self._driver.snapshot(lambda one: list(dict.fromkeys(_check_all(one, archive))))]

    def verify_run(
        self, run_id: str, archived: Iterable[Event] | None = None, kept_head: str | None = None
    ) -> VerificationResult:
        """Recompute the run's chain and compare all its rows; the first problem comes first.

        `archived` are the events that left the store, from the first on; `kept_head` is a head that a person kept.
        """
        can_outlive = self._driver.backend != "sqlite"  # a run survives the death of a server, but not of its host

        def verify(statements: Statements) -> VerificationResult:
            row = statements.one("chain", {"run_id": clean(run_id)})
            if row is None:
                raise build_not_found(run_id)
            return RunVerifier(statements, RunChain(*row), archived, can_outlive=can_outlive).verify(kept_head)

        return self._driver.snapshot(verify)


def _check_all(statements: Statements, archive: Archive | None) -> Iterator[str]:
    for row in read_pages(statements, "chains"):
        chain = RunChain(*row)
        archived = archive(chain.id) if archive and chain.archived_seq else None
        yield from RunVerifier(statements, chain, archived).find_problems()
    for (stream,) in statements.all("stray_events", {}):
        label = f"stream {stream}" if ":" in stream else f"run {stream}"  # a run's id has no colon
        yield f"there are events of a {label} that does not exist"
    for name in _FEATURE_STREAMS:
        module, _, attribute = name.partition(":")
        yield from check_streams(statements, getattr(import_module(module), attribute)())
    yield from check_streams(statements, StreamKind(query="other_chains", label="stream", build_stream=str))
    yield from _find_contradictions(statements)


def _find_contradictions(statements: Statements) -> Iterator[str]:
    words = {
        "running": RUNNING,
        "effect": str(CallClass.EFFECT),
        "done": str(CallState.DONE),
        "stored": str(Decision.STORED),
        **{str(state): str(state) for state in TERMINAL},
    }
    for call_id, run_id in statements.all("effects_without_receipt", words):
        yield f"run {run_id}: the effect of call {call_id} is done and has no receipt"
    for run_id, state in statements.all("inconsistent_leases", words):
        yield f"run {run_id} is {state}, and its lease says otherwise"
    for run_id, count in statements.all("inconsistent_attempts", words):
        yield f"run {run_id}: {count} attempts have not ended, and none of them holds the lease"
    for run_id, state in statements.all("inconsistent_ends", words):
        yield f"run {run_id} is {state}, and its time of ending says otherwise"
