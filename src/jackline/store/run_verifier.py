"""Verifies one run: recomputes its chain of events and compares its rows with their newest digests. It only reads."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from jackline.digests import sha256
from jackline.domain.events import GENESIS, Event, broken_at
from jackline.named import NamedTuple
from jackline.store import blobs
from jackline.store.models import VerificationResult
from jackline.store.parts import RUNNING
from jackline.store.record_digests import (
    CALL_COLUMNS,
    MESSAGE_COLUMNS,
    RECEIPT_COLUMNS,
    RECORDS,
    RUN,
    RUN_COLUMNS,
    STEP_COLUMNS,
    digest_text,
    is_final,
    name_call,
    name_message,
    name_receipt,
    name_step_record,
)
from jackline.store.rows import columns
from jackline.store.stream_check import PAGE, RowDigests, UnreadableEvent, describe_end, parse_data, read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jackline.store.driver import Row, Statements

_SPEC_KINDS = frozenset({"run.created", "run.changed"})  # events with a digest of the run's spec


class RunChain(NamedTuple):
    """The end of a run's chain, and of its archived part, from the run's row."""

    id: str
    event_seq: int
    chain_head: str
    archived_seq: int
    archived_head: str


class RunVerifier:
    """Checks everything that is stored of one run."""

    def __init__(
        self,
        statements: Statements,
        chain: RunChain,
        archived: Iterable[Event] | None = None,
        *,
        can_outlive: bool = False,
    ) -> None:
        """`can_outlive`: whether an attempt can continue after the database has lost its newest records."""
        self._statements, self._chain, self._archived, self._can_outlive = statements, chain, archived, can_outlive
        # Whether every event of the run is at hand; of a run archived elsewhere only the later ones are.
        self._has_all_events = chain.archived_seq == 0 or archived is not None
        self._digests = RowDigests()
        self._spec_digest: str | None = None
        self._covers_steps = False  # whether every record of a step has a digest
        self._after_archive: list[Event] = []
        self._wanted_heads: frozenset[str] = frozenset()
        self._found_heads: set[str] = set()
        self._counts = VerificationResult()

    def verify(self, kept_head: str | None) -> VerificationResult:
        """All problems, and how much was compared. A run that was archived is whole only with its archive."""
        lost: tuple[str, ...] = ()
        if not self._has_all_events:
            count = self._chain.archived_seq
            lost = (f"run {self._chain.id}: its first {count} events were archived and are not here",)
        problems = (*lost, *self.find_problems(None if lost else kept_head))
        return self._counts._replace(problems=problems, uncovered=self._digests.uncovered)

    def find_problems(self, kept_head: str | None = None) -> Iterator[str]:
        """The first break of the chain; without one, the altered rows that it covers."""
        heads = self._statements.all("notice_heads", {"run_id": self._chain.id})
        self._wanted_heads = frozenset((kept_head or "", *(head for _, head in heads)))
        broken = self._find_break()
        found = (broken,) if broken else (*self._check_calls(), *self._check_blobs())
        for problem in found or (*self._check_heads(heads, kept_head), *self._check_run()):
            yield f"run {self._chain.id}: {problem}"

    # the chain

    def _find_break(self) -> str:
        """The first break of the chain; empty if it holds."""
        chain = self._chain
        try:
            broken, seq, head = self._follow_archive()
        except UnreadableEvent as error:
            return str(error)
        if broken:
            return broken
        stray = self._statements.one("event_before", {"stream": chain.id, "first": seq + 1})
        if stray is not None:
            return f"event {stray[0]} precedes the first"
        broken, seq, head = self._follow(read_events(self._statements, chain.id, seq), seq, head)
        broken = broken or describe_end("chain", (seq, head), (chain.event_seq, chain.chain_head))
        if broken:
            return broken
        for page in _split_pages(self._after_archive):
            values = {"stream": chain.id, "after": page[0].seq - 1, "limit": len(page)}
            if [Event(*row) for row in self._statements.all("some_events", values)] != page:
                return f"its archive continues after event {chain.archived_seq}, and not as its chain does"
        return ""

    def _follow_archive(self) -> tuple[str, int, str]:
        """The first break of the archive, and its end; if it is not at hand, the end that the row names."""
        chain = self._chain
        if not chain.archived_seq or self._archived is None:
            return "", chain.archived_seq, chain.archived_head
        broken, seq, head = self._follow(_split_pages(self._take_archived(self._archived)), 0, GENESIS)
        expected = (chain.archived_seq, chain.archived_head)
        return broken or describe_end("archive", (seq, head), expected), seq, head

    def _take_archived(self, archived: Iterable[Event]) -> Iterator[Event]:
        """The archived events; if archiving was interrupted, later ones are in the database, too, and set aside."""
        for event in archived:
            if event.seq <= self._chain.archived_seq:
                yield event
            else:
                self._after_archive.append(event)

    def _follow(self, pages: Iterable[list[Event]], seq: int, head: str) -> tuple[str, int, str]:
        for events in pages:
            broken = broken_at(events, head, seq)
            if broken is not None:
                return f"its chain is broken at event {broken}", seq, head
            for event in events:
                try:
                    self._read_event(event)
                except UnreadableEvent:
                    return f"event {event.seq} was not written by jackline", seq, head
            seq, head = events[-1].seq, events[-1].hash
            self._counts = self._counts._replace(events=self._counts.events + len(events), chain_head=head)
        return "", seq, head

    def _read_event(self, event: Event) -> None:
        if event.hash in self._wanted_heads:
            self._found_heads.add(event.hash)
        if event.kind.startswith("agent."):
            return  # an agent's own data
        if event.kind.startswith("call."):
            read_call_event(self._digests, event)
            return
        data = parse_data(event)
        self._digests.add(event, data, (RUN,) if event.kind.startswith("run.") else ())
        if event.kind in _SPEC_KINDS:
            self._spec_digest = data.get("spec")
        if event.kind == "run.created":
            self._covers_steps = RECORDS in data

    # heads that left the machine

    def _check_heads(self, heads: list[Row], kept_head: str | None) -> Iterator[str]:
        self._counts = self._counts._replace(heads=len(heads))
        for notice, head in heads:
            if head and self._has_all_events and head not in self._found_heads:
                yield f"notice {notice} announced the head {head}, which is not on the chain"
        if kept_head and kept_head not in self._found_heads:
            if self._may_have_lost_records():
                self._counts = self._counts._replace(missing_head=kept_head)
            else:
                yield f"the head {kept_head} that was kept is not on the chain"

    def _may_have_lost_records(self) -> bool:
        """Whether a power cut may have taken records: not from a run that one attempt brought to a synced end."""
        row = dict(zip(columns("run"), self._statements.one("get_run", {"id": self._chain.id}) or (), strict=False))
        return self._can_outlive or row["state"] == RUNNING or row["token"] > 1

    # the run's row, its spec, and the records of its steps

    def _check_run(self) -> Iterator[str]:
        run_id, newest = self._chain.id, self._digests.newest
        spec = self._statements.one("get_spec", {"run_id": run_id})
        if self._spec_digest is not None and (spec is None or digest_text(str(spec[0])) != self._spec_digest):
            yield "its spec was altered after the run had begun"
        row = dict(zip(columns("run"), self._statements.one("get_run", {"id": run_id}) or (), strict=False))
        is_counted = self._has_all_events and not self._digests.is_imported
        is_altered = self._digests.is_altered(RUN, row, RUN_COLUMNS)
        if is_altered or (is_counted and row["calls"] != self._counts.calls):
            yield "its row was altered after it had been written"
        yield from self._check_messages()
        missing = {name for name in newest if name.startswith(tuple(f"{record} " for record in STEP_COLUMNS))}
        for record, names in STEP_COLUMNS.items():
            for found in self._statements.all(f"all_{record}s", {"run_id": run_id}):
                values = dict(zip(columns(record), found, strict=True))
                name = name_step_record(record, values)
                missing.discard(name)
                if not is_final(values) and name not in newest:
                    continue
                if name not in newest and self._has_all_events and self._covers_steps:
                    yield f"{name} exists, and no event records it"
                elif self._digests.is_altered(name, values, names):
                    yield f"{name} was altered after it had been written"
        yield from (f"{name} is missing" for name in newest if name in missing)

    def _check_messages(self) -> Iterator[str]:
        missing = {name for name in self._digests.newest if name.startswith("message ")}
        for row in self._statements.all("all_messages", {"run_id": self._chain.id}):
            message = dict(zip(columns("message"), row, strict=True))
            name = name_message(message["number"])
            if name not in missing and self._has_all_events:
                yield f"{name} exists, and no event records it"
            elif self._digests.is_altered(name, message, MESSAGE_COLUMNS):
                yield f"{name} was altered after it had been written"
            missing.discard(name)
        yield from (f"{name} is missing" for name in sorted(missing))

    # the ledger

    def _check_calls(self) -> Iterator[str]:
        newest, run_id = self._digests.newest, {"run_id": self._chain.id}
        calls = [dict(zip(columns("call"), row, strict=True)) for row in self._statements.all("all_calls", run_id)]
        rows = [dict(zip(columns("receipt"), row, strict=True)) for row in self._statements.all("all_receipts", run_id)]
        receipts = {row["call_id"]: row for row in rows}
        self._counts = self._counts._replace(calls=len(calls), receipts=len(receipts))
        recorded = [name for name in newest if name.startswith("call ")]
        found = [name_call(call["id"]) for call in calls]
        if self._has_all_events and not self._digests.is_imported:
            here = frozenset(found)
            if [name for name in found if name in newest] != [name for name in recorded if name in here]:
                yield "the order of its calls was altered after they had been written"
        for call in calls:
            yield from self._check_call(call, receipts.pop(call["id"], None))
        yield from (f"{name} is missing from the ledger" for name in recorded if name not in frozenset(found))
        yield from (f"the receipt of call {one} belongs to no call of the run" for one in receipts)

    def _check_call(self, call: Mapping[str, Any], receipt: Mapping[str, Any] | None) -> Iterator[str]:
        name, newest = name_call(call["id"]), self._digests.newest
        if name not in newest and self._has_all_events:
            yield f"{name} is in the ledger, and no event records it"
        elif self._digests.is_altered(name, call, CALL_COLUMNS):
            yield f"{name} was altered after it had been written"
        elif newest.get(name):
            receipt_name = name_receipt(call["id"])
            if receipt is None and receipt_name in newest:
                yield f"the effect of {name} is done and has no receipt"
            elif receipt is not None and receipt_name not in newest and self._has_all_events:
                yield f"{name} has a receipt, and no event records it"
            elif receipt is not None and self._digests.is_altered(receipt_name, receipt, RECEIPT_COLUMNS):
                yield f"the receipt of {name} was altered after it had been written"

    def _check_blobs(self) -> Iterator[str]:
        """The large texts, whose digests the rows of calls hold."""
        run_id = self._chain.id
        digests = [row[0] for row in self._statements.all("all_digests", {"run_id": run_id})]
        self._counts = self._counts._replace(contents=len(digests))
        beginnings = {}
        for digest in digests:
            data = (blobs.read_blob(self._statements, run_id, digest) or "").encode()
            if sha256(data).hexdigest() != digest:
                yield f"content {digest} was altered after it had been written"
            beginnings[digest] = blobs.cut_beginning(data)
        for row in self._statements.all("calls_with_contents", {"run_id": run_id}):
            call = dict(zip(columns("call"), row, strict=True))
            for ref, shown in ((call["input_ref"], call["input"]), (call["output_ref"], call["output"])):
                if ref is not None and ref not in beginnings:
                    yield f"content {ref} of call {call['id']} is missing"
                elif ref is not None and beginnings[ref] != shown:
                    yield f"call {call['id']} was altered after it had been written: it does not begin as its content"


def read_call_event(digests: RowDigests, event: Event) -> None:
    """Read the digests of an event of the ledger; UnreadableEvent if jackline did not write it."""
    data = parse_data(event)
    call_id = data.get("call")
    if not isinstance(call_id, str):
        raise UnreadableEvent(f"event {event.seq} cannot be read")
    required = "answer" if event.kind == "call.answered" else "input" if "tool" in data else "output"
    digests.add(event, data, (name_call(call_id),), (required,))


def _split_pages(events: Iterable[Event]) -> Iterator[list[Event]]:
    waiting = iter(events)
    while page := list(islice(waiting, PAGE)):
        yield page
