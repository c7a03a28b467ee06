"""Requests the address of a run when it starts, succeeds or fails, with the API of Healthchecks.

The rows are written with the state of the run, and sent as deliveries on a separate channel. A server that does not
answer delays no run. No error and no output repeats an address: its path is a secret.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from jackline import clock
from jackline.diagnostic_log import LOG
from jackline.domain.states import TERMINAL
from jackline.errors import ChannelDown, JacklineError, MessageNotNeeded, MessageRefused
from jackline.features.notify.channel import Channel
from jackline.features.notify.channel_pass import ChannelPass, find_due_time, run_passes
from jackline.features.notify.channel_secrets import hide_url
from jackline.features.notify.delivery_store import DeliveryStore, parse_ping_id
from jackline.formatting import format_cost, format_duration, make_printable
from jackline.store.parts import PING_CHANNEL, PingEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.features.notify.delivery_store import Delivery

_SUFFIXES = {PingEvent.START: "/start", PingEvent.SUCCESS: "", PingEvent.FAIL: "/fail"}
_TIMEOUT_S = 10.0
_MOST_BODY = 1_000
_MOST_ROWS = 5_000  # those of a dead server must not hide those of another
_JOIN_SECONDS = 0.5
_started: dict[str, threading.Thread] = {}  # by the owner of their claims


class PingPass(ChannelPass):
    """One look at the addresses of one server that are to be requested."""

    def __init__(
        self,
        home: Home,
        rows: list[Delivery],
        owner: str,
        until: float,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        channel = Channel(name=PING_CHANNEL, type="ping", options={}, timeout_s=_TIMEOUT_S)
        super().__init__(home, channel, owner, until, is_stopping=is_stopping)
        self._rows = rows

    def _list_due(self, _at: int, _due: int) -> list[Delivery]:
        return self._rows

    def _send(self, claimed: Delivery, timeout_s: float) -> None:
        from jackline.features.notify.http_request import post
        from jackline.features.schedules.fire_reports import describe_fire

        event, run_id = parse_ping_id(claimed.notice_id)
        store = self._home.store()
        url, run = _find_url(self._home, run_id), store.runs.get(run_id)
        if not url:
            raise MessageNotNeeded("the run no longer has an address")
        if run is not None and event is PingEvent.START and claimed.attempts > 1 and run.status.state in TERMINAL:
            raise MessageNotNeeded("the run has ended in the meantime: the server would wait for another end")
        text = describe_fire(self._home, run_id) if run is None else describe_ping(run, event)
        body = store.redactor.redact(text)[:_MOST_BODY].encode()
        try:
            post(build_ping_url(url, event, run_id), body, {"Content-Type": "text/plain; charset=utf-8"}, timeout_s)
        except (ChannelDown, MessageRefused) as error:  # a server may repeat the path
            raise type(error)(hide_url(str(error), url.partition("://")[2].partition("/")[2])) from None


def list_ping_passes(
    home: Home,
    owner: str,
    until: float,
    *,
    ignores_backoff: bool = False,
    is_stopping: Callable[[], bool] = lambda: False,
) -> list[PingPass]:
    """One pass for each server with addresses that are due: a dead one keeps no other from being asked."""
    from urllib.parse import urlsplit

    at = clock.wall_ms()
    due = find_due_time(at, ignores_backoff=ignores_backoff)
    rows: dict[str, list[Delivery]] = {}
    for row in DeliveryStore(home.store()).list_due(PING_CHANNEL, at, due, _MOST_ROWS):
        url = _find_url(home, parse_ping_id(row.notice_id)[1])
        rows.setdefault(urlsplit(url).netloc, []).append(row)
    return [PingPass(home, found, owner, until, is_stopping=is_stopping) for found in rows.values()]


def _find_url(home: Home, run_id: str) -> str:
    """The address of a run, or of the fire that should have created it."""
    from jackline.features.schedules.fire_reports import find_url_of_fire

    return home.store().notices.find_ping(run_id) or find_url_of_fire(home, run_id)


def build_ping_url(url: str, event: PingEvent, run_id: str) -> str:
    """The address for an event; `rid` connects the start and the end of a run, and has to be a UUID."""
    from urllib.parse import urlencode, urlsplit, urlunsplit
    from uuid import NAMESPACE_OID, uuid5

    parts = urlsplit(url)
    rid = urlencode({"rid": str(uuid5(NAMESPACE_OID, run_id))})
    query = f"{parts.query}&{rid}" if parts.query else rid
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + _SUFFIXES[event], query, ""))


def describe_ping(run: Run, event: PingEvent) -> str:
    """A short summary, for the log of the server."""
    status = run.status
    lines = [f"{run.agent}/{run.spec.task}: run {run.id} (#{run.number})"]
    if event is not PingEvent.START and status.state in TERMINAL:
        cost = format_cost(status.spent.usd_micros, status.spent.usd_estimated)
        lines.append(f"{status.state}, {format_duration(status.spent.wall_ms)}, {cost}")
        lines += [make_printable(status.detail)] if status.detail else []
    return "\n".join(lines)


# while a run is active


def send_in_background(home: Home) -> None:
    """Send what is due in a thread that the run does not wait for; what it does not send stays due."""
    from jackline.engine.settings import new_id

    owner = f"start-{new_id()}"
    thread = threading.Thread(target=_send_all, args=(home.reopen(), owner), name="ping", daemon=True)
    _started[owner] = thread
    thread.start()


def finish_background(home: Home) -> None:
    """Wait a moment for all of those threads, and give up what they have claimed: another process sends it."""
    until = time.monotonic() + _JOIN_SECONDS
    for owner in tuple(_started):
        _started.pop(owner).join(max(0.0, until - time.monotonic()))
        DeliveryStore(home.store()).release(owner, "the command ended")


def _send_all(home: Home, owner: str) -> None:
    try:
        with home:
            until = time.monotonic() + _TIMEOUT_S
            run_passes(list_ping_passes(home, owner, until), until)
    except (JacklineError, OSError) as error:
        LOG.warning(f"ping: {error}")
