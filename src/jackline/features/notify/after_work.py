"""Delivers notices at the end of a command: a running service is woken, or a child process has three seconds."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

from jackline.errors import JacklineError
from jackline.features.notify.channel_pass import DeliveryReport
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.notify.ping import finish_background
from jackline.features.notify.senders import find_terminal
from jackline.formatting import make_printable
from jackline.store.parts import PING_CHANNEL

if TYPE_CHECKING:
    from jackline.app.home import Home

SECONDS = 3.0
_KILL_SECONDS = 2.75  # after which the child is ended
_REPORT_SECONDS = 0.3  # before that, in which it stops sending and reports
_SHOWN = 300
PING_FAILED = "a ping was not accepted and stays due"
_SEE = "see `jackline notices --stuck`"
_MODULE = "jackline.features.notify.delivery"


def deliver_after_work(home: Home) -> None:
    """Wake a living service; without one, deliver here. What is not sent in time stays due."""
    started = time.monotonic()
    try:
        finish_background(home)
        if home.is_new or not DeliveryStore(home.store()).has_work(home.config.channels, home.config.loaded_at):
            return
        if home.has_service():
            home.wake_services()
        else:
            report = deliver_in_child(home, started)
            home.warnings += report.problems
            channels = [name for name in report.down if name != PING_CHANNEL]
            if channels:
                home.warnings.append(f"notices for {', '.join(channels)} were not delivered and stay due; {_SEE}")
            if PING_CHANNEL in report.down:
                home.warnings.append(f"{PING_FAILED}; {_SEE}")
    except (JacklineError, OSError) as error:  # the command has done its work anyway
        home.warnings.append(f"notices were not delivered: {error}")


def deliver_in_child(home: Home, since: float | None = None) -> DeliveryReport:
    """Deliver in a child process that is ended three seconds after `since`, a time of the monotonic clock, or now."""
    from jackline.engine.command_runner import run_command
    from jackline.engine.settings import new_id

    end = (time.monotonic() if since is None else since) + _KILL_SECONDS
    until = end - _REPORT_SECONDS
    seconds = until - time.monotonic()
    owner = f"command-{new_id()}"
    config = home.config
    request = {
        "home": home.path,
        "database": config.get_text("database") if config.sources["database"] == "--database" else None,
        "confirmed": config._asdict() if home.has_confirmed_settings else None,
        "loaded_at": config.loaded_at,
        "owner": owner,
        "until": until,
        "terminal": find_terminal(),
    }
    try:
        result = run_command(
            [sys.executable, "-P", "-m", _MODULE],
            cwd=home.path,
            env=os.environ,
            stdin=json.dumps(request, default=str).encode(),
            timeout_s=end - time.monotonic(),
        )
    finally:
        # Only now no process sends any more: the rows that the child had claimed are due again.
        stuck = DeliveryStore(home.store()).release(owner, f"no answer within {seconds:.1f} s")
    try:
        report = DeliveryReport(**json.loads(result.stdout_tail))
    except ValueError:  # it was ended before it could report
        said = make_printable(result.stderr_tail.decode(errors="replace").strip()[-_SHOWN:])
        report = DeliveryReport(problems=[said] if said else [])
    return report._replace(down=tuple(dict.fromkeys((*report.down, *stuck))))
