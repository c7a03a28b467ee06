"""The witness of one run: its chain computed again, its ledger compared with what the chain says. It only reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice

from jackline.domain.events import GENESIS, Event, broken_at
from jackline.domain.evidence import Told, Unreadable, altered, answers_of, digest, listen, proof_of, state_told
from jackline.domain.records import Call, Receipt
from jackline.domain.states import RunState
from jackline.named import NamedTuple
from jackline.store import contents, rows
from jackline.store.contract import Verified
from jackline.store.driver import Statements

_PAGE = 1000


class Stream(NamedTuple):
    """A run's chain as its row has it."""

    id: str
    event_seq: int
    chain_head: str
    archived_seq: int
    archived_head: str


class Witness:
    """Goes through everything that is written of one run, once."""

    def __init__(self, statements: Statements, stream: Stream, archived: Iterable[Event] | None = None) -> None:
        self._statements, self._stream, self._archived = statements, stream, archived
        self._told: dict[str, Told] = {}
        self._spec: str | None = None
        self._state: RunState | None = None
        self._hashes: set[str] = set()  # those among `wanted` that are on the chain
        self.wanted: frozenset[str] = frozenset()
        self.counts = Verified()

    def problems(self) -> Iterator[str]:
        """What is wrong with the chain; if nothing is, what is wrong with the ledger that it covers."""
        broken = self._chain()
        if broken:
            yield f"run {self._stream.id}: {broken}"
            return
        for problem in (*self._ledger(), *self._texts()):
            yield f"run {self._stream.id}: {problem}"

    def lost(self) -> Iterator[str]:
        """Events that were archived and that nobody brought: without them nothing proves what is left."""
        if not self._hears_all:
            yield f"run {self._stream.id}: its first {self._stream.archived_seq} events were archived and are not here"

    def missing_heads(self) -> Iterator[str]:
        """Heads that left the machine with a notice, and that the chain does not know."""
        told = self._statements.all("heads_told", {"run_id": self._stream.id})
        self.counts = self.counts._replace(heads=len(told))
        for notice, head in told:
            if head and not self.knows(head):
                yield f"run {self._stream.id}: notice {notice} told the head {head}, which is not on the chain"

    def knows(self, head: str) -> bool:
        """Whether an event of the chain has this hash; only for those that were `wanted`."""
        return head in self._hashes

    def odd_row(self, state: RunState) -> Iterator[str]:
        """Where the run's row and its frozen spec say something else than its events."""
        row = self._statements.one("get_spec", {"run_id": self._stream.id})
        if self._spec is not None and (row is None or digest(row[0]) != self._spec):
            yield f"run {self._stream.id}: its spec was altered after the run had begun"
        if self._state is not None and self._state is not state:
            yield f"run {self._stream.id}: its row says {state}, its events say {self._state}"

    # the chain

    def _chain(self) -> str:
        """The first place where the chain is broken, in words; empty if it holds."""
        stream, seq, head = self._stream, 0, GENESIS
        if stream.archived_seq and self._archived is not None:
            pages = _pages(event for event in self._archived if event.seq <= stream.archived_seq)
            broken, seq, head = self._follow(pages, seq, head)
            if not broken and (seq, head) != (stream.archived_seq, stream.archived_head):
                broken = f"its archive ends at event {seq}, its row says {stream.archived_seq}"
            if broken:
                return broken
        elif stream.archived_seq:
            seq, head = stream.archived_seq, stream.archived_head
        stray = self._statements.one("event_before", {"stream": stream.id, "first": seq + 1})
        if stray is not None:
            return f"event {stray[0]} stands before the first"
        broken, seq, head = self._follow(self._here(seq), seq, head)
        if not broken and (seq, head) != (stream.event_seq, stream.chain_head):
            broken = f"its chain ends at event {seq}, its row says {stream.event_seq}"
        return broken

    def _follow(self, pages: Iterable[list[Event]], seq: int, head: str) -> tuple[str, int, str]:
        for events in pages:
            broken = broken_at(events, head, seq)
            if broken is not None:
                return f"its chain is broken at event {broken}", seq, head
            for event in events:
                try:
                    self._listen(event)
                except Unreadable:
                    return f"event {event.seq} is none that jackline writes", seq, head
            seq, head = events[-1].seq, events[-1].hash
            self.counts = self.counts._replace(events=self.counts.events + len(events), chain_head=head)
        return "", seq, head

    def _listen(self, event: Event) -> None:
        listen(self._told, event)
        self._state = state_told(event) or self._state
        if event.hash in self.wanted:
            self._hashes.add(event.hash)
        if event.kind == "run.created":
            self._spec = json.loads(event.data).get("spec")

    def _here(self, after: int) -> Iterator[list[Event]]:
        values = {"stream": self._stream.id, "limit": _PAGE}
        while events := [Event(*row) for row in self._statements.all("some_events", {**values, "after": after})]:
            yield events
            after = events[-1].seq

    # the ledger

    def _ledger(self) -> Iterator[str]:
        rows_of = {"run_id": self._stream.id}
        calls = [rows.to_call(row) for row in self._statements.all("all_calls", rows_of)]
        receipts = {
            one.call_id: one for one in (Receipt(*row) for row in self._statements.all("all_receipts", rows_of))
        }
        answers = answers_of(self._told, calls)
        self.counts = self.counts._replace(calls=len(calls), receipts=len(receipts))
        for call in calls:
            said = self._told.pop(call.id, None)
            receipt = receipts.pop(call.id, None)
            if said is not None:
                yield from _compared(said, call, receipt, altered(said, call, answers))
            elif self._hears_all:
                yield f"call {call.id} is in the ledger, and no event tells of it"
        for call_id in self._told:
            yield f"call {call_id} is missing from the ledger"
        for call_id in receipts:
            yield f"the receipt of call {call_id} belongs to no call of the run"

    @property
    def _hears_all(self) -> bool:
        """Whether every event of the run went by; of one that was archived elsewhere only the later ones did."""
        return self._stream.archived_seq == 0 or self._archived is not None

    def _texts(self) -> Iterator[str]:
        """The large texts, which the chain covers by their digest."""
        run_id = self._stream.id
        calls = [rows.to_call(row) for row in self._statements.all("calls_with_contents", {"run_id": run_id})]
        kept = [row[0] for row in self._statements.all("all_digests", {"run_id": run_id})]
        self.counts = self.counts._replace(contents=len(kept))
        beginnings = {}
        for name in kept:
            data = (contents.content(self._statements, run_id, name) or "").encode()
            if hashlib.sha256(data).hexdigest() != name:
                yield f"content {name} was altered after it had been written"
            beginnings[name] = contents.beginning(data)
        for call in calls:
            for ref, shown in ((call.input_ref, call.input), (call.output_ref, call.output)):
                if ref is not None and ref not in beginnings:
                    yield f"content {ref} of call {call.id} is missing"
                elif ref is not None and beginnings[ref] != shown:
                    yield f"call {call.id} was altered after it had been written: it does not begin as its content"


def _compared(said: Told, call: Call, receipt: Receipt | None, wrong: str) -> Iterator[str]:
    if wrong:
        yield f"call {call.id} was altered after it had been written: {wrong}"
        return
    proof = proof_of(said, call)
    if proof is not None and receipt is None:
        yield f"the effect of call {call.id} is done and has no receipt"
    elif proof is None and receipt is not None and said.row is not None:
        yield f"call {call.id} has a receipt, and no event tells of it"
    elif proof is not None and proof != receipt:
        yield f"the receipt of call {call.id} was altered after it had been written"


def _pages(events: Iterable[Event]) -> Iterator[list[Event]]:
    waiting = iter(events)
    while page := list(islice(waiting, _PAGE)):
        yield page
