"""The classifier takes linear time: ten times the text is about ten times the work, whatever the text looks like.

Work is the number of function calls, which is the same on every machine.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.shell.scanner import MAX_LENGTH
from tests.support.slow_cases import keep_every_other

if TYPE_CHECKING:
    from collections.abc import Callable

WHERE = CallContext("/home/dev/project", "/home/dev/project")
SMALL, FACTOR = 400, 10
# For the text of a pattern that is repeated, what comes before and after it.
REPEATED = {
    "redirects": ("ls ", ">a ", ""),
    "redirects without space": ("ls ", ">a", ""),
    "inputs": ("ls ", "<a ", ""),
    "here-documents": ("", "cat <<E\nx\nE\n", ""),
    "here-strings": ("cat ", "<<<x ", ""),
    "words": ("echo ", "a ", ""),
    "a long word": ("echo ", "a", ""),
    "a list": ("", "ls;", ""),
    "conjunctions": ("", "ls&&", "ls"),
    "alternatives": ("", "cd a||", "ls"),
    "a pipeline": ("", "ls|", "ls"),
    "lines": ("", "ls\n", ""),
    "empty lines": ("", "\n", "ls"),
    "blanks": ("", " ", "ls"),
    "comments": ("", "#a\n", "ls"),
    "continued lines": ("ls ", "\\\n", ""),
    "substitutions": ("echo ", "$(ls)", ""),
    "backticks": ("echo ", "`ls` ", ""),
    "double quotes": ("echo ", '"a"', ""),
    "single quotes": ("echo ", "'a'", ""),
    "open quotes": ("echo ", '"', ""),
    "variables": ("echo ", "$a ", ""),
    "brace lists": ("echo ", "{a,b}", ""),
    "open braces": ("echo ", "{", ""),
    "open brackets": ("echo ", "a[", ""),
    "parameters": ("echo ", "${a:-b}", ""),
    "arithmetic": ("echo ", "$((1+1))", ""),
    "a long sum": ("echo $((", "a+", "1))"),
    "counted assignments": ("echo $((", "a=1,", "1))"),
    "assignments": ("", "A=1\n", "ls"),
    "assignments before a command": ("", "A=1 ", "ls"),
    "exports": ("export ", "A=1 ", ""),
    "functions": ("", "f() { ls; }\n", ""),
    "calls": ("f() { ls; }\n", "f\n", ""),
    "branches": ("case x in ", "a) ls;; ", "esac"),
    "patterns": ("case x in a", "|a", ") ls;; esac"),
    "conditions": ("", "if a; then b; fi\n", ""),
    "loops": ("", "for i in a; do ls; done\n", ""),
    "loop words": ("for i in ", "a ", "; do ls; done"),
    "folders in a loop": ("while true; do ", "cd a;", "done"),
    "folders": ("", "cd a; ", "ls"),
    "groups": ("{ ", "ls;", "} >a"),
    "env": ("env ", "A=1 ", "ls"),
    "find actions": ("find . ", "-exec ls {} \\; ", ""),
    "open find actions": ("find . ", "-exec ls ", ""),
    "xargs": ("find . -name x ", "| xargs rm ", ""),
    "removed files": ("rm ", "a ", ""),
    "a deep path": ("rm ", "a/", ""),
    "git flags": ("git log ", "--x ", ""),
    "git settings": ("git ", "-c user.name=x ", "log"),
    "unknown flags": ("kubectl ", "--x y ", ""),
    "headers": ("curl ", "-H a:b ", "http://x"),
    "query data": ("curl -G ", "-d a ", "http://x"),
    "tar flags": ("tar ", "-C a ", ""),
    "sed scripts": ("sed ", "-e s/a/b/ ", "x"),
    "sed backups": ("sed -i/a s/b/c/ ", "a ", ""),
    "statements": ("sqlite3 a.db '", "select 1;", "'"),
    "refspecs": ("git push origin ", "a ", ""),
    "pushes": ("", "git push; ", ""),
    "workspace paths": ("ls ", "/home/dev/project/a ", ""),
    "processes": ("cat ", "<(ls) ", ""),
    "an array": ("a=(", "b ", ")"),
    "a test": ("[[ ", "a == b && ", "c ]]"),
    "a pattern": ("[[ a =~ ", "(a|b)", " ]]"),
    "nested shells": ("", "sh -c 'ls'; ", ""),
    "traps": ("", "trap 'ls' EXIT; ", ""),
    "a patch": ("apply_patch <<'E'\n*** Begin Patch\n", "*** Add File: a\n+x\n", "*** End Patch\nE"),
    "linker flags": ("gcc ", "-Wl,a ", "x.c"),
    "globs": ("rm ", "*a ", ""),
    "parents": ("rm $a/", "../", ""),
}


def count_calls(work: Callable[[], Any]) -> int:
    calls = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def repeat(name: str, length: int) -> str:
    before, pattern, after = REPEATED[name]
    return before + pattern * ((length - len(before) - len(after)) // len(pattern)) + after


@pytest.mark.parametrize("name", keep_every_other(list(REPEATED)))
def test_ten_times_the_text_is_ten_times_the_work(name: str) -> None:
    texts = [repeat(name, length) for length in (SMALL, SMALL * FACTOR)]
    small, large = (count_calls(partial(classify_call, (), "Bash", {"command": text}, WHERE)) for text in texts)
    assert large <= small * FACTOR * 1.5 + 1_000, (small, large)


def test_a_longer_text_is_not_parsed() -> None:
    judged = classify_call((), "Bash", {"command": "ls;" * (MAX_LENGTH // 3 + 1)}, WHERE)
    assert judged.rule.name == "unparsed"
