"""What a case says when it cannot go on: something that had to happen did not. It repairs nothing."""

from __future__ import annotations

from jackline.errors import JacklineError


class DrillFailed(JacklineError):
    """{detail}"""  # noqa: D400 - it is the message
