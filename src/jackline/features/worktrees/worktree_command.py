"""`jackline worktree`: list, open, merge and salvage the worktrees of runs, and remove those that are merged."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from jackline.cli.output import parse_columns
from jackline.clock import wall_ms
from jackline.domain.ids import repository_id
from jackline.domain.states import RunState
from jackline.errors import WorktreeRefused
from jackline.features.worktrees import worktree_state as states
from jackline.features.worktrees.worktree_state import WorktreeState, find_tree, inspect_tree, open_trees
from jackline.formatting import format_command, join_some, make_printable, pluralize
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.worktrees.worktree_removal import RemovalPlan
    from jackline.features.worktrees.worktree_salvage import SalvagedWork
    from jackline.features.worktrees.worktree_state import RunTree

INSIDE_RUN = ("list",)
_ACTIONS = {
    "list": "list the worktrees, with their runs and what is not merged",
    "open": "start a shell in a worktree; without a terminal, print its path",
    "merge": "merge the branch of a worktree into the branch that it came from",
    "salvage": "keep the uncommitted and lost work of a worktree as commits",
    "gc": "remove the worktrees whose run has ended and whose work is merged",
}
_COLUMNS = parse_columns("NAME RUN STATE* FOLDER AHEAD BEHIND CHANGED MERGED PATH~")
_NARROW_COLUMNS = parse_columns("NAME RUN STATE* AHEAD CHANGED MERGED~")  # where the others do not fit
_LEAST_PATH = 12
_TREE_HELP = "the name of the worktree, or its run"
_SHORT = 12
_SHOWN_FILES = 5


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    for name in ("open", "merge", "salvage"):
        actions[name].add_argument("tree", metavar="NAME", help=_TREE_HELP)
    for name in ("list", "gc"):
        actions[name].add_argument("--all-repos", action="store_true", help="those of every repository")
    actions["gc"].add_argument(
        "--dry-run", action="store_true", help="only print what would be removed, and why the others stay"
    )
    merge = actions["merge"]
    mode = merge.add_mutually_exclusive_group()
    mode.add_argument("--ff-only", action="store_true", help="only if the target has no other commits")
    mode.add_argument("--no-ff", action="store_true", help="always make a merge commit")
    mode.add_argument("--squash", action="store_true", help="make one commit of the whole branch")
    merge.add_argument("--into", metavar="BRANCH", help="merge into another branch")
    merge.add_argument("--no-proof", action="store_true", help="do not run the proof again on the merged files")
    merge.add_argument("--no-review", action="store_true", help="merge even if findings of reviewers block the run")


def execute(args: Namespace, home: Home, out: Output) -> int:
    here = repository_id(find_repository(os.getcwd()))
    with open_trees(home) as trees:
        match args.action:
            case "list":
                return _list([one for one in trees if args.all_repos or one.run.repository == here], home, out)
            case "gc":
                own = [one for one in trees if args.all_repos or one.run.repository == here]
                return _collect(own, home, out, dry_run=args.dry_run)
        tree = find_tree(home, trees, args.tree, here)
        match args.action:
            case "merge":
                return _merge(tree, args, home, out)
            case "salvage":
                return _salvage(tree, home, out)
    return _open(tree, out)


def _list(trees: list[RunTree], home: Home, out: Output) -> int:
    found = [(tree, inspect_tree(tree)) for tree in trees]
    lost = home.find_lost([tree.run.id for tree in trees if tree.run.status.state is RunState.RUNNING])
    if out.json:
        out.print_json_lines(_build_json(tree, state, is_lost=tree.run.id in lost) for tree, state in found)
        return 0
    if not found:
        out.print_note("no worktrees; `jackline run --worktree` creates one")
        return 0
    rows = [_build_row(tree, state, is_lost=tree.run.id in lost) for tree, state in found]
    # Names are copied into commands, so they must not be cut; the path, which is last, may be.
    columns = zip((column.title for column in _COLUMNS), *rows, strict=True)
    needed = sum(2 + max(map(len, cells)) for cells in list(columns)[:-1]) + _LEAST_PATH
    if out.stdout.is_terminal and out.terminal_width() < needed:
        rows = [[*row[:3], row[4], row[6] or row[3], row[7]] for row in rows]  # nothing is changed in a missing folder
        out.print_table(_NARROW_COLUMNS, rows)
    else:
        out.print_table(_COLUMNS, rows)
    return 0


def _build_row(tree: RunTree, state: WorktreeState, *, is_lost: bool) -> list[str]:
    ahead = f"{state.ahead} ({pluralize(state.files, 'file')})" if state.ahead else "0"
    known = state.folder in {states.READY, states.MISSING, states.DAMAGED} and state.tip
    return [
        tree.row.name,
        f"#{tree.run.number}",
        "lost" if is_lost else str(tree.run.status.state),
        state.folder,
        ahead if known else "",
        str(state.behind) if known else "",
        str(state.changed) if state.folder == states.READY else "",
        make_printable(f"no: on {state.head}" if state.head else state.merged or ("no" if known else "")),
        make_printable(tree.row.path),
    ]


def _build_json(tree: RunTree, state: WorktreeState, *, is_lost: bool) -> dict[str, object]:
    return {
        "name": tree.row.name,
        "run": tree.run.id,
        "number": tree.run.number,
        "state": str(tree.run.status.state),
        "lost": is_lost,
        "repository": tree.git.workspace,
        "path": tree.row.path,
        "branch": tree.row.branch,
        "base": tree.row.base,
        "base_branch": tree.row.base_branch,
        **state._asdict(),
    }


def _open(tree: RunTree, out: Output) -> int:
    path = tree.row.path
    if not os.path.isdir(path):
        if tree.run.status.state not in {RunState.SUCCEEDED, RunState.CANCELLED}:
            raise WorktreeRefused(f"{path} does not exist: `jackline resume {tree.run.id}` creates it")
        keep = f"keep what git has of it with `jackline worktree salvage {tree.row.name}`"
        words = ("git", "-C", tree.git.workspace, "worktree", "add", "-f", "-f", path, tree.row.branch)
        raise WorktreeRefused(f"{path} does not exist: {keep}, then create it again with `{format_command(*words)}`")
    if out.json:
        out.print_json({"path": path, "branch": tree.row.branch})
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        out.print_line(path)
        return 0
    shell = os.environ.get("SHELL") or "/bin/sh"
    os.chdir(path)
    try:
        os.execv(shell, [shell])  # noqa: S606 - the user's own shell, in place of this process
    except OSError as error:
        raise WorktreeRefused(f"{shell} cannot be started ({error.strerror}): cd {path}") from error


def _merge(tree: RunTree, args: Namespace, home: Home, out: Output) -> int:
    from jackline.cli.run_args import require_text
    from jackline.features.worktrees import worktree_merge

    into = require_text(args.into, "--into")
    chosen = {
        worktree_merge.FF_ONLY: args.ff_only,
        worktree_merge.NO_FF: args.no_ff,
        worktree_merge.SQUASH: args.squash,
    }
    mode = next((name for name, is_chosen in chosen.items() if is_chosen), "")
    with _lock_worktrees(tree):
        tree = _read_again(tree, home)
        if not args.no_review:
            _refuse_blocked(tree, home)
        hold_claims = partial(_hold_claims, tree, home)
        result = worktree_merge.merge_tree(tree, mode, into, hold_claims, prove=not args.no_proof)
    if tree.row.merged_at is None or result.how != worktree_merge.UP_TO_DATE:
        home.store(create=True).worktrees.record_merged(
            tree.run.id, worktree_merge.build_merged_fact(tree, result), wall_ms()
        )
    if out.json:
        out.print_json({"name": tree.row.name, "run": tree.run.id, **result._asdict()})
    elif result.how == worktree_merge.UP_TO_DATE:
        out.print_line(f"{result.target} already contains {tree.row.branch}")
    else:
        out.print_line(
            f"merged {tree.row.branch} into {result.target} ({result.how}, {result.proof}): {result.commit[:_SHORT]}"
        )
    return 0


@contextmanager
def _lock_worktrees(tree: RunTree) -> Iterator[None]:
    """Let no other command merge or remove worktrees of this repository. Lock this before the claims of runs."""
    from jackline.files import lock_folder

    folder = os.path.dirname(tree.row.path)
    with ExitStack() as stack:
        if os.path.isdir(folder):
            try:
                stack.enter_context(lock_folder(folder))
            except OSError as error:
                raise WorktreeRefused(f"{folder} cannot be locked: {error.strerror}") from error
        yield


@contextmanager
def _hold_claims(tree: RunTree, home: Home) -> Iterator[dict[str, str]]:
    """Let no run begin to work; the folders of this host in which one works, with its id."""
    from jackline.engine.workspace_guard import list_busy_worktrees, lock_claims

    with lock_claims(home.path, tree.row.path):
        yield list_busy_worktrees(home.store(), home.path)


def _read_again(tree: RunTree, home: Home) -> RunTree:
    """The tree as it is stored now; while the command waited for a lock, its run may have changed."""
    run, row = home.store().runs.get(tree.run.id), home.store().worktrees.get(tree.run.id)
    if run is None or row is None or row.removed_at is not None:
        raise WorktreeRefused("it was removed in the meantime")
    return tree._replace(run=run, row=row)


def _refuse_blocked(tree: RunTree, home: Home) -> None:
    """WorktreeRefused if reviewers block the work. A run that succeeded has passed, whatever one of them still says."""
    from jackline.domain.review import describe_blocking, find_blocking

    state, findings = tree.run.status.state, home.store().reviews.list_findings(tree.run.id)
    blocking = find_blocking(findings)
    if state is RunState.SUCCEEDED or not blocking:
        return
    dismiss = f"`jackline findings {tree.run.id} --dismiss {blocking[0].id} --reason WHY` drops one, and "
    how = f"{'' if state is RunState.CANCELLED else dismiss}--no-review merges anyway"
    raise WorktreeRefused(f"reviewers block run {tree.run.id}: {describe_blocking(findings)}; {how}")


def _salvage(tree: RunTree, home: Home, out: Output) -> int:
    from jackline.features.worktrees.worktree_salvage import salvage_tree

    found = salvage_tree(tree, home.store().records.get_changes(tree.run.id).ids)
    if out.json:
        out.print_json({"name": tree.row.name, "run": tree.run.id, **found._asdict()})
        return 0
    for line in _describe_salvage(tree, found):
        out.print_line(make_printable(line))
    return 0


def _describe_salvage(tree: RunTree, found: SalvagedWork) -> list[str]:
    lines = [f"kept at {ref}; get it back with `git switch -c NAME {ref}`" for ref in found.refs]
    if not found.refs and not found.nested:
        lines.append("nothing is uncommitted")
    if found.branch:
        where = f"also in {found.merged}" if found.merged else "not merged"
        lines.append(f"its commits are on {found.branch} ({where})")
    elif found.merged:
        lines.append(f"its branch {tree.row.branch} is gone, and its last known commit is in {found.merged}")
    elif not found.refs:
        lines.append(f"its branch {tree.row.branch} is gone, and none of its commits is known")
    if found.nested:
        lines.append(f"not kept, because they are repositories of their own: {join_some(found.nested, _SHOWN_FILES)}")
    if found.ignored:
        lines.append(f"not kept, because git ignores them: {join_some(found.ignored, _SHOWN_FILES)}")
    return lines


def _remove(tree: RunTree, home: Home, broken: dict[str, WorktreeRefused], *, dry_run: bool) -> RemovalPlan:
    """Remove one worktree, if that is safe now; meanwhile no run can start to work in it, and nothing merges it."""
    from jackline.engine.workspace_guard import list_busy_worktrees
    from jackline.features.worktrees.worktree_removal import plan_removal, remove_worktree

    if error := broken.get(os.path.dirname(tree.row.path)):
        raise error
    commits = home.store().records.get_changes(tree.run.id).ids
    if dry_run:
        return plan_removal(_read_again(tree, home), list_busy_worktrees(home.store(), home.path), commits)
    with _lock_worktrees(tree), _hold_claims(tree, home) as busy:
        plan = plan_removal(_read_again(tree, home), busy, commits)
        remove_worktree(plan, home.store(create=True), wall_ms())
    return plan


def _repair(trees: list[RunTree]) -> dict[str, WorktreeRefused]:
    """Finish or undo what was cut off; the folders of worktrees where that is not possible, and why."""
    from jackline.features.worktrees.worktree_merge import repair_merges
    from jackline.features.worktrees.worktree_removal import repair_removals

    broken = {}
    for folder, tree in {os.path.dirname(one.row.path): one for one in trees}.items():
        try:
            with _lock_worktrees(tree):
                repair_merges(tree.git, folder)
                repair_removals(tree.git, folder)
        except WorktreeRefused as error:
            broken[folder] = error
        except OSError as error:
            broken[folder] = WorktreeRefused(f"{error.filename or folder}: {error.strerror}")
    return broken


def _collect(trees: list[RunTree], home: Home, out: Output, *, dry_run: bool) -> int:
    broken = {} if dry_run else _repair(trees)
    for tree in trees:
        row: dict[str, object] = {"name": tree.row.name, "run": tree.run.id, "path": tree.row.path}
        try:
            plan = _remove(tree, home, broken, dry_run=dry_run)
        except WorktreeRefused as error:
            row |= {"removed": False, "reason": str(error)}
            text = f"{tree.row.name} stays: {error}"
        else:
            row |= {"removed": not dry_run, "reason": f"in {plan.merged}" if plan.tip else plan.merged}
            text = f"{'would remove' if dry_run else 'removed'} {tree.row.name}: {row['reason']}"
            if plan.keeps_commits:
                text += f"; its commits stay at refs/jackline/{tree.run.id}/branch"
            if plan.discarded:
                count = pluralize(len(plan.discarded), "discarded commit")
                text += f"; refs at refs/jackline/{tree.run.id}/ keep {count} of its reflog"
        if out.json:
            out.print_json(row)
        else:
            out.print_line(make_printable(text))
    return 1 if broken else 0
