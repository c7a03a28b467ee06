"""What a person is told of the secrets in what they asked for. It writes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import UsageError

if TYPE_CHECKING:
    from jackline.domain.records import Spec


def notes(asked: Spec, kept: Spec) -> list[str]:
    """A line for each text of a request that is not kept as it was given."""
    found = []
    if asked.prompt != kept.prompt:
        found.append(
            "the prompt holds what looks like a secret: it is kept as [redacted], and given to the agent so; "
            "pass a secret by an environment variable (docs/secrets.md)"
        )
    if asked.job != kept.job:
        found.append("the job file holds what looks like a secret: its text is kept as [redacted]")
    return found


def refuse_secret_proof(proof: str, what: str = "the proof") -> None:
    """A proof is kept as it is, because it has to be run: so it must not hold a secret."""
    if not proof:
        return
    from jackline.domain.secrets import Redactor
    from jackline.domain.secrets.variables import secret_values

    if Redactor(secret_values(os.environ)).finds(proof):
        raise UsageError(
            f"{what} holds what looks like a secret, and would be written down: "
            "put the command into a script that reads it from elsewhere"
        )
