"""Names that others gave to an effect, found in what a tool printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.external import choose_primary_id, find_external_ids, is_host_value
from jackline.domain.states import CallClass
from jackline.policy.rules import Rule

PLAIN = Rule("x", "x", CallClass.EFFECT)


def rule(*patterns: tuple[str, str]) -> Rule:
    return PLAIN._replace(external=patterns)


PUSH = """\
remote: Resolving deltas: 100% (2/2), completed with 2 local objects.
remote: Create a pull request for 'topic' on GitHub by visiting:
remote:      https://github.com/o/r/pull/new/topic
To https://github.com/o/r.git
   1a2b3c4..5d6e7f8  topic -> topic
"""


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("https://github.com/o/r/pull/7\n", {"url": "https://github.com/o/r/pull/7", "pr": "7"}),
        (
            "see https://gitlab.com/g/p/-/merge_requests/12.",
            {"url": "https://gitlab.com/g/p/-/merge_requests/12", "pr": "12"},
        ),
        ("https://github.com/o/r/issues/3", {"url": "https://github.com/o/r/issues/3", "issue": "3"}),
        (PUSH, {"commit": "5d6e7f8", "url": "https://github.com/o/r.git"}),
        (" + 1a2b3c4...5d6e7f8 main -> main (forced update)", {"commit": "5d6e7f8"}),
        ('{"Message-Id": "<a.b@example.org>"}', {"message": "<a.b@example.org>"}),
        ("MessageID=<1@x>", {"message": "<1@x>"}),
        ("first https://a.example/1 then (https://b.example/2)", {"url": "https://b.example/2"}),
        ("https://ada:secret@example.org/x", {"url": "https://example.org/x"}),
        ("nothing of the kind", {}),
        ("", {}),
    ],
)
def test_what_is_found_without_a_pattern_of_the_rule(output: str, names: dict[str, str]) -> None:
    assert find_external_ids(PLAIN, output) == names


def test_the_rules_own_pattern_comes_first_and_may_have_a_group() -> None:
    own = rule(("release", r"published (\S+)"), ("url", r"at (\S+)"))
    names = find_external_ids(own, "published v1\npublished v2 at ftp.example.org\nhttps://example.org/log")
    assert names == {"release": "v2", "url": "ftp.example.org"}
    assert choose_primary_id(names) == "v2"


def test_a_pattern_without_a_group_gives_the_whole_match() -> None:
    assert find_external_ids(rule(("ticket", r"ABC-\d+")), "ABC-1 and ABC-22")["ticket"] == "ABC-22"


def test_a_group_that_took_no_part_is_no_find() -> None:
    assert find_external_ids(rule(("id", r"id(?:=(\d+))?")), "id=4\nid") == {"id": "4"}


def test_a_pattern_that_cannot_be_read_is_passed_over() -> None:
    assert find_external_ids(rule(("id", "("), ("n", r"\d+")), "12") == {"n": "12"}


def test_the_commit_of_a_push_is_a_better_name_than_its_address() -> None:
    assert choose_primary_id(find_external_ids(PLAIN, PUSH)) == "5d6e7f8"
    assert (
        choose_primary_id(find_external_ids(PLAIN, "done: https://github.com/o/r/pull/7"))
        == "https://github.com/o/r/pull/7"
    )


def test_what_was_known_before_the_call_is_no_name_that_it_got() -> None:
    assert choose_primary_id({"folder": "/x", "git.commit": "abc", "file:1": "def", "url": "", "pr": "7"}) == "7"
    assert choose_primary_id({"git.commit": "abc"}) == choose_primary_id({}) == ""
    assert is_host_value("git.url")
    assert not is_host_value("url")


def test_of_a_huge_output_both_ends_are_read() -> None:
    middle = "x" * 100 + "\n"
    output = "https://a.example/first\n" + middle * 20_000 + "MessageId: <last@example.org>\n"
    assert find_external_ids(PLAIN, output) == {"url": "https://a.example/first", "message": "<last@example.org>"}


def test_the_middle_of_a_huge_output_is_not_read() -> None:
    filler = "y" * 200_000
    assert find_external_ids(PLAIN, f"{filler}\nhttps://a.example/1\n{filler}") == {}


@pytest.mark.parametrize("line", ["http://" * 100_000, "https://x/pull/" * 50_000])
def test_one_endless_line_does_not_stop_the_gate(line: str) -> None:
    assert all(len(value) <= 4096 for value in find_external_ids(PLAIN, line).values())  # read whole it takes seconds


@given(st.text(), st.lists(st.tuples(st.text(max_size=5), st.text(max_size=10)), max_size=3))
def test_no_output_and_no_pattern_makes_it_fail(output: str, patterns: list[tuple[str, str]]) -> None:
    names = find_external_ids(rule(*patterns), output)
    assert all(value for value in names.values())
    assert choose_primary_id(names) in {"", *names.values()}
