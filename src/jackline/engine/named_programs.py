"""Finds the programs of rules in calls that no rule knows: in their text, and in the files that they run.

It reads regular files of the workspace only, and runs nothing. A program that is hidden on purpose is not found.
"""

from __future__ import annotations

import json
import os
import re
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.domain.states import CallClass
from jackline.policy import classify, rule_lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from jackline.domain.spec import Spec
    from jackline.engine.call_ledger import CallRequest
    from jackline.policy.classify import Classification
    from jackline.policy.rules import Rule

_MOST_BYTES = 1 << 20
_MOST_FILES = 20
_MOST_WORDS = 500  # of a text, that may be the names of files
_BEFORE, _AFTER = r"(?<![\w.@-])", r"(?![\w(-]|\.\w)"  # `sock.send(x)` and `send.py` do not name `send`
_BETWEEN = r"[^\n]{0,200}?"
_FILE_WORD = re.compile(r"[\w./+@%-]+")
_MODULE = re.compile(r"\s-\w{0,5}m\s*([\w.]+)")
_SCRIPT_ENDS = (
    ".sh",
    ".bash",
    ".zsh",
    ".py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".rb",
    ".pl",
    ".php",
    ".mk",
    ".lua",
    ".fish",
)
_MAKES = frozenset({"make", "gmake"})
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_PACKAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_TASK_FILES = {
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
}
_RUNNERS = _MAKES | _PACKAGERS | _TASK_FILES.keys()
_LIFECYCLE = frozenset({"test", "start", "stop", "restart", "install", "publish", "pack"})  # scripts without `run`


