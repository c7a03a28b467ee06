"""A rule's program behind an interpreter, another path, a link or a copy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jackline.domain.states import CallClass
from jackline.engine.program_links import make_resolver
from jackline.policy.call_context import CallContext
from jackline.policy.classify import Classification, classify_call
from jackline.policy.rule_lookup import parse_rule_tables

if TYPE_CHECKING:
    from pathlib import Path

RULES = parse_rule_tables(
    [
        {"command": "send", "class": "effect"},
        {"command": "python send.py", "class": "effect"},
        {"command": "make send", "class": "effect"},
        {"command": "tools/post.sh", "class": "effect"},
        {"command": "./build.sh", "class": "local"},
        {"command": "check", "class": "local"},
    ],
    "test",
)


def _classify(text: str, version: int = 2) -> Classification:
    where = CallContext("/ws", "/ws", version=version, resolve_link=lambda path: path.replace("copy-of-send", "send"))
    return classify_call(RULES, "Bash", {"command": text}, where)


@pytest.mark.parametrize(
    "text",
    [
        "send E1",
        "/ws/bin/send E1",
        "dir/../bin/send E1",
        "cd bin && ./send E1",
        "sh send E1",
        "bash ./send E1",
        "bash -x -o pipefail bin/send E1",
        "bash -c 'sh send E1'",
        ". ./send E1",
        "source send E1",
        "perl -w bin/send E1",
        "./copy-of-send E1",
        "sh ./copy-of-send E1",
        "timeout 10 nohup env X=1 nice sh send E1",
        "command exec sh send E1",
    ],
)
def test_a_program_is_recognized_with_its_arguments(text: str) -> None:
    found = _classify(text)
    assert found.rule.name.split(" + ")[0] == "send"
    assert (found.fields["program"], found.fields["arguments"]) == ("send", ["E1"])


@pytest.mark.parametrize(
    "text", ["ln -s send s2; ./s2 E1", "cp bin/send s2 && sh ./s2 E1", "mv send a; mv a b; ./b E1"]
)
def test_a_copy_that_the_call_makes_is_recognized(text: str) -> None:
    assert "send" in [match.rule for match in _classify(text).matches]


@pytest.mark.parametrize(
    "text",
    [
        "python ./send.py E1",
        "python3 -u send.py E1",
        "python -W ignore bin/send.py E1",
        "./send.py E1",
        "sh send.py E1",
    ],
)
def test_a_script_of_a_rule_is_recognized_with_any_interpreter(text: str) -> None:
    found = _classify(text)
    assert (found.rule.name, found.fields["arguments"]) == ("python send.py", ["send.py", "E1"])


@pytest.mark.parametrize(
    "text", ["make send", "make V=1 send", "make build send", "make -j4 -C . build send", "gmake send"]
)
def test_every_goal_counts(text: str) -> None:
    assert _classify(text).rule.name.split(" + ")[0] == "make send"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("tools/post.sh a", "tools/post.sh"),
        ("cd tools && ./post.sh a", "tools/post.sh"),
        ("bash ../ws/tools/post.sh a", "tools/post.sh"),
        ("post.sh a", "tools/post.sh"),
        ("other/post.sh a", "unmatched"),
        ("./build.sh", "./build.sh"),
        ("sub/../build.sh", "./build.sh"),
        ("cd sub && ../build.sh", "./build.sh"),
        ("other/build.sh", "unmatched"),
        ("build.sh", "unmatched"),
    ],
)
def test_a_rule_may_name_a_path(text: str, rule: str) -> None:
    assert rule in [match.rule for match in _classify(text).matches]


@pytest.mark.parametrize(
    "text", ["bash ./ls", "sh check", ". ./check", "ln -s ls ./x; ./x", "python -c send", "make sender"]
)
def test_nothing_becomes_harmless_and_nothing_else_matches(text: str) -> None:
    found = _classify(text)
    assert found.rule.call_class is CallClass.UNKNOWN
    assert found.rule.name == "unmatched"


def test_an_older_run_classifies_a_command_as_written() -> None:
    assert [_classify(text, version=1).rule.name for text in ("sh send E1", "make V=1 send", "./build.sh")] == [
        "unmatched"
    ] * 3
    assert _classify("dir/../bin/send E1", version=1).rule.name == "send"


def test_a_built_in_effect_is_recognized_too() -> None:
    assert _classify("bash ./gradlew publish").rule.call_class is CallClass.EFFECT


def test_the_host_follows_links_of_paths_and_of_names_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/send").write_text("")
    (tmp_path / "bin/s2").symlink_to("send")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv("PATH", os.pathsep.join([f"{tmp_path}-other", str(tmp_path / "bin"), "/usr/bin"]))
    resolve = make_resolver(str(tmp_path))
    target = os.path.realpath(tmp_path / "bin/send")
    assert [resolve(str(tmp_path / "bin/../bin/s2")), resolve("s2"), resolve("sh")] == [target, target, "sh"]
    assert resolve(str(tmp_path / "loop"))
    assert resolve("/" + "x" * 5000)
