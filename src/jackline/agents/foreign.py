"""Agents that other packages bring, by the entry point group `jackline.agents`. Their mistakes never become ours.

Whatever such an adapter raises ends as one clear line: a turn must not die of it, nor a listing hide the other agents.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from jackline.agents import reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure
from jackline.errors import AgentUnavailable, JacklineError

GROUP = "jackline.agents"
_FUNCTIONS = ("launch", "parse", "classify")
_DETAIL = 300


def names() -> tuple[str, ...]:
    """Those that are installed; nothing is imported for it."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load(name: str) -> Adapter:
    """The adapter behind a name, or AgentUnavailable with what is wrong with it."""
    found = list(entry_points(group=GROUP, name=name))
    packages = sorted({_package(point) for point in found})
    if len(packages) > 1:
        raise AgentUnavailable(name, why=f"{' and '.join(packages)} both bring it: uninstall one of them")
    point, package = found[0], packages[0]
    try:
        adapter = point.load()
    except Exception as error:  # noqa: BLE001 - a stranger's module can raise anything while it is imported
        raise AgentUnavailable(name, why=f"{package} cannot be loaded: {_words(error)}") from None
    wrong = _fault(adapter, name)
    if wrong:
        raise AgentUnavailable(name, why=f"{package} brings no adapter: {point.value} {wrong}")
    return Foreign(adapter, package)


class Foreign:
    """A stranger's adapter, held to the contract: it may fail, but only in the ways that an agent may."""

    def __init__(self, adapter: Adapter, package: str) -> None:
        self._adapter, self._package = adapter, package
        self.declaration = adapter.declaration

    def launch(self, request: TurnRequest) -> Launch:
        try:
            launch: object = self._adapter.launch(request)
        except JacklineError:
            raise
        except Exception as error:  # noqa: BLE001 - see the top of this file
            raise self._unusable(f"launch raised {_words(error)}") from None
        if not isinstance(launch, Launch):
            raise self._unusable(f"launch gave {type(launch).__name__}, not Launch")
        return launch

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        """What it made of a line; `raw` where it made nothing of it."""
        try:
            heard = tuple(self._adapter.parse(line))
        except Exception:  # noqa: BLE001 - see the top of this file
            return reading.RAW
        return heard if all(isinstance(one, Heard) for one in heard) else reading.RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        try:
            outcome: object = self._adapter.classify(exit_, heard, tail)
        except Exception as error:  # noqa: BLE001 - see the top of this file
            return Outcome(Failure.AGENT_ERROR, f"{self._package}: classify raised {_words(error)}")
        if isinstance(outcome, Outcome):
            return outcome
        return Outcome(Failure.AGENT_ERROR, f"{self._package}: classify gave {type(outcome).__name__}, not Outcome")

    def _unusable(self, why: str) -> AgentUnavailable:
        return AgentUnavailable(self.declaration.name, why=f"{self._package}: {why}")


def _fault(adapter: Any, name: str) -> str:  # noqa: ANN401 - it can be anything
    """What keeps an object from being an adapter; empty if nothing does."""
    declaration = getattr(adapter, "declaration", None)
    if not isinstance(declaration, Declaration):
        return "has no `declaration` (see docs/agents.md)"
    missing = [one for one in _FUNCTIONS if not callable(getattr(adapter, one, None))]
    if missing or isinstance(adapter, type):
        return f"has no function `{missing[0]}`" if missing else "is a class: name an object of it"
    # Sessions and settings are kept by the name: two names for one agent would lose them.
    return "" if declaration.name == name else f"is declared as '{declaration.name}', not as '{name}'"


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value.partition(":")[0]


def _words(error: Exception) -> str:
    """One line, whatever it says."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_DETAIL]
