"""A small host: it starts an agent for every message, and loses none when it dies itself. Standard library only.

host.py FOLDER scaffold                   lay down the agent's instance
host.py FOLDER message ID TEXT            a message was accepted
host.py FOLDER start PROGRAM [WORDS...]   replay what was left, then let the program handle one item after the other
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

HOST, AGENT = "grove", "forge"
RENEW_SECONDS = 300  # well within the lease of an item
MOST_PAYLOAD = 100_000  # characters: an environment takes no more


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

    def workflow(self, trigger: str, payload: object, *words: str, stdin: str = "") -> list[dict[str, Any]]:
        """One workflow; its output is one JSON object a line, and another exit code than 0 says that it was refused."""
        argv, environment = ["jackline", *words, "--json"], self.environment(trigger, payload)
        done = subprocess.run(argv, env=environment, input=stdin.encode(), stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    # the four hooks

    def on_start(self) -> None:
        """Nobody else works in this instance: what is in flight was left by a host that died, and is put back."""
        for item in self.workflow("start", {}, "work", "replay", "--older-than", "0s", "--requeue"):
            print(f"replayed {item['id']} ({item['attempts']} attempts so far)", flush=True)

    def on_message_accepted(self, name: str, text: str) -> None:
        """Into the queue before anybody is told that it was accepted; the same id twice is one item."""
        words = ("work", "enqueue", f"--id={name}", "--kind", "message", "--payload", "-")
        self.workflow("message", named(name), *words, stdin=json.dumps({"text": text}))

    def on_state_transition(self) -> None:
        """Every change writes the dashboard again by itself; this is for hosts that want to be sure."""
        self.workflow("transition", {}, "dashboard")

    def on_error(self, item: dict[str, Any], error: str) -> None:
        """Say what happened, then give the item back; after its last attempt it has failed."""
        words = ("handling.failed", f"--work-item={item['id']}", "--payload", json.dumps({"error": error}))
        self.workflow("error", named(item["id"]), "events", "append", *words)
        self.workflow("error", named(item["id"]), "work", "release", *hold(item))

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
        small = len(json.dumps(item["payload"])) <= MOST_PAYLOAD
        payload = item["payload"] if small else named(item["id"])
        with subprocess.Popen(program, env=self.environment(item["kind"], payload)) as process:
            try:
                while (code := self.wait(process)) is None:
                    self.workflow("lease", named(item["id"]), "work", "renew", *hold(item))
            except BaseException:  # the item is lost, or we are to end: nobody else would end the program
                process.kill()
                raise
        if code == 0:
            self.workflow("resolve", named(item["id"]), "work", "resolve", *hold(item), "--status", "done")
        else:
            self.on_error(item, f"exit code {code}")

    def wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """The exit code, or None when it is time to renew the lease."""
        try:
            return process.wait(RENEW_SECONDS)
        except subprocess.TimeoutExpired:
            return None


def named(name: str) -> dict[str, str]:
    """An item as a payload: whoever needs more of it asks for it, by `jackline work get`."""
    return {"work_item": name}


def hold(item: dict[str, Any]) -> tuple[str, ...]:
    """With the token of the claim: whoever lost the item meanwhile is refused."""
    return (f"--id={item['id']}", "--token", str(item["token"]))


def main(folder: str = "", action: str = "", *words: str) -> None:
    """Do one thing of a host."""
    host = Host(folder)
    if (action, len(words)) == ("scaffold", 0):
        host.workflow("scaffold", {}, "scaffold", host.folder, "--host", HOST, "--agent", AGENT)
    elif (action, len(words)) == ("message", 2):
        host.on_message_accepted(*words)
    elif action == "start" and words and shutil.which(words[0]):  # else every item would fail, one after the other
        host.start(list(words))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
