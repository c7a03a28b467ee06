"""`sessions`: the sessions of the CLIs in files as they write them, with broken, huge and hostile ones between."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_compare import make_git
from tests.cli.test_terminal import Terminal
from tests.support.skips import obey_permissions

HOSTILE = "\x1b[2Jx\u202e\x9b1m"
CLAUDE = "b1c0d325-1c38-4812-a454-1d3dc16a6bdd"
CODEX = "01a1ebd7-37c7-7a40-b5c4-6501eddbb08c"
GEMINI = "38264bc9-19a5-4b8e-8559-f6a3a4ee4a2c"
QWEN = "7f69c7a8-e82a-42f7-ad7a-1b421aabf273"


def write(path: Path, *records: object, at: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))
    os.utime(path, (at, at))
    return path


def user(text: object, **more: object) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def write_all(place: Place) -> None:
    """A session of each CLI, the oldest first."""
    home, here = place.folder, str(place.repository)
    base = {"cwd": here, "sessionId": CLAUDE}
    write(
        home / ".claude" / "projects" / "-x" / f"{CLAUDE}.jsonl",
        {"type": "queue-operation", "sessionId": CLAUDE},
        "not json",
        user("<command-name>/clear</command-name>", **base),
        user("meta", isMeta=True, **base),
        user([{"type": "text", "text": f"mend {HOSTILE} it\nsecond"}], **base),
        at=1000,
    )
    meta = {"type": "session_meta", "payload": {"id": CODEX, "cwd": "/elsewhere", "more": "x" * 30_000}}
    said = [("<environment_context>", "user"), ("fix codex", "user"), ("ok", "assistant")]
    items = [
        {"type": "response_item", "payload": {"role": role, "content": [{"type": "input_text", "text": text}]}}
        for text, role in said
    ]
    write(home / ".codex" / "sessions" / "2026" / "11" / "17" / "rollout-1.jsonl", meta, *items, at=2000)
    project = home / ".gemini" / "tmp" / "repository"
    context = {"type": "user", "content": [{"text": "<session_context> x"}]}
    write(
        project / "chats" / "session-1.jsonl",
        {"sessionId": GEMINI, "kind": "main"},
        {"$set": {"messages": [context]}},
        {"type": "user", "content": [{"text": "fix gemini"}]},
        at=3000,
    )
    (project / ".project_root").write_text(here)
    line = {"type": "user", "sessionId": QWEN, "cwd": here, "message": {"parts": [{"text": "fix qwen\n\n"}]}}
    write(home / ".qwen" / "projects" / "-x" / "chats" / f"{QWEN}.jsonl", line, at=4000)
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    with sqlite3.connect(database) as made:
        made.executescript(
            "CREATE TABLE session (id, parent_id, directory, time_updated);"
            "CREATE TABLE message (id, session_id, time_created, data);"
            "CREATE TABLE part (id, message_id, session_id, time_created, data);"
        )
        made.execute("INSERT INTO session VALUES ('ses_1', NULL, ?, 5000000), ('ses_2', 'ses_1', ?, 6)", (here, here))
        made.execute("""INSERT INTO message VALUES ('m', 'ses_1', 1, '{"role": "user"}')""")
        made.execute("""INSERT INTO part VALUES ('p', 'm', 'ses_1', 1, '{"type": "text", "text": "fix opencode"}')""")
    made.close()


def test_every_cli_newest_first(place: Place) -> None:
    write_all(place)
    rows = place.type("sessions", "--json").rows
    assert [(one["agent"], one["session"], one["prompt"]) for one in rows] == [
        ("opencode", "ses_1", "fix opencode"),
        ("qwen", QWEN, "fix qwen"),
        ("gemini", GEMINI, "fix gemini"),
        ("codex", CODEX, "fix codex"),
        ("claude", CLAUDE, rows[-1]["prompt"]),
    ]
    assert rows[-1]["prompt"].startswith("mend ")
    assert rows[-1]["prompt"].isprintable()
    assert [one["folder"] == str(place.repository) for one in rows] == [True, True, True, False, True]
    assert [one["at"] for one in rows][-1].startswith("1970-01-01T00:16:40")
    assert [one["agent"] for one in place.type("sessions", "--here", "--limit", "2", "--json").rows] == [
        "opencode",
        "qwen",
    ]
    assert [one["agent"] for one in place.type("sessions", "--agent", "codex", "--json").rows] == ["codex"]
    assert place.type("sessions", "--here", "--agent", "codex").err == "no sessions of this folder\n"
    unknown = place.type("sessions", "--agent", "ollama")
    assert (unknown.code, is_one_line(unknown)) == (2, True)
    lines = Terminal(place, "sessions", "--no-color", COLUMNS="60").end().splitlines()
    assert lines[0].startswith("opencode  ses_1  ")
    assert any(line.startswith(f"claude  {CLAUDE}  ") for line in lines)
    assert all(line.isprintable() and (len(line) < 60 or CLAUDE in line or "--session" in line) for line in lines)


@pytest.mark.parametrize(("agent", "session"), [("claude", CLAUDE), ("gemini", GEMINI), ("qwen", QWEN)])
def test_a_session_of_another_folder_is_refused(place: Place, agent: str, session: str) -> None:
    write_all(place)
    words = ("enqueue", "x", "--agent", agent, "--session", session)
    other = place.folder / "other"
    other.mkdir()
    refused = place.type(*words, "--workspace", str(other))
    assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert f"finds session {session} only in {place.repository}" in refused.err
    assert f"--workspace {place.repository}" in refused.err
    assert place.type(*words).code == 0
    unknown = place.type(*words[:-1], "00000000-0000-4000-8000-000000000000", "--workspace", str(other))
    assert unknown.code == 0, unknown  # its files may be elsewhere: the agent tells


def test_such_a_session_does_not_follow_into_a_worktree(place: Place) -> None:
    write_all(place)
    make_git(place)
    words = ("enqueue", "x", "--worktree", "--session")
    refused = place.type(*words, CLAUDE, "--agent", "claude")
    assert (refused.code, "remove --session or --worktree" in refused.err) == (2, True), refused
    assert place.type(*words, CODEX, "--agent", "codex").code == 0


def test_broken_huge_linked_and_forbidden_files(place: Place) -> None:
    projects = place.folder / ".claude" / "projects"
    write(projects / "-a" / "broken.jsonl", "{", "[1]", '"text"', at=1)
    write(projects / "-a" / "agent-1.jsonl", user("of a subagent", sessionId="s", cwd="/"), at=2)
    huge = write(projects / "-a" / "huge.jsonl", user("huge", sessionId="huge", cwd="/"), at=3)
    with huge.open("ab") as file:
        file.truncate(3 << 30)  # sparse
    os.utime(huge, (3, 3))
    secret = write(place.folder / "credentials.json", user("secret", sessionId="secret", cwd="/"), at=4)
    (projects / "-a" / "linked.jsonl").symlink_to(secret)
    (projects / "-b").symlink_to(projects / "-a")
    os.mkfifo(projects / "-a" / "pipe.jsonl")
    closed = write(projects / "-c" / "closed.jsonl", user("closed", sessionId="closed", cwd="/"), at=5)
    closed.chmod(0)
    (place.folder / ".local" / "share" / "kilo").mkdir(parents=True)
    (place.folder / ".local" / "share" / "kilo" / "kilo.db").write_text("not a database")
    listed = place.type("sessions", "--json", preexec_fn=obey_permissions)
    assert (listed.code, [one["session"] for one in listed.rows]) == (0, ["huge"])
    assert place.type("sessions", preexec_fn=obey_permissions).err == "3 files cannot be read\n"


@pytest.mark.parametrize("text", ["/x\0", "/x\ud800"])
def test_a_folder_that_no_path_can_name(place: Place, text: str) -> None:
    meta = {"type": "session_meta", "payload": {"id": CODEX, "cwd": text}}
    write(place.folder / ".codex" / "sessions" / "2026" / "11" / "17" / "rollout-1.jsonl", meta, at=1)
    assert [one["session"] for one in place.type("sessions", "--json").rows] == [CODEX]
    here = place.type("sessions", "--here")
    assert (here.code, here.err) == (0, "no sessions of this folder\n"), here


def test_accounts_and_the_run_that_owns_a_session(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    (session,) = place.type("show", "r", "--json").json["sessions"].values()
    work = place.folder / "work"
    config = place.folder / ".config" / "jackline" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[accounts.claude.work]\nCLAUDE_CONFIG_DIR = "{work}"\n')
    write(work / "projects" / "-x" / f"{session}.jsonl", user("hi", sessionId=session, cwd="/x"), at=1)
    token = "sk-ant-api03-" + "a1B2" * 24
    write(place.folder / ".claude" / "projects" / "-x" / "o.jsonl", user(f"key {token}", sessionId="o", cwd="/x"), at=2)
    other, own = place.type("sessions", "--json").rows
    assert (own["agent"], own["session"], own["run"]) == ("claude@work", session, "r")
    assert (other["agent"], other["run"]) == ("claude", None)
    assert token not in other["prompt"]
    assert [one["agent"] for one in place.type("sessions", "--agent", "claude@work", "--json").rows] == ["claude@work"]


def test_nothing_at_all(place: Place) -> None:
    empty = place.type("sessions")
    assert (empty.code, empty.out, empty.err) == (0, "", "no sessions\n")
    assert not place.home.exists()
