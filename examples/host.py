"""A small host: it starts an agent for every message, and loses none when it dies itself. Standard library only.

host.py FOLDER scaffold                   lay down the agent's instance
host.py FOLDER message ID TEXT            a message was accepted
host.py FOLDER start PROGRAM [WORDS...]   replay what was left, then let the program handle one item after the other
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

HOST, AGENT = "grove", "forge"
RENEW_SECONDS = 300  # well within the lease of an item


class Host:
    """What every host does: tell workflows who, where and why, and run them as subprocesses."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def environment(self, trigger: str, payload: object) -> dict[str, str]:
        """The contract with everything that is started for the agent."""
        told = {
            "JACKLINE_HOME": self.folder,
            "JACKLINE_ACTOR": AGENT,
            "JACKLINE_HOST": HOST,
            "JACKLINE_TRIGGER": trigger,
            "JACKLINE_TRIGGER_PAYLOAD": json.dumps(payload),
        }
        return {**os.environ, **told}

    def workflow(self, trigger: str, payload: object, *words: str) -> list[dict[str, Any]]:
        """One workflow; its output is one JSON object a line, and another exit code than 0 says that it was refused."""
        argv = ["jackline", *words, "--json"]
        done = subprocess.run(argv, env=self.environment(trigger, payload), stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    # the four hooks

    def on_start(self) -> None:
        """Nobody else works in this instance: what is in flight was left by a host that died, and is put back."""
        for item in self.workflow("start", {}, "work", "replay", "--older-than", "0s", "--requeue"):
            print(f"replayed {item['id']} ({item['attempts']} attempts so far)", flush=True)

    def on_message_accepted(self, name: str, text: str) -> None:
        """Into the queue before anybody is told that it was accepted; the same id twice is one item."""
        payload = {"text": text}
        words = ("--id", name, "--kind", "message", "--payload", json.dumps(payload))
        self.workflow("message", payload, "work", "enqueue", *words)

    def on_state_transition(self) -> None:
        """Every change writes the dashboard again by itself; this is for hosts that want to be sure."""
        self.workflow("transition", {}, "dashboard")

    def on_error(self, item: dict[str, Any], error: str) -> None:
        """Say what happened, then give the item back; after its last attempt it has failed."""
        words = ("handling.failed", "--work-item", item["id"], "--payload", json.dumps({"error": error}))
        self.workflow("error", item, "events", "append", *words)
        self.workflow("error", item, "work", "release", *hold(item))

    # the work

    def start(self, program: list[str]) -> None:
        """One item after the other, until the queue is empty."""
        self.on_start()
        while self.workflow("queue", {}, "work", "pending", "--kind", "message", "--limit", "1"):
            (item,) = self.workflow("queue", {}, "work", "next", "--kind", "message")
            self.handle(item, program)
            self.on_state_transition()

    def handle(self, item: dict[str, Any], program: list[str]) -> None:
        """The agent is a program like any other: it finds the message in its environment."""
        process = subprocess.Popen(program, env=self.environment(item["kind"], item["payload"]))
        while (code := self.wait(process)) is None:
            self.workflow("lease", item, "work", "renew", *hold(item))
        if code == 0:
            self.workflow(item["kind"], item, "work", "resolve", *hold(item), "--status", "done")
        else:
            self.on_error(item, f"exit code {code}")

    def wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """The exit code, or None when it is time to renew the lease."""
        try:
            return process.wait(RENEW_SECONDS)
        except subprocess.TimeoutExpired:
            return None


def hold(item: dict[str, Any]) -> tuple[str, ...]:
    """With the token of the claim: whoever lost the item meanwhile is refused."""
    return ("--id", item["id"], "--token", str(item["token"]))


def main(folder: str, action: str, *words: str) -> None:
    """Do one thing of a host."""
    host = Host(folder)
    if action == "scaffold":
        host.workflow("scaffold", {}, "scaffold", host.folder, "--host", HOST, "--agent", AGENT)
    elif action == "message":
        host.on_message_accepted(*words)
    else:
        host.start(list(words))


if __name__ == "__main__":
    main(*sys.argv[1:])
