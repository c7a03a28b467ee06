"""Effects that the host makes itself: each is a call in the ledger, like one of an agent. The intent comes first."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from jackline import crash_points
from jackline.domain.call_gate import HOST
from jackline.domain.states import CallState, Decision
from jackline.engine.call_ledger import CallRequest, CallResult
from jackline.engine.command_runner import StillWanted, always_wanted, run_command
from jackline.engine.probes.findings import SILENT
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jackline.domain.records import Call
    from jackline.engine.call_ledger import CallLedger
    from jackline.engine.command_runner import CommandResult
    from jackline.engine.process import Warden

_TOOL = "Bash"
_OUTPUT = 65_536


class HostCallFailed(Exception):
    """An effect of the host did not happen, or may not have; the text says why."""

    def __init__(self, detail: str, doubts: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.doubts = doubts


class HostCaller(NamedTuple):
    """Makes effects of the host, below the attempt's warden."""

    ledger: CallLedger
    workspace: str
    env: Mapping[str, str]
    warden: Callable[[], Warden]
    wanted: StillWanted = always_wanted  # once this is False, a running call is killed; the next attempt probes it

    def run(self, words: Sequence[str], timeout_s: float, **variables: str) -> str:
        """Make the effect, unless it was made before; return its output. HostCallFailed if it did not happen."""
        name = " ".join(words[:2])
        request = CallRequest(tool=_TOOL, input={"command": shlex.join(words)}, door=HOST)
        answer = self.ledger.prepare_host_call(request)
        if answer.decision is Decision.STORED:
            return answer.output
        if answer.decision is not Decision.ALLOW:
            raise HostCallFailed(f"{name} is not allowed: {answer.reason}")
        result = self._execute(words, timeout_s, answer.call_id, variables)
        crash_points.crash_point("host.effect.made")
        output = b"\n".join(filter(None, (result.stdout_tail, result.stderr_tail))).decode("utf-8", "replace")
        call = self.ledger.finish(
            CallResult(
                call_id=answer.call_id,
                ok=result.exit_code == 0 and not result.timed_out,
                exit_code=result.exit_code,
                output=output,
                duration_ms=result.duration_ms,
            )
        )
        return _require_done(name, call, output)

    def _execute(
        self, words: Sequence[str], timeout_s: float, call_id: str, variables: Mapping[str, str]
    ) -> CommandResult:
        try:
            return run_command(
                words,
                cwd=self.workspace,
                env={**self.env, **SILENT, **variables},
                timeout_s=timeout_s,
                output_limit=_OUTPUT,
                below=self.warden(),
                wanted=self.wanted,
            )
        except SpawnFailed as error:
            self.ledger.settle_not_run(call_id, str(error))
            raise HostCallFailed(f"{words[0]} could not be started: {error}") from None
        except WardenLost as error:  # it may have happened: the next attempt finds out
            raise HostCallFailed(f"{' '.join(words[:2])}: {error}", (call_id,)) from None


def _require_done(name: str, call: Call, output: str) -> str:
    if call.state is CallState.DONE:
        return output
    last = " ".join(output.split())[-500:]
    if call.state is CallState.IN_DOUBT:
        raise HostCallFailed(f"it is unknown whether {name} took effect: {last}", (call.id,))
    raise HostCallFailed(f"{name} failed: {last or f'exit {call.exit_code}'}")
