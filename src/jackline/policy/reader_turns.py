"""What a turn may call that only reads: a reviewer's, and one that plans. Pure.

A reviewer may also run the proof's command. Subagents ask the same gate, so that the same holds for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay, Role
from jackline.named import NamedTuple
from jackline.policy import builtin, tool_names
from jackline.policy.builtin.agent_tools import READER_TOOLS
from jackline.policy.classify import apply_folder, find_command_text

if TYPE_CHECKING:
    from jackline.policy.call_context import CallContext
    from jackline.policy.classify import Classification

READER_ROLES = frozenset({Role.PLAN, Role.REVIEW})
_REVIEWS = "Reviewers must not change anything. Read the files and report your findings in your answer."
_PLANS = "This turn only plans and must not change anything. Read what you need, and write the plan as your answer."


class ReaderTurn(NamedTuple):
    """A turn that may only read."""

    role: Role
    proof: str = ""  # the command that a reviewer may run
    is_gated: bool = True  # the agent asks before each call
    is_contained: bool = False  # the agent's own read-only mode is on

    def prevents(self, tool: str) -> bool:
        """Whether something prevents a call that it may not make.

        The agent's own mode holds its own tools; a server's tool runs in another process.
        """
        is_own = tool in tool_names.SHELL_TOOLS or tool in builtin.BY_TOOL
        return self.is_gated or (self.is_contained and is_own)


class LimitedCall(NamedTuple):
    """The classification of a call in such a turn, and why the turn may not make the call; empty if it may."""

    classified: Classification
    refusal: str = ""
    is_prevented: bool = True  # if it may not make it


def limit_to_reading(
    reader: ReaderTurn,
    classified: Classification,
    tool: str,
    given: Any,  # noqa: ANN401 - any JSON
    where: CallContext,
) -> LimitedCall:
    """Allow a read, the agent's own notes and subagents, and the proof's command; refuse everything else.

    Allowed calls never have to be repeated: the next reviewer starts over.
    """
    rule = classified.rule
    if rule.decision is Decision.DENY and reader.is_gated:
        return LimitedCall(classified)  # its own reason says more
    bare = classified._replace(host_inputs=frozenset(), effects=(), company=(), asking=(), discards=())
    if _is_proof(reader, tool, given, where):
        return LimitedCall(bare._replace(rule=builtin.REVIEW_PROOF))
    name = str(classified.fields.get("tool", tool))
    if rule.call_class is CallClass.READ or name in READER_TOOLS:
        return LimitedCall(classified._replace(rule=rule._replace(replay=Replay.REPORT)))
    refusal = _describe_refusal(reader)
    if not reader.prevents(name):
        return LimitedCall(classified, refusal, is_prevented=False)
    if not reader.is_gated:  # it runs already, in the agent's read-only mode: it cannot have an effect outside
        rule = rule._replace(
            call_class=CallClass.LOCAL, replay=Replay.REPORT, decision=Decision.ALLOW, most=None, probe=""
        )
    return LimitedCall(bare._replace(rule=rule), refusal)


def _is_proof(reader: ReaderTurn, tool: str, given: Any, where: CallContext) -> bool:  # noqa: ANN401 - any JSON
    """Whether a reviewer's call is exactly the proof's command, in its own copy of the work."""
    proof = reader.proof.strip()
    if reader.role is not Role.REVIEW or not proof:
        return False
    text = find_command_text(tool, given)
    folder = apply_folder(where, given).folder
    return text is not None and text.strip() == proof and f"{folder}/".startswith(f"{where.workspace.rstrip('/')}/")


def _describe_refusal(reader: ReaderTurn) -> str:
    if reader.role is not Role.REVIEW:
        return _PLANS
    proof = f" Apart from reading, the only allowed command is exactly: {reader.proof}" if reader.proof else ""
    return f"{_REVIEWS}{proof}"
