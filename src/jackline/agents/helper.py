"""How jackline starts its own helper programs, and what it tells every program that speaks its event lines. Pure."""

from __future__ import annotations

import os.path
import sys

from jackline.domain.adapter import TurnRequest

START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "talking", "start.py")


def command(request: TurnRequest, program: str, *words: str) -> tuple[str, ...]:
    """The command line of a helper; without site packages, so that none of them can stand in its way."""
    return (request.binary or sys.executable, "-IS", START, program, *words)


def environment(request: TurnRequest) -> dict[str, str]:
    """What a program needs to ask the gate, to keep a session and to know whose turn it is."""
    return {
        "JACKLINE_GATE": request.gate,
        "JACKLINE_GATE_TOKEN": request.token,
        "JACKLINE_RUN_ID": request.run_id,
        "JACKLINE_ATTEMPT": str(request.attempt),
        "JACKLINE_TURN": str(request.turn),
        "JACKLINE_SESSION": request.session or "",
        "JACKLINE_RESUME": "1" if request.resume else "0",
        "JACKLINE_AGENT_FOLDER": request.folder,
        "JACKLINE_WORKSPACE": request.workspace,
        "JACKLINE_MODEL": request.model,
        "JACKLINE_EFFORT": request.effort,
    }
