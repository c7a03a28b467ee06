"""A check: the host itself runs the proof, in the agent's workspace and under the same warden."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jackline import faults
from jackline.domain.secrets.masking import Mask
from jackline.domain.signals import CheckEnded
from jackline.engine import threads
from jackline.engine.attempt import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jackline.domain.outcome import Exit
    from jackline.domain.records import Check
    from jackline.engine.child import Child
    from jackline.engine.process import Warden

_TAIL = 16_384


class CheckJob:
    """A check under way; its end is reported as a signal."""

    def __init__(
        self,
        check: Check,
        now: Callable[[], int],
        post: Callable[[Signal | BaseException], None],
        secrets: Iterable[str] = (),
    ) -> None:
        """The check is written down already; nothing is started yet. `secrets` are covered in its output."""
        self._check, self._now, self._post = check, now, post
        self._masks = {source: Mask(secrets) for source in ("stdout", "stderr")}
        self._tail = b""
        self.child: Child | None = None

    def start(self, warden: Warden, env: dict[str, str], workspace: str) -> None:
        """Run the command with the shell, as a person would type it."""
        self.child = warden.spawn(("/bin/sh", "-c", self._check.command), env, workspace, stdin=None)
        threads.start("check", partial(self._attend, self.child), self._post)

    def _attend(self, child: Child) -> None:
        while not child.drained:
            for chunk in child.read():
                self._keep(self._masks[chunk.source].feed(chunk.data))
        for mask in self._masks.values():
            self._keep(mask.end())
        exit_ = child.wait()
        child.close()
        self._report(exit_)

    def _keep(self, covered: bytes) -> None:
        """Covered before it is cut: the second half of a secret would not be known as one."""
        self._tail = (self._tail + covered)[-_TAIL:]

    def _report(self, exit_: Exit | None) -> None:
        faults.reach("check.finished")
        code = exit_.code if exit_ else None
        at = self._now()
        check = self._check._replace(ended_at=at, exit_code=code, output=self._tail.decode("utf-8", "replace"))
        detail = f"proof failed ({f'exit {code}' if code is not None else 'killed'}): {check.command}"
        self._post(Signal(CheckEnded(at, code, "" if code == 0 else detail), check=check))
