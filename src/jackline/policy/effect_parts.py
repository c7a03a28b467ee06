"""The effects of a shell call, each with what identifies it, whatever surrounds it in the call. Pure.

Only for runs that began under this version of the policy: earlier ones identify an effect with company by its text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass
from jackline.named import NamedTuple
from jackline.policy import call_fields, keys, path_zones
from jackline.policy.builtin.rule_rows import CONTENT_KEY
from jackline.policy.rules import DEFAULT_TARGET, is_host_input

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.policy.classify_command import ClassifiedCommand
    from jackline.policy.command_line import CommandLine
    from jackline.policy.rules import Rule
    from jackline.shell.model import ShellCommand

WORDS_KEY = ("executable", "variables", *CONTENT_KEY)  # of a rule without a key: the command as its program gets it
# The same words do something else as another user, or in another root.
_OTHER_USER = frozenset({"sudo", "doas", "su", "su -c", "runuser", "chroot"})
_REQUEST_RULE = "http.send"
_REQUEST_KEY = ("request", "headers", "body|file:@|")
# Variables that change how a program talks, not what it does; git and requests have their own checks.
_HARMLESS_VARIABLE = re.compile(
    r"(?:LANG|LC_\w+|LANGUAGE|TERM|COLUMNS|LINES|CI|DEBUG|VERBOSE|NO_COLOR|FORCE_COLOR|CLICOLOR\w*|PYTHONUNBUFFERED)="
)
_OF_FOLDER = frozenset({"folder", "executable"})


class EffectPart(NamedTuple):
    """One effect of a call."""

    rule: Rule  # with its key and target, or their defaults
    words: str
    fields: Mapping[str, Any]
    host_inputs: frozenset[str]
    folder: str
    unclear: str = ""  # why its text does not identify it; empty if it does
    is_stale: bool = False  # a command before it may change what the host knows about it

    @property
    def is_identified(self) -> bool:
        """Whether equal keys mean the same effect."""
        return not self.unclear and not self.is_stale


def complete_rule(rule: Rule, line: CommandLine, command: ShellCommand) -> Rule:
    """Return the rule with its default key and target, and the key of a request if the command is one."""
    if rule.name == _REQUEST_RULE:
        return rule._replace(key=_REQUEST_KEY) if _parse_request(line, command) else rule
    if rule.layer == "built-in" and rule.key:
        # `AWS_PROFILE=a aws …` and `AWS_PROFILE=b aws …` change different things.
        has_variables = line.program != "git" and bool(_list_variables(command, only_steering=True))
        return rule._replace(key=("variables", *rule.key)) if has_variables else rule
    spelled = " ".join(rule.command)
    program = "{program}" if not spelled or any(brace in spelled for brace in "{}") else spelled
    return rule._replace(key=rule.key or WORDS_KEY, target=rule.target or f"{DEFAULT_TARGET}{program}")


def build_identity_fields(
    rule: Rule, line: CommandLine, command: ShellCommand, folder: str | None, workspace: str
) -> dict[str, Any]:
    """Build the fields that make two spellings of one command equal."""
    fields: dict[str, Any] = {}
    if "executable" in rule.key:
        fields["executable"] = _find_executable(line.path, folder, workspace)
    if "variables" in rule.key:
        fields["variables"] = _list_variables(command, only_steering="executable" not in rule.key)
    if "url" not in rule.target and rule.key is not _REQUEST_KEY:
        return fields
    from jackline.policy import http_request, read_only  # only requests need it

    request = _parse_request(line, command)
    url = http_request.normalize_url(read_only.find_url(line.words)) if request is None else request.url
    fields["url"] = http_request.shorten_url(url)
    if request is not None:
        fields |= {"request": f"{request.method} {request.url}", "headers": request.headers, "body": request.body}
        fields |= {"@": request.body_file} if request.body_file else {}
    return fields


def runs_elsewhere(rule: Rule, command: ShellCommand) -> bool:
    """Check for a wrapper that changes what the words of a rule without a key mean."""
    return "executable" in rule.key and not _OTHER_USER.isdisjoint(command.through)


def _find_executable(path: str, folder: str | None, workspace: str) -> str:
    """Return the path of a program relative to the workspace; a bare name is found by the shell."""
    if "/" not in path or (folder is None and not path.startswith("/")):
        return path
    return str(keys.normalize_input({"path": path_zones.resolve_path(path, folder or "/")}, workspace)["path"])


def _list_variables(command: ShellCommand, *, only_steering: bool) -> list[str]:
    texts = {word.text for word in command.assignments}
    return sorted(text for text in texts if not (only_steering and _HARMLESS_VARIABLE.match(text)))


def _parse_request(line: CommandLine, command: ShellCommand) -> Any:  # noqa: ANN401 - imported here: only requests need it
    from jackline.policy.http_request import parse_request

    if line.program == "http" and (command.stdin or command.is_piped or call_fields.build_stdin_fields(command)):
        return None  # it sends its standard input
    return parse_request(line)


def has_unclear_address(rule: Rule, line: CommandLine) -> bool:
    """Check for a request that is identified by its words, and that may go elsewhere than its target says."""
    if rule.name != _REQUEST_RULE or rule.key is _REQUEST_KEY:
        return False
    from jackline.policy.http_request import has_clear_address

    return not has_clear_address(line)


def list_effect_parts(
    found: Sequence[ClassifiedCommand], whole: Mapping[str, Any], workspace: str
) -> tuple[EffectPart, ...]:
    """List the effects in the order of the call; `whole` are the fields of the whole call."""
    parts: list[EffectPart] = []
    has_changed = own_output = False
    for one in found:
        if one.rule.call_class is CallClass.EFFECT:
            parts.append(_build_part(one, whole, workspace, has_changed=has_changed))
            own_output = True
            continue
        own_output = own_output and one.is_output
        has_changed = has_changed or (one.rule.call_class is not CallClass.READ and not own_output)
    return tuple(parts)


def _build_part(one: ClassifiedCommand, whole: Mapping[str, Any], workspace: str, *, has_changed: bool) -> EffectPart:
    rule, folder = one.rule, one.folder
    fields = {**one.fields, **whole}
    if folder:
        fields["folder"] = str(keys.normalize_input({"cwd": folder}, workspace)["cwd"])
    host_inputs = keys.find_host_inputs(rule, fields) if folder else frozenset()
    unclear = one.unclear
    if not unclear and not one.is_exact:
        unclear = "a part of it is only known when it runs"
    if not unclear and not folder and any(name in _OF_FOLDER or is_host_input(name) for name in rule.key):
        unclear = "its folder is only known when it runs"
    return EffectPart(
        rule=rule,
        words=one.words,
        fields=fields,
        host_inputs=host_inputs,
        folder=folder,
        unclear=unclear,
        is_stale=has_changed and bool(host_inputs),
    )
