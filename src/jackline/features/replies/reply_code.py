"""One-time codes, the signed text of a button, and the parser of replies. Pure.

A typed reply is `CODE text`; the code is its proof. The text that a button sends is signed, too: it binds the verdict
to this home, the run, the call with its input, and the time until which it counts.
"""

from __future__ import annotations

import re

from jackline.digests import compare_digest, hash_text, sign_text
from jackline.domain.events import canonical
from jackline.named import NamedTuple, stored_as

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # without look-alikes: 0 O, 1 I L, U V
CODE_LENGTH = 7
OFF, DENY_ONLY, ALL = MODES = ("off", "deny", "all")
DENY = "deny"
ON_APPROVAL = ("allow", DENY)  # `always` needs a terminal
_VERDICTS = (*ON_APPROVAL, "happened", "did-not", "retry", "skip")
_SYNONYMS = {"yes": "allow", "approve": "allow", "no": "deny", "refuse": "deny", "did not": "did-not"}
_BUTTON = "jackline-reply-1"
_BUTTON_FIELDS = 6
_TYPED = re.compile(r"\s*([0-9A-Za-z-]+)[\s:,]+(\S.*)", re.DOTALL)
_MOST_TEXT = 4000
_DIGITS = 18


@stored_as("code channel notice_id run_id call_id item_id input_digest created_at expires_at used_at verdict")
class ReplyCode(NamedTuple):
    """The subject of a code: a call, or a question of a work item. The code itself is stored as a digest only."""

    code_digest: str
    channel: str
    notice_id: str
    run_id: str
    call_id: str
    item_id: str
    input_digest: str  # of the call's input, also marked as cut, or of the question
    created_at: int
    expires_at: int
    used_at: int | None = None
    verdict: str = ""


class PhoneReply(NamedTuple):
    """What a message of the reply topic says."""

    code: str
    text: str  # the verdict, or the answer to a question
    instance: str = ""  # of a button: the home that made it
    expires_at: int = 0
    signature: str = ""

    @property
    def is_button(self) -> bool:
        """Whether a button sent it."""
        return bool(self.signature)


def digest_code(secret: bytes, channel: str, code: str) -> str:
    """The digest of a code, as it is stored."""
    return sign_text(secret, canonical(["reply code", channel, code]))


def sign_button(secret: bytes, instance: str, code: ReplyCode, verdict: str) -> str:
    """The signature of a button."""
    fields = [code.channel, code.run_id, code.call_id, code.item_id, code.input_digest, code.code_digest]
    return sign_text(secret, canonical(["reply button", instance, *fields, verdict, code.expires_at]))


def is_signed(secret: bytes, instance: str, code: ReplyCode, reply: PhoneReply) -> bool:
    """Whether a button of this home sent the reply, unchanged."""
    expected = sign_button(secret, instance, code, reply.text)
    return reply.expires_at == code.expires_at and compare_digest(expected, reply.signature)


def format_button(instance: str, code: str, verdict: str, expires_at: int, signature: str) -> str:
    """The text that a button sends."""
    return " ".join((_BUTTON, instance, code, verdict, str(expires_at), signature))


def parse_reply(text: str) -> PhoneReply | None:
    """What a message says; None if it has no code and answer."""
    words = text.split()
    if words[:1] == [_BUTTON]:
        return _parse_button(words)
    found = _TYPED.fullmatch(text[:_MOST_TEXT].rstrip())
    if found is None:
        return None
    code = found[1].replace("-", "").upper()
    if len(code) != CODE_LENGTH or not set(code) <= set(ALPHABET):
        return None
    return PhoneReply(code=code, text=found[2])


def _parse_button(words: list[str]) -> PhoneReply | None:
    if len(words) != _BUTTON_FIELDS:
        return None
    _, instance, code, verdict, expires_at, signature = words
    if not (expires_at.isascii() and expires_at.isdigit() and len(expires_at) <= _DIGITS and signature.isascii()):
        return None
    return PhoneReply(code=code, text=verdict, instance=instance, expires_at=int(expires_at), signature=signature)


def read_verdict(text: str) -> str:
    """The verdict that a text means; empty if it is none that a phone may give."""
    word = " ".join(text.lower().strip(" .!\n\t").split())
    word = _SYNONYMS.get(word, word)
    return word if word in _VERDICTS else ""


def may_answer(mode: str, verdict: str) -> bool:
    """Whether a channel in this mode takes this verdict about a call."""
    return mode == ALL or (mode == DENY_ONLY and verdict == DENY)


def digest_cut_input(input_digest: str) -> str:
    """The digest of an input that a code covers if its notice shows only a part of the call: it cannot approve."""
    return hash_text(f"cut {input_digest}")


def digest_question(question: str) -> str:
    """The digest of a question, as a code covers it."""
    return hash_text(question)
