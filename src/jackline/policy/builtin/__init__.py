"""The built-in policy: rules for the tools of agent CLIs and for common programs. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision, Replay
from jackline.policy.builtin import effect_commands, mcp_tools
from jackline.policy.builtin.agent_tools import TOOL_RULES
from jackline.policy.builtin.newer_commands import NEWER_EFFECTS, NEWER_LOCALS, NEWER_READS, NEWER_RULES
from jackline.policy.builtin.workspace_commands import FIRST_LOCALS, LOCALS, READS
from jackline.policy.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ALLOWED_PATHS = "use a path in the workspace or in a temporary folder, without variables"
UNPARSED = Rule(name="unparsed", tool="", call_class=CallClass.UNKNOWN)
NOTHING_RUN = Rule(name="shell.nothing", tool="", call_class=CallClass.READ, replay=Replay.REPORT)
INSIDE_WRITE = Rule(name="local.write", tool="", call_class=CallClass.LOCAL, replay=Replay.REPORT)
INEXACT_WRITE = Rule(name="inexact.write", tool="", call_class=CallClass.UNKNOWN)
OUTSIDE_WRITE = Rule(
    name="outside.write", tool="", call_class=CallClass.EFFECT, replay=Replay.ASK, decision=Decision.ASK,
    key=("command", "folder", "stdin", "file:<"), target="file:{path}",
)  # fmt: skip
OUTSIDE_FILE = Rule(
    name="outside.file",
    tool="",
    call_class=CallClass.EFFECT,
    replay=Replay.IDEMPOTENT,
    decision=Decision.ASK,
    target="file:{path}",
    probe="builtin:file",
)
OUTSIDE_DELETE = Rule(
    name="outside.delete",
    tool="",
    call_class=CallClass.EFFECT,
    replay=Replay.ASK,
    decision=Decision.DENY,
    target="file:{path}",
    hint=f"to delete, {_ALLOWED_PATHS}",
)
VARIABLE_DELETE = Rule(
    name="rm.variable",
    tool="",
    call_class=CallClass.EFFECT,
    replay=Replay.ASK,
    decision=Decision.ASK,
    target="file:{path}",
    hint=f"to delete, {_ALLOWED_PATHS}",
)
ROOT_DELETE = Rule(
    name="workspace.delete", tool="", call_class=CallClass.LOCAL, replay=Replay.ASK, decision=Decision.ASK
)
# A tool that fetches pages, with a method or a body.
FETCH_SEND = Rule(
    name="fetch.send", tool="", call_class=CallClass.EFFECT, replay=Replay.ASK, decision=Decision.ASK,
    target="http:{url|uri|href|}",
)  # fmt: skip
# Programs that the user or a CLI starts later without a gate; see path_zones.py.
HOOKS_WRITE = Rule(
    name="workspace.hooks", tool="", call_class=CallClass.LOCAL, replay=Replay.ASK, decision=Decision.ASK
)
# Work that a git command would discard and that cannot be kept.
WORK_DISCARD = Rule(
    name="workspace.discard", tool="", call_class=CallClass.LOCAL, replay=Replay.ASK, decision=Decision.ASK,
    target="work:{discarded}",
)  # fmt: skip
# Text from another machine that is run unseen, as in `curl … | sh`.
FETCHED_SCRIPT = Rule(
    name="script.fetched", tool="", call_class=CallClass.EFFECT, decision=Decision.ASK, key=("command", "folder"),
    target="script:{fetched|}",
)  # fmt: skip
LOCAL_VIEW = Rule(name="local.view", tool="", call_class=CallClass.LOCAL, replay=Replay.REPORT)
# Instead of an effect's rule, if the command provably stays on this machine or only reads.
LOOPBACK_REQUEST = Rule(name="loopback.request", tool="", call_class=CallClass.LOCAL, replay=Replay.REPORT)
LOCAL_DATABASE = Rule(name="local.database", tool="", call_class=CallClass.LOCAL, replay=Replay.REPORT)
DATABASE_READ = Rule(name="read.database", tool="", call_class=CallClass.READ, replay=Replay.REPORT)
# The proof's command in a reviewer's copy of the work, whatever class it has otherwise; see reader_turns.py.
REVIEW_PROOF = Rule(name="review.proof", tool="", call_class=CallClass.LOCAL, replay=Replay.REPORT)
_ZONE_RULES = (
    UNPARSED, NOTHING_RUN, INSIDE_WRITE, INEXACT_WRITE, OUTSIDE_WRITE, OUTSIDE_FILE, OUTSIDE_DELETE, ROOT_DELETE,
    VARIABLE_DELETE, HOOKS_WRITE, LOOPBACK_REQUEST, LOCAL_DATABASE, DATABASE_READ, FETCHED_SCRIPT, LOCAL_VIEW,
    FETCH_SEND, WORK_DISCARD, REVIEW_PROOF,
)  # fmt: skip
COMMAND_RULES = (
    *effect_commands.FIRST, *FIRST_LOCALS, *READS, *NEWER_READS, *effect_commands.SECOND, *NEWER_EFFECTS, *LOCALS,
    *NEWER_LOCALS, *effect_commands.LAST,
)  # fmt: skip
RULES: tuple[Rule, ...] = (
    *TOOL_RULES, *mcp_tools.MCP_RULES, *_ZONE_RULES, effect_commands.PUSH_LEASE, effect_commands.PUSH_DELETE,
    *COMMAND_RULES,
)  # fmt: skip


def find_program_rules(program: str, version: int) -> tuple[Rule, ...]:
    """Return the rules for a program in a version of the policy, in matching order."""
    return (_BY_PROGRAM if version >= NEWER_VERSION else _OLDER_BY_PROGRAM).get(program, ())


def _index_by_program(rules: Iterable[Rule]) -> Mapping[str, tuple[Rule, ...]]:
    known: dict[str, list[Rule]] = {}
    for rule in rules:
        for program in rule.command[0].split("|"):
            known.setdefault(program, []).append(rule)
    return {name: tuple(found) for name, found in known.items()}


NEWER_VERSION = 2  # since which the rules of `newer_commands` apply
_BY_PROGRAM = _index_by_program(COMMAND_RULES)
_OLDER_BY_PROGRAM = _index_by_program(rule for rule in COMMAND_RULES if rule not in NEWER_RULES)
BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in reversed(RULES)}
BY_TOOL: Mapping[str, Rule] = {rule.tool: rule for rule in TOOL_RULES if not rule.tool.endswith("*")}
BY_PREFIX = tuple(rule for rule in TOOL_RULES if rule.tool.endswith("*"))
