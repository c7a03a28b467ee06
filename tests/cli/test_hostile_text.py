"""Text of agents, models and files that would steer a terminal, reverse or hide text, forge a line, or tell a secret.

Every command that reads is run on it, and every exported file is read. The exceptions are exact copies: the raw output
of the agent, the contents that are named by their digests, the job file, and the files for the agent.
"""

from __future__ import annotations

import json
import subprocess
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, Ended, Place
from tests.cli.test_terminal import Terminal
from tests.support.secrets import TOKENS

SECRET = TOKENS["github p"]
EVIL = (
    "e\x1b[31mv\x1b]0;title\x07\x08i\x7f\x9b31ml\x85"
    "\u202er\u2066e\u2069v\u200e\u200f\u061ce\u200brs\u200d\ufeff\u00ad\u2028e\u2029\U000e0041"
)
HALF = "\udcff"  # half a character; a program cannot get it as an argument, but JSON can contain it
FORGED = "FORGED a line"
TEXT = f"{EVIL} {SECRET} \n{FORGED}\r{FORGED}"
LINE = TEXT.replace("\n", " ").replace("\r", " ")
ASK_RULE = EFFECT_RULE.replace('"send"', '"ask"').replace('"allow"', '"ask"')
EXACT_COPIES = {"stdout.log", "transcript.log"}
EXACT_FOLDERS = {"turns", "contents", "agent"}
HARMLESS_FORMATS = {"\n", "\t"}


def find_unsafe(text: str) -> str:
    """What must not be there."""
    found = {one for one in set(text) - HARMLESS_FORMATS if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    problems = [f"U+{ord(one):04X}" for one in sorted(found)]
    problems += ["the secret"] if SECRET in text or SECRET in text.replace("\\", "") else []
    problems += ["a forged line"] if any(line.startswith(FORGED) for line in text.splitlines()) else []
    return ", ".join(problems)


def call(tool: str, **more: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "input": {"to": f"{tool} {LINE}{HALF}", "text": TEXT, LINE: [TEXT]}, **more}}


STEPS: tuple[dict[str, Any], ...] = (
    {"think": TEXT},
    {"say": TEXT + HALF},
    {"call": {"tool": "bash", "input": {"command": f"echo {TEXT}"}, "run": ["printf", "%s", TEXT]}},
    {"call": {"tool": f"tool {TEXT}", "input": {"path": TEXT}, "run": ["sh", "-c", f"printf '%s' '{LINE}'; exit 3"]}},
    call("send", run="true", external_id=LINE),
    {"edit": {"path": f"note {EVIL}.txt", "content": TEXT}},
    {"commit": f"Add {TEXT}"},
    {"usage": {"input": 1, "output": 1, "usd": 0.1}},
)


def make_runs(place: Place) -> Iterator[Ended]:
    """A run that succeeds, one that needs approval, one with an effect in doubt, and one that fails."""
    policy = place.policy(EFFECT_RULE + EFFECT_RULE.replace('"send"', '"post"') + ASK_RULE)
    words = (f"do {TEXT}", "--policy", policy, "--retries", "0")
    yield place.play(*STEPS, {"say": f"done {TEXT}"}, words=(*words, "--proof", "true", "--run-id", "good"))
    yield place.play(*STEPS, call("ask"), words=(*words, "--run-id", "asks"))
    yield place.play(*STEPS, call("post", run="false"), words=(*words, "--run-id", "doubts"))
    error = {"error": {"class": "agent_error", "detail": TEXT}}
    yield place.play(*STEPS, error, words=(*words, "--run-id", "fails"))
    yield place.play({"say": TEXT}, words=(*words, "--proof", f"printf '%s' '{LINE}'; false", "--max-iterations", "1"))
    yield place.type("run", f"do {TEXT}", "--dry-run", "--script", place.script(*STEPS))
    yield place.type("run", f"do {TEXT}", "--json", "--script", place.script(*STEPS))


