"""Writes the retro of a week and enqueues its proposals. It never overwrites the text of a person.

The generated part of the file is between two marks, and the first mark has its digest. If a person edited that part or
removed the marks, the file belongs to the person and is not written again. The data is read in pages: the cost depends
on the week, not on the size of the store.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jackline.clock import wall_ms
from jackline.domain.events import canonical
from jackline.domain.states import WorkStatus
from jackline.errors import ItemConflict, NoItem, Refused, UsageError
from jackline.features.reports import dashboard, retro_page, retro_proposals
from jackline.features.reports.report_queries import ReportQueries
from jackline.features.reports.retro_queries import RetroQueries
from jackline.features.reports.retro_report import (
    LOOK_BACK_MS,
    Week,
    WeekData,
    WeekReport,
    build_report,
    get_current_week,
    get_last_full_week,
    get_week_before,
    parse_week,
)
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import NewItem, build_answer_command
from jackline.files import make_private_folder, write_file
from jackline.formatting import format_command
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.reports.lines import Move, RunLine
    from jackline.features.reports.retro_page import AskedProposal
    from jackline.features.reports.retro_proposals import Proposal
    from jackline.store.store import Store

FOLDER = "retros"
ACTOR = "retro"
_LONGEST = 10_000_000
_ASKED_BEFORE = 4  # weeks in which an open question is not asked again
_BEGIN = "<!-- jackline: generated, {digest}; write above or below, this part is written again -->"
_END = "<!-- jackline: end of the generated part -->"
_GENERATED = re.compile(
    re.escape(_BEGIN).replace(r"\{digest\}", "([0-9a-f]{16})") + "\n(.*?)" + re.escape(_END), re.DOTALL
)
_NOTES = "\n## Notes\n\nText here, or above the generated part, is kept.\n"


class WrittenRetro(NamedTuple):
    """A written retro."""

    path: str
    report: WeekReport
    asked: tuple[AskedProposal, ...]
    kept: str = ""  # the file that a person edited, which was left unchanged


def write_retro(home: Home, name: str | None = None) -> WrittenRetro:
    """Write the retro of a week (default: the last full one)."""
    now = wall_ms()
    chosen = _choose_week(name, now)
    store = home.store()
    report = build_report(chosen, read_week(store, chosen), now)
    asked = tuple(_ask_once(home, store, chosen, one, now) for one in retro_proposals.build_proposals(report))
    if any(one.is_new for one in asked):
        home.notify_change()
    with dashboard.name_failed_command(f"retro weekly --week {chosen.name}"):
        folder = os.path.join(home.path, FOLDER)
        home.create()
        make_private_folder(folder)
        generated = retro_page.render_report(report, asked)
        path, kept = _write_page(os.path.join(folder, chosen.name), f"Retro {chosen.name}", generated)
        return WrittenRetro(path=path, report=report, asked=asked, kept=kept)


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The folder of the retros in a home, and the files in it that a person has not edited."""
    folder = os.path.join(home.path, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) and not os.path.islink(folder) else []
    paths = [os.path.join(folder, name) for name in names]
    files = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    yield folder, "retros", tuple(path for path in files if _is_untouched(path))


def _choose_week(name: str | None, now: int) -> Week:
    if name is None:
        return get_last_full_week(now)
    chosen = parse_week(name)
    if chosen is None:
        raise UsageError(f"--week '{name[:40]}' is not an ISO week: use one such as {get_last_full_week(now).name}")
    if chosen.start > now:
        raise UsageError(f"--week {name} has not begun: the current week is {get_current_week(now).name}")
    return chosen


def _ask_once(home: Home, store: Store, chosen: Week, one: Proposal, now: int) -> AskedProposal:
    """Enqueue a question once; a question that is still open from an earlier week is not asked again."""
    earlier = (get_week_before(chosen, weeks).name for weeks in range(1, _ASKED_BEFORE + 1))
    known = (WorkItems(store).get(retro_proposals.build_item_id(week, one.slug)) for week in earlier)
    item = next(
        (open_item for open_item in known if open_item is not None and open_item.status is WorkStatus.WAITING_HUMAN),
        None,
    )
    is_new = False
    if item is None:
        item_id = retro_proposals.build_item_id(chosen.name, one.slug)
        payload = canonical({"week": chosen.name, **one.subject})
        new = NewItem(id=item_id, kind=retro_proposals.PROPOSAL_KIND, payload=payload, question=one.question)
        try:
            item, is_new = WorkQueue(store).enqueue(new, now, ACTOR)
        except ItemConflict:  # another item has this id: show that item
            item = WorkItems(store).get(item_id)
    if item is None:
        raise NoItem(one.slug)
    program, words, _ = dashboard.describe_invocation(home)
    command = format_command(*program, *build_answer_command(item.id), *words)
    return retro_page.AskedProposal(
        id=item.id,
        question=item.question or one.question,
        status=str(item.status),
        answer=item.answer,
        command=command,
        is_new=is_new,
    )


