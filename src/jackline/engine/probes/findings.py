"""The context of a built-in probe: the call, its stored key inputs, and a way to run programs. It decides nothing.

Programs run below the attempt's warden and never prompt; all programs of a probe share its timeout.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from jackline.clock import boot_ms
from jackline.engine.command_runner import CommandResult, StillWanted, always_wanted, run_command
from jackline.engine.git import Git
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.records import Call
    from jackline.engine.process import Warden


HAPPENED, DID_NOT, UNKNOWN = "happened", "did_not", "unknown"
SENT_AGAIN = "idempotent: sent again with its key"


class ProbeFinding(NamedTuple):
    """Whether an effect happened, the evidence, and its external id."""

    verdict: str
    evidence: str = ""
    external_id: str = ""
    probe: str = ""  # the probe and how it ended; empty: none ran, the rule decides
    again: bool = False  # it may have happened, but sending it again is harmless


def build_unknown(evidence: str) -> ProbeFinding:
    """A finding without a verdict; a person sees the evidence."""
    return ProbeFinding(verdict=UNKNOWN, evidence=evidence)


def combine_findings(findings: Sequence[ProbeFinding]) -> ProbeFinding:
    """Combine findings: all happened, or none did; anything else is unknown."""
    if len(findings) == 1:
        return findings[0]
    verdicts = {one.verdict for one in findings}
    return ProbeFinding(
        verdict=verdicts.pop() if len(verdicts) == 1 else UNKNOWN,
        evidence="\n".join(f"{one.verdict.replace('_', ' ')}: {one.evidence}" for one in findings if one.evidence),
        external_id=next((one.external_id for one in reversed(findings) if one.external_id), ""),
        probe=", ".join(dict.fromkeys(one.probe for one in findings if one.probe)),
        again=any(one.again for one in findings),
    )


_OUTPUT = 4 * 1024 * 1024
_TEXT = 2_000
SILENT = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never", "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GH_PAGER": "cat",
    "NO_COLOR": "1", "LC_ALL": "C",
}  # fmt: skip
_SHELL_FIELDS = ("command", "cmd", "script")


class ProbeContext(NamedTuple):
    """A call in doubt, and the means to examine it."""

    call: Call
    input: Any  # the whole input, as JSON
    stored: Mapping[str, str]  # the key inputs that were stored with the intent
    workspace: str
    env: Mapping[str, str]
    deadline_ms: int  # on the boot clock
    warden: Warden
    wanted: StillWanted = always_wanted

    @property
    def folder(self) -> str:
        """Where the call ran, if it was stored."""
        return os.path.join(self.workspace, self.stored.get("folder", ""))

    @property
    def seconds_left(self) -> float:
        """The rest of the probe's timeout."""
        return max(0.1, (self.deadline_ms - boot_ms()) / 1000)

    @property
    def git(self) -> Git:
        """Git in the repository of the call; it starts no program named by the repository."""
        return Git(workspace=self.folder, env=self.env, warden=self.warden, timeout_s=min(10.0, self.seconds_left))

    def find_field(self, *names: str) -> str | None:
        """The first of these input fields that is a text."""
        given = self.input if isinstance(self.input, dict) else {}
        return next((given[name] for name in names if isinstance(given.get(name), str)), None)

    def find_shell_text(self) -> str | None:
        """The shell command of the call; None if it is not a shell call."""
        from jackline.policy.classify import find_command_text

        return find_command_text(self.call.tool, self.input) or self.find_field(*_SHELL_FIELDS)

    def run_program(self, words: Sequence[str], *, folder: str = "", **variables: str) -> CommandResult | str:
        """Run a program; return its result, or why it failed."""
        try:
            result = run_command(
                words,
                cwd=folder or self.folder,
                env={**self.env, **SILENT, **variables},
                timeout_s=self.seconds_left,
                output_limit=_OUTPUT,
                below=self.warden,
                wanted=self.wanted,
            )
        except (SpawnFailed, WardenLost) as error:
            return str(error)
        return result if result.exit_code == 0 and not result.timed_out else f"{words[0]}: {describe_exit(result)}"


def describe_exit(result: CommandResult) -> str:
    """Describe how a command ended: its exit, then its last output."""
    if result.timed_out:
        ending = f"no answer within {result.duration_ms / 1000:.0f} s"
    else:
        ending = f"killed by signal {result.signal}" if result.exit_code is None else f"exit {result.exit_code}"
    last = (result.stderr_tail.strip() or result.stdout_tail.strip()).decode("utf-8", "replace")[-_TEXT:]
    return f"{ending}: {last}" if last else ending


def read_stored_inputs(call: Call) -> dict[str, str]:
    """The key inputs that were stored with a call; empty if they cannot be read."""
    values = parse_json(call.external)
    return {name: value for name, value in values.items() if isinstance(value, str)} if isinstance(values, dict) else {}


def parse_json(text: str) -> Any:  # noqa: ANN401 - a tool's input is any JSON
    """Parse JSON; None if it is incomplete or invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
