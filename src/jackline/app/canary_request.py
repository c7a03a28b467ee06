"""The turn that a canary tries, and by which its note is known. Pure."""

from __future__ import annotations

from jackline.domain.adapter import TurnRequest


def request(folder: str, binary: str, gate: str, token: str, arguments: tuple[str, ...]) -> TurnRequest:
    """The turn that is tried."""
    return TurnRequest(
        run_id="canary",
        attempt=1,
        turn=1,
        role="work",
        prompt="run the commands",
        workspace="/",
        folder=folder,
        gate=gate,
        token=token,
        binary=binary,
        arguments=arguments,
    )
