"""Completion scripts for bash, zsh and fish, written from the grammar of the commands. Pure text.

bash and zsh share their tables: `case` reads the same in both. A script asks jackline itself only for runs and tasks.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from jackline.cli.grammar import FILES, FOLDERS, NOTHING, RUNS, TASKS, WORDS, Grammar, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_RUNS = "jackline list --all-repos --limit 100 2>/dev/null | cut -f1"
_TASKS = "jackline tasks list 2>/dev/null | cut -f1"
# Both set: current, previous, and where = the words so far that are no flags ("db archive").
_BASH = """\
# bash completion for jackline: put `eval "$(jackline completion bash)"` into ~/.bashrc
_jackline() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" where="" word
    local -i index count=0
    # bash takes --flag=value apart
    [[ $previous == "=" ]] && previous="${{COMP_WORDS[COMP_CWORD-2]}}"
    [[ $current == "=" ]] && current=""
    for ((index = 1; index < COMP_CWORD; index++)); do
        word="${{COMP_WORDS[index]}}"
        case "$where ${{COMP_WORDS[index-1]}}" in
{takes}
        esac
        [[ $word == -* ]] && continue
        ((count++))
        case "$where${{where:+ }}$word" in
{paths}) where="$where${{where:+ }}$word"; count=0 ;;
        esac
    done
    COMPREPLY=()
    case "$where $previous" in
{values}
    esac
    case "$where" in
{flags}
    esac
    [[ $current == -* ]] && return
    case "$where:$count" in
{words}
    esac
}}
_jackline_words() {{ COMPREPLY+=($(compgen -W "$1" -- "$current")); }}
_jackline_files() {{ local IFS=$'\n'; compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$current")); }}
_jackline_folders() {{ local IFS=$'\n'; compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$current")); }}
_jackline_runs() {{ _jackline_words "$({runs})"; }}
_jackline_tasks() {{ _jackline_words "$({tasks})"; }}
_jackline_nothing() {{ :; }}
complete -F _jackline jackline
"""
_ZSH = """\
#compdef jackline
# zsh completion for jackline: put `source <(jackline completion zsh)` into ~/.zshrc, after compinit
_jackline() {{
    local current="${{words[CURRENT]}}" previous="${{words[CURRENT-1]}}" where="" word
    integer index count=0
    for ((index = 2; index < CURRENT; index++)); do
        word="${{words[index]}}"
        case "$where ${{words[index-1]}}" in
{takes}
        esac
        [[ $word == -* ]] && continue
        ((count++))
        case "$where${{where:+ }}$word" in
{paths}) where="$where${{where:+ }}$word"; count=0 ;;
        esac
    done
    case "$where $previous" in
{values}
    esac
    case "$where" in
{flags}
    esac
    [[ $current == -* ]] && return
    case "$where:$count" in
{words}
    esac
}}
_jackline_words() {{ compadd -- ${{=1}}; }}
_jackline_files() {{ _files; }}
_jackline_folders() {{ _files -/; }}
_jackline_runs() {{ _jackline_words "$({runs})"; }}
_jackline_tasks() {{ _jackline_words "$({tasks})"; }}
_jackline_nothing() {{ :; }}
if [[ "${{funcstack[1]}}" = _jackline ]]; then _jackline "$@"; else compdef _jackline jackline; fi
"""


def _tables(grammars: Sequence[Grammar]) -> Mapping[str, str]:
    """The bodies of the `case` statements."""
    commands = " ".join(one.path[0] for one in grammars if len(one.path) == 1)
    top = f'"") [[ $current == -* ]] && _jackline_words {quote("--help --home --json --no-color --version")} ;;'
    offers = _offers(grammars)
    taking = "|".join(pattern for patterns in offers.values() for pattern in patterns)
    return {
        "takes": f"            {taking}) continue ;;",
        "paths": " " * 12 + "|".join(quote(" ".join(one.path)) for one in grammars),
        "values": _lines([f"{'|'.join(patterns)}) {offer}; return ;;" for offer, patterns in offers.items()]),
        "flags": _lines([top, *(_flag_line(one) for one in grammars)]),
        "words": _lines([f'":0") _jackline_words {quote(commands)} ;;', *_word_lines(grammars)]),
        "runs": _RUNS,
        "tasks": _TASKS,
    }


def _offers(grammars: Sequence[Grammar]) -> dict[str, list[str]]:
    """What is offered after a flag, with the places where it is; --home may also stand before the command."""
    found: dict[str, list[str]] = {_offer(Value(FOLDERS)): [quote(" --home")]}
    for one in grammars:
        where = " ".join(one.path)
        for flag in one.flags:
            if flag.value is not None:
                found.setdefault(_offer(flag.value), []).extend(quote(f"{where} {name}") for name in flag.names)
    return found


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(" " * 8 + line for line in lines)


def _flag_line(one: Grammar) -> str:
    names = " ".join(name for flag in one.flags for name in flag.names)
    return f"{quote(' '.join(one.path))}) [[ $current == -* ]] && _jackline_words {quote(names)} ;;"


def _word_lines(grammars: Sequence[Grammar]) -> Iterator[str]:
    for one in grammars:
        for index, value in enumerate(one.words):
            if value.kind != NOTHING:
                yield f"{quote(' '.join(one.path) + f':{index}')}) {_offer(value)} ;;"


def _offer(value: Value) -> str:
    return f"_jackline_{value.kind}" + (f" {quote(' '.join(value.words))}" if value.kind == WORDS else "")


def bash(grammars: Sequence[Grammar]) -> str:
    """For bash 4 and newer; also 3.2, without the finer points of file names."""
    return _BASH.format(**_tables(grammars))


def zsh(grammars: Sequence[Grammar]) -> str:
    """For zsh with compinit."""
    return _ZSH.format(**_tables(grammars))


def fish(grammars: Sequence[Grammar]) -> str:
    """For fish: one line for each word."""
    lines = ["# fish completion for jackline: jackline completion fish > ~/.config/fish/completions/jackline.fish"]
    lines.append("complete -c jackline -f")
    paths = {one.path for one in grammars}
    for one in grammars:
        if len(one.path) == 1:
            lines.append(f"complete -c jackline -n __fish_use_subcommand -a {one.path[0]} -d {quote(one.help)}")
        lines += _fish_lines(one, [path[-1] for path in paths if path[:-1] == one.path])
    return "\n".join(lines) + "\n"


def _fish_lines(one: Grammar, below: Sequence[str]) -> Iterator[str]:
    seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in one.path)
    start = f"complete -c jackline -n {quote(seen)}"
    for flag in one.flags:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
        yield f"{start} {names}{_fish_value(flag.value)} -d {quote(flag.help)}"
    if below:
        none_yet = f"{seen}; and not __fish_seen_subcommand_from {' '.join(sorted(below))}"
        yield f"complete -c jackline -n {quote(none_yet)} -a {quote(' '.join(sorted(below)))}"
        return
    for value in one.words:
        if value.kind != NOTHING:
            yield f"{start}{_fish_value(value).replace(' -x', '').replace(' -r', '')}"


def _fish_value(value: Value | None) -> str:
    if value is None:
        return ""
    offers = {
        WORDS: f" -x -a {quote(' '.join(value.words))}",
        FILES: " -r -F",
        FOLDERS: " -x -a '(__fish_complete_directories)'",
        RUNS: f" -x -a {quote(f'({_RUNS})')}",
        TASKS: f" -x -a {quote(f'({_TASKS})')}",
    }
    return offers.get(value.kind, " -x")


WRITERS: Mapping[str, Callable[[Sequence[Grammar]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
