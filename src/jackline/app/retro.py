"""Writes the retro of a week and enqueues its proposals. It never overwrites the text of a person."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import dashboard
from jackline.clock import wall_ms
from jackline.domain.events import canonical
from jackline.domain.retro import keeping, proposals, text, week
from jackline.domain.retro.report import Report, fold
from jackline.domain.states import WorkStatus
from jackline.domain.work import NewItem, answer_command
from jackline.errors import ItemConflict, NoItem, Refused, UsageError
from jackline.files import make_private_folder, write_file
from jackline.formatting import format_command
from jackline.named import NamedTuple
from jackline.views import retro

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.domain.retro.proposals import Proposal
    from jackline.domain.retro.text import Asked
    from jackline.domain.retro.week import Week
    from jackline.domain.work import WorkItem
    from jackline.store.contract import Store

FOLDER = "retros"
ACTOR = "retro"
_LONGEST = 10_000_000
_ASKED_BEFORE = 4  # weeks in which an open question is not asked again


class Written(NamedTuple):
    """A written retro."""

    path: str
    report: Report
    asked: tuple[Asked, ...]
    kept: str = ""  # the file that a person edited, which was left unchanged


def weekly(home: Home, name: str | None = None) -> Written:
    """Write the retro of a week (default: the last full one)."""
    now = wall_ms()
    chosen = _choose_week(name, now)
    store = home.store()
    report = fold(chosen, retro.read(store, chosen), now)
    asked = tuple(_ask(home, store, chosen, one, now) for one in proposals.proposals(report))
    if any(one.is_new for one in asked):
        home.notify_change()
    with dashboard.name_failed_command(f"retro weekly --week {chosen.name}"):
        return _write(home, report, asked)


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The folder of the retros in a home, and the files in it that a person has not edited."""
    folder = os.path.join(home.path, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) and not os.path.islink(folder) else []
    paths = [os.path.join(folder, name) for name in names]
    files = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    yield folder, "retros", tuple(path for path in files if _is_untouched(path))


def _is_untouched(path: str) -> bool:
    week = os.path.basename(path).removesuffix(".md").removesuffix(".new")
    try:
        return keeping.is_untouched(f"Retro {week}", _read_old(path) or "")
    except Refused:
        return False


def _choose_week(name: str | None, now: int) -> Week:
    if name is None:
        return week.last_full(now)
    chosen = week.parse(name)
    if chosen is None:
        raise UsageError(f"--week '{name[:40]}' is not an ISO week: use one such as {week.last_full(now).name}")
    if chosen.start > now:
        raise UsageError(f"--week {name} has not begun: the current week is {week.current(now).name}")
    return chosen


def _ask(home: Home, store: Store, chosen: Week, one: Proposal, now: int) -> Asked:
    """Enqueue a question once; a question that is still open from an earlier week is not asked again."""
    item, is_new = _find_open(store, chosen, one), False
    if item is None:
        item_id = proposals.item_id(chosen.name, one.slug)
        payload = canonical({"week": chosen.name, **one.subject})
        new = NewItem(item_id, proposals.KIND, payload, question=one.question)
        try:
            item, is_new = store.enqueue(new, now, ACTOR)
        except ItemConflict:  # another item has this id: show that item
            item = store.item(item_id)
    if item is None:
        raise NoItem(one.slug)
    program, words, _ = dashboard.describe_invocation(home)
    command = format_command(*program, *answer_command(item.id), *words)
    return text.Asked(item.id, item.question or one.question, str(item.status), item.answer, command, is_new)


def _find_open(store: Store, chosen: Week, one: Proposal) -> WorkItem | None:
    for weeks in range(1, _ASKED_BEFORE + 1):
        item = store.item(proposals.item_id(week.before(chosen, weeks).name, one.slug))
        if item is not None and item.status is WorkStatus.WAITING_HUMAN:
            return item
    return None


def _write(home: Home, report: Report, asked: tuple[Asked, ...]) -> Written:
    folder, name = os.path.join(home.path, FOLDER), report.week.name
    home.make()
    make_private_folder(folder)
    generated = text.generated(report, asked)
    path, kept = _write_page(os.path.join(folder, name), f"Retro {name}", generated)
    return Written(path, report, asked, kept)


def _write_page(stem: str, title: str, generated: str) -> tuple[str, str]:
    """Write the file, or another one if a person edited it; the path, and the file that was left unchanged."""
    path, beside = f"{stem}.md", f"{stem}.new.md"
    for candidate in (path, beside):
        old = _read_old(candidate)
        content = keeping.fresh(title, generated) if old is None else keeping.renewed(old, generated)
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
