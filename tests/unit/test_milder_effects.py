"""Forced pushes with a lease, deleted remote branches and deleted variables ask; what is worse is still denied."""

from __future__ import annotations

import pytest

from jackline.domain.call_gate import can_approve_always
from jackline.domain.states import Decision
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call

WORKSPACE = "/home/dev/project"


def decide(command: str, version: int = 2) -> tuple[str, Decision]:
    rule = classify_call((), "Bash", {"command": command}, CallContext(WORKSPACE, WORKSPACE, version=version)).rule
    return rule.name, rule.decision


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("git push --force-with-lease", "git.push.lease"),
        ("git push --force-with-lease=fix:abc origin fix", "git.push.lease"),
        ("git push --force-with-lease --force-if-includes origin fix", "git.push.lease"),
        ("git push --delete origin old", "git.push.delete"),
        ("git push -d origin old", "git.push.delete"),
        ("git push origin :old", "git.push.delete"),
        ("git push origin :refs/heads/old new", "git.push.delete"),
        ('rm -rf "$DIR"', "rm.variable + others"),
        ('rm -rf "${DIR}/build"', "rm.variable + others"),
    ],
)
def test_they_ask(command: str, name: str) -> None:
    assert decide(command) == (name, Decision.ASK)
    assert decide(command, version=1)[1] is Decision.DENY


@pytest.mark.parametrize(
    "command",
    [
        "git push --force",
        "git push -f",
        "git push -uf origin x",
        "git push --force --force-with-lease",
        "git push --force-with-lease origin +main",
        "git push origin +main :old",
        "git push --mirror",
        "git push --prune origin",
        "git push --force-with-lease $X",
        "git push --force-if-includes",
        "git push -df origin x",
        'rm -rf "$HOME"',
        'rm -rf "${HOME}/x"',
        'rm -rf "$DIR/../x"',
        'rm -rf /etc/"$X"',
        "rm -rf ~/x",
        "rm -rf $(cat list)",
    ],
)
def test_what_is_worse_is_still_denied(command: str) -> None:
    assert decide(command)[1] is Decision.DENY


def test_always_does_not_cover_another_value_of_the_variable() -> None:
    assert not can_approve_always("rm.variable", "file:$DIR")
    assert can_approve_always("git.push.lease", "git:origin/refs/heads/x")
