"""Compares what should have been reported, what was sent, and what the topics of ntfy hold. It sends nothing."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline.domain.notices import SILENT_WAITS
from jackline.domain.states import TERMINAL, RunState
from jackline.errors import ChannelDown, ConfigError, MessageRefused
from jackline.features.notify.channel import NTFY, is_wanted
from jackline.features.notify.channel_secrets import read_topic
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery_store import PENDING, SENT, STUCK, DeliveryStore
from jackline.features.notify.messages import list_labels
from jackline.features.notify.ntfy import build_headers, build_sequence_id, cut_title, get_server
from jackline.formatting import SECOND_MS, format_iso, make_printable
from jackline.named import NamedTuple
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home
    from jackline.features.notify.channel import Channel
    from jackline.features.notify.delivery_store import Delivery, ListedNotice

_PAGE, _MOST_RUNS, _MOST_NOTICES = 500, 5_000, 5_000
_POLL_SECONDS = 10.0
_SLACK_MS = 5 * SECOND_MS  # the clocks of two machines differ
_MOST_ANSWER = 8_000_000


class MissingReport(NamedTuple):
    """One difference."""

    kind: str  # run, schedule, delivery or topic
    subject: str
    text: str


def list_missing(home: Home, since: int, now: int) -> list[MissingReport]:
    """Every difference since a time."""
    from jackline.features.schedules.fire_reports import list_unreported_fires

    listed = DeliveryStore(home.store()).list_notices(now, limit=_MOST_NOTICES)
    listed = [one for one in listed if one.notice.created_at >= since]
    channels, problems = load_channels(home.config)
    found = [MissingReport("channel", "", text) for text in problems]
    found += [MissingReport("schedule", name, text) for name, text in list_unreported_fires(home, since, now)]
    found += _find_unreported_runs(home, listed, since)
    starts = DeliveryStore(home.store()).register_channels((), now)
    for channel in channels:
        found += _find_unsent(home, channel, listed, starts.get(channel.name, now))
        if channel.type == NTFY:
            found += _find_unreceived(channel, listed, since)
    return found


def _find_unreported_runs(home: Home, listed: Sequence[ListedNotice], since: int) -> Iterator[MissingReport]:
    """Runs that ended or wait, and have no notice about it."""
    reported = {(one.notice.run_id, one.notice.kind) for one in listed}
    states = (*sorted(TERMINAL), RunState.WAITING)
    before, seen = None, 0
    while seen < _MOST_RUNS:
        page = home.list_runs(RunQuery(states=states, before=before, limit=_PAGE))
        for run in page:
            kind = f"run.waiting.{run.reason}" if run.state == RunState.WAITING else f"run.{run.state}"
            changed_at = run.finished_at or run.updated_at
            if changed_at < since or run.reason in SILENT_WAITS or (run.id, kind) in reported:
                continue
            known = home.store().runs.get(run.id)
            kinds = {notice.kind for notice in home.store().records.list_notices(run.id)}
            if known is not None and not known.spec.imported and kind not in kinds:
                yield MissingReport("run", run.id, f"{kind} at {format_iso(changed_at, 'seconds')}: no notice")
        if len(page) < _PAGE:
            return
        seen += len(page)
        before = (page[-1].created_at, page[-1].id)


def _find_unsent(home: Home, channel: Channel, listed: Sequence[ListedNotice], start: int) -> Iterator[MissingReport]:
    """What is not sent; a channel gets no notice that is older than the channel, or that it does not want."""
    for one in listed:
        delivery = _find_delivery(channel, one)
        if delivery is not None and delivery.state in {PENDING, STUCK}:
            why = f": {delivery.error}" if delivery.error else ""
            text = f"{one.notice.kind} ({one.notice.title}) is not sent to {channel.name}{why}"
            yield MissingReport("delivery", one.notice.id, text)
        elif delivery is None and one.delivered_at is None and one.notice.created_at >= start:
            run = home.store().runs.get(one.notice.run_id) if one.notice.run_id else None
            if not is_wanted(channel, one.notice.kind, list_labels(one.notice, run)):
                continue
            text = f"{one.notice.kind} ({one.notice.title}) is not sent to {channel.name}: nothing has delivered since"
            yield MissingReport("delivery", one.notice.id, text)


def _find_unreceived(channel: Channel, listed: Sequence[ListedNotice], since: int) -> Iterator[MissingReport]:
    """What was sent and is not in the topic."""
    try:
        messages = poll_topic(channel, since - _SLACK_MS)
    except (ChannelDown, ConfigError, MessageRefused) as error:
        yield MissingReport("topic", channel.name, f"the topic of {channel.name} cannot be read: {error}")
        return
    ids = {str(message.get("sequence_id", "")) for message in messages}
    for one in listed:
        delivery = _find_delivery(channel, one)
        if delivery is None or delivery.state != SENT or build_sequence_id(one.notice.id) in ids:
            continue
        same = next((message for message in messages if _is_same(one, message)), None)
        if same is not None:  # a server that does not know sequence ids
            messages.remove(same)
            continue
        sent = format_iso(delivery.sent_at or 0, "seconds")
        text = f"{one.notice.kind} ({one.notice.title}) was sent to {channel.name} at {sent}, and is not in its topic"
        yield MissingReport("topic", one.notice.id, text)


def _is_same(one: ListedNotice, message: dict[str, object]) -> bool:
    is_about_run = one.notice.run_id in str(message.get("message", ""))
    return is_about_run and str(message.get("title", "")) == cut_title(make_printable(one.notice.title))


def _find_delivery(channel: Channel, one: ListedNotice) -> Delivery | None:
    return next((delivery for delivery in one.deliveries if delivery.channel == channel.name), None)


def poll_topic(channel: Channel, since: int) -> list[dict[str, object]]:
    """The messages that the server still has since a time; ChannelDown if it cannot be asked."""
    from urllib.parse import quote

    from jackline.features.notify.http_request import get

    topic = quote(read_topic(channel, "topic", os.environ), safe="")
    url = f"{get_server(channel)}/{topic}/json?poll=1&since={max(0, since) // SECOND_MS}"
    answer = get(url, build_headers(channel, os.environ), _POLL_SECONDS, _MOST_ANSWER)
    try:
        found = [json.loads(line) for line in answer.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        raise ChannelDown("the server's answer is not ntfy's") from None
    return [one for one in found if isinstance(one, dict) and one.get("event") == "message"]
