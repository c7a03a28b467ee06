"""Unwraps programs that need their own code: shells, eval, su, watch, trap, find, git, jackline. It runs nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.shell.model import NestedText, NotParsed, Unwrapped, Word
from jackline.shell.options import ParsedOptions, WrapperOptions, parse_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHELL = WrapperOptions(
    alone="abefhiklmnprstuvxBCDEHPTc",
    valued="oO",
    long_alone=(
        "--debugger", "--login", "--noediting", "--noprofile", "--norc", "--posix", "--restricted", "--verbose",
    ),
    long_valued=("--init-file", "--rcfile"),
    idle=("--help", "--version", "--dump-strings", "--dump-po-strings"),
    plus=True,
    text="-c",
)  # fmt: skip
_SU = WrapperOptions(
    alone="-lmpPf",
    valued="cgGsw",
    long_alone=("--fast", "--login", "--preserve-environment", "--pty"),
    long_valued=("--command", "--group", "--shell", "--session-command", "--supp-group", "--whitelist-environment"),
)
_RUNUSER = _SU._replace(valued=f"{_SU.valued}u", long_valued=(*_SU.long_valued, "--user"))
_SCRIPT = WrapperOptions(alone="aefq", valued="cBEIOTmot", long_valued=("--command",))
_WATCH = WrapperOptions(
    alone="bcCegprtvwx",
    valued="nq",
    joined="d",
    long_alone=(
        "--beep", "--chgexit", "--color", "--differences", "--errexit", "--exec", "--no-color", "--no-rerun",
        "--no-title", "--no-wrap", "--precise",
    ),
    long_valued=("--equexit", "--interval"),
    idle=("-h", "--help", "--version"),
)  # fmt: skip
_FLOCK = WrapperOptions(
    alone="eFnosuvx",
    valued="Ew",
    long_alone=("--close", "--exclusive", "--nb", "--no-fork", "--nonblock", "--shared", "--unlock", "--verbose"),
    long_valued=("--conflict-exit-code", "--timeout", "--wait"),
    idle=("--help", "--version", "-h", "-V"),
    operands=1,
)
_FD_JOINED = re.compile(r"--exec(?:-batch)?=|-[A-Za-z0-9]*[xX]")
_BASH = frozenset(["bash", "zsh", "rbash"])
SHELLS = _BASH | {"sh", "dash", "ksh", "ash", "mksh"}


def unwrap_shell(words: tuple[Word, ...], stdin: Word | None) -> Unwrapped:
    """Unwrap `bash -c text` and `bash <<EOF`. A script file is not opened."""
    program = words[0].text.rsplit("/", 1)[-1]
    reading = parse_options(_SHELL, words[1:])
    names = {name for name, _ in reading.values}
    if any(name in _SHELL.idle for name in names):
        return Unwrapped(kept=words)
    posix = program not in _BASH
    if "-c" in names:
        # An interactive shell also runs its startup file.
        sure = reading.sure and not ("-i" in names and names & {"--rcfile", "--init-file"})
        known = reading.sure and all(word.exact for word in reading.rest[:2])
        text = NestedText(text="", posix=posix, arguments=reading.rest[2:] if known else None)
        return _unwrap_text(words, reading.rest[:1], text, f"{program} -c", sure=sure)
    if reading.rest and reading.rest != (Word("-"),) and "-s" not in names:
        return Unwrapped(kept=words)
    given = () if stdin is None else (stdin,)
    arguments = reading.rest if "-s" in names else ()
    text = NestedText(text="", posix=posix, read=True, arguments=arguments if reading.sure else None)
    return _unwrap_text(words, given, text, f"{program} <<", sure=reading.sure)


def find_script(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the script file that a shell runs, with its arguments; empty if it runs no file."""
    reading = parse_options(_SHELL, words[1:])
    names = {name for name, _ in reading.values}
    return () if names & {"-c", "-s", *_SHELL.idle} else reading.rest


def _unwrap_text(
    words: tuple[Word, ...], given: tuple[Word, ...], text: NestedText, through: str, *, sure: bool = True
) -> Unwrapped:
    """Unwrap shell text; keep the wrapper too if the text is not fully known."""
    if not given:
        return Unwrapped(kept=words)
    exact = all(word.exact for word in given)
    whole = text._replace(text=" ".join(word.text for word in given), guess=not exact)
    return Unwrapped(kept=None if sure and exact else words, text=whole, through=through)


def _unwrap_eval(words: tuple[Word, ...]) -> Unwrapped:
    given = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    return _unwrap_text(words, given, NestedText("", posix=False, same=True), "eval")


def _unwrap_trap(words: tuple[Word, ...]) -> Unwrapped:
    given = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if len(given) < 2 or given[0].text in ("", "-", "-p", "-l", "-P"):  # noqa: PLR2004 - text and signal
        return Unwrapped(kept=words)
    return _unwrap_text(words, given[:1], NestedText("", posix=False, later=True), "trap")


