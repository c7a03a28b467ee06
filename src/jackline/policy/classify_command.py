"""Classifies one shell command: configured rules come before the built-in ones. Pure.

Files that it writes or deletes are classified separately: a read whose output goes to a file outside is not a read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple
from jackline.policy import (
    builtin,
    call_fields,
    command_line,
    effect_parts,
    fetched_scripts,
    file_effects,
    git_push_args,
    hidden_programs,
    local_services,
    output_flags,
    path_args,
    path_zones,
    rule_lookup,
    sent_files,
)
from jackline.policy.builtin import effect_commands
from jackline.policy.command_line import CommandLine
from jackline.policy.path_args import PathChange
from jackline.policy.path_zones import PathZone
from jackline.policy.risky_variables import find_output_variables, has_risky_variables, needs_whole_key
from jackline.policy.rules import FILES_KEYED, REWORDED, rank_class, rank_decision
from jackline.shell.model import ShellCommand, Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.policy.call_context import CallContext
    from jackline.policy.fetched_scripts import Fetches
    from jackline.policy.rules import Rule

_LISTING = frozenset({"find", "grep", "rg", "fd", "sort", "uniq", "head", "tail"})
_UNMATCHED_TARGET = "command:{called}"
# A path that begins with a variable, unless it is known to be outside or leads up again.
_VARIABLE = re.compile(r"\$(?!\{?(?:HOME|OLDPWD|PATH|SHELL|XDG_)|\(|\W*\.\.)(?!.*/\.\.(?:/|$))", re.DOTALL)
KEPT_REFS = "refs/jackline"
_FORCED_PUSH = "git.push.force"
_MOST_DEPTH = 4
# Variables that name the repository, the host, the proxy or the settings of a command.
_LEADING = (
    "GH_", "GITLAB_", "GLAB_", "GIT_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy",
    "all_proxy", "HOME=", "XDG_CONFIG_HOME=", "CURL_HOME=", "WGETRC=",
)  # fmt: skip
_MOST_SHOWN = 4  # required flags that an explanation lists
_MOST_SEARCHED = 50  # most commands that are checked for each command fed by another one


class ClassifiedCommand(NamedTuple):
    """A command, or a file that it opens, with its rule."""

    words: str
    rule: Rule
    why: str
    fields: Mapping[str, Any] = NOTHING
    is_exact: bool = True  # its words are known before it runs
    folder: str = ""  # where it runs; empty if unknown
    is_output: bool = False  # a file that the previous command writes to
    unclear: str = ""  # why the text does not identify this effect; empty if it does
    is_redirected: bool = False  # a variable, or another command of the call, may lead it elsewhere
    moves_head: bool = False  # another command of the call may check out another branch before it


class ShellText(NamedTuple):
    """All commands of a call, and what they do for each other."""

    commands: tuple[ShellCommand, ...]
    copies: Mapping[str, str]  # files that the call itself copies, by their new names
    fetches: Fetches | None  # what it fetches from other machines


def survey_text(commands: tuple[ShellCommand, ...]) -> ShellText:
    """Collect once what each command of a call needs to know about the others."""
    copies, fetches = hidden_programs.find_copies(commands), fetched_scripts.find_fetches(commands)
    return ShellText(commands=commands, copies=copies, fetches=fetches)


class _Scope(NamedTuple):
    """The rules, tool and folders that apply to a command."""

    rules: tuple[Rule, ...]
    tool: str
    text: ShellText
    workspace: str
    folder: str | None
    context: CallContext

    def list_hidden_lines(self, command: ShellCommand) -> tuple[CommandLine, ...]:
        """Return what the command may stand for; an older run classifies it as written."""
        if self.context.version < REWORDED:
            return ()
        return hidden_programs.list_hidden_lines(command, self.folder, self.text.copies, self.context.resolve_link)


def classify_command(
    rules: tuple[Rule, ...],
    tool: str,
    command: ShellCommand,
    text: ShellText,
    where: CallContext,
) -> Iterator[ClassifiedCommand]:
    """Classify the command itself, then every file that is opened for it."""
    folder = None if command.folder is None else path_zones.resolve_path(command.folder, where.folder)
    scope = _Scope(
        rules=rules,
        tool=tool,
        text=text,
        workspace=where.workspace,
        folder=folder,
        context=where,
    )
    if command.words:
        yield _classify(command, scope, _MOST_DEPTH)
    stdin = call_fields.build_stdin_fields(command) if command.redirects else NOTHING
    for redirect in command.redirects:
        if (">" in redirect.operator or path_zones.opens_connection(redirect.target)) and (
            redirect.target.text not in path_zones.DEVICES
        ):
            target = f"{redirect.operator} {redirect.target.text}"
            change = PathChange(redirect.target)
            found = _classify_change(change, target, None, command, scope, stdin)._replace(is_output=True)
            if command.words and found.rule.call_class is CallClass.EFFECT:
                found = _add_sent_files(found, command_line.parse_line(command.words), command, scope)
            yield found


def _classify(command: ShellCommand, scope: _Scope, depth: int) -> ClassifiedCommand:
    text = " ".join(word.text for word in command.words)
    words = f"{text} (through {', '.join(command.through)})" if command.through else text
    line = command_line.parse_line(command.words)
    inner = command_line.find_inner_command(line) if depth else None
    hidden = scope.list_hidden_lines(command)
    own = _find_configured_rule(scope, line, command, hidden)
    if inner is not None and own is None:
        return _classify(command._replace(words=inner), scope, depth - 1)._replace(words=words)
    certain, written = line.is_certain, line
    base, line, why = own or _find_builtin_rule(line, command, hidden, scope.context.version)
    if own is None and base.name == _FORCED_PUSH and scope.context.version >= REWORDED:
        base = _find_milder_push(line) or base
    if own is None and certain and not has_risky_variables(command, line.program):
        laxer = local_services.find_laxer_rule(base, line, command, scope.context, is_written=line is written)
        base, why = laxer or (base, why)
    found = ClassifiedCommand(words=words, rule=base, why=why, folder=scope.folder or "")
    if own is None and base.call_class is not CallClass.EFFECT and scope.context.version >= builtin.NEWER_VERSION:
        found = _apply_fetched_script(found, command, scope)
        base = found.rule
    if own is None and base.call_class in {CallClass.READ, CallClass.LOCAL}:
        found = _apply_changes(found, line, command, scope)
    elif own is None and base.call_class is CallClass.UNKNOWN:
        found = _apply_unmatched(found, command, scope)
    found = _apply_tightening(found, scope, line, command, hidden)
    if found.rule.call_class is not CallClass.EFFECT:
        return found
    if scope.context.version >= REWORDED:
        found = found._replace(rule=effect_parts.complete_rule(found.rule, line, command))
    found = _add_sent_files(found, line, command, scope)
    named = {**call_fields.build_fields(found.rule, line, command), **found.fields}
    if scope.context.version >= REWORDED:
        named |= effect_parts.build_identity_fields(found.rule, line, command, scope.folder, scope.workspace)
    sure = (
        certain and line.first_uncertain >= len(found.rule.command) - 1 and not needs_whole_key(command, line.program)
    )
    exact = sure and all(word.exact for word in line.words) and not _is_fed(command)
    redirected = any(text.startswith(_LEADING) for text, _ in command.assignments)
    unclear = _find_unclear(found.rule, line, command, is_sure=sure)
    found = found._replace(fields=named, is_exact=exact, is_redirected=redirected, unclear=unclear)
    return _set_git_folder(found, line)


def _add_sent_files(
    found: ClassifiedCommand, line: CommandLine, command: ShellCommand, scope: _Scope
) -> ClassifiedCommand:
    """Add the local files whose content an effect depends on."""
    if scope.context.version < FILES_KEYED:
        return found
    rule = sent_files.add_file_inputs(found.rule, line)
    if rule is found.rule:
        return found
    sources = sent_files.list_sources(rule, line, scope.text.commands if command.is_piped else ())
    return found._replace(rule=rule, fields={**found.fields, sent_files.SOURCES: sources} if sources else found.fields)


def _removes_kept_work(line: CommandLine) -> bool:
    """Check for a command that changes the refs where discarded work is kept; reading them is harmless."""
    verb = line.operands[0].text if line.operands else ""
    if line.program == "git" and verb == "update-ref" and any(word.text.startswith("--std") for word in line.words):
        return True
    if not any(KEPT_REFS in word.text for word in line.words):
        return False
    return line.program != "git" or verb in {"update-ref", "symbolic-ref", "fetch", "pull"}


def _find_unclear(rule: Rule, line: CommandLine, command: ShellCommand, *, is_sure: bool) -> str:
    """Say which part of an effect is only known when it runs."""
    inexact = next((word.text for word in line.words if not word.exact), None)
    if inexact is not None:
        return f"'{inexact}' is only known when it runs"
    if _is_fed(command):
        return "its arguments come from another program"
    if command.is_piped:
        return "its input comes from another program"
    if effect_parts.runs_elsewhere(rule, command):
        return "it runs as another user"
    if effect_parts.has_unclear_address(rule, line):
        return "its options may send it to another address, or to several"
    return "" if is_sure else "its options or variables may make it another command"


# --- which rule


def _find_configured_rule(
    scope: _Scope, line: CommandLine, command: ShellCommand, hidden: tuple[CommandLine, ...]
) -> tuple[Rule, CommandLine, str] | None:
    for rule in rule_lookup.sort_by_layer(scope.rules):
        if rule.tightens:
            continue
        fitting = _match_line(rule, scope, line, command, hidden)
        if fitting is not None:
            return rule, fitting, _describe_match(rule)
    return None


def _match_line(
    rule: Rule, scope: _Scope, line: CommandLine, command: ShellCommand, hidden: tuple[CommandLine, ...]
) -> CommandLine | None:
    """Return the line as the rule matches it, or None if it does not match."""
    if rule.tool and not rule_lookup.matches_tool(rule, scope.tool):
        return None
    if not rule.command:
        return line if rule.tool else None
    if scope.context.version >= REWORDED:
        if command_line.is_lenient(rule):
            reworded = hidden_programs.match_hidden_line(rule, (line, *hidden), scope.folder)
            if reworded is not None:
                return reworded
        elif hidden_programs.matches_named_file(rule, line, scope.folder, scope.workspace):
            return None if has_risky_variables(command, line.program) else line
    if command_line.matches_rule(rule, line) and not (
        has_risky_variables(command, line.program) and not command_line.is_lenient(rule)
    ):
        return line
    if line.is_certain or not command_line.is_lenient(rule):
        return None
    return next(
        (one for one in command_line.parse_shifted(command.words) if command_line.matches_rule(rule, one)), None
    )


def _find_builtin_rule(
    line: CommandLine, command: ShellCommand, hidden: tuple[CommandLine, ...], version: int
) -> tuple[Rule, CommandLine, str]:
    if version >= builtin.NEWER_VERSION:
        line = command_line.accept_build_wrapper(line)
    written = _find_written_rule(line, command, version)
    if written[0].call_class is CallClass.EFFECT:
        return written
    for one in hidden:
        for rule in builtin.find_program_rules(one.program, version):
            restricts = rule.call_class is CallClass.EFFECT or rule.decision is not Decision.ALLOW
            if restricts and command_line.matches_rule(rule, one):
                return rule, one, _describe_match(rule)
    return written


def _find_written_rule(line: CommandLine, command: ShellCommand, version: int) -> tuple[Rule, CommandLine, str]:
    # An unknown program may be a wrapper before the real one.
    if command_line.asks_for_help(line):
        return builtin.NOTHING_RUN, line, "it only prints help"
    lines = (line,) if line.is_certain else tuple(command_line.parse_shifted(command.words))
    for one in lines:
        subcommand = one.operands[0].text if one.operands and one.first_uncertain else None
        for rule in _find_candidates(one.program, subcommand, version):
            # A harmless name among the arguments does not make an unknown program harmless.
            if command_line.matches_rule(rule, one) and (
                command_line.is_lenient(rule) or (line.is_certain and not has_risky_variables(command, one.program))
            ):
                return rule, one, _describe_match(rule)
    if not line.is_certain:
        return rule_lookup.UNMATCHED, line, "the program is only known at run time"
    return rule_lookup.UNMATCHED, line, f"no rule matches '{line.program}' with these arguments"


def _find_milder_push(line: CommandLine) -> Rule | None:
    """The rule of a forced push that overwrites only what the agent has seen, or of the deletion of a remote branch."""
    if not line.is_certain or not all(word.exact for word in line.words):
        return None
    words = git_push_args.skip_git_options([word.text for word in line.words])
    push = git_push_args.parse_push(words[1:])
    flags = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
    forcing = (flag for name in ("--mirror", "--prune", "--force") for flag in flags if name.startswith(flag))
    if any(len(flag) > len("--") for flag in forcing) or any(one.force for one in push.refspecs):
        return None
    if any("f" in flag for flag in flags if not flag.startswith("--")):
        return None
    if any(not one.source for one in push.refspecs):
        return effect_commands.PUSH_DELETE if not push.several else None
    return effect_commands.PUSH_LEASE if any(one.startswith("--force-with-lease") for one in flags) else None


@lru_cache(maxsize=1024)
def _find_candidates(program: str, subcommand: str | None, version: int) -> tuple[Rule, ...]:
    """Return the built-in rules that may match; `subcommand` is None if it cannot be determined."""
    rules = builtin.find_program_rules(program, version)
    if subcommand is None:
        return rules
    return tuple(r for r in rules if len(r.command) == 1 or command_line.matches_word(r.command[1], subcommand))


def _apply_fetched_script(found: ClassifiedCommand, command: ShellCommand, scope: _Scope) -> ClassifiedCommand:
    """Apply the rule for text from another machine that the command runs."""
    fetches = scope.text.fetches
    if fetches is None or not fetched_scripts.runs_fetched_text(command, fetches):
        return found
    why = "it runs text that the same call fetches from another machine"
    return found._replace(rule=builtin.FETCHED_SCRIPT, why=why, fields={"fetched": "\n".join(fetches.urls)})


def _apply_unmatched(found: ClassifiedCommand, command: ShellCommand, scope: _Scope) -> ClassifiedCommand:
    """Apply the decision for commands without a rule. The target is the program, with its first word if it has one."""
    rule = rule_lookup.apply_unmatched(found.rule, scope.context.unmatched)
    words = command.words[:2]
    if rule is found.rule or not all(word.exact for word in words) or words[-1].text.startswith("-"):
        return found._replace(rule=rule)
    called = " ".join(word.text for word in words)
    return found._replace(rule=rule._replace(target=_UNMATCHED_TARGET), fields={"called": called})


def _describe_match(rule: Rule) -> str:
    if not rule.command:
        return f"the tool name matches '{rule.tool}' ({rule.layer})"
    having = f" with {' or '.join(rule.having)}" if rule.having and len(rule.having) <= _MOST_SHOWN else ""
    return f"the command matches '{' '.join(rule.command)}'{having} ({rule.layer})"


def _apply_tightening(
    found: ClassifiedCommand, scope: _Scope, line: CommandLine, command: ShellCommand, hidden: tuple[CommandLine, ...]
) -> ClassifiedCommand:
    """Apply the rules of an untrusted project, which can only make a call stricter."""
    rules = (rule for rule in rule_lookup.sort_by_layer(scope.rules) if rule.tightens)
    rule = next((rule for rule in rules if _match_line(rule, scope, line, command, hidden) is not None), None)
    tighter = rule_lookup.tighten_rule(found.rule, rule)
    if rule is None or tighter is found.rule:
        return found
    return found._replace(rule=tighter, why=f"{found.why}; tightened by {_describe_match(rule)}")


# --- changed files


def _apply_changes(
    found: ClassifiedCommand, line: CommandLine, command: ShellCommand, scope: _Scope
) -> ClassifiedCommand:
    """Return the strictest of the command's own rule and the rules of the files that it changes."""
    only_reads = found.rule.call_class is CallClass.READ
    if only_reads:
        changes = file_effects.find_read_outputs(line)
    elif found.rule in {builtin.LOOPBACK_REQUEST, builtin.LOCAL_DATABASE}:
        changes = file_effects.find_request_outputs(line)
    elif line.program in {"apply_patch", "patch"} and "***" in command.stdin:
        changes = path_args.find_patch_changes(command.stdin)
    else:
        changes = file_effects.find_changes(line)
    by_flag = output_flags.find_named_outputs(line, only_reads=only_reads)
    by_variable = find_output_variables(command, line.program, only_reads=only_reads)
    strictest = found
    stdin = call_fields.build_stdin_fields(command)
    for change in chain(changes, map(PathChange, chain(by_flag, by_variable))):
        placed = _classify_change(change, found.words, found, command, scope, stdin)
        if _rank(placed.rule) > _rank(strictest.rule):
            strictest = placed
    if strictest.rule.decision is Decision.ALLOW and not only_reads and _removes_kept_work(line):
        fields = {"discarded": KEPT_REFS}
        return found._replace(rule=builtin.WORK_DISCARD, why="it may remove kept work", fields=fields)
    return strictest


