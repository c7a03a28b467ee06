"""`jackline demo --agent NAME`: the user's own CLI in two acts, with a played model. It leaves nothing behind."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.cli.interrupt import interruptible
from jackline.demo.folder import new_folder
from jackline.demo.real import AGENTS, Cast, RealPlay
from jackline.errors import AgentUnavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output


def show(name: str, keep: str | None, home: Home, out: Output) -> int:
    """Play it; the files stay only where --keep says."""
    with interruptible(), _folder(None) as temporary:
        cast = _cast(name, home, temporary)
        with _folder(keep) as folder:
            play = RealPlay(cast, folder, temporary, (lambda _text: None) if out.json else out.line)
            _tell(play, cast, folder if keep else "", out)
    return 0


def _tell(play: RealPlay, cast: Cast, kept: str, out: Output) -> None:
    acts = play.play()
    if out.json:
        where = {"folder": kept, "home": play.home} if kept else {}
        out.json_line({**where, **cast._asdict(), "acts": [act._asdict() for act in acts]})
    elif kept:
        out.line(f"\nIts files: {kept} (JACKLINE_HOME={play.home})\n")
    else:
        out.line("\nIts files are gone now; --keep DIR would have left them.\n")


def _cast(name: str, home: Home, temporary: str) -> Cast:
    """The same program that `jackline run` would start; asked for its version where it may leave what it likes."""
    adapter = agents.load(home.config, name)
    if name not in AGENTS:
        raise UsageError(f"the demo cannot point '{name}' at a played model: choose one of {', '.join(AGENTS)}")
    environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": temporary, "TMPDIR": temporary}
    found = agents.find(home.path, home.config, adapter, environ)
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
