"""The built-in policy: rules for the tools of agent CLIs and for common programs. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.builtin import effects
from jackline.domain.builtin.tools import TOOLS
from jackline.domain.builtin.workspace_commands import FIRST_LOCALS, LOCALS, READS
from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALLOWED_PATHS = "use a path in the workspace or in a temporary folder, without variables"
UNPARSED = Rule("unparsed", "", CallClass.UNKNOWN)
NOTHING_RUN = Rule("shell.nothing", "", CallClass.READ, Replay.EXACT)
INSIDE_WRITE = Rule("local.write", "", CallClass.LOCAL, Replay.EXACT)
INEXACT_WRITE = Rule("inexact.write", "", CallClass.UNKNOWN)
OUTSIDE_WRITE = Rule(
    "outside.write", "", CallClass.EFFECT, Replay.ASK, Decision.ASK,
    key=("command", "folder", "stdin", "file:<"), target="file:{path}",
)  # fmt: skip
OUTSIDE_FILE = Rule(
    "outside.file", "", CallClass.EFFECT, Replay.IDEMPOTENT, Decision.ASK, target="file:{path}", probe="builtin:file"
)
OUTSIDE_DELETE = Rule(
    "outside.delete",
    "",
    CallClass.EFFECT,
    Replay.ASK,
    Decision.DENY,
    target="file:{path}",
    hint=f"to delete, {_ALLOWED_PATHS}",
)
HEART_DELETE = Rule("workspace.delete", "", CallClass.LOCAL, Replay.ASK, Decision.ASK)
# No diff shows these files, and the user runs them later without a gate.
HOOKS_WRITE = Rule("workspace.hooks", "", CallClass.LOCAL, Replay.ASK, Decision.ASK)
_ZONE_RULES = (
    UNPARSED, NOTHING_RUN, INSIDE_WRITE, INEXACT_WRITE, OUTSIDE_WRITE, OUTSIDE_FILE, OUTSIDE_DELETE, HEART_DELETE,
    HOOKS_WRITE,
)  # fmt: skip
COMMANDS = (*effects.FIRST, *FIRST_LOCALS, *READS, *effects.SECOND, *LOCALS, *effects.LAST)
RULES: tuple[Rule, ...] = (*TOOLS, *_ZONE_RULES, *COMMANDS)


def of_program(program: str) -> tuple[Rule, ...]:
    """Return the rules for a program, in matching order."""
    return _BY_PROGRAM.get(program, ())


def _index_by_program() -> Mapping[str, tuple[Rule, ...]]:
    known: dict[str, list[Rule]] = {}
    for rule in COMMANDS:
        for program in rule.command[0].split("|"):
            known.setdefault(program, []).append(rule)
    return {name: tuple(rules) for name, rules in known.items()}


_BY_PROGRAM = _index_by_program()
BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in reversed(RULES)}
BY_TOOL: Mapping[str, Rule] = {rule.tool: rule for rule in TOOLS if not rule.tool.endswith("*")}
BY_BEGINNING = tuple(rule for rule in TOOLS if rule.tool.endswith("*"))
