"""A run whose agent discards work: it is kept first and shown; a person is asked if it cannot be kept."""

from __future__ import annotations

import subprocess
from typing import Any

from tests.cli.place import SAY, Place
from tests.cli.test_approval import calls, show
from tests.cli.test_on_ask import anywhere

__all__ = ["anywhere"]
WAITS = 14
REF = "refs/jackline/r/1"


def git(place: Place, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words],
        cwd=place.repository, env=place.environment(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def begin(place: Place) -> None:
    if not (place.repository / ".git").exists():
        git(place, "init", "-q")
    (place.repository / ".gitignore").write_text(".env\n")
    (place.repository / "a").write_text("one\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    (place.repository / "a").write_text("two\n")
    (place.repository / "new").write_text("new\n")


def discard(command: str) -> dict[str, Any]:
    return {"call": {"tool": "Bash", "input": {"command": command}, "run": command}}


def test_the_work_is_kept_and_shown(anywhere: Place) -> None:
    begin(anywhere)
    ended = anywhere.play(discard("git reset --hard -q && git clean -fdq"), SAY, words=("--run-id", "r"))
    assert ended.code == 0, ended
    assert (anywhere.repository / "a").read_text() == "one\n"
    assert not (anywhere.repository / "new").exists()
    assert git(anywhere, "show", f"{REF}:a") == "two"
    assert git(anywhere, "show", f"{REF}:new") == "new"
    assert calls(anywhere, "decision", "call_class", "rule") == [("allow", "local", "local.git")]
    assert REF in anywhere.type("show", "r").out
    assert f"kept the work before git reset --hard -q at {REF}" in anywhere.type("logs", "r", "--events").out
    assert anywhere.type("verify", "r").code == 0


def test_ignored_files_ask_and_the_question_names_them(anywhere: Place) -> None:
    begin(anywhere)
    (anywhere.repository / ".env").write_text("key\n")
    ended = anywhere.play(discard("git clean -fdxq"), SAY, words=("--run-id", "r"))
    assert ended.code == WAITS
    (call,) = show(anywhere)["calls"]
    assert (call["rule"], call["decision"]) == ("workspace.discard", "ask")
    assert ".env" in call["reason"]
    assert (anywhere.repository / ".env").exists()
    assert anywhere.type("answer", "r", call["id"], "allow").code == 0
    assert anywhere.type("resume", "r").code == 0
    assert not (anywhere.repository / ".env").exists()


def test_agreeing_beforehand_needs_the_name_of_the_rule(place: Place) -> None:
    begin(place)
    (place.repository / ".env").write_text("key\n")
    words = ("--run-id", "r", "--allow", "workspace.discard")
    assert place.play(discard("git clean -fdxq"), SAY, words=words).code == 0
    assert not (place.repository / ".env").exists()
