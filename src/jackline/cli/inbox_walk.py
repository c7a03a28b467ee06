"""Walks through the inbox at a terminal: one question per entry. Answers are stored as they are typed.

At the end, the runs that can continue and that no living process waits for are resumed in the background.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.cli.inbox_text import count_entries, format_body, format_heading
from jackline.cli.prompts import LATER, AskEnd, Question, ask_question, build_question, find_run_change
from jackline.clock import wall_ms
from jackline.domain.amendment import LIMIT_SETTINGS, Amendment, suggest_totals
from jackline.domain.limits import count_units
from jackline.domain.states import RunState
from jackline.errors import JacklineError
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from jackline.app.background import BackgroundStart
    from jackline.app.home import Home
    from jackline.app.inbox import InboxEntry
    from jackline.cli.output import Output
    from jackline.domain.records import Run

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})
_HELP = {
    inbox.BUDGET: "type the new total, not an addition; 0: no limit. The run continues with it. Enter: later",
    inbox.LOST: "y resumes the run in the background: its effects are checked first. Enter leaves it as it is",
    inbox.LOG_IN: "log in with the agent's own program in another terminal, then y resumes the run. Enter: later",
    inbox.STOPPED: "y resumes the run in the background. Enter leaves it as it is",
    inbox.REVIEW: "y resumes the run: the agent gets the findings, its reviewers new rounds. To drop a finding, use "
    "`jackline findings` with --dismiss before. Enter leaves it as it is",
    inbox.ANSWERED: "y resumes the run in the background. Enter leaves it as it is",
    inbox.CANNOT_START: "remove the cause: the service tries again. y resumes the run without it. Enter: later",
}


class InboxWalk:
    """One walk; remembers which runs a person wants to continue."""

    def __init__(self, home: Home, out: Output) -> None:
        self._home, self._out = home, out
        self._wanted: dict[str, None] = {}  # ids of runs, in the order of the answers

    def walk(self, entries: list[InboxEntry]) -> None:
        """Ask about each entry, until the person leaves."""
        self._out.print_note(count_entries(entries))
        for number, entry in enumerate(entries, 1):
            self._out.print_note("")
            self._out.print_note(f"{number}/{len(entries)} {format_heading(entry, wall_ms())}")
            for line in format_body(entry):
                self._out.print_note(f"  {line}")
            question = self._build_question(entry)
            if question is None:  # answered or taken up since the inbox was read
                self._out.print_note("this has changed in the meantime")
                continue
            end = ask_question(question, self._out)
            if end is AskEnd.LEFT:
                return
            run = self._home.store().runs.get(entry.run_id) if entry.run_id else None
            if end is AskEnd.ANSWERED and run is not None and run.status.state is RunState.QUEUED:
                self._wanted[run.id] = None

    def resume(self) -> int:
        """Resume what can continue and has no living process; 0, or the exit code of a failed start."""
        from jackline.app.background import group_by_worktree, needs_process, resume_in_background

        open_runs = {entry.run_id for entry in inbox.list_entries(self._home) if entry.kind in inbox.BLOCKING}
        ready = []
        for run_id in self._wanted:
            run = self._home.store().runs.get(run_id)
            if run is None or run_id in open_runs:
                continue
            if needs_process(self._home, run):
                ready.append(run)
            else:
                self._out.print_note(f"run {run_id}: a process that waits for it continues it")
        started = [(runs, resume_in_background(self._home, runs)) for runs in group_by_worktree(ready)]
        for runs, start in started:
            self._report_start(runs, start)
        return JacklineError.exit_code if any(start.problem for _, start in started) else 0

    def _report_start(self, runs: list[Run], start: BackgroundStart) -> None:
        first = runs[0].id
        if start.problem:
            problem, resume = make_printable(start.problem), self._out.format_command("resume", first)
            self._out.print_note(f"run {first} could not be resumed: {problem}; try: {resume}")
            return
        follow = self._out.format_command("logs", "-f", first)
        self._out.print_note(f"run {first} continues in the background (pid {start.pid}); follow: {follow}")
        for run in runs[1:]:
            self._out.print_note(f"run {run.id} continues in the background after it, in the same worktree")

    # what is asked

    def _build_question(self, entry: InboxEntry) -> Question | None:
        run = self._home.store().runs.get(entry.run_id) if entry.run_id else None
        if entry.item_id or entry.call_id:
            return build_question(self._home, entry, None if entry.item_id else run)
        if run is None:
            return Question(f"[{LATER}] ", _HELP[entry.kind], lambda _: "an agent's login has no answer here")
        setting = suggest_totals(run.spec.limits, run.status.spent) if entry.kind == inbox.BUDGET else ()
        question = self._build_budget_question(run, *setting[0]) if setting else self._build_resume_question(entry, run)
        return question._replace(find_change=partial(find_run_change, self._home, run))

    def _build_resume_question(self, entry: InboxEntry, run: Run) -> Question:
        prompt = "Logged in: resume it?" if entry.kind == inbox.LOG_IN else "Resume it?"
        help_text = _HELP[inbox.STOPPED if entry.kind == inbox.BUDGET else entry.kind]
        return Question(f"{prompt} [y, {LATER}] ", help_text, lambda text: self._answer_resume(run, text.lower()))

    def _build_budget_question(self, run: Run, setting: str, suggested: str) -> Question:
        return Question(
            f"New total of --{setting.replace('_', '-')}, such as {suggested} [{LATER}]: ",
            _HELP[inbox.BUDGET],
            lambda text: self._answer_budget(run, setting, text),
        )

    # what is stored

    def _answer_resume(self, run: Run, typed: str) -> str:
        if typed in _NO:
            return "left as it is"
        if typed not in _YES:
            raise JacklineError(f"'{typed[:40]}' is not a valid answer; use y, or Enter")
        self._wanted[run.id] = None
        return "it is resumed after the last question"

    def _answer_budget(self, run: Run, setting: str, typed: str) -> str:
        field, unit = next((field, unit) for field, (name, unit) in LIMIT_SETTINGS.items() if name == setting)
        try:
            total = count_units(float(typed.removeprefix("$")), unit)
        except (ValueError, OverflowError):
            raise JacklineError(f"'{typed[:40]}' is not a number") from None
        if total < 0:
            raise JacklineError(f"'{typed[:40]}' is negative")
        now = self._home.amend(run, Amendment(limits={field: total or None}))
        more = suggest_totals(now.spec.limits, now.status.spent)
        if more:
            return f"stored; --{more[0][0].replace('_', '-')} is spent, too: {self._out.format_command('inbox')}"
        self._wanted[run.id] = None
        return "stored"


def walk_inbox(home: Home, entries: list[InboxEntry], out: Output) -> int:
    """Ask about each entry, then resume what can continue."""
    walk = InboxWalk(home, out)
    walk.walk(entries)
    return walk.resume()
