"""`jackline demo`: kills a run around a side effect, twice, and resumes it; the effect happens exactly once."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.cli.signals import raise_on_signals
from jackline.scenarios.sandbox import make_folder, make_temporary_folder

if TYPE_CHECKING:
    import argparse

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.scenarios.demo import Say

INSIDE_RUN = ("*",)  # it works in a separate home


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the demo."""
    parser.add_argument("--keep", metavar="DIR", help="where to keep the demo's files (default: a temporary folder)")
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="use your own CLI with a model that jackline plays: it needs no key and no network",
    )


def execute(args: argparse.Namespace, home: Home, out: Output) -> int:
    """Play both acts in their own home; the user's home and settings are neither changed nor used."""
    say: Say = (lambda _text: None) if out.json else out.print_line
    with raise_on_signals():
        if args.agent is not None:
            _show_agent_demo(args.agent, args.keep, home, out, say)
        else:
            _show_demo(args.keep, home, out, say)
    return 0


def _show_demo(keep: str | None, home: Home, out: Output, say: Say) -> None:
    from jackline.scenarios.demo import run_demo

    folder = make_folder(keep, "demo")
    demo_home = os.path.join(folder, "home")
    acts = run_demo(folder, demo_home, say)
    if out.json:
        out.print_json({"folder": folder, "home": demo_home, "acts": acts})
        return
    say("\nIn both acts the report arrived exactly once. See for yourself:\n")
    say(f"  export JACKLINE_HOME={shlex.quote(demo_home)}")
    if home.config.get_text("database"):
        say(f"  export JACKLINE_DATABASE={shlex.quote(paths.find_database(demo_home, ''))}")
    for command in ("list --all-repos", "show act-one", "logs act-two", "db check"):
        say(f"  {_find_own_command()} {command}")
    say("")


def _show_agent_demo(name: str, keep: str | None, home: Home, out: Output, say: Say) -> None:
    """Play it with the user's CLI; without --keep the files are removed at the end."""
    from jackline.scenarios.agent_demo import run_agent_demo
    from jackline.scenarios.model_player import DEMO_AGENTS, load_player

    player = load_player(name, home, "demo", DEMO_AGENTS)
    kept = nullcontext(make_folder(keep, "demo")) if keep else make_temporary_folder("jackline-demo-")
    with make_temporary_folder() as temporary, kept as folder:
        acts = run_agent_demo(player, folder, temporary, say)
    if out.json:
        where = {"folder": folder, "home": os.path.join(folder, "home")} if keep else {}
        facts = {"agent": name, "binary": player.binary, "version": player.version}
        gate = {"gate": player.gate, "gate_reason": player.gate_reason}
        out.print_json({**where, **facts, **gate, "acts": [act._asdict() for act in acts]})
    elif keep:
        say(f"\nIts files: {folder} (JACKLINE_HOME={os.path.join(folder, 'home')})\n")
    else:
        say("\nIts files are removed; use --keep DIR to keep them.\n")


def _find_own_command() -> str:
    """How this jackline can be called again, even if it is not on the PATH."""
    if shutil.which("jackline"):
        return "jackline"
    if os.path.basename(sys.argv[0]) != "jackline":
        return f"{shlex.quote(sys.executable)} -m jackline"
    near = os.path.relpath(sys.argv[0])
    return shlex.quote(os.path.abspath(near) if near.startswith(os.pardir) else near)
