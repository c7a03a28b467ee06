"""`jackline case hook`: install the learning gate as a git hook, and answer hooks of git and of agents.

Agents call it when their context is compacted: it reminds them of their active case, and prints nothing without one.
Apart from the git hook itself it changes nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from jackline.errors import JacklineError
from jackline.features.cases.case_model import HypothesisStatus
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.adapter import Compaction
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.cases.handoff import Handoff

SUMMARY = "block commits until every learning is resolved: install, remove or show the git hook"
_LONGEST_HOOK_REQUEST = 1_000_000
_AFTER = "You keep a case (a notebook) with `jackline case`. This is its current state; trust it more than your memory:"
_BEFORE = (
    "jackline keeps the case {case} with its hypotheses, evidence, commands and learnings, and prints it again after "
    "the summary: do not repeat it. Keep only what is not in it yet, and the next step."
)
_MOST_REQUEST = 1_000
_SIZES = ((100, 400), (20, 300), (20, 150), (10, 150), (10, 80), (5, 60))  # how many entries, and characters of each
_CUT = "\n… (`jackline case handoff` prints the rest)"


def configure(parser: CommandParser) -> None:
    """Add the arguments of `case hook`; hooks call the last two actions."""
    actions = ("install", "remove", "status", "pre-commit", "claude")
    text = "install, remove, status; pre-commit and claude are called by hooks"
    parser.add_argument("hook", metavar="ACTION", choices=actions, help=text)


def execute(args: Namespace, home: Home, out: Output) -> int:
    """Run an action; returns the exit code."""
    match args.hook:
        case "install" | "remove" | "status":
            return _manage_hook(args.hook, out)
        case "pre-commit":
            return _check_commit(home, out)
        case agent:
            return _remind(agent, home, out)


def _manage_hook(action: str, out: Output) -> int:
    from jackline.features.cases import git_hook

    changed = False
    if action == "status":
        hook = git_hook.read_hook_status(os.getcwd(), os.environ)
    else:
        do = git_hook.install_hook if action == "install" else git_hook.remove_hook
        hook, changed = do(os.getcwd(), os.environ)
    if out.json:
        out.print_json({"path": hook.path, "state": hook.state, "changed": changed})
    else:
        out.print_line(f"{hook.state}: {make_printable(hook.path)}")
    return 0


def _check_commit(home: Home, out: Output) -> int:
    """Block a commit only for unresolved learnings; a failure of jackline itself is reported and does not block."""
    from jackline.features.cases.git_hook import UNRESOLVED, find_blocking_learnings

    try:
        case_id, lines = find_blocking_learnings(home, os.getcwd(), os.environ)
    except JacklineError as error:
        out.print_note(f"jackline: {make_printable(str(error))}; the learnings were not checked")
        return 0
    if not lines:
        return 0
    for line in lines:
        out.print_note(f"jackline: {make_printable(line)}")
    count = f"{len(lines)} learnings of case {case_id} are" if len(lines) > 1 else f"a learning of case {case_id} is"
    reason = "`jackline case learning amend` changes it or gives a reason"
    out.print_note(f"jackline: {count} unresolved: stage the file ({reason}), or `git commit --no-verify`")
    return UNRESOLVED


def _remind(agent: str, home: Home, out: Output) -> int:
    """Remind an agent of its case after a compaction; a failure never disturbs the session."""
    try:
        text = build_reminder(home, agent, b"" if sys.stdin is None else sys.stdin.buffer.read(_LONGEST_HOOK_REQUEST))
    except JacklineError as error:
        out.print_note(f"jackline: {make_printable(str(error))}")
        return 0
    if text:
        out.print_line(text)
    return 0


def build_reminder(home: Home, agent: str, request: bytes) -> str:
    """The answer to an agent's hook; empty without an active case, or for an unknown request."""
    from jackline.app import agents
    from jackline.domain.adapter import CompactionMoment
    from jackline.features.cases import location

    try:
        fields = json.loads(request)
    except (ValueError, RecursionError):
        fields = {}
    compaction: Compaction | None = getattr(agents.load_adapter(home.config, agent), "compaction", None)
    moment = None if compaction is None else compaction.parse_moment(fields if isinstance(fields, dict) else {})
    case = None if moment is None else location.find_active(home)
    if compaction is None or moment is None or case is None:
        return ""
    text = (
        _BEFORE.format(case=case.id)
        if moment is CompactionMoment.BEFORE
        else _render_handoff(home, case, compaction.most_bytes)
    )
    return compaction.render_reminder(moment, text)


def _render_handoff(home: Home, case: Case, most: int) -> str:
    from jackline.features.cases.handoff import build_handoff, render_handoff

    found = build_handoff(home, case_id=case.id)
    # The agent had the whole request in its prompt, and it may be longer than the limit.
    found = found._replace(case=case._replace(request=cut_to_bytes(case.request, _MOST_REQUEST)))
    text = ""
    for entries, letters in _SIZES:
        text = f"{_AFTER}\n\n{render_handoff(_limit_handoff(found, entries, letters))}"
        if len(text.encode()) <= most:
            break
    return cut_to_bytes(text, most)


def _limit_handoff(handoff: Handoff, entries: int, letters: int) -> Handoff:
    """The newest entries, each cut; of the hypotheses the newest open and the newest settled ones."""
    decided = [one for one in handoff.hypotheses if one.status != HypothesisStatus.OPEN]
    kept = {one.id for one in (*handoff.still_open[-entries:], *decided[-entries:])}
    return handoff._replace(
        hypotheses=[_cut_entry(one, letters) for one in handoff.hypotheses if one.id in kept],
        evidence=[_cut_entry(one, letters) for one in handoff.evidence[-entries:]],
        commands=[_cut_entry(one, letters) for one in handoff.commands[-entries:]],
        learnings=[_cut_entry(one, letters) for one in handoff.learnings[-entries:]],
        unresolved=[one._replace(entry=_cut_entry(one.entry, letters)) for one in handoff.unresolved[-entries:]],
        dirty=handoff.dirty[-entries:],
    )


def _cut_entry(entry: CaseEntry, letters: int) -> CaseEntry:
    return entry if len(entry.text) <= letters else entry._replace(text=f"{entry.text[:letters]}…")


def cut_to_bytes(text: str, most: int) -> str:
    """The text, cut at the end of a line to a number of bytes."""
    if len(text.encode()) <= most:
        return text
    kept = text.encode()[: most - len(_CUT.encode())].decode("utf-8", "ignore")
    return (kept.rpartition("\n")[0] or kept) + _CUT
