"""Delivers what is due: plans rows for new notices, then each channel sends its own, in its own thread.

A row is claimed before its message is sent. A channel that does not work is left alone until later; the others go on.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jackline import clock
from jackline.features.notify.channel import is_wanted
from jackline.features.notify.channel_pass import ChannelPass, run_passes
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery_store import SENT, STUCK, DeliveryStore
from jackline.features.notify.messages import list_labels
from jackline.features.notify.ping import list_ping_passes
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.features.notify.channel import Channel
    from jackline.features.notify.delivery_store import OutboxNotice


class DeliveryCounts(NamedTuple):
    """What one pass did."""

    sent: int = 0
    postponed: int = 0
    stuck: int = 0  # given up
    down: tuple[str, ...] = ()  # channels that did not work


def deliver_due(
    home: Home, owner: str, until: float, *, ignores_backoff: bool = False, terminal: str = ""
) -> DeliveryCounts:
    """Plan and send everything that is due, until this time of the monotonic clock.

    With `ignores_backoff` each row is tried once, also if its next attempt is later: for a command that will not come
    back. `owner` names this process on its claims.
    """
    channels, problems = load_channels(home.config)
    home.warnings += problems
    plan_deliveries(home, channels)
    passes: list[ChannelPass] = [
        ChannelPass(home, channel, owner, until, ignores_backoff=ignores_backoff, terminal=terminal)
        for channel in channels
    ]
    passes += list_ping_passes(home, owner, until, ignores_backoff=ignores_backoff)
    run_passes(passes, until)
    total: Counter[str] = Counter()
    for one in passes:
        total.update(one.counts)
    down = tuple(dict.fromkeys(one.channel.name for one in passes if one.is_down))
    return DeliveryCounts(sent=total[SENT], postponed=total["postponed"], stuck=total[STUCK], down=down)


def plan_deliveries(home: Home, channels: Sequence[Channel]) -> None:
    """Write rows for the notices that came since the last look, and close those of channels that are gone.

    A channel is set up since the settings with it were first loaded: older notices are not sent to it.
    """
    deliveries, at = DeliveryStore(home.store()), clock.wall_ms()
    since = deliveries.register_channels([channel.name for channel in channels], home.config.loaded_at or at)
    known = {channel.name: channel for channel in channels}

    def wants(name: str, notice: OutboxNotice) -> bool:
        run = home.store().runs.get(notice.run_id) if notice.run_id else None
        return is_wanted(known[name], notice.kind, list_labels(notice, run))

    deliveries.plan({name: start for name, start in since.items() if name in known}, at, wants)
    deliveries.skip_removed(home.config.channels, at)
