"""The tools of a sandbox: a small program that records every run and effect in files. It does not know jackline.

usage: sandbox_tools.py FOLDER upload NAME     an effect: a line in FOLDER/outbox.jsonl; prints its id
       sandbox_tools.py FOLDER build NAME      local work: a file in the current folder
       sandbox_tools.py FOLDER look NAME       a read
       sandbox_tools.py FOLDER task NAME       the work of a subagent
       sandbox_tools.py FOLDER probe           reads a call as JSON on stdin: exit 0 if its upload is there, 1 if not

Every run of a tool is a line "begun" and a line "ended" in FOLDER/journal.jsonl. A tool stops forever at the moment
(half, done) that a file FOLDER/halt.MOMENT.NAME names, but only once: it renames the file to FOLDER/here.NAME, which
shows that it has arrived.
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
            write_out(__doc__ or "", sys.stderr.fileno())
            return 2


def run(folder: str, tool: str, name: str) -> int:
    """Run a tool, with its two lines in the journal."""
    write_journal(folder, tool, name, "begun")
    printed = {"upload": upload, "build": build, "look": look, "task": task}[tool](folder, name)
    write_out(printed)  # half a line: an agent that dies now has not read all of it
    halt(folder, "done", name)
    write_journal(folder, tool, name, "ended")
    write_out("\n")
    return 0


def upload(folder: str, name: str) -> str:
    """Send it in two halves; it has arrived only when both are sent."""
    content = name * _HALF
    append_line(os.path.join(folder, f"part.{name}"), content[: len(content) // 2])
    halt(folder, "half", name)
    append_line(
        os.path.join(folder, "outbox.jsonl"), json.dumps({"id": build_id(name), "name": name, "pid": os.getpid()})
    )
    return build_id(name)


def build(folder: str, name: str) -> str:
    """Write a file of the workspace, half of it first."""
    with open(f"{name}.txt", "w", encoding="utf-8") as file:
        file.write("half, ")
        file.flush()
        write_out("building\n")
        halt(folder, "half", name)
        file.write("and whole\n")
    return f"{name}.txt"


def look(folder: str, name: str) -> str:
    """Change nothing."""
    halt(folder, "half", name)
    return f"{name}: nothing new"


def task(folder: str, name: str) -> str:
    """Do the work of a subagent."""
    halt(folder, "half", name)
    return f"{name} is done"


def probe(folder: str) -> int:
    """Check whether the upload of a call has arrived; its name is in the input itself, or in its command."""
    arguments = json.load(sys.stdin)["input"]
    command = re.search(r"upload\s+(\S+)", str(arguments.get("command", "")))
    name = command[1] if command else arguments.get("name", "")
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, "outbox.jsonl"), encoding="utf-8") as file:
        if any(json.loads(line)["name"] == name for line in file):
            write_out(build_id(name) + "\n")
            return 0
    return 1


def build_id(name: str) -> str:
    """Derive the id of an upload from its name."""
    return "upload-" + hashlib.sha256(name.encode()).hexdigest()[:10]


def halt(folder: str, moment: str, name: str) -> None:
    """Stop here forever if the halt file exists; it stops one run only."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(os.path.join(folder, f"halt.{moment}.{name}"), os.path.join(folder, f"here.{name}"))
        while True:
            signal.pause()


def write_journal(folder: str, tool: str, name: str, what: str) -> None:
    """Append one line to the journal."""
    line = json.dumps({"tool": tool, "name": name, "what": what, "pid": os.getpid()})
    append_line(os.path.join(folder, "journal.jsonl"), line)


def append_line(path: str, line: str) -> None:
    """Append a line in one write: two programs may append at once, and a kill must not leave half a line."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_out(text: str, descriptor: int = 1) -> None:
    """Print it without buffering."""
    os.write(descriptor, text.encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
