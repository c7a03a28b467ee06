"""The drill's outside world: a little program with tools that count themselves in files. Knows no jackline.

usage: world.py FOLDER upload NAME     an effect: a line in FOLDER/outbox.jsonl; prints its id
       world.py FOLDER build NAME      local work: a file in the current folder
       world.py FOLDER look NAME       a read
       world.py FOLDER task NAME       the work of a subagent
       world.py FOLDER probe           reads a call as JSON on stdin: exit 0 if its upload is there, 1 if not

Every run of a tool is a line "begun" and a line "ended" in FOLDER/journal.jsonl. A tool stops for good at the moment
that a file FOLDER/halt.MOMENT.NAME names (half, done), but only once: the file is renamed to FOLDER/here.NAME, which
says that it has come so far.
"""

import contextlib
import hashlib
import json
import os
import re
import signal
import sys

_HALF = 64


def main(words: list[str]) -> int:
    """Run the command line."""
    match words:
        case [folder, "upload" | "build" | "look" | "task" as tool, name]:
            return run(folder, tool, name)
        case [folder, "probe"]:
            return probe(folder)
        case _:
            say(__doc__ or "", sys.stderr.fileno())
            return 2


def run(folder: str, tool: str, name: str) -> int:
    """One run of a tool, with its two lines in the journal."""
    note(folder, tool, name, "begun")
    printed = {"upload": upload, "build": build, "look": look, "task": task}[tool](folder, name)
    say(printed)  # half a line: whoever dies now has not heard all of it
    halt(folder, "done", name)
    note(folder, tool, name, "ended")
    say("\n")
    return 0


def upload(folder: str, name: str) -> str:
    """Send it in two halves; it is there for the world only when both are."""
    content = name * _HALF
    append(os.path.join(folder, f"part.{name}"), content[: len(content) // 2])
    halt(folder, "half", name)
    append(os.path.join(folder, "outbox.jsonl"), json.dumps({"id": id_of(name), "name": name, "pid": os.getpid()}))
    return id_of(name)


def build(folder: str, name: str) -> str:
    """Write a file of the workspace; half of it first."""
    with open(f"{name}.txt", "w", encoding="utf-8") as file:
        file.write("half, ")
        file.flush()
        say("building\n")
        halt(folder, "half", name)
        file.write("and whole\n")
    return f"{name}.txt"


def look(folder: str, name: str) -> str:
    """Change nothing."""
    halt(folder, "half", name)
    return f"{name}: nothing new"


def task(folder: str, name: str) -> str:
    """What a subagent would find out."""
    halt(folder, "half", name)
    return f"{name} is done"


def probe(folder: str) -> int:
    """Look whether the upload of a call has arrived; the name stands in the input itself, or in its command."""
    given = json.load(sys.stdin)["input"]
    command = re.search(r"upload\s+(\S+)", str(given.get("command", "")))
    name = command[1] if command else given.get("name", "")
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, "outbox.jsonl"), encoding="utf-8") as file:
        if any(json.loads(line)["name"] == name for line in file):
            say(id_of(name) + "\n")
            return 0
    return 1


def id_of(name: str) -> str:
    """Name an upload by what is uploaded."""
    return "upload-" + hashlib.sha256(name.encode()).hexdigest()[:10]


def halt(folder: str, moment: str, name: str) -> None:
    """Stop here for good, if a file says so; it says so to one run only."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(os.path.join(folder, f"halt.{moment}.{name}"), os.path.join(folder, f"here.{name}"))
        while True:
            signal.pause()


def note(folder: str, tool: str, name: str, what: str) -> None:
    """One line in the journal."""
    line = json.dumps({"tool": tool, "name": name, "what": what, "pid": os.getpid()})
    append(os.path.join(folder, "journal.jsonl"), line)


def append(path: str, line: str) -> None:
    """One line in one write: two programs may append at once, and a kill must leave no half of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def say(text: str, descriptor: int = 1) -> None:
    """Print it now, past every buffer."""
    os.write(descriptor, text.encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
