"""What the classification of a call depends on besides the rules and the call itself. Pure data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Decision
from jackline.named import NamedTuple
from jackline.policy.rules import POLICY_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.spec import Spec


def keep_path(path: str) -> str:
    """Resolve no link: for texts that are not about this machine."""
    return path


class CallContext(NamedTuple):
    """Where a call would run, and what its run agreed on; both folders are absolute."""

    workspace: str
    folder: str
    version: int = POLICY_VERSION  # of the policy under which the run began
    unmatched: Decision = Decision.ALLOW  # for calls that no rule matches
    resolve_link: Callable[[str], str] = keep_path  # the host follows links, as the shell would
    closed_ports: frozenset[int] = frozenset()  # on loopback: jackline's own listeners, and docker's


def build_context(
    spec: Spec,
    folder: str,
    resolve_link: Callable[[str], str] = keep_path,
    closed_ports: frozenset[int] = frozenset(),
) -> CallContext:
    """Build the context of a run's call in this folder."""
    return CallContext(
        workspace=spec.workspace,
        folder=folder,
        version=spec.policy_version,
        unmatched=Decision(spec.unmatched),
        resolve_link=resolve_link,
        closed_ports=closed_ports,
    )