def _rank(rule: Rule) -> tuple[int, int]:
    return rank_class(rule), rank_decision(rule)


def _classify_change(
    change: PathChange,
    words: str,
    otherwise: ClassifiedCommand | None,
    command: ShellCommand,
    scope: _Scope,
    stdin: Mapping[str, str],
) -> ClassifiedCommand:
    """Classify one change; `stdin` has the fields of the command's standard input, which all its changes share."""
    word = change.word
    listed = "{}" in word.text and not word.exact and _is_fed(command) and _is_listed_inside(command, scope)
    zone = PathZone.INSIDE if listed else path_zones.find_zone(word, scope.folder, scope.workspace)
    if change.is_worktree and zone is PathZone.OUTSIDE and scope.context.version >= builtin.NEWER_VERSION:
        zone = PathZone.INSIDE if path_zones.is_beside(word, scope.folder, scope.workspace) else zone
    kept = otherwise.rule if otherwise and otherwise.rule.call_class is CallClass.LOCAL else builtin.INSIDE_WRITE
    zone_rule = _find_zone_rule(zone, change, scope.context.version)
    rule = rule_lookup.apply_unmatched(zone_rule or kept, scope.context.unmatched)
    if otherwise is not None and rule is otherwise.rule:
        return otherwise
    folder = scope.folder or ""
    path = path_zones.resolve_path(word.text, folder) if word.exact and folder else word.text
    why = f"it {'deletes' if change.deletes else 'writes'} {path}, {zone.value}"
    return ClassifiedCommand(
        words=words,
        rule=rule,
        why=why,
        fields={"path": path, **stdin},
        is_exact=word.exact and bool(folder),
        folder=folder,
    )


