"""Delivers what is due: plans rows for new notices, then each channel sends its own, in its own thread.

A row is claimed before its message is sent. A channel that does not work is paused; the others continue.
As a program it delivers for a command: it reads its request from stdin, and prints what it did as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app.config import Config, load_config
from jackline.app.home import Home
from jackline.app.own_files import refuse_fresh_changes, refuse_unconfirmed_settings
from jackline.errors import JacklineError
from jackline.features.notify.channel import is_wanted
from jackline.features.notify.channel_pass import ChannelPass, DeliveryReport, run_passes
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery_store import SENT, STUCK, DeliveryStore
from jackline.features.notify.messages import list_labels
from jackline.features.notify.ping import list_ping_passes
from jackline.store.parts import PING_CHANNEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.features.notify.channel import Channel
    from jackline.features.notify.delivery_store import OutboxNotice


def deliver_due(
    home: Home, owner: str, until: float, *, ignores_backoff: bool = False, terminal: str = ""
) -> DeliveryReport:
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
        if one.channel.name != PING_CHANNEL:
            total.update(one.counts)
    down = tuple(dict.fromkeys(one.channel.name for one in passes if one.is_down))
    return DeliveryReport(sent=total[SENT], postponed=total["postponed"], stuck=total[STUCK], down=down)


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


def close_removed(home: Home) -> None:
    """Close the messages of channels that were removed; without channels, leave those of a server to other hosts."""
    if home.config.channels or not home.has_database_server:
        DeliveryStore(home.store()).skip_removed(home.config.channels, clock.wall_ms())


# as a program


def main() -> int:
    """Deliver until the time that the command gives: of the machine's monotonic clock, because a start may be slow."""
    request = json.load(sys.stdin)
    try:
        config = _load_confirmed(request)
    except JacklineError as error:
        print(json.dumps({"problems": [f"notices were not delivered: {error}"]}), flush=True)  # noqa: T201 - its report
        return 0
    # The command's own notices are not older than a channel that it was the first to see.
    with Home(config._replace(loaded_at=request["loaded_at"])) as home:
        report = deliver_due(
            home, request["owner"], request["until"], ignores_backoff=True, terminal=request["terminal"]
        )
        report = report._replace(problems=home.warnings)
        print(json.dumps(report._asdict()), flush=True)  # noqa: T201 - its report
    return 0


def _load_confirmed(request: dict[str, Any]) -> Config:
    """The settings as they are now; or, while a change is not confirmed, those that the command started with.

    An agent can write them: a channel may name a program, which would be started outside of every run.
    """
    flags = {"home": request["home"], "database": request["database"]}
    try:
        config = load_config(os.environ, request["home"], flags, project=False)
        with Home(config) as home:
            refuse_unconfirmed_settings(home)
            refuse_fresh_changes(home, config.loaded_at)
    except JacklineError:
        if request["confirmed"] is None:
            raise
        return Config(**request["confirmed"])
    return config


if __name__ == "__main__":
    sys.exit(main())
