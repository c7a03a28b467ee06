"""Recognizes tasks, environments and verbs that send something, by their names. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy import path_args

if TYPE_CHECKING:
    from jackline.policy.command_line import CommandLine

_SENDING_TASKS = frozenset({"deploy", "publish", "upload", "push", "promote"})
_SENDING_ENVIRONMENTS = frozenset({"deploy", "publish", "upload", "release"})
_TASK_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_ENVIRONMENT_FLAG = re.compile(r"^(?:-[es]=?|--(?:env|envs|session|sessions)=)")
_MUTATING_NOUN = re.compile(
    r"(?:add|remove|set|update|create|delete|reset|enable|disable|patch|import|export|move|attach|detach|publish|deploy|get)-"
)
_CLOUD_GROUPS = frozenset({"config", "auth", "app", "logging", "container", "run", "sql", "iam", "dns"})


def names_sending_task(line: CommandLine, _: str) -> bool:
    """Check for a task such as `docker:push` or `dockerPush`; publishing to the local repository sends nothing."""
    for word in path_args.find_operands(line):
        for task in (text.split()[0] for text in word.text.split(";") if text.strip()):
            parts = {part.lower() for part in _TASK_PARTS.findall(task)}
            is_local = task.endswith(("ToMavenLocal", "publishLocal")) or task[:1].isupper()  # or the name of a class
            if not parts.isdisjoint(_SENDING_TASKS) and not is_local:
                return True
    return False


def names_sending_environment(line: CommandLine, _: str) -> bool:
    """Check for an environment or session such as `-epublish` or `-e py311,release`."""
    for word in line.words:
        if word.text == "--":
            return False
        if not _SENDING_ENVIRONMENTS.isdisjoint(re.split(r"[,:_.-]", _ENVIRONMENT_FLAG.sub("", word.text))):
            return True
    return False


def has_cloud_nouns(line: CommandLine, count: str) -> bool:
    """Check that the words before the verb of gcloud are groups: in `gcloud run deploy list`, a verb comes before."""
    nouns = [word.text for word in line.operands[: int(count)]]
    is_group = nouns[-1].endswith("s") or nouns[-1] == "project-info" or (len(nouns) == 1 and nouns[0] in _CLOUD_GROUPS)
    return is_group and not any(_MUTATING_NOUN.match(text) for text in nouns)