def _find_zone_rule(zone: PathZone, change: PathChange, version: int) -> Rule | None:
    match zone:
        case PathZone.UNKNOWN if change.deletes and version >= REWORDED and _VARIABLE.match(change.word.text):
            return builtin.VARIABLE_DELETE
        case PathZone.OUTSIDE:
            return builtin.OUTSIDE_DELETE if change.deletes else builtin.OUTSIDE_WRITE
        case PathZone.UNKNOWN:
            return builtin.OUTSIDE_DELETE if change.deletes else builtin.INEXACT_WRITE
        case PathZone.ROOT if change.deletes and not change.is_container:
            return builtin.ROOT_DELETE
        case PathZone.HOOKS if not change.deletes:
            return builtin.HOOKS_WRITE
        case PathZone.HOOKS_FOLDER if change.is_container and not change.deletes:
            return builtin.HOOKS_WRITE
    return None


def _is_fed(command: ShellCommand) -> bool:
    """Check whether some of its words come from another program at run time."""
    return any(wrapper.startswith(("xargs", "find")) for wrapper in command.through)


def _is_listed_inside(fed: ShellCommand, scope: _Scope) -> bool:
    """Check whether every name passed on comes from a search inside the workspace."""
    commands: Sequence[ShellCommand] = scope.text.commands
    if len(commands) > _MOST_SEARCHED:
        return False
    if scope.context.version >= builtin.NEWER_VERSION:
        commands = _find_feeding_commands(fed, commands)
    searched = False
    for command in commands:
        if _is_fed(command) or not command.words:
            continue
        line = command_line.parse_line(command.words)
        if line.program not in _LISTING or command.folder is None:
            return False
        if line.program == "find":
            searched = True
            starts = (
                path_zones.find_zone(word, scope.folder, scope.workspace)
                for word in file_effects.find_start_folders(line)
            )
            if not all(zone in {PathZone.INSIDE, PathZone.ROOT, PathZone.TEMPORARY} for zone in starts):
                return False
    return searched


def _find_feeding_commands(fed: ShellCommand, commands: Sequence[ShellCommand]) -> Sequence[ShellCommand]:
    """Return the commands that may pass names on to this one: back to the search that begins its pipeline."""
    feeding: list[ShellCommand] = []
    for end in (index for index, command in enumerate(commands) if command == fed):
        starts = (start for start in range(end - 1, -1, -1) if commands[start].words[:1] == (Word("find"),))
        feeding.extend(commands[next(starts, 0) : end])
    return feeding


def _set_git_folder(found: ClassifiedCommand, line: CommandLine) -> ClassifiedCommand:
    """Set the folder of `git -C folder`."""
    if line.program != "git":
        return found
    folders = [after for word, after in zip(line.words, line.words[1:], strict=False) if word.text == "-C"]
    if any(word.text.startswith(("--git-dir", "--work-tree")) for word in line.words) or not all(
        w.exact for w in folders
    ):
        return found._replace(folder="")
    folder = found.folder
    for word in folders:
        folder = path_zones.resolve_path(word.text, folder) if folder else ""
    return found._replace(folder=folder)
