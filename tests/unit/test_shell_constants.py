"""Words that a shell would expand to something that the text itself gives."""

from __future__ import annotations

import pytest

from jackline.domain.states import CallClass, Decision
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.rules import Rule
from jackline.shell import list_commands
from jackline.shell.model import NotParsed


def lines(text: str) -> list[str]:
    """The commands of a text; words that are not exact stand in angle brackets."""
    return [
        " ".join(word.text if word.exact else f"<{word.text}>" for word in command.words)
        for command in list_commands(text, constants=True)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a=E1; send $a",
        'a=E1 && send "$a"',
        "a=E; b=1; send $a$b",
        "a=1; send E${a}",
        "a=1; b=E$a; send $b",
        "a=E; a+=1; send $a",
        "ID=; send ${ID:-E1}",
        "ID=E1; send ${ID:-E2}",
        "for i in E1; do send $i; done",
        "for i in E1 E1; do send $i; done",
        "S=send; for i in E1; do $S $i; done",
        'f() { send "$@"; }; f E1',
        "f() { send $1; }; f E1 x",
        'f() { "$@"; }; f send E1',
        "function f { send $*; }; f E1",
        "S=send; $S E1",
        "x=; $x send E1",
        "eval send E1",
        "cmd='send E1'; eval \"$cmd\"",
        "cmd='send E1'; sh -c \"$cmd\"",
        "bash -c 'send \"$1\"' _ E1",
        "bash -c 'a=$1; shift; send $a' _ E1",
        "A=E1 bash -c 'send $A'",
        "bash -s E1 <<'X'\nsend $1\nX",
        "a=E1; sh <<X\nsend $a\nX",
        'a=E1; bash <<<"send $a"',
        "if true1; then a=E1; send $a; fi",
        "(a=E1; send $a)",
        "a=E1; { send $a; }",
        "a=E1; send $a | tee1",
        "a=E1; while c; do send $a; done",
        "a=E1; i=0; i=$((i+1)); send $a",
    ],
)
def test_what_is_known_is_expanded(text: str) -> None:
    assert "send E1" in lines(text)
    assert not [line for line in lines(text) if line.startswith("send") and line != "send E1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export ID=E1 && send $ID", ["export ID=E1", "send E1"]),
        ('ID=E1; export ID; send "$ID"', ["export ID", "send E1"]),
        ("export A=E1; bash -c 'send $A'", ["export A=E1", "send E1"]),
        ("A=E1; bash -c 'send $A'", ["send <$A>"]),
        ("readonly ID=E1; send $ID; ID=2; send $ID", ["readonly ID=E1", "send E1", "send <$ID>"]),
        ('set -- E1 E2; shift; send $1 "$@"', ["set -- E1 E2", "shift", "send E2 E2"]),
        ("f() { local x=$1; send $x; }; f E1; f E2", ["local x=E1", "send E1", "local x=E2", "send E2"]),
        ("for i in 1 2; do for j in a b; do send $i$j; done; done", ["send 1a", "send 1b", "send 2a", "send 2b"]),
        ("send E{1,} {a,b}c", ["send E1 E ac bc"]),
        ("sh -c 'send E{1,}'", ["send <E{1,}>"]),
        ("a=1; (a=2; send $a); send $a", ["send 2", "send 1"]),
        ("a='x y'; send $a \"$a\"", ["send <x> <y> x y"]),
        ("cmd='send E1'; $cmd", ["<send> <E1>"]),
        ("alias s=send; s E1", ["alias s=send", "send E1", "s E1"]),
        ("f() { send 1; }", ["send 1"]),
        ("f() { send $1; }; f 1; $x", ["send <$1>", "send 1", "<$x>"]),
        ("a=out; send > $a", ["send"]),
        ('U=http://x/?z; curl "$U" $U', ["curl http://x/?z <$U>"]),
    ],
)
def test_commands_with_known_words(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "send $a",
        "send ${ID:-E1}",
        "a=$(x); send $a",
        "a=1 send $a",
        "if c; then a=1; else a=2; fi; send $a",
        "a=0; c && a=1; send $a",
        "a=0; c || a=1; send $a",
        "case x in x) a=1;; esac; send $a",
        "a=1; while c; do send $a; a=2; done",
        "a=1; while c; do a=2; done; send $a",
        "a=1; until c; do break; a=2; done; send $a",
        "a=1; unset a; send $a",
        "a=1; read a; send $a",
        "a=1; printf -v a 2; send $a",
        "a=1; ((a++)); send $a",
        "a=1; x=$y; : $((x)); send $a",
        "a=1; [[ x -eq y ]]; send $a",
        "a=1; : ${b:a=5}; send $a",
        "a=1; let a=2; send $a",
        "a=1; f() { a=2; }; f; send $a",
        "a=1; f() { a=2; return; a=1; }; f; send $a",
        "a=1; trap 'a=2' DEBUG; send $a",
        "a=1; . ./x; send $a",
        'a=1; eval "$x"; send $a',
        "a=1; $x; send $a",
        "a=1; declare -i a; a=1+1; send $a",
        "declare -n a=b; a=1; send $a",
        "a=(1 2); send $a",
        "a=1; a[0]=2; send $a",
        "IFS=E; a=xE1; send $a",
        "a='*'; send $a",
        "a=~; send $a",
        "a=1; read a <f; send $a",
        "echo 1 | read a; send $a",
        "a=1; : | a=2; send $a",
        "a=1; exec {a}>f; send $a",
        "RANDOM=1; send $RANDOM",
        "set -k; a=1; send $a",
        "set +B; send E{1,}",
        "a=1; b=a; unset $b$c; send $a",
        "a=1; sudo bash -c 'send $a'",
        "f() { send $1; }; f $x",
        "bash -c 'send $1' $x E1",
        "a=1; local a=2; send $a",
        "f() { send $2; }; f $x E1",
        "if c; then f() { a=1; }; fi; a=2; f; send $a",
        "a=1; coproc a { c; }; send $a",
        "coproc a { c; }; a=1; send $a",
        "while c; do a=1; send $a; coproc a { c; }; done",
        "a=1; select a in 1 2; do send $a; done",
        "for a in 1 $x; do :; done; send $a",
        'send "$a[1]"',
    ],
)
def test_what_may_be_something_else_is_not_expanded(text: str) -> None:
    sent = [
        command
        for command in list_commands(text, constants=True)
        if command.words[:1] and command.words[0].text == "send"
    ]
    assert sent
    assert not all(word.exact for word in sent[-1].words)


