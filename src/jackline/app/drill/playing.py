"""What a case needs from an agent, whichever it is: how it is started, and what plays along while it works."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from jackline.app.drill.cases import Case
from jackline.app.drill.place import Place
from jackline.named import NamedTuple


class Part(NamedTuple):
    """The words of `jackline run` for this case, and what is in the environment besides."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


class Player(Protocol):
    """An agent that can play the cases."""

    name: str

    def playing(self, case: Case, place: Place) -> AbstractContextManager[Part]:
        """Ready to be started, for as long as it is entered."""
