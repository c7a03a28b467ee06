"""A small host: it starts an agent for every message, and loses no message when it dies. Standard library only.

host.py FOLDER scaffold                   create the agent's instance
host.py FOLDER message ID TEXT            accept a message
host.py FOLDER start PROGRAM [WORDS...]   replay unfinished items, then run the program for one item after the other
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
PAYLOAD_LIMIT = 100_000  # characters: the environment cannot hold more


class Host:
    """Runs workflows as subprocesses, and tells them who, where and why through the environment."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def environment(self, trigger: str, payload: object) -> dict[str, str]:
        """The environment of every process that is started for the agent."""
        variables = {
            "JACKLINE_HOME": self.folder,
            "JACKLINE_ACTOR": AGENT,
            "JACKLINE_HOST": HOST,
            "JACKLINE_TRIGGER": trigger,
            "JACKLINE_TRIGGER_PAYLOAD": json.dumps(payload),
        }
        return {**os.environ, **variables}

    def workflow(self, trigger: str, payload: object, *words: str, stdin: str = "") -> list[dict[str, Any]]:
        """Run one workflow. It prints one JSON object per line; an exit code other than 0 means that it was refused."""
        argv, environment = ["jackline", *words, "--json"], self.environment(trigger, payload)
        done = subprocess.run(argv, env=environment, input=stdin.encode(), stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    # the four hooks

    def on_start(self) -> None:
        """Requeue items in flight: this is the only host of the instance, so a host that died left them."""
        for item in self.workflow("start", {}, "work", "replay", "--older-than", "0s", "--requeue"):
            print(f"replayed {item['id']} ({item['attempts']} attempts so far)", flush=True)

    def on_message_accepted(self, name: str, text: str) -> None:
        """Enqueue the message before it is acknowledged; the same id twice is one item."""
        words = ("work", "enqueue", f"--id={name}", "--kind", "message", "--payload", "-")
        self.workflow("message", build_reference(name), *words, stdin=json.dumps({"text": text}))

    def on_state_transition(self) -> None:
        """Write the dashboard. Every change does that too; this is for hosts that want to be sure."""
        self.workflow("transition", {}, "dashboard")

    def on_error(self, item: dict[str, Any], error: str) -> None:
        """Record the error, then release the item; after its last attempt it has failed."""
        words = ("handling.failed", f"--work-item={item['id']}", "--payload", json.dumps({"error": error}))
        self.workflow("error", build_reference(item["id"]), "events", "append", *words)
        self.workflow("error", build_reference(item["id"]), "work", "release", *build_claim_flags(item))

    # the work

    def start(self, program: list[str]) -> None:
        """Handle one item after the other until the queue is empty."""
        self.on_start()
        while self.workflow("queue", {}, "work", "pending", "--kind", "message", "--limit", "1"):
            (item,) = self.workflow("queue", {}, "work", "next", "--kind", "message")
            self.handle(item, program)
            self.on_state_transition()

    def handle(self, item: dict[str, Any], program: list[str]) -> None:
        """Run the agent, an ordinary program that finds the message in its environment."""
        small = len(json.dumps(item["payload"])) <= PAYLOAD_LIMIT
        payload = item["payload"] if small else build_reference(item["id"])
        with subprocess.Popen(program, env=self.environment(item["kind"], payload)) as process:
            try:
                while (code := self.wait(process)) is None:
                    self.workflow("lease", build_reference(item["id"]), "work", "renew", *build_claim_flags(item))
            except BaseException:  # the item is lost, or this host must end: the program must not outlive it
                process.kill()
                raise
        if code == 0:
            words = ("work", "resolve", *build_claim_flags(item), "--status", "done")
            self.workflow("resolve", build_reference(item["id"]), *words)
        else:
            self.on_error(item, f"exit code {code}")

    def wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """Wait for the exit code; None when it is time to renew the lease."""
        try:
            return process.wait(RENEW_SECONDS)
        except subprocess.TimeoutExpired:
            return None


def build_reference(name: str) -> dict[str, str]:
    """A payload that only names the item; `jackline work get` reads the rest."""
    return {"work_item": name}


def build_claim_flags(item: dict[str, Any]) -> tuple[str, ...]:
    """The flags that prove the claim: a host that lost the item meanwhile is refused."""
    return (f"--id={item['id']}", "--token", str(item["token"]))


def main(folder: str = "", action: str = "", *words: str) -> None:
    """Run one action."""
    host = Host(folder)
    if (action, len(words)) == ("scaffold", 0):
        host.workflow("scaffold", {}, "scaffold", host.folder, "--host", HOST, "--agent", AGENT)
    elif (action, len(words)) == ("message", 2):
        host.on_message_accepted(*words)
    elif action == "start" and words and shutil.which(words[0]):  # otherwise every item would fail
        host.start(list(words))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