@pytest.mark.parametrize(
    "text",
    [
        "alias s='send;'; s",
        "alias s=$x; s",
        "alias -g s=send; s",
        "alias if=send",
        "while c; do alias s=send; eval s; done",
        "f() { alias s=send; }; f",
        "e=test; $e -v 'a[$(send)]'",
        "command test -v 'a[$(send)]'",
    ],
)
def test_what_changes_the_meaning_of_a_text_is_refused(text: str) -> None:
    with pytest.raises(NotParsed):
        list_commands(text, constants=True)


def test_without_constants_words_stay_as_they_are_written() -> None:
    (command,) = list_commands("a=E1; send $a")
    assert [tuple(word) for word in command.words] == [("send", True), ("$a", False)]


@pytest.mark.parametrize(
    "text",
    [
        "a=x;" + "a=$a$a;" * 200 + "send $a",
        "for a in 1 2 3 4 5 6 7 8 9; do " * 8 + "send $a" + "; done" * 8,
        "f() { g; g; }; g() { h; h; }; h() { i; i; }; i() { send; send; }; " + "f; " * 300,
        "f() { f; f; }; f; " * 20,
        "c||" * 2000 + "c",
        "set -- " + "x " * 2000 + "; send $@" * 2000,
        "a=" + "x" * 4000 + "; send" + " $a$a" * 9000,
        "(a=1);" * 2000 + "send",
        "while c; do " * 20 + "send" + "; done" * 20,
        "f() { " * 20 + "send" + "; }" * 20,
    ],
)
def test_texts_that_repeat_themselves_stay_small(text: str) -> None:
    found = list_commands(text, constants=True)
    assert len(found) < 12_000
    assert sum(len(word.text) for command in found for word in command.words) < 400_000


@pytest.mark.parametrize(("version", "same"), [(1, False), (2, True)])
def test_the_gate_sees_the_words_that_the_shell_would_pass_on(version: int, same: bool) -> None:
    rule = Rule("send", "", CallClass.EFFECT, decision=Decision.ALLOW, command=("send",), key=("arguments",))
    where = CallContext("/w", "/w", version)
    plain, constant = (
        classify_call((rule,), "Bash", {"command": text}, where).fields.get("arguments")
        for text in ("send E1", "a=E1; send $a")
    )
    assert (plain == constant) is same
