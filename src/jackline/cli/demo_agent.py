"""`jackline demo --agent NAME`: the user's own CLI in two acts, with a played model. It leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.cli.demo import new_folder
from jackline.demo.real import AGENTS, Cast, RealPlay
from jackline.errors import AgentUnavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output


def show(name: str, keep: str | None, home: Home, out: Output) -> int:
    """Play it; the files stay only where --keep says."""
    cast = _cast(name, home)  # before there is a folder: a CLI that is missing costs nothing
    with _interruptible(), _folder(keep) as folder, _folder(None) as temporary:
        play = RealPlay(cast, folder, temporary, (lambda _text: None) if out.json else out.line)
        acts = play.play()
        if out.json:
            kept = {"folder": folder, "home": play.home} if keep else {}
            out.json_line({**kept, **cast._asdict(), "acts": [act._asdict() for act in acts]})
        elif keep:
            out.line(f"\nIts files: {folder} (JACKLINE_HOME={play.home})\n")
        else:
            out.line("\nIts files are gone now; --keep DIR would have left them.\n")
    return 0


def _cast(name: str, home: Home) -> Cast:
    """The same program that `jackline run` would start."""
    adapter = agents.load(home.config, name)
    if name not in AGENTS:
        raise UsageError(f"the demo cannot point '{name}' at a played model: choose one of {', '.join(AGENTS)}")
    found = agents.find(home.path, home.config, adapter, os.environ)
    if found.why:
        raise AgentUnavailable(found.name, why=found.why)
    declaration = adapter.declaration
    return Cast(name, found.binary, found.version, declaration.gate, declaration.gate_reason)


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    """One that goes with the demo, unless it is to be kept."""
    folder = new_folder(keep)
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Whoever ends the demo, by whatever means there is to be heard: it cleans up first."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
