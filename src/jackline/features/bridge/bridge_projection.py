"""`bridge.jsonl` of a run's folder: its messages with the field names of the predecessor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.features.bridge.bridge_message import PERSON
from jackline.features.bridge.bridge_store import Bridge
from jackline.formatting import format_iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.domain.records import Run
    from jackline.features.bridge.bridge_message import BridgeMessage
    from jackline.store.store import Store

FILE = "bridge.jsonl"


def build_record(run: Run, message: BridgeMessage) -> dict[str, Any]:
    """A message as JSON; `run_id` is the number of the run, as in the transcript."""
    signal = {"signal": message.signal} if message.signal else {}
    return {
        "id": str(message.number),
        "type": message.kind,
        "from": message.sender,
        "to": message.recipient,
        "content": message.content,
        **signal,
        "timestamp": format_iso(message.at),
        "run_id": run.number,
        "iteration": message.iteration,
    }


def iterate_records(store: Store, run: Run) -> Iterator[dict[str, Any]]:
    """Every message of the run, oldest first."""
    bridge, seen = Bridge(store), 0
    while messages := bridge.list_messages(run.id, seen):
        seen = messages[-1].number
        yield from (build_record(run, message) for message in messages)


def list_run_files(store: Store, run: Run) -> list[tuple[str, Iterator[dict[str, Any]]]]:
    """The file of the run's messages; none without messages."""
    return [(FILE, iterate_records(store, run))] if Bridge(store).count_messages(run.id) else []


def list_run_facts(store: Store, run: Run) -> list[tuple[str, str]]:
    """How many messages there are, and how many of them a person has not read."""
    bridge = Bridge(store)
    count = bridge.count_messages(run.id)
    if not count:
        return []
    unread = bridge.count_unread(run.id, PERSON)
    return [("messages", f"{count}{f', {unread} unread for you' if unread else ''}: jackline bridge {run.id}")]