def make_records(place: Place) -> Iterator[Ended]:
    """Work items, cases and journal entries."""
    yield place.type("work", "enqueue", "--kind", "chore", "--payload", json.dumps({"text": TEXT}), "--notes", TEXT)
    yield place.type("work", "next", "--kind", "chore")
    yield place.type("events", "append", "note.taken", "--payload", json.dumps({"text": TEXT}))
    yield place.type("case", "start", LINE, "--skip-intake")
    yield place.type("case", "hypothesis", "add", LINE)
    yield place.type("case", "evidence", "add", LINE)
    yield place.type("case", "command", "add", "--status", "pass", LINE)


READING: tuple[tuple[str, ...], ...] = (
    ("list",),
    *(("show", run) for run in ("good", "asks", "doubts", "fails")),
    *(("logs", run, "--events") for run in ("good", "fails")),
    ("logs", "good"),
    ("logs", "fails", "--turn", "1"),
    ("inbox",),
    ("receipts", "good"),
    ("receipts", "doubts"),
    ("verify", "good"),
    ("export", "doubts"),
    ("dashboard", "--print"),
    ("retro", "weekly", "--week", f"{datetime.now(UTC):%G-W%V}"),
    ("policy", "audit"),
    ("policy", "explain", "bash", json.dumps({"command": TEXT})),
    ("events", "tail"),
    ("events", "search", "note"),
    ("work", "list"),
    ("work", "pending"),
    ("case", "status"),
    ("case", "list"),
    ("case", "handoff"),
    ("case", "hypothesis", "list"),
    ("resume", "good"),
    ("show", LINE),
    (LINE,),
)


def list_exports(place: Place) -> Iterator[Path]:
    for root in (place.home, place.repository / ".agents"):
        for path in root.rglob("*"):
            parts = path.relative_to(root).parts
            is_exact = path.name in EXACT_COPIES or EXACT_FOLDERS & set(parts) or path.suffix in {".sqlite", ".gate"}
            is_text = path.suffix in {".md", ".json", ".jsonl", ".txt", ".toml", ".log"}
            if path.is_file() and not path.is_symlink() and is_text and not is_exact:
                yield path


def test_no_output_and_no_export_is_steered_by_hostile_text(place: Place) -> None:
    for git in (("init", "-q"), ("config", "user.name", "Ada"), ("config", "user.email", "ada@example.org")):
        subprocess.run(["git", *git], cwd=place.repository, env=place.environment(), check=True)
    ended = [*make_runs(place), *make_records(place)]
    found = ((f"setup {number}", find_unsafe(one.out + one.err)) for number, one in enumerate(ended))
    problems = {place_: problem for place_, problem in found if problem}
    assert [one.code for one in ended[:4]] == [0, 14, 14, 1], ended
    assert not [one for one in ended if "Traceback" in one.err or "unexpected" in one.err], ended
    for words in READING:
        for more in ((), ("--json",)):
            one = place.type(*words, *more)
            problem = find_unsafe(one.out + one.err)
            if problem:
                problems[" ".join((*words[:2], *more))] = problem
            assert "Traceback" not in one.err
            if more and one.code == 0:
                assert all(isinstance(json.loads(line), dict | list) for line in one.out.splitlines()), one.out
    exported = list(list_exports(place))
    names = {path.name for path in exported}
    assert {"manifest.json", "summary.txt", "transcript.jsonl", "metadata.json", "RESUME.md", "dashboard.md"} <= names
    for path in exported:
        problem = find_unsafe(path.read_bytes().decode(errors="surrogateescape"))
        if problem:
            problems[str(path.relative_to(place.folder))] = problem
    assert problems == {}


@pytest.mark.parametrize("words", [("show", "r"), ("list",), ("receipts", "r"), ("logs", "r", "--events")])
def test_a_terminal_gets_only_colours(place: Place, words: tuple[str, ...]) -> None:
    policy = place.policy(EFFECT_RULE + ASK_RULE)
    assert place.play(*STEPS[:5], call("ask"), words=(LINE, "--policy", policy, "--run-id", "r")).code == 14
    seen = Terminal(place, *words, NO_COLOR="1").end()
    assert find_unsafe(seen.replace("\r", "")) == ""
