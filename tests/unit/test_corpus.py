"""The published corpus: every command has the class it is said to have, however it is wrapped up."""

from __future__ import annotations

import os
import shlex
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.policy import rule_lookup
from jackline.policy.call_context import CallContext
from jackline.policy.classify import Classification, classify_call

UNHURRIED = settings(deadline=None)
WHERE = CallContext("/home/dev/project", "/home/dev/project")
CORPUS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "corpus.tsv")


class Line(NamedTuple):
    kind: str
    decision: str
    rule: str
    command: str


def _lines() -> list[Line]:
    with open(CORPUS, encoding="utf-8") as file:
        rows = [row.rstrip("\n").split("\t") for row in file]
    return [Line(kind, decision, rule, command.replace("\\n", "\n")) for kind, decision, rule, command in rows[1:]]


LINES = _lines()
EFFECTS = [line for line in LINES if line.kind == "effect"]
READS = [line for line in LINES if line.kind == "read"]
HARMLESS = ("ls -la", "git status", "cat README.md | head", "echo 'git push'", "cd .", "true", "X=1", "pwd >/dev/null")
# Around a command; the line breaks keep here-documents and comments whole.
WRAPPERS = {
    "subshell": "(\n{0}\n)",
    "group": "{{\n{0}\n}}",
    "if": "if true; then\n{0}\nfi",
    "else": "if false; then :; else\n{0}\nfi",
    "while": "while\n{0}\ndo break; done",
    "loop": "for i in 1 2; do\n{0}\ndone",
    "case": "case x in x)\n{0}\n;; esac",
    "function": "go() {{\n{0}\n}}; go",
    "and": "true &&\n{0}",
    "or": "false ||\n{0}",
    "after": "ls;\n{0}",
    "pipe": "echo x |\n{0}",
    "before": "{0}\nls -la",
    "not": "! {{\n{0}\n}}",
    "substitution": 'echo "$(\n{0}\n)"',
    "assignment": "X=$(\n{0}\n)",
    "process": "cat <(\n{0}\n)",
    "background": "{{\n{0}\n}} &",
}
QUOTED = {
    "bash": "bash -c {0}",
    "login": "bash -lc {0}",
    "sh": "sh -c {0}",
    "sudo": "sudo bash -c {0}",
    "env": "env A=1 B=2 bash -c {0}",
    "timeout": "timeout -k 1 5 bash -c {0}",
    "nohup": "nohup bash -c {0} &",
    "nice": "nice -n 5 sh -c {0}",
    "eval": "eval {0}",
    "path": "/bin/bash -c {0}",
    "exec": "exec bash -c {0}",
}
BEFORE = (
    "sudo ",
    "env A=1 ",
    "A=1 ",
    "timeout 5 ",
    "nohup ",
    "time ",
    "command ",
    "nice ",
    "sudo -n env A=1 timeout 5 ",
    "! ",
)
NOT_FIRST = {"cd", "eval", "exec", "command", "if", "for", "while", "case", "time", "trap", "!", "true"}


SHARES = ["a third", pytest.param("all", marks=pytest.mark.full)]


def share_of(lines: list[Line], share: str, name: str) -> list[Line]:
    """All lines, or a third of them: another one for the next wrapper."""
    return lines if share == "all" else lines[[*WRAPPERS, *QUOTED].index(name) % 3 :: 3]


def wrapped(command: str, name: str) -> str:
    return WRAPPERS[name].format(command) if name in WRAPPERS else QUOTED[name].format(shlex.quote(command))


def judged(command: str) -> Classification:
    return classify_call((), "Bash", {"command": command, "description": "d"}, WHERE)


def kind(command: str) -> str:
    return str(judged(command).rule.call_class)


def test_the_corpus_is_large_and_has_every_class_and_no_line_twice() -> None:
    assert len(LINES) >= 350
    assert {line.kind for line in LINES} == {"read", "local", "unknown", "effect"}
    assert len({line.command for line in LINES}) == len(LINES)


def test_each_command_falls_under_its_rule() -> None:
    """All lines in one test, which names those that are wrong: thousands of tests take longer than what they test."""
    found = [(line, judged(line.command)) for line in LINES]
    rules = [(line, line._replace(kind=str(one.rule.call_class), decision=str(one.rule.decision), rule=one.rule.name))
             for line, one in found]  # fmt: skip
    assert [(line, now) for line, now in rules if now != line] == []
    assert [line.command for line, one in found if not one.matches and line.rule != "shell.nothing"] == []
    assert [line.command for line, one in found if not all(match.rule and match.why for match in one.matches)] == []


