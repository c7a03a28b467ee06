"""The outside world of the crash tests: a small program that appends a message to an outbox file.

usage: outbox.py send FILE TO TEXT     append the message, print its id
       outbox.py probe FILE            read a call as JSON on stdin: exit 0 if its message is there, 1 if not
"""

import hashlib
import json
import os
import sys


def message_id(to: str, text: str) -> str:
    """Derive the id of a message from its recipient and text."""
    return "msg-" + hashlib.sha256(f"{to}\n{text}".encode()).hexdigest()[:10]


def send(path: str, to: str, text: str) -> int:
    """Append one line and sync it to disk."""
    line = json.dumps({"id": message_id(to, text), "to": to, "text": text}) + "\n"
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    print(message_id(to, text))
    return 0


def probe(path: str) -> int:
    """Check whether the message of a call was sent."""
    wanted = json.load(sys.stdin)["input"]
    wanted_id = message_id(wanted["to"], wanted["text"])
    try:
        with open(path, encoding="utf-8") as file:
            found = any(json.loads(line)["id"] == wanted_id for line in file)
    except FileNotFoundError:
        return 1
    if found:
        print(wanted_id)
    return 0 if found else 1


def main(words: list[str]) -> int:
    """Run the command line."""
    match words:
        case ["send", path, to, text]:
            return send(path, to, text)
        case ["probe", path]:
            return probe(path)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