def find_named_rules(
    classified: Classification, request: CallRequest, spec: Spec, targets: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the rules of `targets` whose program the call names, each with the place where it does.

    `targets` has the target of an effect by the name of its rule: a request is recognized by its host.
    """
    patterns = {name: _build_pattern(rule_lookup.find_rule(spec.rules, name), targets[name]) for name in targets}
    known = {name: re.compile(pattern) for name, pattern in patterns.items() if pattern}
    if not known:
        return
    for place, text in _list_texts(classified, request, spec.workspace):
        for name, pattern in known.items():
            found = pattern.search(text)
            if found is not None:
                yield name, f"{place} names '{' '.join(found[0].split())[:60]}'"
    globs = list(_list_program_patterns(classified))
    for name in known if globs else ():
        programs = rule_lookup.find_rule(spec.rules, name).command[:1]
        for glob in globs:
            if any(fnmatchcase(program, glob) for text in programs for program in text.split("|")):
                yield name, f"'{glob[:60]}' may be its program"


def _list_program_patterns(classified: Classification) -> Iterator[str]:
    """Yield the programs that are patterns of file names: `bin/s?nd`."""
    for one in classified.commands:
        program = one.words.partition(" ")[0]
        if one.rule.call_class is CallClass.UNKNOWN and set("*?[") & set(program):
            yield os.path.basename(program)


def _build_pattern(rule: Rule, target: str) -> str:
    """Build the pattern of a rule's program with its subcommands, or of the host of a request."""
    if target.startswith("http:"):
        from urllib.parse import urlsplit  # only for requests

        host = urlsplit(target.removeprefix("http:")).hostname
        return rf"(?i){_BEFORE}{re.escape(host)}(?![\w-])" if host else ""
    words = [_build_word(word) for word in rule.command]
    return _BETWEEN.join(f"{_BEFORE}{word}{_AFTER}" for word in words if word)


def _build_word(word: str) -> str:
    pieces = [re.escape(one.removesuffix("*")) + (r"[\w-]*" if one.endswith("*") else "") for one in word.split("|")]
    return "" if word == "*" else f"(?:{'|'.join(pieces)})"


# --- texts


def _list_texts(classified: Classification, request: CallRequest, workspace: str) -> Iterator[tuple[str, str]]:
    """Yield what a call runs that no rule knows, each with its place: its text, then the files that it names."""
    text = classify.find_command_text(request.tool, request.input)
    folder = request.folder or workspace
    if text is None:
        if classified.rule.call_class is CallClass.UNKNOWN:
            yield "its input", canonical(request.input)
        return
    unknown = [one for one in classified.commands if one.rule.call_class is CallClass.UNKNOWN]
    if not unknown and classified.rule.call_class is CallClass.UNKNOWN:
        unknown_texts = [(text, folder)]  # it could not be parsed
    else:
        # Beside an effect only what is not known counts; otherwise an earlier command may prepare the unknown one.
        unknown_texts = [(one.words if classified.effects else text, one.folder or folder) for one in unknown]
    reader = _ScriptReader(workspace)
    for shown, place in unknown_texts:
        yield "it", shown
        yield from reader.follow(shown, place)
    for one in classified.commands:
        words = one.words.split()
        for name in _RUNNERS.intersection(os.path.basename(word) for word in words[:4]):
            yield from reader.read_tasks(name, words, one.folder or folder)


class _ScriptReader:
    """Reads the scripts that a text names, and those that they name."""

    def __init__(self, workspace: str) -> None:
        self._root = os.path.realpath(workspace)
        self._seen: set[str] = set()

    def follow(self, text: str, folder: str) -> Iterator[tuple[str, str]]:
        left = [(text, folder)]
        while left:
            known, place = left.pop()
            for word in dict.fromkeys([*_list_modules(known), *_FILE_WORD.findall(known)[:_MOST_WORDS]]):
                path = os.path.join(place, word)
                script = self._read(path, only_scripts=True)
                if script is not None:
                    yield os.path.relpath(path, self._root), script
                    left.append((script, place))

    def read_tasks(self, runner: str, words: Sequence[str], folder: str) -> Iterator[tuple[str, str]]:
        """Yield the parts of a Makefile, a package.json or a similar file that the command runs."""
        folders = [folder, *(os.path.join(folder, word.removeprefix("-C")) for word in words if word[:1] != "-")]
        if runner in _MAKES:
            names: Sequence[str] = _MAKEFILES
        else:
            names = ("package.json",) if runner in _PACKAGERS else _TASK_FILES[runner]
        for place in dict.fromkeys(folders):
            for name in names:
                text = self._read(os.path.join(place, name))
                if text is None:
                    continue
                shown = os.path.relpath(os.path.join(place, name), self._root)
                if runner in _MAKES:
                    text = _find_recipes(text, words)
                elif runner in _PACKAGERS:
                    text = _find_scripts(text, words)
                yield shown, text
                yield from self.follow(text, place)
                break

    def _read(self, path: str, *, only_scripts: bool = False) -> str | None:
        """The text of a regular file of the workspace that was not read before; None for anything else."""
        if len(self._seen) >= _MOST_FILES:
            return None
        try:
            whole = os.path.realpath(path)
            if whole in self._seen or not whole.startswith(f"{self._root}/"):
                return None
            status = os.stat(whole)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                return None
            with open(os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                content = file.read(_MOST_BYTES)
        except (OSError, ValueError):
            return None
        is_script = whole.endswith(_SCRIPT_ENDS) or content.startswith(b"#!") or os.access(whole, os.X_OK)
        if only_scripts and (not is_script or b"\0" in content[:1024]):
            return None
        self._seen.add(whole)
        return content.decode("utf-8", "replace")


def _list_modules(text: str) -> Iterator[str]:
    """Yield the files that `python -m name` may run."""
    for name in _MODULE.findall(text)[:_MOST_FILES]:
        path = name.replace(".", "/")
        yield from (f"{path}.py", f"{path}/__main__.py")


# --- parts of task files

_TARGET = re.compile(r"([^\s:#=][^:=\n]*):(?![=:])(:?[^=\n]*)$")
_VARIABLE = re.compile(r"\$[({](\w+)[)}]")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(\w+)\s*[:+?!]{0,3}=(.*)")
_UNCERTAIN = re.compile(r"^\s*(?:-?include|sinclude|define|vpath)\b|\$[({](?:eval|foreach|call)\b|%", re.MULTILINE)


def _find_recipes(text: str, words: Sequence[str]) -> str:
    """Return the recipes of the named targets with what they depend on; everything if that is not certain."""
    joined = text.replace("\\\n", " ")
    if _UNCERTAIN.search(joined):
        return joined
    recipes, variables = _split_makefile(joined)
    first = next((name for name in recipes if not name.startswith(".")), "")
    return _collect_lines(
        [word for word in words if word in recipes] or [first],
        lambda name: (*recipes.get(name, ()), *variables.get(name, ())),
        lambda line: [*_VARIABLE.findall(line), *(word for word in line.split() if word in recipes)],
    )


def _split_makefile(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Split a Makefile into the lines of its targets and of its variables."""
    recipes: dict[str, list[str]] = {}
    variables: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        rule, assigned = _TARGET.match(line), _ASSIGNMENT.match(line)
        if line.startswith("\t"):
            for name in current:
                recipes[name].append(line)
        elif rule is not None:
            current = rule[1].split()
            for name in current:
                recipes.setdefault(name, []).append(rule[2])
        elif assigned is not None:
            variables.setdefault(assigned[1], []).append(assigned[2])
    return recipes, variables


def _find_scripts(text: str, words: Sequence[str]) -> str:
    """Return the named scripts of a package.json with those that they run."""
    try:
        package: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict):
        return ""
    return _collect_lines(
        [word for word in words if word in scripts or word in _LIFECYCLE],
        lambda name: [str(scripts.get(one, "")) for one in (f"pre{name}", name, f"post{name}")],
        lambda line: [word for word in line.split() if word in scripts],
    )


def _collect_lines(
    left: list[str], list_lines: Callable[[str], Iterable[str]], find_names: Callable[[str], list[str]]
) -> str:
    """Return the lines of all names, and of the names that these lines use."""
    seen: set[str] = set()
    kept: list[str] = []
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in list_lines(name):
            kept.append(line)
            left += find_names(line)
    return "\n".join(kept)
