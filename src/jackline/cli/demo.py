"""`jackline demo`: an agent is killed in the middle of a side effect, in two acts; the effect is there exactly once."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

from jackline.app import places
from jackline.demo.expecting import ended_so, expect
from jackline.demo.folder import new_folder
from jackline.demo.stage import Stage, build
from jackline.engine.command import CommandResult, run_command
from jackline.engine.settings import inherited

if TYPE_CHECKING:
    import argparse

    from jackline.app.home import Home
    from jackline.cli.output import Output

_ACTS = (
    (
        "act-one",
        "call.outcome.begun:3",
        "The message goes out, and in that instant everything dies: nobody wrote down that it was sent.",
        1,
    ),
    (
        "act-two",
        "call.intent.committed:3",
        "Everything dies after jackline noted that the message is about to be sent, and before it was.",
        0,
    ),
)
_TIMEOUT_S = 120.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Flags of the demo."""
    parser.add_argument("--keep", metavar="DIR", help="where to leave the demo's files (default: a temporary folder)")
    parser.add_argument("--agent", metavar="NAME", help="show your own CLI with a played model: no key, no provider")


def execute(args: argparse.Namespace, home: Home, out: Output) -> int:
    """Play both acts in a home of their own; the user's home and settings are neither touched nor followed."""
    if args.agent is not None:
        from jackline.cli import demo_agent

        return demo_agent.show(args.agent, args.keep, home, out)
    play = _Play(new_folder(args.keep), out)
    acts = [play.act(name, crash, story, sent) for name, crash, story, sent in _ACTS]
    if out.json:
        out.json_line({"folder": play.folder, "home": play.home, "acts": acts})
    else:
        play.close(configured=home.config.text("database"))
    return 0


class _Play:
    """The two acts, told in plain words."""

    def __init__(self, folder: str, out: Output) -> None:
        self.folder, self._out = folder, out
        self.home = os.path.join(folder, "home")
        # Without the user's config.toml: it may name their own database, or limits that the demo would run into.
        here = {"JACKLINE_HOME": self.home, "XDG_CONFIG_HOME": os.path.join(folder, "config")}
        self._env = {**inherited(os.environ), **here}

    def act(self, name: str, crash: str, story: str, sent: int) -> dict[str, Any]:
        """Kill, look, resume, look again."""
        stage = build(os.path.join(self.folder, name))
        self._git_init(stage)
        self._say(f"\n— {name.replace('-', ' ')} —\n{story}\n")
        self._say(f"  $ jackline run --agent scripted … --run-id {name}   (killed at {crash.partition(':')[0]})")
        killed = self._jackline(stage, "run", stage.prompt, *_request(stage, name), crash=crash)
        expect(killed.signal == 9, f"the run should have been killed, but: {_tail(killed)}")  # noqa: PLR2004
        self._count(stage, sent, "after the kill")
        self._say(f"  $ jackline resume {name}")
        resumed = self._jackline(stage, "resume", name)
        expect(resumed.exit_code == 0, f"the resume should have succeeded, but: {_tail(resumed)}")
        self._count(stage, 1, "after the resume")
        return {"run": name, "sent_before_kill": sent, "sent": 1, "receipt": self._receipt(stage, name, sent)}

    def close(self, *, configured: str) -> None:
        """What to look at next."""
        self._say("\nIn both acts the message is there exactly once. Look for yourself:\n")
        self._say(f"  export JACKLINE_HOME={shlex.quote(self.home)}")
        if configured:
            self._say(f"  export JACKLINE_DATABASE={shlex.quote(places.database(self.home, ''))}")
        for command in ("list --all-repos", "show act-one", "logs act-two", "db check"):
            self._say(f"  {_program()} {command}")
        self._say("")

    def _count(self, stage: Stage, expected: int, when: str) -> None:
        found = len(stage.messages())
        self._say(f"    {when} the outbox holds {found} message{'' if found == 1 else 's'}")
        expect(found == expected, f"expected {expected} {when}, found {found} in {stage.outbox}")

    def _receipt(self, stage: Stage, name: str, sent: int) -> object:
        shown = json.loads(self._jackline(stage, "show", name, "--json").stdout_tail)
        receipts = shown["receipts"]
        expect(len(receipts) == 1, f"expected one receipt, found {len(receipts)}")
        said = "had been sent, so it was not sent again" if sent else "had not been sent, so the agent sent it"
        self._say(f"    the probe found that it {said}")
        self._say(
            f"    receipt: {receipts[0]['target']} → {receipts[0]['external_id']} (from the {receipts[0]['origin']})"
        )
        return receipts[0]

    def _jackline(self, stage: Stage, *words: str, crash: str = "") -> CommandResult:
        env = {**self._env, "JACKLINE_CRASH_AT": crash} if crash else self._env
        argv = [sys.executable, "-m", "jackline", *words]
        return run_command(argv, cwd=stage.workspace, env=env, stdin=None, timeout_s=_TIMEOUT_S, output_limit=1 << 20)

    def _git_init(self, stage: Stage) -> None:
        if shutil.which("git"):
            run_command(
                ["git", "init", "-q"],
                cwd=stage.workspace,
                env=self._env,
                stdin=None,
                timeout_s=30.0,
                output_limit=4096,
            )

    def _say(self, text: str) -> None:
        if not self._out.json:
            self._out.line(text)


def _request(stage: Stage, name: str) -> list[str]:
    return ["--agent", "scripted", "--script", stage.script, "--policy", stage.policy, "--run-id", name]


def _program() -> str:
    """How this jackline can be called again, also when it is not on the PATH."""
    if shutil.which("jackline"):
        return "jackline"
    if os.path.basename(sys.argv[0]) != "jackline":
        return f"{shlex.quote(sys.executable)} -m jackline"
    near = os.path.relpath(sys.argv[0])
    return shlex.quote(os.path.abspath(near) if near.startswith(os.pardir) else near)


def _tail(result: CommandResult) -> str:
    return ended_so(result.exit_code, result.stderr_tail, result.stdout_tail)
