"""The child process that delivers for a command: reads its request from stdin, prints what it did as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from jackline.app.config import Config, load_config
from jackline.app.home import Home
from jackline.app.own_files import refuse_fresh_changes, refuse_unconfirmed_settings
from jackline.errors import JacklineError
from jackline.features.notify.delivery import deliver_due


def main() -> int:
    """Deliver until the time is over."""
    until = time.monotonic()
    request = json.load(sys.stdin)
    until += request["seconds"]
    try:
        config = _load_confirmed(request)
    except JacklineError as error:
        print(json.dumps({"problems": [f"notices were not delivered: {error}"]}), flush=True)  # noqa: T201 - its report
        return 0
    # The command's own notices are not older than a channel that it was the first to see.
    with Home(config._replace(loaded_at=request["loaded_at"])) as home:
        counts = deliver_due(home, request["owner"], until, ignores_backoff=True, terminal=request["terminal"])
        print(json.dumps({**counts._asdict(), "problems": home.warnings}), flush=True)  # noqa: T201 - its report
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
