"""Parses a command line into program, subcommands, flags and operands, and matches it against a rule. Pure."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple
from jackline.policy import path_args, read_only, task_names
from jackline.policy.builtin import flag_tables, risky_options
from jackline.policy.curl_requests import sends_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.policy.rules import Rule
    from jackline.shell.model import Word

_SYSTEM_FOLDERS = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
_ENVIRONMENT_FOLDER = re.compile(r"(?:^|/)(?:\.?v?env|node_modules/\.bin|vendor/bin)(?:/|$)")
_VERSIONED = re.compile(r"(python|pip|pypy|ruby|node|php|gcc|g\+\+|clang|clang\+\+|lua)[0-9][0-9.]*$")
_HARMLESS_SETTING = re.compile(
    r"(?i)(user|author|committer|color|advice|safe|push|pull|fetch|commit)\.[a-z]+(=|$)"
    r"|(init\.defaultbranch|merge\.(ff|conflictstyle)|diff\.(algorithm|context|renames|noprefix)|log\.date)(=|$)"
    r"|core\.(quotepath=|autocrlf=|filemode=|ignorecase=|pager=(cat|less)?$|editor=(true|:|cat)$)"
)
_RISKY_SETTING = re.compile(
    r"(?is)(alias|credential|filter|url|includeif|(merge|diff)tool|man|browser|protocol|pager|sendemail|guitool"
    r"|instaweb|imap)\..+|include\.path|init\.templatedir|diff\.external|web\.browser|sequence\.editor"
    r"|core\.(hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy|attributesfile|worktree"
    r"|alternaterefscommand)|diff\..+\.(command|textconv)|merge\..+\.driver|gpg\.(.+\.)?(program|defaultkeycommand)"
    r"|interactive\.difffilter|remote\..+\.(uploadpack|receivepack|vcs|proxy)|http\.(.+\.)?proxy"
    r"|submodule\..+\.update|uploadpack\.packobjectshook|(trailer|tar)\..+\.(command|cmd)|.+::.+"
)
_HELPER = re.compile(r"(?:^|=)[A-Za-z0-9]+::")
_REMOTE_ARCHIVE = re.compile(r"(?:--file=|-?[A-Za-z]*f)?[A-Za-z0-9_.@-]+:(?!//)")
_SETS_CLOCK = re.compile(r"-[uR]*s|--s")
_TOOLCHAINS = frozenset({"cargo", "rustc", "rustfmt", "rustdoc"})  # `cargo +nightly test`
_MOST_SHIFTS = 6
_SHORT = 2


class CommandLine(NamedTuple):
    """One command line, split with the known flags of its program."""

    program: str  # its bare name
    path: str  # as written
    is_certain: bool  # the name identifies the program
    words: tuple[Word, ...]  # all arguments
    operand_indexes: tuple[int, ...]  # indexes of the words that are neither flags nor flag values
    operands: tuple[Word, ...]  # those words
    first_uncertain: int  # from this index of `operands` on, an unknown flag makes the split uncertain
    flag_words: tuple[Word, ...] | None = None  # the words that may be flags, if that was determined


def parse_line(words: Sequence[Word]) -> CommandLine:
    """Parse the first word as the program, and the others with its known flags."""
    path = words[0].text
    program = strip_version(posixpath.basename(path).removesuffix(".exe"))
    program = flag_tables.ALIASES.get(program, program)
    rest = tuple(words[1:])
    named, doubtful = _split_words(program, rest)
    names = tuple(rest[index] for index in named)
    before = rest[: named[0]] if named else rest
    is_certain = words[0].exact and program not in flag_tables.WRAPPERS and not _is_configured(program, before)
    return CommandLine(
        program=program,
        path=path,
        is_certain=is_certain,
        words=rest,
        operand_indexes=named,
        operands=names,
        first_uncertain=doubtful,
    )


def strip_version(program: str) -> str:
    """Return `python` for `python3.11`."""
    versioned = _VERSIONED.match(program)
    return versioned[1] if versioned else program


def _is_configured(program: str, words: tuple[Word, ...]) -> bool:
    """Check for options before git's subcommand that make it run other code: an alias, a pager, a hook."""
    if program != "git":
        return False
    given = (after.text for word, after in pairwise(words) if word.text in {"-c", "--config-env"})
    return any(not _HARMLESS_SETTING.match(setting) for setting in given) or any(
        word.text.startswith(("--exec-path=", "--config-env=")) for word in words
    )


