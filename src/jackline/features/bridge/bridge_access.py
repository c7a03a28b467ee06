"""The bridge of a run for the command line, the MCP server and prompts. It prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline import clock
from jackline.features.bridge.bridge_message import build_prompt_section, build_role_name
from jackline.features.bridge.bridge_store import Bridge
from jackline.features.bridge.reader_lock import hold_reader

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.bridge.bridge_message import BridgeMessage, BridgeReader, NewMessage
    from jackline.features.bridge.bridge_store import Inflow
    from jackline.store.store import Store


def send_message(home: Home, run_id: str, sender: str, new: NewMessage) -> tuple[BridgeMessage, bool]:
    """Send a message in this name; returns whether it is new."""
    return Bridge(home.store(create=True)).send(run_id, sender, new, clock.wall_ms())


def receive_messages(home: Home, run_id: str, reader: str, ack: int) -> Inflow:
    """Acknowledge the messages up to `ack`, and get the unread ones.

    Refused while another process of this name has messages that it did not acknowledge.
    """
    with hold_reader(home.folder(run_id), reader) as lock:
        received = Bridge(home.store(create=True)).receive(run_id, reader, ack, clock.wall_ms())
        if not received.messages:
            lock.release()
        return received


def join_run(home: Home, run_id: str, name: str) -> BridgeReader:
    """Add an agent from outside to the bridge of a run."""
    return Bridge(home.store(create=True)).join(run_id, name, clock.wall_ms())


def add_messages(store: Store, run_id: str, turn: int, role: str, seat: int) -> str:
    """The section of a turn's prompt with the messages that its agent has not got; empty if there are none."""
    received = Bridge(store).give_in_prompt(run_id, build_role_name(role, seat), turn, clock.wall_ms())
    messages = [one.message for one in received.messages]
    return build_prompt_section(messages, received.left) if messages else ""
