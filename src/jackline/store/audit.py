"""The audit: does what is written down agree with itself? It reads in one snapshot, and repairs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from jackline.domain.states import TERMINAL, CallClass, CallState, Decision
from jackline.store import other_chains
from jackline.store.base import RUNNING
from jackline.store.driver import Statements
from jackline.store.witness import Archive, Stream, Witness

_PAGE = 1000


def audit(statements: Statements, archive: Archive | None = None) -> list[str]:
    """What is wrong, in words."""
    found = [*_chains(statements, archive), *other_chains.problems(statements), *_contradictions(statements)]
    return list(dict.fromkeys(found))


def _chains(statements: Statements, archive: Archive | None) -> Iterator[str]:
    after = ""
    while page := statements.all("chains", {"after": after, "limit": _PAGE}):
        for stream in (Stream(*row) for row in page):
            archived = archive(stream.id) if archive and stream.archived_seq else None
            yield from Witness(statements, stream, archived).problems()
        after = page[-1][0]
    for (stream,) in statements.all("stray_events", {}):
        what = f"stream {stream}" if ":" in stream else f"run {stream}"  # a run's id has no colon
        yield f"there are events of a {what} that does not exist"


def _contradictions(statements: Statements) -> Iterator[str]:
    words = {
        "running": RUNNING,
        "effect": str(CallClass.EFFECT),
        "done": str(CallState.DONE),
        "stored": str(Decision.STORED),
        **{str(state): str(state) for state in TERMINAL},
    }
    for call_id, run_id in statements.all("proofless_effects", words):
        yield f"run {run_id}: the effect of call {call_id} is done and has no receipt"
    for run_id, state in statements.all("odd_leases", words):
        yield f"run {run_id} is {state}, and its lease says otherwise"
    for run_id, count in statements.all("odd_attempts", words):
        yield f"run {run_id}: {count} attempts have not ended, and none of them holds the lease"
    for run_id, state in statements.all("odd_ends", words):
        yield f"run {run_id} is {state}, and its time of ending says otherwise"
