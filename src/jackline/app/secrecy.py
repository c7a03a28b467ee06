"""Warns about secrets in a request, and rejects them in proof commands. It writes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import UsageError

if TYPE_CHECKING:
    from jackline.domain.records import Spec


def notes(asked: Spec, kept: Spec) -> list[str]:
    """Return a note for each text of a request that is stored redacted."""
    found = []
    if asked.prompt != kept.prompt:
        found.append(
            "the prompt seems to contain a secret: it is stored and passed to the agent as [redacted]; "
            "use an environment variable for secrets (docs/secrets.md)"
        )
    if asked.job != kept.job:
        found.append("the job file seems to contain a secret: it is stored as [redacted]")
    return found


def refuse_secret_proof(proof: str, what: str = "the proof") -> None:
    """Reject a proof that contains a secret: it is stored as it is, because it has to be run."""
    if not proof:
        return
    from jackline.domain.secrets import Redactor
    from jackline.domain.secrets.variables import secret_values

    if Redactor(secret_values(os.environ)).finds(proof):
        raise UsageError(
            f"{what} seems to contain a secret and would be stored as it is; "
            "move the command to a script that reads the secret from elsewhere"
        )
