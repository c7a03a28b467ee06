"""What the demo says when something did not go as promised. It tells; it repairs nothing."""

from __future__ import annotations

from jackline.errors import JacklineError

_MOST = 500


class DemoFailed(JacklineError):
    """the demo did not go as promised: {detail}"""  # noqa: D400 - it is the message


def expect(truth: bool, otherwise: str) -> None:  # noqa: FBT001 - it reads like an assertion
    """Go on only if it is true."""
    if not truth:
        raise DemoFailed(otherwise)


def ended_so(exit_code: int | None, *outputs: bytes) -> str:
    """How a command ended, with the last words of the first output that has any; on one line."""
    said = next((text for output in outputs if (text := output.decode("utf-8", "replace").strip())), "")
    return f"exit {exit_code}: {' '.join(said[-_MOST:].split())}"
