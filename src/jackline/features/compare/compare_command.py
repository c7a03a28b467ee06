"""`jackline compare`: several runs in one table, for the same task given to several agents or a batch of tasks."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from jackline.cli.output import STATE_MARKS, Column, parse_columns
from jackline.cli.parser import RUN_HELP
from jackline.cli.run_json import run_to_json
from jackline.domain.changes import Changes
from jackline.domain.records import Run
from jackline.domain.review_records import Verdict
from jackline.domain.run_totals import compute_run_cost
from jackline.domain.states import Proof, RunState
from jackline.errors import UsageError
from jackline.formatting import format_count, format_elapsed, format_usd, make_printable, measure_width, shorten_text
from jackline.named import NamedTuple, stored_dict

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ("*",)
_COLUMNS = parse_columns(
    "RUN STATE* AGENT ITERATIONS> PROOF VERDICTS FINDINGS FILES COMMITS> COST> TOKENS> TIME> PROMPT~"
)
_TITLES = [column.title for column in _COLUMNS]
_LEAST_PROMPT = 16
_LEAST_COLUMN = 18  # of a run in a table whose rows and columns are exchanged
_MOST_RUNS = 100
_TREE_CHARS = 8
_NONE = "-"
_OPEN = "open"


class ComparedRun(NamedTuple):
    """One run, with what its records add up to."""

    run: Run
    loss: str  # why its process is gone; empty if it is not lost
    prompt_group: int  # runs with the same prompt have the same number, from 1
    verdicts: tuple[Verdict, ...]  # the newest of each seat
    open_findings: Mapping[str, int]  # by severity
    changes: Changes  # without commits: the files that the proved tree changed
    cost_micros: int | None  # None: the agent reports no cost


def configure(parser: CommandParser) -> None:
    help_text = f"{RUN_HELP}; two or more (default: the runs of the newest batch of this repository)"
    parser.add_argument("runs", metavar="RUN", nargs="*", help=help_text)
    parser.add_argument("--batch", metavar="NAME", help="the runs of this batch (`run --each`, `enqueue --each`)")


def execute(args: Namespace, home: Home, out: Output) -> int:
    compared = load_comparison(home, _find_runs(args, home))
    if out.json:
        out.print_json_lines(_to_json(home, one) for one in compared)
        return 0
    is_one_repository = len({one.run.repository for one in compared}) == 1
    rows = [_format_row(one, compared, is_one_repository=is_one_repository) for one in compared]
    if not out.stdout.is_terminal or _fits_width(rows, out.terminal_width()):
        out.print_table(_COLUMNS, rows)
    else:
        _print_exchanged(rows, out)
    if len({one.prompt_group for one in compared}) > 1:
        out.print_note("the prompts differ: the letter before each marks those that are the same")
    return 0


def _find_runs(args: Namespace, home: Home) -> list[Run]:
    if args.runs and args.batch is not None:
        raise UsageError("name runs or a batch, not both")
    ids = [home.find_id(text) for text in args.runs] if args.runs else _list_batch(args.batch, home)
    ids = list(dict.fromkeys(ids))
    if len(ids) < 2:  # noqa: PLR2004 - two runs are the least to compare
        raise UsageError("there is only one run to compare: name two or more, or --batch NAME")
    if len(ids) > _MOST_RUNS:
        raise UsageError(f"{len(ids)} runs are too many to compare: name {_MOST_RUNS} at most")
    return [home.find(run_id) for run_id in ids]


def _list_batch(name: str | None, home: Home) -> list[str]:
    if name is None:
        name = "" if home.is_new else home.store().queue.find_newest_batch(home.repository_here())
        if not name:
            raise UsageError("no batch in this repository: name two or more runs; see `jackline list`")
    elif not name.strip():
        raise UsageError("--batch is empty: give it a value, or leave it out")
    ids = [] if home.is_new else home.store().queue.list_batch(name)
    if not ids:
        raise UsageError(f"no run has the batch '{name}': see `jackline list`")
    return ids


def load_comparison(home: Home, runs: Sequence[Run]) -> list[ComparedRun]:
    """Read what is compared of each run, in the same order."""
    prompts = list(dict.fromkeys(run.spec.prompt for run in runs))
    lost = home.find_lost([run.id for run in runs if run.status.state is RunState.RUNNING])
    return [_load_run(home, run, lost.get(run.id, ""), prompts.index(run.spec.prompt) + 1) for run in runs]


def _load_run(home: Home, run: Run, loss: str, prompt_group: int) -> ComparedRun:
    store = home.store()
    newest = {verdict.seat: verdict for verdict in store.reviews.list_verdicts(run.id)}
    found = Counter(one.severity for one in store.reviews.list_findings(run.id) if one.state == _OPEN)
    return ComparedRun(
        run=run,
        loss=loss,
        prompt_group=prompt_group,
        verdicts=tuple(newest[seat] for seat in sorted(newest)),
        open_findings=dict(found),
        changes=_load_changes(home, run),
        cost_micros=compute_run_cost(run, store.records.list_turns(run.id)),
    )


def _load_changes(home: Home, run: Run) -> Changes:
    """What the run committed; if it left its work uncommitted, what the proved tree changed since the start."""
    changes = home.store().records.get_changes(run.id)
    if changes.commits or run.status.proof is not Proof.PROVED or not run.status.tree:
        return changes
    from jackline.engine.git import Git
    from jackline.engine.work_trees import WorkTrees

    folder = home.folder(run.id)
    counted = WorkTrees(Git(workspace=folder, env=os.environ), folder).count_changes(run.status.tree)
    if counted is None:
        return changes
    return changes._replace(files_changed=counted.files, insertions=counted.insertions, deletions=counted.deletions)


def _format_row(one: ComparedRun, compared: Sequence[ComparedRun], *, is_one_repository: bool) -> list[str]:
    run, status = one.run, one.run.status
    findings = ", ".join(f"{count} {severity}" for severity, count in sorted(one.open_findings.items()))
    changes, spent = one.changes, status.spent
    prompt = " ".join(run.spec.prompt.split())
    groups = {other.prompt_group for other in compared}
    cells = (
        f"#{run.number}" if is_one_repository else run.id,
        _format_state(one),
        run.agent,
        str(status.iteration),
        _format_proof(run),
        ", ".join(f"{verdict.agent} {verdict.outcome}" for verdict in one.verdicts) or _NONE,
        findings or _NONE,
        f"{changes.files_changed} +{changes.insertions} -{changes.deletions}" if changes.files_changed else _NONE,
        str(len(changes.commits)),
        format_usd(one.cost_micros, spent.usd_estimated) if one.cost_micros is not None else "unknown",
        format_count(spent.tokens),
        format_elapsed(spent.wall_ms),
        f"{_format_letter(one.prompt_group)}: {prompt}" if len(groups) > 1 else prompt,
    )
    return [make_printable(cell) for cell in cells]


def _format_state(one: ComparedRun) -> str:
    status = one.run.status
    if one.loss:
        return f"{STATE_MARKS['lost']} lost"
    why = status.reason or status.failure
    text = f"{status.state}: {why}" if why and status.state is not RunState.SUCCEEDED else str(status.state)
    return f"{STATE_MARKS.get(status.state, '·')} {text}"


def _format_proof(run: Run) -> str:
    if not run.spec.proof:
        return _NONE
    status = run.status
    tree = f" {status.tree[:_TREE_CHARS]}" if status.tree and status.proof is not Proof.UNVERIFIED else ""
    return f"{status.proof}{tree}"


def _format_letter(group: int) -> str:
    """A for the first prompt, then B; AA after Z."""
    letters = ""
    while group:
        group, rest = divmod(group - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _fits_width(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the terminal shows all columns as they are; only the prompt may be shortened."""
    widths = [max(measure_width(row[index]) for row in (_TITLES, *rows)) for index in range(len(_TITLES))]
    widths[-1] = min(widths[-1], _LEAST_PROMPT)
    return sum(widths) + 2 * (len(widths) - 1) <= width


