"""What all adapters hear alike: one vocabulary, spelled in one place, from fields that may be anything. Pure."""

from __future__ import annotations

from typing import Any

from jackline.agents import reading
from jackline.domain.outcome import Heard
from jackline.domain.states import Failure


def session(value: object) -> tuple[Heard, ...]:
    """The id of the session; nothing where none is told."""
    known = reading.text(value)
    return (Heard("session", known),) if known else ()


def started(call: object, tool: object, given: object) -> Heard:
    """A call that began, by the CLI's own id of it; `given` is any JSON."""
    return Heard("call.started", data={"call": reading.text(call), "tool": reading.text(tool), "input": given})


def finished(call: object, output: str, *, ok: bool, exit_code: object = None) -> Heard:
    """A call that is over; with an exit code only where it had one."""
    data: dict[str, Any] = {"call": reading.text(call), "ok": ok, "output": output}
    is_code = isinstance(exit_code, int) and not isinstance(exit_code, bool)
    return Heard("call.finished", data={**data, "exit_code": exit_code} if is_code else data)


def retry(words: object, *, attempt: object, delay_ms: object = None, status: object = None) -> Heard:
    """Another try that the CLI makes by itself; None stands for what it does not tell."""
    data = {"attempt": attempt, "delay_ms": delay_ms, "status": status}
    told = {name: None if value is None else reading.whole(value) for name, value in data.items()}
    return Heard("retry", reading.text(words), told)


def compacted(trigger: object, *, before: int, after: int) -> Heard:
    """The CLI put a summary in the place of its conversation; with the tokens that it counted."""
    return Heard("compacted", data={"trigger": reading.text(trigger), "tokens_before": before, "tokens_after": after})


def error(words: str, failure: Failure, **more: object) -> Heard:
    """The CLI's own error line, with the class that it was found to have."""
    return Heard("error", words, {"class": str(failure), **more})
