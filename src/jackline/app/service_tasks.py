"""The tasks of features in a running service. Each task has a separate thread and connection.

A feature names a function of (home) → list of tasks in the hook `service_tasks`; `features/service` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home


class ServiceContext(Protocol):
    """What a service gives to a task."""

    @property
    def home(self) -> Home:
        """The home, opened for this thread; only this thread may use it."""
        ...

    @property
    def service_id(self) -> str:
        """The id of this service, such as the owner of a claimed delivery."""
        ...

    @property
    def is_stopping(self) -> bool:
        """Whether the service is being stopped."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until something of the home changes, at most for some seconds; True if the service is being stopped."""
        ...


class ServiceTask(NamedTuple):
    """One task. `run` does what is due, and returns the seconds until it should look again.

    It is called again earlier if a process calls `Home.wake_services`. Errors of the store are retried by the service,
    with growing waits; any other error is logged, and the task is started again.
    """

    name: str
    run: Callable[[ServiceContext], float]
