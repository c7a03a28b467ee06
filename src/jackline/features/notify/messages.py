"""Builds the message of a notice: what a person needs to know on a phone, and the command that answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.inbox import KINDS, find_login, list_run_entries
from jackline.domain.states import PERSON_NEEDED, TERMINAL, Failure, Proof, RunState
from jackline.errors import MessageNotNeeded
from jackline.extensions import call_hook
from jackline.features.notify.channel import LOW, ChannelMessage, find_priority, find_tag
from jackline.formatting import format_command, format_cost, format_duration, make_printable, make_readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.features.notify.channel import Channel
    from jackline.features.notify.delivery_store import OutboxNotice

_MOST_TEXT, _MOST_END = 600, 200  # characters of a call or a question, and how many of them from its end
_MOST_ENTRIES = 3
_ASKING = frozenset(f"run.waiting.{reason}" for reason in PERSON_NEEDED)


def list_labels(notice: OutboxNotice, run: Run | None) -> tuple[str, ...]:
    """The words that channels select notices by."""
    words = [notice.subject, notice.subject.partition(":")[2], *notice.labels.split()]
    if run is not None:
        words += [run.spec.task, run.agent, run.agent.partition("@")[0], os.path.basename(run.spec.workspace)]
        words += run.spec.labels
    return tuple(dict.fromkeys(word for word in words if word))


def build_message(home: Home, notice: OutboxNotice, channel: Channel) -> ChannelMessage:
    """The message of a notice as this channel sends it; MessageNotNeeded if a person has answered it meanwhile."""
    run = home.store().runs.get(notice.run_id) if notice.run_id else None
    if run is not None and notice.kind in _ASKING and not _is_current(run, notice):
        raise MessageNotNeeded("it was answered in the meantime")
    # What is asked must fit below it: a channel cuts the end of a long message.
    lines = [_shorten(notice.body) if notice.kind in _ASKING else notice.body] if notice.body else []
    if run is not None:
        lines += _list_run_lines(home, run, notice)
    redact = home.store().redactor.redact
    message = ChannelMessage(
        id=notice.id,
        kind=notice.kind,
        title=make_printable(redact(notice.title)),
        body=make_readable(redact("\n".join(lines))),
        created_at=notice.created_at,
        subject=notice.subject,
        priority=find_priority(channel, notice.kind, notice.priority or _find_own_priority(run, notice)),
        tags=(find_tag(notice.kind), *(make_printable(word) for word in notice.labels.split())),
        labels=list_labels(notice, run),
    )
    if run is not None:
        message = message._replace(
            agent=run.agent,
            task=run.spec.task,
            run_id=run.id,
            folder=home.folder(run.id),
            tags=(*message.tags, *run.spec.labels),
        )
    for changed in call_hook("channel_message", home, message, channel):
        message = changed
    return message


def _find_own_priority(run: Run | None, notice: OutboxNotice) -> str:
    """A run that waits for a time continues by itself, unless a person could answer it first."""
    if run is None or run.status.wake_at is None or not _is_current(run, notice):
        return ""
    return "" if run.status.reason in PERSON_NEEDED else LOW


def _is_current(run: Run, notice: OutboxNotice) -> bool:
    return run.status.state is RunState.WAITING and notice.kind == f"run.waiting.{run.status.reason}"


def _list_run_lines(home: Home, run: Run, notice: OutboxNotice) -> Iterator[str]:
    status = run.status
    if _is_current(run, notice):
        yield from _list_open_questions(home, run)
    if status.failure is Failure.AUTHENTICATION and (login := find_login(home, run.agent)):
        yield login
    spent, has_ended = status.spent, status.state in TERMINAL
    facts = [format_cost(spent.usd_micros, spent.usd_estimated)] if spent.usd_micros else []
    facts.append(format_duration(spent.wall_ms))
    if status.state is RunState.SUCCEEDED or (has_ended and status.proof is not Proof.UNVERIFIED):
        facts.append(str(status.proof))
    yield " · ".join(facts)
    yield f"agent {run.agent} · task {run.spec.task} · run {run.id} (#{run.number})"
    yield f"folder {run.spec.workspace}"
    yield f"logs {home.folder(run.id)}"


def _shorten(text: str) -> str:
    """The beginning and the end of a long text: what matters may be in either."""
    left_out = len(text) - _MOST_TEXT
    if left_out <= 0:
        return text
    return f"{text[: _MOST_TEXT - _MOST_END]} … {left_out} characters left out … {text[-_MOST_END:]}"


def _list_open_questions(home: Home, run: Run) -> Iterator[str]:
    """What the run needs from a person, and the commands that give it."""
    entries = list_run_entries(home, run)
    for entry in entries[:_MOST_ENTRIES]:
        if entry.call_id:
            yield f"{KINDS[entry.kind]}: {_shorten(entry.text)}"
            words = entry.commands[0][:-1] if entry.commands else ()
            first, *others = entry.answers
            yield (
                f"{format_command('jackline', *words, first)} (or {', '.join(others)})"
                if others
                else (format_command("jackline", *words, first))
            )
        else:
            yield format_command("jackline", *entry.commands[0])
    if len(entries) > _MOST_ENTRIES:
        yield f"… and {len(entries) - _MOST_ENTRIES} more: jackline inbox"