def _write_page(stem: str, title: str, generated: str) -> tuple[str, str]:
    """Write the file, or another one if a person edited it; the path, and the file that was left unchanged."""
    path, beside = f"{stem}.md", f"{stem}.new.md"
    for candidate in (path, beside):
        old = _read_old(candidate)
        content = build_file(title, generated) if old is None else replace_generated(old, generated)
        if content is not None:
            write_file(candidate, content.encode("utf-8", "replace"))
            return candidate, path if candidate == beside else ""
    raise Refused(f"{path} and {beside} were both edited: rename or remove one of them")


def _read_old(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(_LONGEST)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""  # not written by jackline
    except OSError as error:
        raise Refused(f"{path} cannot be read ({error.strerror}): rename or remove it") from None


def _is_untouched(path: str) -> bool:
    week = os.path.basename(path).removesuffix(".md").removesuffix(".new")
    try:
        return is_untouched(f"Retro {week}", _read_old(path) or "")
    except Refused:
        return False


# the data of a week


def read_week(store: Store, week: Week) -> WeekData:
    """Read the data of a week."""
    runs = list(RetroQueries(store).iter_finished_runs(week.start, week.until))
    alive = list(RetroQueries(store).iter_live_runs(week.until))
    moves = list(RetroQueries(store).iter_state_changes(week.start, week.until))
    before = _read_before(store, week, moves, alive)
    touched = dict.fromkeys([*(move.run_id for move in moves), *(run.id for run in runs), *before])
    return WeekData(
        runs=runs,
        alive=alive,
        moves=[*moves, *_read_following(store, alive, [*before.values(), *moves])],
        before=before,
        turns={run_id: RetroQueries(store).list_turns(run_id) for run_id in touched},
        checks={run_id: RetroQueries(store).list_checks(run_id) for run_id in touched},
        spending=ReportQueries(store).list_spending(week.days[0], week.days[-1]),
        learnings=list(RetroQueries(store).iter_learnings(week.start - LOOK_BACK_MS, week.until)),
    )


def _read_before(store: Store, week: Week, moves: Iterable[Move], alive: Iterable[RunLine]) -> dict[str, Move]:
    """The state of runs when the week began."""
    first: dict[str, Move] = {}
    for move in moves:
        known = first.get(move.run_id, move)
        first[move.run_id] = min(known, move, key=lambda one: one.seq)
    found = {
        run_id: RetroQueries(store).get_last_state_change(run_id, move.seq)
        for run_id, move in first.items()
        if move.seq > 1
    }
    for run in alive:
        if run.id not in first and run.created_at < week.start:
            found[run.id] = RetroQueries(store).get_last_state_change(run.id, until=week.start)
    return {run_id: move for run_id, move in found.items() if move is not None and move.at < week.until}


def _read_following(store: Store, alive: Iterable[RunLine], moves: Iterable[Move]) -> Iterator[Move]:
    """The next change of runs that were only created in the week: it identifies imported runs."""
    last: dict[str, Move] = {}
    for move in moves:
        last[move.run_id] = max(last.get(move.run_id, move), move, key=lambda one: one.seq)
    for run in alive:
        known = last.get(run.id)
        if known is not None and known.kind == "run.created" and run.finished_at is not None:
            following = RetroQueries(store).get_next_state_change(run.id, known.seq)
            if following is not None:
                yield following


# the text of the file


def build_file(title: str, generated: str) -> str:
    """The text of a new file."""
    return f"# {title}\n\n{_build_part(generated)}\n{_NOTES}"


def replace_generated(old: str, generated: str) -> str | None:
    """The file with a new generated part; None if a person edited that part."""
    found = _GENERATED.findall(old)
    if len(found) != 1 or _digest(found[0][1]) != found[0][0]:
        return None
    return _GENERATED.sub(lambda _: _build_part(generated), old)


def is_untouched(title: str, text: str) -> bool:
    """Whether a person added nothing to the file."""
    found = _GENERATED.findall(text)
    return len(found) == 1 and text == build_file(title, found[0][1])


def _build_part(generated: str) -> str:
    text = f"{generated.rstrip()}\n\n".replace("<!--", "<! --")  # foreign text must not contain a mark
    return f"{_BEGIN.format(digest=_digest(text))}\n{text}{_END}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