def _unwrap_su(words: tuple[Word, ...]) -> Unwrapped:
    """Unwrap `su -c text user` and `su user -c text`."""
    reading = parse_options(_SU, words[1:])
    again = parse_options(_SU, reading.rest[1:]) if reading.rest else reading
    text = reading.find_value("-c", "--command", "--session-command") or again.find_value(
        "-c", "--command", "--session-command"
    )
    if text is None:
        return Unwrapped(kept=words)
    sure = reading.sure and again.sure
    taken = _unwrap_text(words, (text,), NestedText(""), f"{words[0].text.rsplit('/', 1)[-1]} -c", sure=sure)
    return taken._replace(folder=Word("", exact=False))


def _unwrap_runuser(words: tuple[Word, ...]) -> Unwrapped:
    """Unwrap `runuser -u name command`; without -u it works like su."""
    reading = parse_options(_RUNUSER, words[1:])
    if reading.find_value("-u", "--user") is None or not reading.rest:
        return _unwrap_su(words)
    return _unwrap_command(words, reading, "runuser")


def _unwrap_script(words: tuple[Word, ...]) -> Unwrapped:
    """Unwrap `script -c text`; keep the wrapper too, because it also writes a file."""
    reading = parse_options(_SCRIPT, words[1:])
    text = reading.find_value("-c", "--command")
    if text is None:
        return Unwrapped(kept=words)
    return _unwrap_text(words, (text,), NestedText(""), "script -c", sure=False)


def _unwrap_watch(words: tuple[Word, ...]) -> Unwrapped:
    reading = parse_options(_WATCH, words[1:])
    names = {name for name, _ in reading.values}
    if any(name in _WATCH.idle for name in names):
        return Unwrapped(kept=words)
    if not reading.rest:
        return _unwrap_text(words, tuple(word for word in words if not word.exact), NestedText(""), "watch")
    if names & {"-x", "--exec"}:
        return _unwrap_command(words, reading, "watch")
    return _unwrap_text(words, reading.rest, NestedText(""), "watch", sure=reading.sure)


def _unwrap_flock(words: tuple[Word, ...]) -> Unwrapped:
    reading = parse_options(_FLOCK, words[1:])
    if not reading.rest or any(name in _FLOCK.idle for name, _ in reading.values):
        return Unwrapped(kept=words)
    if reading.rest[0].text in ("-c", "--command"):
        return _unwrap_text(words, reading.rest[1:2], NestedText(""), "flock -c", sure=reading.sure)
    return _unwrap_command(words, reading, "flock")


def _guess_command_lines(words: tuple[Word, ...]) -> Unwrapped:
    """Guess for a program with its own language: a word with spaces may be a shell command line."""
    lines = "\n".join(word.text for word in words[1:] if " " in word.text)
    return Unwrapped(kept=words, text=NestedText(lines, guess=True) if lines else None, through=words[0].text)


def _unwrap_command(words: tuple[Word, ...], reading: ParsedOptions, through: str) -> Unwrapped:
    kept = None if reading.sure else (Word(words[0].text, exact=False), *words[1:])
    return Unwrapped(kept=kept, calls=(reading.rest,), through=through)


def _unwrap_find(words: tuple[Word, ...]) -> Unwrapped:
    """Return find itself, and every command that its actions run."""
    calls: list[tuple[Word, ...]] = []
    folder: Word | None = None
    at = 1
    while at < len(words):
        action = words[at].text
        at += 1
        if action in ("-exec", "-execdir", "-ok", "-okdir"):
            # The command ends at `;`, or at a `+` after `{}`.
            pairs = enumerate(pairwise(words[at - 1 :]), at)
            ends = (i for i, (before, word) in pairs if word.text == ";" or (before.text, word.text) == ("{}", "+"))
            end = next(ends, None)
            if end is None:
                raise NotParsed("unterminated action of find")
            calls.append(tuple(Word(word.text, word.exact and "{}" not in word.text) for word in words[at:end]))
            at = end + 1
            folder = Word("", exact=False) if action.endswith("dir") else folder
    return Unwrapped(kept=words, calls=tuple(calls), through="find -exec", folder=folder)


def _unwrap_fd(words: tuple[Word, ...]) -> Unwrapped:
    """Return fd itself, and the command after -x or -X, which extends to the end or a `;`."""
    for place, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch") and place + 1 < len(words):
            end = next((at for at in range(place, len(words)) if words[at].text == ";"), len(words))
            inner = tuple(Word(word.text, word.exact and "{" not in word.text) for word in words[place + 1 : end])
            return Unwrapped(kept=words, calls=((*inner, Word("{}", exact=False)),), through="fd --exec")
    hidden = any(_FD_JOINED.match(word.text) for word in words)
    return Unwrapped(kept=(Word(words[0].text, exact=False), *words[1:]) if hidden else words)


def _unwrap_run(words: tuple[Word, ...]) -> Unwrapped:
    """Unwrap `uv run cmd`, `poetry run cmd` and similar. With options before the command they are kept as they are."""
    program = words[0].text.rsplit("/", 1)[-1]
    verb = "exec" if program == "bundle" else "run"
    rest = words[2:]
    if rest and rest[0].text == "--":
        rest = rest[1:]
    known = len(words) > 2 and words[1] == Word(verb) and rest and not rest[0].text.startswith("-")  # noqa: PLR2004
    if not known or rest[0].text.endswith(".py"):
        return Unwrapped(kept=words)
    return Unwrapped(calls=(rest,), through=f"{program} {verb}")


