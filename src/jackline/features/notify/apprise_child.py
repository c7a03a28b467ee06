"""The program that sends one message with Apprise: reads it from stdin, prints why it was not sent. Not imported.

A separate program, because Apprise has no time limit for a whole request: this one can be killed, and an answer
that unpacks to gigabytes ends only it. A redirect is an error: the token in a header would go to another host.
"""

from __future__ import annotations

import json
import logging
import resource
import sys

UNKNOWN_URL = 3
_MEMORY = 1 << 30  # bytes; Apprise needs about a tenth


def main() -> int:
    """Send the message; 0 if the service has accepted it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    import apprise
    import requests

    # What each new session copies; its type declares only the name in `requests.models`.
    requests.sessions.DEFAULT_REDIRECT_LIMIT = 0  # type: ignore[attr-defined]
    message = json.load(sys.stdin)
    service = apprise.Apprise(asset=apprise.AppriseAsset(app_id="jackline", async_mode=False, storage_mode="memory"))
    if not service.add(message["url"]):
        return UNKNOWN_URL
    kind = apprise.NotifyType.WARNING if message["is_urgent"] else apprise.NotifyType.INFO
    # Apprise declares no types for it.
    with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as log:  # type: ignore[no-untyped-call]
        is_sent = service.notify(title=message["title"], body=message["body"], notify_type=kind)
        reason = log.getvalue() if log is not None else ""
    sys.stdout.write(reason)
    return 0 if is_sent else 1


if __name__ == "__main__":
    sys.exit(main())
