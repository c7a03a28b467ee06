"""The records of iterations and reviews. Pure data: only runs that iterate load them."""

from __future__ import annotations

from jackline.named import NamedTuple, stored_as


@stored_as("run_id number tree failure digest detail at")
class Iteration(NamedTuple):
    """An iteration that is over, and what was wrong at its end."""

    run_id: str
    number: int
    tree: str
    failure: str
    digest: str  # equal for equal failures
    detail: str
    at: int

    @property
    def result(self) -> tuple[str, str, str]:
        """What two iterations have in common if nothing has moved between them."""
        return self.tree, self.failure, self.digest


@stored_as("run_id turn iteration review_round seat agent tree outcome resolved summary at")
class Verdict(NamedTuple):
    """What a reviewer said about one tree."""

    run_id: str
    turn: int
    iteration: int
    review_round: int
    seat: int
    agent: str
    tree: str
    outcome: str  # pass or fail
    resolved: int  # earlier findings that it calls resolved
    summary: str
    at: int


class Acceptance(NamedTuple):
    """A person has accepted the work of a review round, in which a reviewer gave no clear verdict."""

    review_round: int
    reason: str


@stored_as("run_id number review_round seat agent severity file line text state settled_round reason")
class Finding(NamedTuple):
    """Something that a reviewer wants to be changed."""

    run_id: str
    number: int
    review_round: int
    seat: int
    agent: str
    severity: str
    file: str
    line: int  # 0: the whole file
    text: str
    state: str = "open"
    settled_round: int = 0
    reason: str = ""  # why a person dismissed it

    @property
    def id(self) -> str:
        """Its name in prompts and commands."""
        return f"F{self.number}"
