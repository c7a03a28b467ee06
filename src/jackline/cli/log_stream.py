"""Prints the transcript of a run or the output of its agent, and what is added while a condition holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.app.run_wait import is_active
from jackline.domain.states import RunState
from jackline.engine.owner_lock import has_waiter
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.transcript_view import TranscriptView
    from jackline.domain.records import Run

    Follow = Callable[[], bool]  # whether more may be added
    Pause = Callable[[float], object]  # waits for some seconds; a true result ends the following

POLL_SECONDS = 0.1


def build_follow(home: Home, run: Run, out: Output, note: Callable[[str], None]) -> Follow:
    """Whether a process works on the run, or starts it from the queue; what a new run waits for is noted once."""
    noted: bool | None = None

    def follow() -> bool:
        nonlocal noted
        now = home.store().runs.get(run.id)
        if now is None or now.status.state is not RunState.QUEUED:
            return is_active(home, run)
        starts = has_waiter(home.folder(run.id)) or home.has_service()
        if starts != noted and not now.status.attempt:
            noted = starts
            note(_format_queued(home, run, out, starts=starts))
        return starts

    return follow


def _format_queued(home: Home, run: Run, out: Output, *, starts: bool) -> str:
    from jackline.cli.queue_text import explain_waits

    why = explain_waits(home, [run.id]).get(run.id)
    queued = f"run {run.id} (#{run.number}) is queued{f', {why}' if why else ''}"
    if starts:
        return f"{queued}: waiting until it starts"
    serve, resume = out.format_command("serve"), out.format_command("resume", run.id)
    return f"{queued}, and no service is running here: {serve} starts it, or {resume}"


def print_transcript(
    home: Home,
    run: Run,
    out: Output,
    turn: int | None = None,
    *,
    follow: Follow | None = None,
    pause: Pause = time.sleep,
) -> None:
    """Print the transcript, or one turn of it; with `follow` also what is added while it is true."""
    from jackline.cli.transcript_view import TranscriptView

    view, seen = TranscriptView(home.store(), run, out, turn, shows_starts=follow is not None), False
    while True:
        goes_on = follow is not None and follow()  # checked before reading: the last entry is not missed
        seen = _print_pages(view, out) or seen
        if not goes_on or out.stdout.is_closed or pause(POLL_SECONDS):
            break
    if turn is not None and not seen:
        raise UsageError(f"run {run.id} has no turn {turn}; see `{out.format_command('show', run.id)}`")
    note_archived(home, run, out)


def _print_pages(view: TranscriptView, out: Output) -> bool:
    """Print all new pages; whether there was one."""
    seen = False
    while not out.stdout.is_closed and (page := view.read_page()):
        seen = True
        if out.json:
            out.print_json_lines(page)
        else:
            out.print_line("\n".join(map(str, page)))
    return seen


def note_archived(home: Home, run: Run, out: Output) -> None:
    """Print where the whole transcript of a run is whose events were archived."""
    if home.is_archived(run):
        whole = f"{home.folder(run.id)}/transcript.jsonl"
        out.print_note(f"the events of run {run.id} were archived; its whole transcript is {whole}")


def print_output(
    home: Home, run: Run, out: Output, stream: str = "stdout", turn: int | None = None, *, follow: Follow | None = None
) -> None:
    """Print what the agent wrote to a stream, unchanged; with `follow` also what is added while it is true."""
    from codecs import getincrementaldecoder

    from jackline.exports import raw

    goes_on = (lambda: not out.stdout.is_closed and follow()) if follow is not None else None
    decoder = getincrementaldecoder("utf-8")("replace")  # characters may span two chunks
    for chunk in raw.read_chunks(home.path, run.id, stream, goes_on, turn):
        if out.json:
            out.print_json({"text": decoder.decode(chunk)})
        else:
            out.stdout.write_bytes(chunk)
        if out.stdout.is_closed:
            break
