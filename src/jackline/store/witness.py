"""The witness of one run: its chain computed again, its ledger compared with what the chain says. It only reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from jackline.domain.events import GENESIS, Event, broken_at
from jackline.domain.evidence import Told, Unreadable, altered, answers_of, digest, listen, other_end, proof_of
from jackline.domain.records import Call, Receipt
from jackline.domain.run_evidence import Told as ToldOfRun
from jackline.named import NamedTuple
from jackline.store import contents, covering
from jackline.store.contract import Verified
from jackline.store.driver import Row, Statements
from jackline.store.rows import columns

_PAGE = 1000

Archive = Callable[[str], Iterable[Event] | None]  # the archived events of a run, by its id; None: they are not at hand


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
        self._run = ToldOfRun()
        self._in_both: list[Event] = []
        self._hashes: set[str] = set()  # those among `_wanted` that are on the chain
        self._wanted: frozenset[str] = frozenset()
        self.counts = Verified()

    def problems(self, kept_head: str | None = None) -> Iterator[str]:
        """What is wrong with the chain; if nothing is, what is wrong with the rows that it covers."""
        told = self._statements.all("heads_told", {"run_id": self._stream.id})
        self._wanted = frozenset((kept_head or "", *(head for _, head in told)))
        broken = self._chain()
        found = (broken,) if broken else (*self._ledger(), *self._texts())
        for problem in found or (*self._missing_heads(told), *self._missing_kept(kept_head), *self._odd_rows()):
            yield f"run {self._stream.id}: {problem}"

    def lost(self) -> Iterator[str]:
        """Events that were archived and that nobody brought: without them nothing proves what is left."""
        if not self._hears_all:
            yield f"run {self._stream.id}: its first {self._stream.archived_seq} events were archived and are not here"

    # heads that left the machine

    def _missing_heads(self, told: list[Row]) -> Iterator[str]:
        self.counts = self.counts._replace(heads=len(told))
        for notice, head in told:
            if head and self._hears_all and head not in self._hashes:
                yield f"notice {notice} told the head {head}, which is not on the chain"

    def _missing_kept(self, head: str | None) -> Iterator[str]:
        if head and head not in self._hashes:
            yield f"the head {head} that was kept is not on the chain"

    # the run's row, its spec and its records

    def _odd_rows(self) -> Iterator[str]:
        run_id, told = self._stream.id, self._run
        spec = self._statements.one("get_spec", {"run_id": run_id})
        if told.spec is not None and (spec is None or digest(str(spec[0])) != told.spec):
            yield "its spec was altered after the run had begun"
        row = self._statements.one("get_run", {"id": run_id})
        values = dict(zip(columns("run"), row or (), strict=False))
        wrong = told.altered(values)
        if wrong == "state":
            yield f"its row says {values[wrong]}, its events say {told.columns[wrong]}"
        elif wrong:
            yield f"its row was altered after it had been written: {wrong}"
        elif self._hears_all and not told.imported and values["calls"] != self.counts.calls:
            yield "its row was altered after it had been written: calls"
        yield from covering.odd_records(self._statements, run_id, told, hears_all=self._hears_all)

    # the chain

    def _chain(self) -> str:
        """The first place where the chain is broken, in words; empty if it holds."""
        stream = self._stream
        try:
            broken, seq, head = self._archive()
        except Unreadable as error:
            return str(error)
        if broken:
            return broken
        stray = self._statements.one("event_before", {"stream": stream.id, "first": seq + 1})
        if stray is not None:
            return f"event {stray[0]} stands before the first"
        broken, seq, head = self._follow(self._here(seq), seq, head)
        broken = broken or other_end("chain", (seq, head), (stream.event_seq, stream.chain_head))
        return broken or self._beyond()

    def _archive(self) -> tuple[str, int, str]:
        """What is wrong with the archive, and where it ends; where the row says that it does, if it is not at hand."""
        stream = self._stream
        if not stream.archived_seq or self._archived is None:
            return "", stream.archived_seq, stream.archived_head
        broken, seq, head = self._follow(_pages(self._set_apart(self._archived)), 0, GENESIS)
        broken = broken or other_end("archive", (seq, head), (stream.archived_seq, stream.archived_head))
        return broken, seq, head

    def _set_apart(self, archived: Iterable[Event]) -> Iterator[Event]:
        """Who archives is ended before the events have left the database: those stand in both places."""
        for event in archived:
            if event.seq <= self._stream.archived_seq:
                yield event
            else:
                self._in_both.append(event)

    def _beyond(self) -> str:
        for page in _pages(self._in_both):
            values = {"stream": self._stream.id, "after": page[0].seq - 1, "limit": len(page)}
            if [Event(*row) for row in self._statements.all("some_events", values)] != page:
                return f"its archive goes on after event {self._stream.archived_seq}, and not as its chain does"
        return ""

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
        self._run.listen(event)
        if event.hash in self._wanted:
            self._hashes.add(event.hash)

    def _here(self, after: int) -> Iterator[list[Event]]:
        values = {"stream": self._stream.id, "limit": _PAGE}
        while events := [Event(*row) for row in self._statements.all("some_events", {**values, "after": after})]:
            yield events
            after = events[-1].seq

    # the ledger

    def _ledger(self) -> Iterator[str]:
        rows_of = {"run_id": self._stream.id}
        calls = [Call(*row) for row in self._statements.all("all_calls", rows_of)]
        receipts = {
            one.call_id: one for one in (Receipt(*row) for row in self._statements.all("all_receipts", rows_of))
        }
        answers = answers_of(self._told, calls)
        yield from self._disorder(calls)
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

    def _disorder(self, calls: list[Call]) -> Iterator[str]:
        """The calls stand in the order in which they were asked for; but those that were imported."""
        stand = [call.id for call in calls if call.id in self._told]
        here = frozenset(stand)
        if self._hears_all and not self._run.imported and stand != [one for one in self._told if one in here]:
            yield "the order of its calls was altered after they had been written"

    @property
    def _hears_all(self) -> bool:
        """Whether every event of the run went by; of one that was archived elsewhere only the later ones did."""
        return self._stream.archived_seq == 0 or self._archived is not None

    def _texts(self) -> Iterator[str]:
        """The large texts, which the chain covers by their digest."""
        run_id = self._stream.id
        calls = [Call(*row) for row in self._statements.all("calls_with_contents", {"run_id": run_id})]
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
