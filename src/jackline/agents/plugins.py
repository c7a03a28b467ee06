"""Agents from other packages, by the entry point group `jackline.agents`. Isolates their errors.

Anything that such an adapter raises becomes one clear line: it must not break a turn, or hide other agents in a list.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from jackline.agents.json_fields import RAW
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from jackline.domain.states import Failure
from jackline.errors import AgentUnavailable, JacklineError

GROUP = "jackline.agents"
_FUNCTIONS = ("launch", "parse", "classify")
_DETAIL = 300


def list_names() -> tuple[str, ...]:
    """List the agents of the installed packages, without importing them."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load_plugin(name: str) -> Adapter:
    """Load the adapter of that name; AgentUnavailable if it is broken."""
    found = list(entry_points(group=GROUP, name=name))
    packages = sorted({point.dist.name if point.dist else point.value.partition(":")[0] for point in found})
    if len(packages) > 1:
        raise AgentUnavailable(name, why=f"{' and '.join(packages)} both provide it; uninstall one of them")
    point, package = found[0], packages[0]
    try:
        adapter = point.load()
    except Exception as error:  # noqa: BLE001 - a foreign module can raise anything on import
        raise AgentUnavailable(name, why=f"{package} cannot be loaded: {_describe(error)}") from None
    fault = _find_fault(adapter, name)
    if fault:
        raise AgentUnavailable(name, why=f"{package} provides no valid adapter: {point.value} {fault}")
    return PluginAdapter(adapter, package)


class PluginAdapter:
    """Holds a foreign adapter to the contract: it may fail only in the ways that an agent may."""

    def __init__(self, adapter: Adapter, package: str) -> None:
        self._adapter, self._package = adapter, package
        self.declaration = adapter.declaration

    def launch(self, request: TurnRequest) -> Launch:
        try:
            launch: object = self._adapter.launch(request)
        except JacklineError:
            raise
        except Exception as error:  # noqa: BLE001 - see the top of this file
            raise self._build_error(f"launch raised {_describe(error)}") from None
        if not isinstance(launch, Launch):
            raise self._build_error(f"launch returned {type(launch).__name__}, not Launch")
        return launch

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        """Parse a line; `raw` if the adapter fails."""
        try:
            events = tuple(self._adapter.parse(line))
        except Exception:  # noqa: BLE001 - see the top of this file
            return RAW
        return events if all(isinstance(one, AgentEvent) for one in events) else RAW

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        try:
            outcome: object = self._adapter.classify(exit_, events, tail)
        except Exception as error:  # noqa: BLE001 - see the top of this file
            return Outcome(failure=Failure.AGENT_ERROR, detail=f"{self._package}: classify raised {_describe(error)}")
        if isinstance(outcome, Outcome):
            return outcome
        return Outcome(
            failure=Failure.AGENT_ERROR,
            detail=f"{self._package}: classify returned {type(outcome).__name__}, not Outcome",
        )

    def _build_error(self, why: str) -> AgentUnavailable:
        return AgentUnavailable(self.declaration.name, why=f"{self._package}: {why}")


def _find_fault(adapter: Any, name: str) -> str:  # noqa: ANN401 - it can be anything
    """Why an object is not an adapter; empty if it is one."""
    declaration = getattr(adapter, "declaration", None)
    if not isinstance(declaration, Declaration):
        return "has no `declaration` (see docs/agents.md)"
    missing = [one for one in _FUNCTIONS if not callable(getattr(adapter, one, None))]
    if missing or isinstance(adapter, type):
        return f"has no function `{missing[0]}`" if missing else "is a class; name an instance of it"
    # Sessions and settings are stored by name: a second name for an agent would lose them.
    return "" if declaration.name == name else f"is declared as '{declaration.name}', not as '{name}'"


def _describe(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_DETAIL]
