"""`jackline drill`: kills agents and supervisors in every known way, and prints a table of the results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.cli.signals import raise_on_signals

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.scenarios.players import CasePlayer

NEEDS_PROJECT = False
INSIDE_RUN = ("*",)  # it works in separate homes


def configure(parser: CommandParser) -> None:
    parser.add_argument("--agent", metavar="NAME", default="scripted", help="scripted (default) or claude")
    parser.add_argument("--case", metavar="NAME", action="append", help="only this case; may be repeated")
    parser.add_argument("--keep", metavar="DIR", help="where to keep the evidence (default: a temporary folder)")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.cli.output import parse_columns
    from jackline.scenarios import drill_cases, verdicts
    from jackline.scenarios.case_runner import require_linux, run_case
    from jackline.scenarios.sandbox import make_folder, open_sandbox

    require_linux()
    chosen = drill_cases.choose_cases(args.case)
    player = _load_player(args.agent, home)
    folder = make_folder(args.keep, "drill")
    results = []
    try:
        with raise_on_signals():
            for case in chosen:
                out.print_note(f"{case.name}: {case.story}")
                with open_sandbox(os.path.join(folder, case.name)) as sandbox:
                    results.append(run_case(case, player, sandbox))
                if out.json:
                    out.print_json(verdicts.build_record(results[-1], player.name))
    except KeyboardInterrupt:
        out.print_note(f"{verdicts.summarize(results)} so far; the evidence is in {folder}")
        raise
    if out.json:
        out.print_json(verdicts.build_total(results, player.name, folder))
    else:
        out.print_table(parse_columns(verdicts.TABLE_TITLES), [verdicts.build_row(one) for one in results])
        out.print_line(f"{verdicts.summarize(results)}; the evidence is in {folder}")
    return 0 if verdicts.all_passed(results) else 1


def _load_player(name: str, home: Home) -> CasePlayer:
    from jackline.scenarios.players import ScriptedPlayer

    if name == ScriptedPlayer.name:
        return ScriptedPlayer()
    from jackline.scenarios.model_player import DRILL_AGENTS, load_player

    return load_player(name, home, "drill", DRILL_AGENTS)
