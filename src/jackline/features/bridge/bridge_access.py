"""The bridge of a run for the command line, the MCP server, prompts and the run's folder. It prints nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.errors import Refused, disk_error
from jackline.features.bridge.bridge_message import PERSON, build_prompt_section, build_role_name
from jackline.features.bridge.bridge_store import BridgeStore
from jackline.files import lock_descriptor, make_private_folder, open_lock
from jackline.formatting import format_iso

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.features.bridge.bridge_message import BridgeMessage, BridgeReader, NewMessage
    from jackline.features.bridge.bridge_store import UnreadMessages
    from jackline.store.store import Store

FILE = "bridge.jsonl"  # of the run's folder: its messages with the field names of the predecessor
_guard = threading.Lock()  # tools of one process run in parallel threads
_held: dict[str, int] = {}  # descriptors by path


def send_message(home: Home, run_id: str, sender: str, new: NewMessage) -> tuple[BridgeMessage, bool]:
    """Send a message in this name; returns whether it is new."""
    return BridgeStore(home.store(create=True)).send(run_id, sender, new, clock.wall_ms())


def receive_messages(home: Home, run_id: str, reader: str, ack: int) -> UnreadMessages:
    """Acknowledge the messages up to `ack`, and get the unread ones.

    Refused while another process of this name has messages that it did not acknowledge.
    """
    with hold_reader(home.folder(run_id), reader) as lock:
        received = BridgeStore(home.store(create=True)).receive(run_id, reader, ack, clock.wall_ms())
        if not received.messages:
            lock.release()
        return received


def join_run(home: Home, run_id: str, name: str) -> BridgeReader:
    """Add an agent from outside to the bridge of a run."""
    return BridgeStore(home.store(create=True)).join(run_id, name, clock.wall_ms())


def add_messages(store: Store, run_id: str, turn: int, role: str, seat: int) -> str:
    """The section of a turn's prompt with the messages that its agent has not got; empty if there are none."""
    received = BridgeStore(store).give_in_prompt(run_id, build_role_name(role, seat), turn, clock.wall_ms())
    messages = [one.message for one in received.messages]
    return build_prompt_section(messages, received.left) if messages else ""


# the run's folder and `jackline show`


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
    bridge, seen = BridgeStore(store), 0
    while messages := bridge.list_messages(run.id, seen):
        seen = messages[-1].number
        yield from (build_record(run, message) for message in messages)


def list_run_files(store: Store, run: Run) -> list[tuple[str, Iterator[dict[str, Any]]]]:
    """The file of the run's messages; none without messages."""
    return [(FILE, iterate_records(store, run))] if BridgeStore(store).count_messages(run.id) else []


def list_run_facts(store: Store, run: Run) -> list[tuple[str, str]]:
    """How many messages there are, and how many of them a person has not read."""
    bridge = BridgeStore(store)
    count = bridge.count_messages(run.id)
    if not count:
        return []
    unread = bridge.count_unread(run.id, PERSON)
    return [("messages", f"{count}{f', {unread} unread for you' if unread else ''}: jackline bridge {run.id}")]


# one process at a time has messages that it has not acknowledged; its death releases them for the next one


class ReaderLock:
    """The lock of a reader's messages, held by this process."""

    def __init__(self, path: str) -> None:
        self._path = path

    def release(self) -> None:
        """Let other processes of the same name read: everything is acknowledged."""
        os.close(_held.pop(self._path))


@contextmanager
def hold_reader(run_folder: str, name: str) -> Iterator[ReaderLock]:
    """Take the lock of a reader, or keep it; Refused if another process has messages that it did not acknowledge."""
    path = os.path.join(run_folder, "bridge", f"{name}.lock")
    with _guard:
        is_new = path not in _held
        if is_new:
            _held[path] = _take(path, name)
        lock = ReaderLock(path)
        try:
            yield lock
        except BaseException:
            if is_new:
                lock.release()
            raise


def _take(path: str, name: str) -> int:
    make_private_folder(os.path.dirname(path))
    try:
        descriptor = open_lock(path)
    except OSError as error:
        raise disk_error(error, path) from error
    if lock_descriptor(descriptor):
        return descriptor
    os.close(descriptor)
    raise Refused(f"another process reads the messages to {name} and has not acknowledged them: end it, or wait for it")
