"""What a message from a phone means: any text is read without an error, and only a code with an answer is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.features.replies.reply_code import ALPHABET, CODE_LENGTH, PhoneReply, parse_reply, read_verdict

CODE = "K7M3QXP"


@given(st.text() | st.from_regex(r"jackline-reply-1( \S*){0,7}"))
def test_any_text_is_read(text: str) -> None:
    reply = parse_reply(text)
    if reply is not None and not reply.is_button:
        assert len(reply.code) == CODE_LENGTH
        assert set(reply.code) <= set(ALPHABET)
        assert reply.text
    read_verdict(text)


@pytest.mark.parametrize("text", [f"{CODE} yes", f" {CODE.lower()}:  yes\n", "k7m-3qxp, yes", f"{CODE}\nyes"])
def test_a_code_is_read_as_people_write_it(text: str) -> None:
    assert parse_reply(text) == PhoneReply(code=CODE, text="yes")


@pytest.mark.parametrize("text", ["", CODE, f"{CODE} ", f"{CODE}X yes", f"yes {CODE}", "K7M3QX0 yes", "K7M3QX yes"])
def test_what_has_no_code_and_answer_is_no_reply(text: str) -> None:
    assert parse_reply(text) is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Allow", "allow"),
        ("YES!", "allow"),
        ("no.", "deny"),
        ("did  not", "did-not"),
        ("always", ""),
        ("allow all", ""),
    ],
)
def test_the_words_for_a_verdict(text: str, verdict: str) -> None:
    assert read_verdict(text) == verdict