def _unwrap_git(words: tuple[Word, ...]) -> Unwrapped:
    """Return git itself, and the command that some subcommands run."""
    texts = [word.text for word in words]
    for verb, given in (("submodule", "foreach"), ("bisect", "run")):
        if verb in texts and given in texts[texts.index(verb) :]:
            rest = words[texts.index(given, texts.index(verb)) + 1 :]
            inner = rest[1:] if rest and rest[0].text in ("--recursive", "--quiet") else rest
            if len(inner) == 1 and verb == "submodule" and inner[0].exact:
                return Unwrapped(kept=words, text=NestedText(inner[0].text, later=True), through=f"git {verb}")
            folder = Word("", exact=False)
            return Unwrapped(kept=words, calls=(inner,) if inner else (), through=f"git {verb}", folder=folder)
    ran = _find_rebase_command(words) if "rebase" in texts else None
    if ran is not None:
        return Unwrapped(kept=words, text=NestedText(ran.text, guess=not ran.exact), through="git rebase")
    return Unwrapped(kept=words)


def _find_rebase_command(words: tuple[Word, ...]) -> Word | None:
    """Return the command of `git rebase -x cmd`, in any spelling of the flag."""
    for flag, after in pairwise((*words, Word("", exact=False))):
        if flag.text in ("-x", "--exec"):
            return after
        joined = flag.text.removeprefix("--exec=").removeprefix("-x")
        if joined != flag.text:
            return flag._replace(text=joined)
    return None


def _unwrap_meson(words: tuple[Word, ...]) -> Unwrapped:
    """Return the command of `meson subprojects foreach`, which runs in other folders."""
    texts = [word.text for word in words]
    if "foreach" not in texts[1:]:
        return Unwrapped(kept=words)
    folder = Word("", exact=False)
    inner = words[texts.index("foreach", 1) + 1 :]
    return Unwrapped(kept=words, calls=(inner,) if inner else (), through="meson subprojects", folder=folder)


def _unwrap_tox(words: tuple[Word, ...]) -> Unwrapped:
    """Return the command of `tox exec -e name -- command`."""
    texts = [word.text for word in words]
    inner = words[texts.index("--") + 1 :] if "exec" in texts and "--" in texts else ()
    return Unwrapped(kept=words, calls=(inner,) if inner else (), through="tox exec")


_OWN_VALUED = frozenset(["--case", "--home"])
_VERIFYING = frozenset(["--verify", "--verification"])


def unwrap_jackline(words: tuple[Word, ...]) -> Unwrapped:
    """Return jackline itself, and the commands that a case runs now or when it is closed."""
    case = _skip_subcommand("case", words[1:])
    ran = _skip_own_flags(_skip_subcommand("run", _skip_subcommand("command", case)))
    if ran:
        line = (Word("sh"), Word("-c"), *ran)  # a single word is a shell command line
        return Unwrapped(calls=(line if len(ran) == 1 else ran,), through="jackline case")
    calls = tuple((Word("sh"), Word("-c"), line) for line in _find_verification(case))
    return Unwrapped(kept=words, calls=calls, through="jackline case")


def _skip_subcommand(verb: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words after this subcommand, or nothing for another subcommand."""
    rest = _skip_own_flags(words)
    return rest[1:] if rest and rest[0] == Word(verb) else ()


def _skip_own_flags(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and words[0].text.startswith("-"):
        if words[0].text == "--":
            return words[1:]
        words = words[2 if words[0].text in _OWN_VALUED else 1 :]
    return words


def _find_verification(words: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the values of `--verify CMD` and `--verification CMD CMD`."""
    given = False
    for word in words:
        name, sign, value = word.text.partition("=")
        if word.text.startswith("-"):
            given = name in _VERIFYING
            if given and sign:
                yield word._replace(text=value)
        elif given:
            yield word


UNWRAPPERS: dict[str, Callable[[tuple[Word, ...]], Unwrapped]] = {
    "su": _unwrap_su,
    "runuser": _unwrap_runuser,
    "script": _unwrap_script,
    **dict.fromkeys(("uv", "poetry", "pipenv", "bundle"), _unwrap_run),
    **dict.fromkeys(("fd", "fdfind"), _unwrap_fd),
    **dict.fromkeys(("fish", "csh", "tcsh", "nu", "xonsh", "pwsh", "parallel", "tmux", "screen"), _guess_command_lines),
    **dict.fromkeys(("nix-shell", "sops"), _guess_command_lines),
    "eval": _unwrap_eval,
    "trap": _unwrap_trap,
    "watch": _unwrap_watch,
    "flock": _unwrap_flock,
    "find": _unwrap_find,
    "git": _unwrap_git,
    "meson": _unwrap_meson,
    "tox": _unwrap_tox,
    "jackline": unwrap_jackline,
}