def parse_shifted(words: Sequence[Word]) -> Iterator[CommandLine]:
    """Yield a line for each word that may be the real program, if the first word is uncertain."""
    for start in range(min(len(words), _MOST_SHIFTS)):
        yield parse_line(words[start:])


def _split_words(program: str, words: tuple[Word, ...]) -> tuple[tuple[int, ...], int]:
    named: list[int] = []
    valued, switches = (
        flag_tables.VALUED.get(program, flag_tables.NO_FLAGS),
        flag_tables.SWITCHES.get(program, flag_tables.NO_FLAGS),
    )
    doubtful, skip, ended = len(words), False, False
    for index, word in enumerate(words):
        text = word.text
        if skip:
            skip = False
        elif ended or not text.startswith("-") or text == "-":
            if index or not text.startswith("+") or program not in _TOOLCHAINS:
                named.append(index)
        elif text == "--":
            ended = True
        elif "=" not in text and text in valued:
            skip = True
        elif text.partition("=")[0] not in valued and text not in switches:
            doubtful = min(doubtful, len(named))
    return tuple(named), doubtful


def matches_rule(rule: Rule, line: CommandLine) -> bool:
    """Check whether a rule matches this command. A rule that makes a call look harmless must match with certainty."""
    if not matches_word(rule.command[0], line.program):
        return False
    strict = not is_lenient(rule)
    if strict and not is_known_program(line, rule):
        return False
    if len(rule.command) > 1 and not _has_subcommands(rule.command[1:], line, strict=strict):
        return False
    if rule.having and not (
        _has_required(rule, line) if strict else any(_has_token(line, token) for token in rule.having)
    ):
        return False
    if strict and _runs_other_code(line, rule):
        return False
    if not rule.lacking:
        return True
    flags = line if strict else _keep_certain_flags(line)
    # A word that is not exact may expand to any flag.
    may_hide_flag = strict and any(not word.exact and word.text[:1] in {"$", "`", "{"} for word in line.words)
    return not may_hide_flag and not any(_has_token(flags, token) for token in rule.lacking)


def is_lenient(rule: Rule) -> bool:
    """Check whether a rule restricts a call; such a rule may match too often."""
    return rule.call_class in {CallClass.EFFECT, CallClass.UNKNOWN} or rule.decision is not Decision.ALLOW


def is_known_program(line: CommandLine, rule: Rule) -> bool:
    """Check that the name identifies the program well enough for a rule that makes a call look harmless."""
    if not line.is_certain:
        return False
    folder = posixpath.dirname(line.path)
    # A program in the workspace may have any name; the name of one in a virtual environment is reliable.
    return (
        not folder
        or folder in _SYSTEM_FOLDERS
        or (rule.call_class is CallClass.LOCAL and bool(_ENVIRONMENT_FOLDER.search(folder)))
    )


def _runs_other_code(line: CommandLine, rule: Rule) -> bool:
    """Check for a flag that names a program, a plugin or a configuration; the author of a rule knows its flags."""
    if rule.layer != "built-in":
        return False
    has_long_flag = any(word.text.startswith("--") for word in line.words)  # all flags of readers are long ones
    flags = risky_options.READER_FLAGS if has_long_flag and rule.call_class is CallClass.READ else ()
    own = risky_options.FLAGS.get(line.program, flag_tables.NO_FLAGS)
    if line.operands:
        own |= risky_options.FLAGS.get(f"{line.program} {line.operands[0].text}", flag_tables.NO_FLAGS)
    return any(_has_token(line, token) for token in (*flags, *own))


def accept_build_wrapper(line: CommandLine) -> CommandLine:
    """Treat `./gradlew` like gradle: by convention the wrapper in a project only starts that program."""
    name = posixpath.basename(line.path)
    is_wrapper = name in {"gradlew", "mvnw"} and not line.path.startswith(("/", "~", "../"))
    return line._replace(path=name) if is_wrapper else line


def matches_word(pattern: str, text: str) -> bool:
    """Check whether a word of a rule's command matches this word."""
    exact, beginnings = _split_pattern(pattern)
    return text in exact or (bool(beginnings) and text.startswith(beginnings))


