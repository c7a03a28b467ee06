"""Adds codes and buttons to the messages of a channel that takes replies."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.inbox import QUESTION, InboxEntry, list_agent_questions, list_run_entries
from jackline.domain.states import RunState, WorkStatus
from jackline.features.notify.channel import MessageAction, cut_text
from jackline.features.replies.reply_channel import build_button_headers, find_reply_address, find_reply_settings
from jackline.features.replies.reply_code import (
    ALPHABET,
    CODE_LENGTH,
    DENY_ONLY,
    ReplyCode,
    digest_code,
    digest_cut_input,
    digest_question,
    format_button,
    may_answer,
    sign_button,
)
from jackline.features.replies.reply_store import ReplyStore, digest_input
from jackline.features.work.item_queries import WorkItems
from jackline.formatting import make_printable, make_readable
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.app.home import Home
    from jackline.features.notify.channel import Channel, ChannelMessage
    from jackline.features.replies.reply_channel import ReplySettings

_WAITING = "run.waiting."
_WORK = "work:"
_MOST_CODES = 5
_MOST_BUTTONS = 3
_MOST_BYTES, _MOST_BYTES_BESIDE_BUTTONS = 3_600, 2_800  # so that the codes at its end are never cut off
_MOST_SHOWN = 80
_LABELS = {
    "allow": "Allow",
    "deny": "Deny",
    "happened": "It happened",
    "did-not": "It did not",
    "skip": "Skip",
}


class _Offer(NamedTuple):
    """Something that can be answered, with its code in clear: it is in the message only."""

    code: str
    stored: ReplyCode
    text: str
    answers: tuple[str, ...]  # none: the answer is a text
    is_cut: bool = False  # the message shows only a part of the call

    @property
    def can_answer(self) -> bool:
        """Whether any answer is left."""
        return bool(self.answers) or not self.is_cut


def add_reply_codes(home: Home, message: ChannelMessage, channel: Channel) -> ChannelMessage:
    """The message with a code for each thing that it asks, and buttons if it is one call."""
    settings = find_reply_settings(channel)
    if settings is None:
        return message
    offers = _build_offers(home, message, settings)
    if not offers:
        return message
    replies = ReplyStore(home.store())
    if obstacle := _find_obstacle(home, replies, channel.name):
        return message._replace(body=f"{message.body}\n\n{obstacle}")
    body = _fit(message, offers)
    offers = [_restrict_cut_call(home, offer, body) for offer in offers]
    replies.add_codes((offer.stored for offer in offers if offer.can_answer), clock.wall_ms())
    message = message._replace(body="\n".join((body, "", *_format_offers(offers))))
    if len(offers) == 1:
        address, headers = find_reply_address(channel, os.environ), build_button_headers(channel, os.environ)
        message = message._replace(actions=(*message.actions, *_build_buttons(home, offers[0], address, headers)))
    return message


def _fit(message: ChannelMessage, offers: Sequence[_Offer]) -> str:
    """The text of the message as far as it fits beside the codes."""
    most = _MOST_BYTES if len(offers) > 1 else _MOST_BYTES_BESIDE_BUTTONS
    return cut_text(message.body, most - len("\n".join(_format_offers(offers)).encode()))


def _restrict_cut_call(home: Home, offer: _Offer, body: str) -> _Offer:
    """The offer, without approval if the message does not show the whole call."""
    if not offer.stored.call_id or make_readable(home.store().redactor.redact(offer.text)) in body:
        return offer
    stored = offer.stored._replace(input_digest=digest_cut_input(offer.stored.input_digest))
    answers = tuple(one for one in offer.answers if may_answer(DENY_ONLY, one))
    return offer._replace(stored=stored, answers=answers, is_cut=True)


def _find_obstacle(home: Home, replies: ReplyStore, channel: str) -> str:
    """Why a reply would not be taken now; empty if it would."""
    from jackline.app.own_files import find_unconfirmed

    state = replies.get_channel(channel)
    if state is not None and state.closed_at:
        return f"Replies are switched off after wrong codes: jackline channel reopen {channel}"
    if find_unconfirmed(home):  # an agent of the same user may have written another topic into them
        return "No replies: your settings changed while a run was active. Confirm the change with `jackline trust`."
    return ""


def _build_offers(home: Home, message: ChannelMessage, settings: ReplySettings) -> list[_Offer]:
    offers: list[_Offer] = []
    for entry in _list_entries(home, message):
        answers = tuple(answer for answer in entry.answers if may_answer(settings.mode, answer))
        if (answers or entry.kind == QUESTION) and len(offers) < _MOST_CODES:
            offers.append(_build_offer(home, message, settings, entry, answers))
    return offers


def _list_entries(home: Home, message: ChannelMessage) -> list[InboxEntry]:
    """What a message asks that is still open."""
    if message.subject.startswith(_WORK):
        item = WorkItems(home.store()).get(message.subject.removeprefix(_WORK))
        if item is None or item.status is not WorkStatus.WAITING_HUMAN:
            return []
        return [InboxEntry(kind=QUESTION, since=0, text=item.question, commands=(), item_id=item.id)]
    run = home.store().runs.get(message.run_id) if message.kind.startswith(_WAITING) else None
    if run is None or run.status.state is not RunState.WAITING:
        return []
    calls = [entry for entry in list_run_entries(home, run) if entry.call_id]
    return [*calls, *list_agent_questions(home, run)]


def _build_offer(
    home: Home, message: ChannelMessage, settings: ReplySettings, entry: InboxEntry, answers: tuple[str, ...]
) -> _Offer:
    store, at = home.store(), clock.wall_ms()
    call = store.calls.get(entry.run_id, entry.call_id) if entry.call_id else None
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    stored = ReplyCode(
        code_digest=digest_code(store.secret, settings.channel, code),
        channel=settings.channel,
        notice_id=message.id,
        run_id=entry.run_id,
        call_id=entry.call_id,
        item_id=entry.item_id,
        input_digest=digest_question(entry.text) if call is None else digest_input(call),
        created_at=at,
        expires_at=at + settings.valid_ms,
    )
    return _Offer(code=code, stored=stored, text=entry.text, answers=answers)


def _format_offers(offers: Sequence[_Offer]) -> Iterator[str]:
    for offer in offers:
        about = f" — {make_printable(offer.text)[:_MOST_SHOWN]}" if len(offers) > 1 else ""
        answer = " | ".join(offer.answers) or "and your answer"
        if offer.can_answer:
            yield f"To answer, write to the reply topic: {offer.code} {answer}{about}"
        if offer.is_cut:
            what = "approve" if offer.answers else "answer"
            yield f"The call is too long for this message: {what} it where you can read all of it."


def _build_buttons(home: Home, offer: _Offer, address: str, headers: Mapping[str, str]) -> list[MessageAction]:
    secret, instance = home.store().secret, ReplyStore(home.store()).instance
    buttons = []
    for verdict in (one for one in offer.answers if one in _LABELS):
        signature = sign_button(secret, instance, offer.stored, verdict)
        buttons.append(
            MessageAction(
                label=_LABELS[verdict],
                url=address,
                body=format_button(instance, offer.code, verdict, offer.stored.expires_at, signature),
                headers=headers,
            )
        )
    return buttons[:_MOST_BUTTONS]