def _print_exchanged(rows: Sequence[Sequence[str]], out: Output) -> None:
    """Print one line per property and one column per run, as many runs side by side as fit."""
    name_width = max(map(len, _TITLES))
    at_once = max(1, (out.terminal_width() - name_width) // (_LEAST_COLUMN + 2))
    for start in range(0, len(rows), at_once):
        part = rows[start : start + at_once]
        room = (out.terminal_width() - name_width) // len(part) - 2
        if start:
            out.print_line()
        columns = [Column(title="RUN"), *(Column(title=row[0], state=True) for row in part)]
        lines = [[title, *(row[index] for row in part)] for index, title in enumerate(_TITLES)]
        shown = [[line[0], *(shorten_text(cell, room) for cell in line[1:])] for line in lines[1:]]
        out.print_table(columns, shown)


def _to_json(home: Home, one: ComparedRun) -> dict[str, Any]:
    status = one.run.status
    return {
        **run_to_json(home, one.run),
        "prompt": one.run.spec.prompt,
        "prompt_group": one.prompt_group,
        "tree": status.tree or None,
        "verdicts": [{"agent": v.agent, "seat": v.seat, "outcome": v.outcome, "tree": v.tree} for v in one.verdicts],
        "open_findings": dict(one.open_findings),
        **stored_dict(one.changes),
        "worked_seconds": status.spent.wall_ms / 1000,
    }
