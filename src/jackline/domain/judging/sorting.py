"""One command of a shell's text, sorted under a rule: the layers' own before the built-in ones. Pure.

What it writes or deletes is judged apart from what it is: a read whose output goes into a foreign file is no read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jackline.domain import builtin, policy
from jackline.domain.builtin import runners
from jackline.domain.combining import class_rank, decision_rank
from jackline.domain.events import NOTHING
from jackline.domain.judging import arguments, changing, filetools, places
from jackline.domain.judging import fields as told
from jackline.domain.judging.arguments import Line
from jackline.domain.judging.given import Change
from jackline.domain.judging.places import Place
from jackline.domain.judging.steering import is_steered
from jackline.domain.shell import Command
from jackline.domain.states import CallClass
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.rule import Rule

_LISTING = frozenset({"find", "grep", "rg", "fd", "sort", "uniq", "head", "tail"})
_MOST_DEPTH = 4
_MOST_SEARCHED = 50  # commands of one call that are read again for each that is fed by another


class Found(NamedTuple):
    """A command, or a file that it opens, with its rule."""

    words: str
    rule: Rule
    why: str
    fields: Mapping[str, Any] = NOTHING
    is_exact: bool = True  # its words are known before it runs
    folder: str = ""  # where it runs; empty: nobody can say
    is_output: bool = False  # a file that the command before it writes into


class _Place(NamedTuple):
    """What is around a command."""

    rules: tuple[Rule, ...]
    tool: str
    everything: tuple[Command, ...]
    workspace: str
    folder: str | None


def sort(
    rules: tuple[Rule, ...], tool: str, command: Command, everything: tuple[Command, ...], workspace: str, start: str
) -> Iterator[Found]:
    """The command itself, then every file that is opened for it."""
    folder = None if command.folder is None else places.resolved(command.folder, start)
    around = _Place(rules, tool, everything, workspace, folder)
    if command.words:
        yield _sorted(command, around, _MOST_DEPTH)
    for redirect in command.redirects:
        if (">" in redirect.operator or places.is_socket(redirect.target)) and (
            redirect.target.text not in places.DEVICES
        ):
            target = f"{redirect.operator} {redirect.target.text}"
            yield _placed(Change(redirect.target), target, None, command, around)._replace(is_output=True)


def _sorted(command: Command, around: _Place, depth: int) -> Found:
    words = _told(command)
    line = arguments.read(command.words)
    inner = runners.inner(line) if depth else None
    own = _own_rule(around, line, command)
    if inner is not None and own is None:
        return _sorted(command._replace(words=inner), around, depth - 1)._replace(words=words)
    certain = line.is_certain
    base, line, why = own or _built_in(line, command)
    found = Found(words, base, why, folder=around.folder or "")
    if own is None and base.call_class in {CallClass.READ, CallClass.LOCAL}:
        found = _with_changes(found, line, command, around)
    found = _tightened(found, around, line, command)
    if found.rule.call_class is not CallClass.EFFECT:
        return found
    named = {**told.fields(found.rule, line, command), **found.fields}
    sure = certain and line.doubtful >= len(found.rule.command) - 1 and not is_steered(command, line.program)
    exact = sure and all(word.exact for word in line.words) and not _is_fed(command)
    return _elsewhere(found._replace(fields=named, is_exact=exact), line)


def _told(command: Command) -> str:
    text = " ".join(word.text for word in command.words)
    return f"{text} (through {', '.join(command.through)})" if command.through else text


# --- which rule


def _own_rule(around: _Place, line: Line, command: Command) -> tuple[Rule, Line, str] | None:
    for rule in policy.in_order(around.rules):
        if rule.tightens:
            continue
        fitting = _fitting(rule, around.tool, line, command)
        if fitting is not None:
            return rule, fitting, _why(rule)
    return None


def _fitting(rule: Rule, tool: str, line: Line, command: Command) -> Line | None:
    """The line as the rule reads it, or None if it speaks of something else."""
    if rule.tool and not policy.is_for(rule, tool):
        return None
    if not rule.command:
        return line if rule.tool else None
    if arguments.fits(rule, line) and not (is_steered(command, line.program) and not arguments.is_lenient(rule)):
        return line
    if line.is_certain or not arguments.is_lenient(rule):
        return None
    return next((one for one in arguments.shifted(command.words) if arguments.fits(rule, one)), None)


def _built_in(line: Line, command: Command) -> tuple[Rule, Line, str]:
    # Where nobody knows the program, it may be a wrapper before the real one.
    if arguments.asks_for_help(line):
        return builtin.NOTHING_RUN, line, "it only asks how it is used"
    lines = (line,) if line.is_certain else tuple(arguments.shifted(command.words))
    for one in lines:
        for rule in _candidates(one.program, one.names[0].text if one.names and one.doubtful else None):
            # A harmless name among its words does not make a program harmless that nobody knows.
            doubtful = is_steered(command, one.program) or not line.is_certain
            if arguments.fits(rule, one) and (arguments.is_lenient(rule) or not doubtful):
                return rule, one, _why(rule)
    said = (
        "the program is known only when it runs"
        if not line.is_certain
        else f"no rule speaks of '{line.program}' with these words"
    )
    return policy.UNKNOWN, line, said


@lru_cache(maxsize=1024)
def _candidates(program: str, subcommand: str | None) -> tuple[Rule, ...]:
    """The built-in rules that may fit; None: nobody knows which word is the subcommand."""
    rules = builtin.of_program(program)
    if subcommand is None:
        return rules
    return tuple(r for r in rules if len(r.command) == 1 or arguments.is_called(r.command[1], subcommand))


def _why(rule: Rule) -> str:
    if not rule.command:
        return f"the tool's name fits '{rule.tool}' ({rule.layer})"
    having = f" with {' or '.join(rule.having)}" if rule.having and len(rule.having) <= _MOST_DEPTH else ""
    return f"the command fits '{' '.join(rule.command)}'{having} ({rule.layer})"


def _tightened(found: Found, around: _Place, line: Line, command: Command) -> Found:
    """What a project that nobody trusts adds: only what is stricter."""
    rules = (rule for rule in policy.in_order(around.rules) if rule.tightens)
    rule = next((rule for rule in rules if _fitting(rule, around.tool, line, command) is not None), None)
    tighter = policy.tighten(found.rule, rule)
    return (
        found
        if tighter is found.rule
        else found._replace(rule=tighter, why=f"{found.why}; tightened by {_why(rule)}" if rule else found.why)
    )


# --- what it changes


def _with_changes(found: Found, line: Line, command: Command, around: _Place) -> Found:
    """The strictest of what the command is and of everything that it changes."""
    if found.rule.call_class is CallClass.READ:
        changes = changing.reading_changes(line)
    elif line.program in {"apply_patch", "patch"} and "***" in command.stdin:
        changes = filetools.patched(command.stdin)
    else:
        changes = changing.changes(line)
    strictest = found
    for change in changes:
        placed = _placed(change, found.words, found, command, around)
        if _rank(placed.rule) > _rank(strictest.rule):
            strictest = placed
    return strictest


def _rank(rule: Rule) -> tuple[int, int]:
    return class_rank(rule), decision_rank(rule)


def _placed(change: Change, words: str, otherwise: Found | None, command: Command, around: _Place) -> Found:
    place = _place_of(change, command, around)
    kept = otherwise.rule if otherwise and otherwise.rule.call_class is CallClass.LOCAL else builtin.INSIDE_WRITE
    rule = _rule_of(place, change) or kept
    if otherwise is not None and rule is otherwise.rule:
        return otherwise
    folder = around.folder or ""
    path = places.resolved(change.word.text, folder) if change.word.exact and folder else change.word.text
    why = f"it {'deletes' if change.deletes else 'writes'} {path}, {place.value}"
    return Found(words, rule, why, {"path": path, **told.fed_by(command)}, change.word.exact and bool(folder), folder)


def _rule_of(place: Place, change: Change) -> Rule | None:
    match place:
        case Place.OUTSIDE:
            return builtin.OUTSIDE_DELETE if change.deletes else builtin.OUTSIDE_WRITE
        case Place.UNKNOWN:
            return builtin.OUTSIDE_DELETE if change.deletes else builtin.INEXACT_WRITE
        case Place.HEART if change.deletes and not change.is_container:
            return builtin.HEART_DELETE
        case Place.HOOKS if not change.deletes:
            return builtin.HOOKS_WRITE
    return None


def _place_of(change: Change, command: Command, around: _Place) -> Place:
    word = change.word
    if "{}" in word.text and not word.exact and _is_fed(command) and _is_listed_inside(around):
        return Place.INSIDE
    return places.place(word, around.folder, around.workspace)


def _is_fed(command: Command) -> bool:
    """Whether some of its words come from another program while it runs."""
    return any(wrapper.startswith(("xargs", "find")) for wrapper in command.through)


def _is_listed_inside(around: _Place) -> bool:
    """Whether every name that is handed on comes from a search below the workspace."""
    if len(around.everything) > _MOST_SEARCHED:
        return False
    searched = False
    for command in around.everything:
        if _is_fed(command) or not command.words:
            continue
        line = arguments.read(command.words)
        if line.program not in _LISTING or command.folder is None:
            return False
        if line.program == "find":
            searched = True
            starts = (places.place(word, around.folder, around.workspace) for word in changing.find_starts(line))
            if not all(place in {Place.INSIDE, Place.HEART, Place.TEMPORARY} for place in starts):
                return False
    return searched


def _elsewhere(found: Found, line: Line) -> Found:
    """`git -C folder` works there, not here."""
    if line.program != "git":
        return found
    folders = [after for word, after in zip(line.words, line.words[1:], strict=False) if word.text == "-C"]
    if any(word.text.startswith(("--git-dir", "--work-tree")) for word in line.words) or not all(
        w.exact for w in folders
    ):
        return found._replace(folder="")
    folder = found.folder
    for word in folders:
        folder = places.resolved(word.text, folder) if folder else ""
    return found._replace(folder=folder)