@lru_cache(maxsize=4096)
def _split_pattern(pattern: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Split `status|diff-*` into exact words and prefixes."""
    pieces = pattern.split("|")
    beginnings = tuple(piece[:-1] for piece in pieces if piece.endswith("*"))
    return frozenset(piece for piece in pieces if not piece.endswith("*")), beginnings


def _has_subcommands(wanted: Sequence[str], line: CommandLine, *, strict: bool) -> bool:
    found = line.operands
    if len(found) >= len(wanted) and all(
        matches_word(pattern, word.text) and (word.exact or not strict)
        for pattern, word in zip(wanted, found, strict=False)
    ):
        return not strict or line.first_uncertain >= len(wanted)
    return not strict and _may_have_subcommands(wanted, [word.text for word in found], line.first_uncertain)


def _may_have_subcommands(wanted: Sequence[str], texts: Sequence[str], sure: int) -> bool:
    """Check for the subcommands if some words after the first ones may belong to an unknown flag."""
    rest = wanted[sure:]
    if not rest or not all(map(matches_word, wanted[:sure], texts[:sure])):
        return False
    last = len(texts) - len(rest) + 1
    return any(all(map(matches_word, rest, texts[start : start + len(rest)])) for start in range(sure, last))


def _keep_certain_flags(line: CommandLine) -> CommandLine:
    """Keep only words that are flags for certain: in `git push -o --dry-run`, the last word is the value of -o."""
    spelled = " ".join((line.program, *(word.text for word in line.operands[:1])))
    valued = flag_tables.VALUED.get(line.program, flag_tables.NO_FLAGS) | flag_tables.ARGUMENTS.get(
        spelled, flag_tables.NO_FLAGS
    )
    valued |= flag_tables.ARGUMENTS.get(line.program, flag_tables.NO_FLAGS)
    end = next((index for index, word in enumerate(line.words) if word.text == "--"), len(line.words))
    values = {index for index, word in enumerate(line.words[:end], 1) if word.text in valued}
    return line._replace(flag_words=tuple(word for index, word in enumerate(line.words[:end]) if index not in values))


def _has_required(rule: Rule, line: CommandLine) -> bool:
    """Check for a required flag. A letter counts only in a cluster of required letters: `-Uvalerie` has no `-l`."""
    sure = _keep_certain_flags(line)
    letters = frozenset(token[1] for token in rule.having if _is_letter(token))
    pure = tuple(word for word in _find_flags(sure) if word.text[:1] != "-" or letters.issuperset(word.text[1:]))
    plain = sure._replace(flag_words=pure)
    return any(_has_token(plain if _is_letter(token) else sure, token) for token in rule.having)


def _is_letter(token: str) -> bool:
    return len(token) == _SHORT and token[0] in "-+" and token[1] != "*"


def _find_flags(line: CommandLine) -> tuple[Word, ...]:
    """Return the words that may be flags; the first word of tar is one even without a dash."""
    words = line.words if line.flag_words is None else line.flag_words
    if line.program != "tar" or not words or words[0].text.startswith("-"):
        return words
    return (*words, words[0]._replace(text=f"-{words[0].text}"))


def _has_token(line: CommandLine, token: str) -> bool:
    kind, colon, value = token.partition(":")
    if colon and kind in _CHECKS:
        return _CHECKS[kind](line, value)
    words = _find_flags(line)
    if token.endswith("*"):
        return any(text.startswith(token[:-1]) for text, _ in words)
    if token.startswith("--"):  # with or without a value, possibly abbreviated
        names = (word.text.partition("=")[0] for word in words if word.text.startswith("--"))
        return any(name == token or (len(name) > len("--x") and token.startswith(name)) for name in names)
    if _is_letter(token):
        letter = token[1]
        return any(text[:1] == token[0] and text[1:2] != "-" and letter in text[1:] for text, _ in words)
    if token[0] != "-":
        return any(text == token for text, _ in words)
    # Programs with flags such as `-engine` also accept `--engine`.
    return any(text.partition("=")[0] in {token, f"-{token}"} for text, _ in words)


def _is_alone(line: CommandLine, value: str) -> bool:
    """Check that there is only this word, or no word if it is the program's own name."""
    if value == line.program:
        return not line.words
    if value.startswith("-"):
        return [word.text for word in line.words] == [value]
    return [word.text for word in line.operands] == [value] and line.first_uncertain >= len(line.words)


def _sets_risky_config(line: CommandLine, _: str) -> bool:
    """Check for `git config NAME value` with a setting that makes git run a program or contact another host."""
    names = line.operands[1:-1]
    if names and names[0].text in {"get", "list", "get-color", "get-colorbool"}:
        return False
    return any(_RISKY_SETTING.fullmatch(name.text) or not name.exact for name in names)


def _only_shows_date(line: CommandLine, _: str) -> bool:
    """Check that `date` only formats or shows a date; a plain operand would set the clock."""
    left = iter(line.words)
    for word in left:
        text = word.text
        if not text.startswith(("-", "+")) or not (word.exact or text.startswith("+")) or _SETS_CLOCK.match(text):
            return False
        if text in {"-d", "-r", "-f", "--date", "--reference", "--file"} or re.fullmatch(r"-[uR]+[drf]", text):
            next(left, None)
    return True


_KNOWN_GOALS = frozenset(
    {"all", "build", "test", "tests", "check", "lint", "format", "fmt", "clean", "compile", "typecheck", "types"}
    | {"coverage", "cov", "unit", "integration", "e2e", "docs", "doc", "help", "deps", "setup", "bootstrap", "dev"}
    | {"generate", "gen", "proto", "distclean", "defconfig", "run", "serve", "ci", "mypy", "ruff", "default", "vet"}
    | {"style", "validate", "verify", "bench", "debug", "watch", "precommit", "pre-commit", "fix", "venv", "tidy"}
)
_GOAL_PREFIX = re.compile(
    r"(?:build|test|check|lint|format|fmt|clean|compile|docs|unit|gen|generate)[-_:./]\w[\w.:/-]*"
)
_MAKE_SETTING = re.compile(r"(?:V|VERBOSE|DEBUG|Q|CI|NDEBUG)=\w*")
_ENDS_ELSEWHERE = re.compile(r"deploy|publish|release|upload|push|install|prod|send|ship")


def _has_known_goals(line: CommandLine, _: str) -> bool:
    """Check that every goal is one that builds, tests or cleans, by the names that are usual for it."""
    return all(
        word.exact
        and not _ENDS_ELSEWHERE.search(word.text)
        and (word.text in _KNOWN_GOALS or _GOAL_PREFIX.fullmatch(word.text) or _MAKE_SETTING.fullmatch(word.text))
        for word in line.operands
    )


def _activates_environment(line: CommandLine, _: str) -> bool:
    """Check for `source .venv/bin/activate`."""
    return len(line.words) == 1 and line.words[0].exact and line.words[0].text.endswith(("/activate", "\\activate"))


# Checks for `having` and `lacking` beyond plain flags, by the word before the colon.
_CHECKS: Mapping[str, Callable[[CommandLine, str], bool]] = {
    "goals": _has_known_goals,
    "activates": _activates_environment,
    "alone": _is_alone,
    "word": lambda line, value: any(
        w.text == value for w in (line.words if line.flag_words is None else line.flag_words)
    ),
    "method": lambda line, value: read_only.classify_request(line.program, line.words, line.operands) == value,
    "script": lambda line, _: read_only.is_plain_script(line.program, line.words),
    # No operand can name another host.
    "remote": lambda line, _: all(word.exact and ":" not in word.text for word in line.operands),
    # `+branch` overwrites a branch, and `:branch` deletes it.
    "refspec": lambda line, _: any(w.text[:1] == "+" or (w.text[:1] == ":" != w.text) for w in line.operands[1:]),
    "setting": _sets_risky_config,
    # A remote helper such as `ext::sh -c …`, which git runs.
    "helper": lambda line, _: any(_HELPER.search(word.text) for word in line.words),
    "clock": _only_shows_date,
    # Every operand is one of these.
    "only": lambda line, value: all(
        word.exact and matches_word(value, word.text) for word in path_args.find_operands(line)
    ),
    "task": task_names.names_sending_task,
    # The name of a host may carry the content of a file.
    "content": lambda line, _: sends_content(line.words),
    # An archive on another host, which tar reaches by rsh or ssh.
    "archive": lambda line, _: any(_REMOTE_ARCHIVE.match(word.text) for word in line.words),
    "environment": task_names.names_sending_environment,
    "nouns": task_names.has_cloud_nouns,
    "before": lambda line, value: any(
        w.text == value for w in line.words[: line.operand_indexes[0] if line.operand_indexes else None]
    ),
    "holds": lambda line, value: any(value in word.text for word in line.words),
}


def asks_for_help(line: CommandLine) -> bool:
    """Check for `git push --help`, which pushes nothing. A flag before it could take the word as its value."""
    if (
        line.program not in flag_tables.VALUED
        or not line.words
        or line.words[-1].text != "--help"
        or not line.is_certain
    ):
        return False
    return all(word.exact for word in line.words) and not any(word.text.startswith("-") for word in line.words[:-1])


# --- runners, such as `uv run`

# The runner, and its flags with a value.
_RUNNERS = {
    (
        "uv",
        "run",
    ): "--with --python -p --extra --group --directory --project --env-file --package --index --default-index",
    ("uvx",): "--from --with --python -p",
    ("poetry", "run"): "",
    ("pipenv", "run"): "",
    ("pdm", "run"): "-p --project",
    ("rye", "run"): "",
    ("hatch", "run"): "",
    ("bundle", "exec"): "",
    ("npx",): "-p --package",
    ("bunx",): "-p --package",
    ("npm", "exec"): "-p --package",
    ("npm", "x"): "-p --package",
    ("pnpm", "exec"): "",
    ("pnpm", "dlx"): "--package",
    ("yarn", "exec"): "",
    ("yarn", "dlx"): "-p --package",
    ("pixi", "run"): "-e --environment",
    ("mise", "exec"): "",
    ("dotenv", "run"): "-f",
    ("op", "run"): "--env-file",
    ("doppler", "run"): "-p --project -c --config",
    ("python",): "",
    ("coverage", "run"): "",
}
_RUNNER_SWITCHES = frozenset(
    {"--yes", "-y", "--no-install", "--frozen", "--locked", "--offline", "--no-sync", "--isolated", "-q", "--quiet"}
    | {"--", "--no-project", "--all-extras", "--dev", "--no-dev"}
)
_PYTHON_SWITCHES = frozenset({"-u", "-B", "-E", "-s", "-S", "-I", "-O", "-OO", "-P", "-q", "-b"})


# Packages whose program has another name than the package.
_AGENT_PACKAGES = {
    "@anthropic-ai/claude-code": "claude", "@openai/codex": "codex", "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen", "@kilocode/cli": "kilo", "opencode-ai": "opencode", "aider-chat": "aider",
    "@sourcegraph/amp": "amp", "@github/copilot": "copilot", "@augmentcode/auggie": "auggie",
}  # fmt: skip


def find_inner_command(line: CommandLine) -> tuple[Word, ...] | None:
    """Return the inner command, or None. Its program is not exact if an unknown flag precedes it."""
    words = [word for word in line.words if word.exact or word.text]
    for runner, valued in _RUNNERS.items():
        if line.program != runner[0] or tuple(word.text for word in words[: len(runner) - 1]) != runner[1:]:
            continue
        rest = tuple(words[len(runner) - 1 :])
        if line.program in {"python", "coverage"}:
            return _find_python_module(rest)
        return _skip_runner_flags(rest, frozenset(valued.split()))
    return None


def _find_python_module(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """Return the command of `python -m program`; a script cannot be classified."""
    for index, word in enumerate(words):
        if word.text == "-m":
            return words[index + 1 :] or None
        if word.text.startswith("-m"):
            return (word._replace(text=word.text[2:]), *words[index + 1 :])
        if word.text not in _PYTHON_SWITCHES:
            return None
    return None


def _skip_runner_flags(words: tuple[Word, ...], valued: frozenset[str]) -> tuple[Word, ...] | None:
    sure, skip = True, False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif not word.text.startswith("-"):
            # `npx cowsay@1` runs cowsay.
            package = f"{word.text[:1]}{word.text[1:].partition('@')[0]}"
            name = _AGENT_PACKAGES.get(package) or word.text.partition("@")[0] or word.text
            program = word._replace(text=name, exact=word.exact and sure)
            return (program, *words[index + 1 :])
        elif word.text in {"-m", "--module"}:
            return words[index + 1 :] or None
        elif word.text in {"-c", "--call", "-s", "--script"}:
            return None
        else:
            skip = word.text in valued
            sure = sure and (skip or word.text in _RUNNER_SWITCHES or word.text.partition("=")[0] in valued)
    return None
