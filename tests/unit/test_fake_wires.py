"""What every wire of the fake model has in common, asked of each of them; and how a text is cut for a stream."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.fake_model.wire import FakeAnswer, ToolCall, Wire, split_text
from jackline.fake_model.wires import WIRES, load_wires

ANSWER = FakeAnswer(
    "1a2b", "some-model", say="plain-words", calls=(ToolCall("call_1a2b", "some_tool", {"key": "value"}),)
)
NAMES = sorted(WIRES)


@pytest.fixture(params=NAMES)
def wire(request: pytest.FixtureRequest) -> Wire:
    module, _, name = WIRES[request.param].partition(":")
    found: Wire = getattr(import_module(module), name)
    return found


def test_every_wire_is_registered_by_its_name() -> None:
    assert [wire.name for wire in load_wires()] == list(WIRES)


def test_a_stream_is_announced_and_comes_in_several_pieces(wire: Wire) -> None:
    words_only = ANSWER._replace(calls=())
    pieces = list(wire.stream_response(words_only))
    assert len(pieces) >= 3
    assert b"plain-words" not in pieces[0]
    assert all(pieces)


def test_a_call_is_in_the_stream_and_in_the_whole(wire: Wire) -> None:
    for text in (b"".join(wire.stream_response(ANSWER)).decode(), json.dumps(wire.build_response(ANSWER))):
        assert "some_tool" in text
        assert "value" in text
    assert "plain-words" in json.dumps(wire.build_response(ANSWER))


def test_what_it_claims_to_have_used_is_in_both(wire: Wire) -> None:
    answer = ANSWER._replace(tokens_input=10_007, tokens_output=20_011)
    for text in (b"".join(wire.stream_response(answer)).decode(), json.dumps(wire.build_response(answer))):
        assert "10007" in text
        assert "20011" in text


def test_an_error_says_the_words_of_the_script(wire: Wire) -> None:
    for status in (400, 401, 404, 429, 500, 529):
        assert "these words" in json.dumps(wire.build_error(status, "these words", ""))


def test_it_leaves_what_is_not_its_own(wire: Wire) -> None:
    assert not wire.handles("GET", "/nothing/here")
    assert not wire.handles("POST", "/nothing/here")
    assert wire.build_page("GET", "/nothing/here") is None


def test_no_two_wires_want_the_same_request() -> None:
    paths = [
        "/v1/messages",
        "/v1/responses",
        "/v1/chat/completions",
        "/api/chat",
        "/v1beta/models/some-model:generateContent",
        "/v1beta/models/some-model:streamGenerateContent",
    ]
    owners = {path: [wire.name for wire in load_wires() if wire.handles("POST", path)] for path in paths}
    assert {len(names) for names in owners.values()} == {1}, owners
    assert {name for names in owners.values() for name in names} == set(WIRES)


@given(st.text(max_size=200_000))
def test_a_text_is_cut_without_loss(text: str) -> None:
    pieces = list(split_text(text))
    assert "".join(pieces) == text
    assert all(pieces)
    assert len(pieces) >= min(2, len(text))