def test_a_rule_is_found_again_by_its_name() -> None:
    """Whatever decides later (probe, replay, exit codes, limits) is decided by the rule as it was judged."""
    rules = {line.command: judged(line.command).rule for line in LINES}
    names = ("name", "call_class", "decision", "replay", "probe", "nothing_happened", "most")
    found = [(command, rule, rule_lookup.find_rule((), rule.name)) for command, rule in rules.items()]
    assert [
        (command, name)
        for command, rule, again in found
        for name in names
        if getattr(rule, name) != getattr(again, name)
    ] == []


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", [*WRAPPERS, *QUOTED])
def test_no_wrapper_makes_an_effect_look_like_less(name: str, share: str) -> None:
    less = {line: judged(wrapped(line.command, name)).rule for line in share_of(EFFECTS, share, name)}
    less = {line: rule for line, rule in less.items() if str(rule.call_class) != "effect"}
    assert {str(rule.call_class) for rule in less.values()} <= {"unknown"}
    # In a loop or a function nobody knows the folder; `! x` cannot stand in a pipeline, nor `<(x)` in sh.
    told = {line.command for line, rule in less.items() if rule.name not in {"inexact.write", "unparsed"}}
    assert told == set()
    assert len(less) <= 2


@pytest.mark.parametrize("around", ['bash -c "{0}; echo $X"', 'eval "{0} || $X"', "bash <<E\n{0}\n$X\nE"])
def test_a_text_that_is_partly_known_is_as_strict_as_what_is_known_of_it(around: str) -> None:
    calm = [line for line in EFFECTS if not line.command.endswith("&")]
    plain = [line for line in calm if not set(line.command) & set("\"'$`\\\n!#<")]
    assert len(plain) > 250
    less = [line.command for line in plain if kind(around.format(line.command)) != "effect"]
    assert less == []


@pytest.mark.parametrize("before", BEFORE)
def test_no_word_in_front_makes_an_effect_look_harmless(before: str) -> None:
    """Before a keyword it is no command at all: then nobody knows, which is not harmless."""
    moved = [line for line in EFFECTS if not line.command.startswith("cd ")]  # `sudo cd` moves nobody
    assert [line.command for line in moved if kind(before + line.command) not in {"effect", "unknown"}] == []


@pytest.mark.parametrize("folder", ["/usr/bin/", "/opt/tools/bin/", "./", "../bin/"])
def test_an_effect_is_one_wherever_its_program_lies(folder: str) -> None:
    first = [(line, line.command.split(maxsplit=1)[0]) for line in EFFECTS]
    plain = [line for line, word in first if word.replace("-", "").replace(".", "").isalnum() and word not in NOT_FIRST]
    assert len(plain) > 150
    assert [line.command for line in plain if kind(folder + line.command) in {"read", "local"}] == []
    if folder != "./":
        return
    known = [line for line in plain if not line.rule.startswith(("outside.", "rm.variable", "git.push + others"))]
    hidden = [line.command for line in known if kind(folder + line.command) != "effect"]
    assert all("|" in command or "<<" in command for command in hidden), hidden


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", [*WRAPPERS, *QUOTED])
def test_no_wrapper_makes_a_read_look_like_an_effect(name: str, share: str) -> None:
    lines = share_of(READS, share, name)
    more = [line.command for line in lines if kind(wrapped(line.command, name)) == "effect"]
    assert more == []


@UNHURRIED
@given(
    st.sampled_from(EFFECTS),
    st.lists(st.sampled_from([*WRAPPERS, *QUOTED]), max_size=3),
    st.lists(st.sampled_from(HARMLESS), max_size=3),
    st.sampled_from(["; ", " && ", " || ", "\n", " | "]),
)
def test_no_effect_is_classed_as_a_read_or_a_local(line: Line, names: list[str], before: list[str], join: str) -> None:
    command = line.command
    for name in names:
        command = wrapped(command, name)
    command = join.join([*before, command])
    assert kind(command) not in {"read", "local"}, command


@UNHURRIED
@given(st.lists(st.sampled_from(READS), min_size=1, max_size=4), st.sampled_from(["\n", "\nls && "]))
def test_reads_together_are_no_effect(lines: list[Line], join: str) -> None:
    assert kind(join.join(line.command for line in lines)) in {"read", "unknown"}


def test_every_rule_that_denies_says_what_to_do_instead() -> None:
    assert [rule.name for rule in rule_lookup.BUILT_IN_RULES if str(rule.decision) == "deny" and not rule.hint] == []
