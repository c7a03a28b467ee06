"""`jackline drill`: agents and supervisors are killed on purpose in every known way; a table says what held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.interrupt import interruptible

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.drill.playing import Player
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

NEEDS_PROJECT = False


def configure(parser: Parser) -> None:
    parser.add_argument("--agent", metavar="NAME", default="scripted", help="scripted (default) or claude")
    parser.add_argument("--case", metavar="NAME", action="append", help="only this case; may be given several times")
    parser.add_argument("--keep", metavar="DIR", help="where to leave the evidence (default: a temporary folder)")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.drill import cases, drill, table
    from jackline.cli.output import columns

    drill.require_linux()
    chosen = cases.chosen(args.case)
    player = _player(args.agent, home)
    folder = drill.new_folder(args.keep)
    verdicts = []
    try:
        with interruptible():
            for case in chosen:
                out.note(f"{case.name}: {case.story}")
                verdicts.append(drill.play_case(case, player, folder))
                if out.json:
                    out.json_line(table.record(verdicts[-1], player.name))
    except KeyboardInterrupt:
        out.note(f"{table.summary(verdicts)} until now; the evidence is in {folder}")
        raise
    if out.json:
        out.json_line(table.total(verdicts, player.name, folder))
    else:
        out.table(columns(table.TITLES), [table.row(one) for one in verdicts])
        out.line(f"{table.summary(verdicts)}; the evidence is in {folder}")
    return 0 if table.all_passed(verdicts) else 1


def _player(name: str, home: Home) -> Player:
    if name == "scripted":
        from jackline.app.drill.scripted import Scripted

        return Scripted()
    from jackline.app.drill.claude import claude

    return claude(name, home)
