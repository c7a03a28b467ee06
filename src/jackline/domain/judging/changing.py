"""Which paths a command writes or deletes, as its words name them. Pure: it reads no disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.builtin import flags
from jackline.domain.judging import scripts
from jackline.domain.shell import Word
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.domain.judging.arguments import Line

HERE = Word(".", exact=True)
NOBODY_KNOWS = Word("$?", exact=False)


class Change(NamedTuple):
    """A path, and what becomes of it; a container is a folder in which things change."""

    word: Word
    deletes: bool = False
    is_container: bool = False


_MODE_FIRST = frozenset({"chmod", "chown", "chgrp"})
_WRITES_ALL = frozenset(
    {"touch", "mkdir", "tee", "mkfifo", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "dos2unix"}
)
_DELETES_ALL = frozenset({"rm", "rmdir", "unlink", "shred", "truncate"})
_INTO_LAST = frozenset({"cp", "mv", "ln", "install", "rsync"})
_SECOND = frozenset({"uniq", "xxd", "json.tool", "pdftotext", "convert", "magick"})
# Flags whose value is what is written.
_OUTPUT: Mapping[str, tuple[str, ...]] = {
    name: tuple(given.split())
    for names, given in {
        "sort tree iconv base64 http pandoc": "-o --output",
        "gcc cc clang g++ clang++ c++ go dot zstd": "-o",
        "rustc": "-o --out-dir",
        "curl": "-o --output -D --dump-header -c --cookie-jar --output-dir --trace --trace-ascii --stderr --libcurl "
        "--etag-save --hsts --alt-svc",
        "wget": "-O --output-document -P --directory-prefix -o --output-file -a",
        "unzip javac": "-d",
        "find": "-fprint -fprint0 -fprintf -fls",
        "pip": "-d --dest -w --wheel-dir",
        "cmake": "-B",
        "xmllint": "--output",
    }.items()
    for name in names.split()
}
_FIND_ENDS = ("-", "(", "!", ")")


def changes(line: Line) -> Iterator[Change]:
    """Every path that a program which changes files is told to change; the folder it works in where none is named."""
    named = _named(line)
    program = line.program
    if program in _DELETES_ALL:
        yield from _each(named, deletes=True)
    elif program in _WRITES_ALL:
        yield from _each(named, deletes=False)
    elif program in _MODE_FIRST:
        yield from _each(named[1:] if not _has(line, "--reference") else named, deletes=False)
    elif program in _INTO_LAST:
        yield from _into_last(line, named)
    else:
        yield from _others(line, named)


def reading_changes(line: Line) -> Iterator[Change]:
    """What a program that only reads writes nevertheless: the second name of those that have one."""
    if line.program in _SECOND:
        named = _named(line)
        yield from (Change(word) for word in named[1:2] if word.text != "-")


def _others(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    special = _SPECIAL.get(line.program)
    if special is not None:
        yield from special(line, named)
        return
    outputs = list(_values(line, _OUTPUT.get(line.program, ())))
    yield from (Change(word) for word in outputs if word.text != "-")
    if line.program in _SECOND:
        yield from reading_changes(line)
    elif not outputs or line.program in {"git", "go", "cmake", "pip"}:
        yield Change(HERE, is_container=True)


def _each(named: Sequence[Word], *, deletes: bool) -> Iterator[Change]:
    yield from (Change(word, deletes) for word in named if word.text != "-")


def _into_last(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    folders = list(_values(line, ("-t", "--target-directory")))
    several = len(named) > 1
    # `ln -s there` makes its link here, under the same name.
    yield from (Change(word, is_container=True) for word in folders or (named[-1:] if several else (HERE,)))
    if line.program == "mv":
        sources = named if folders else named[:-1]
        yield from (Change(word, deletes=True) for word in sources)


def _dd(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    given = (word for word in line.words if word.text.startswith("of="))
    yield from (Change(word._replace(text=word.text.removeprefix("of="))) for word in given)


def _sed(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    yield from (Change(word) for word in scripts.sed_files(line.words))


def _find(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    deletes = _has(line, "-delete")
    if deletes:
        yield from (Change(word, deletes=True, is_container=True) for word in find_starts(line))
    yield from (Change(word) for word in _values(line, _OUTPUT["find"]))


def find_starts(line: Line) -> tuple[Word, ...]:
    """The folders that find begins in."""
    starts: list[Word] = []
    for word in line.words:
        if word.text in {"-H", "-L", "-P"}:
            continue
        if word.text.startswith(_FIND_ENDS):
            break
        starts.append(word)
    return tuple(starts) or (HERE,)


def _git(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    verb = named[0].text if named else ""
    top = next(_values(line, ("-C", "--work-tree")), HERE)
    after = tuple(named[1:])
    if verb == "clean":
        yield Change(top, deletes=True, is_container=True)
        yield from (Change(word, deletes=True, is_container=True) for word in after)
    elif verb in {"clone", "init"} or (verb == "worktree" and after[:1] and after[0].text in {"add", "move"}):
        where = {"clone": after[1:2], "init": after[:1]}.get(verb, after[1:2])
        yield Change(where[0] if where else top, is_container=True)
    else:
        yield Change(top, is_container=True)
    if verb == "bundle":
        yield from (Change(word) for word in after[1:2])
    outputs = ("--output", "--output-directory", "--git-dir", *(("-o",) if verb in {"format-patch", "archive"} else ()))
    yield from (Change(word) for word in _values(line, outputs))


def _docker(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """`docker cp container:/path file` writes here; a word with a colon is in the container."""
    if named and named[0].text == "cp":
        yield from (Change(word) for word in named[2:3] if ":" not in word.text and word.text != "-")
    elif named and named[0].text in {"save", "export"}:
        yield from (Change(word) for word in _values(line, ("-o", "--output")))
    else:
        yield Change(HERE, is_container=True)


def _patch(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    folder = next(_values(line, ("-d", "--directory")), HERE)
    yield Change(folder, is_container=True)
    yield from (Change(word) for word in named[:1])


def _tar(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """Unpacking writes into a folder, packing writes the archive."""
    first = line.words[0].text if line.words else ""
    mode = first if not first.startswith("--") else ""
    creates = "c" in mode or "r" in mode or "u" in mode or _has(line, "--create") or _has(line, "--append")
    if creates:
        archive = next(_values(line, ("-f", "--file")), None) or _joined_value(line, named)
        elsewhere = archive is not None and ":" in archive.text and not _has(line, "--force-local")
        yield Change(NOBODY_KNOWS if elsewhere else archive or HERE, is_container=archive is None)
        if _has(line, "--remove-files"):
            yield Change(NOBODY_KNOWS, deletes=True)
    else:
        yield Change(next(_values(line, ("-C", "--directory")), HERE), is_container=True)


def _joined_value(line: Line, named: Sequence[Word]) -> Word | None:
    """The archive of `tar czf x.tgz dir` and of `tar -czf x.tgz dir`: the word after the letters."""
    if len(line.words) > 1 and "f" in line.words[0].text and not line.words[0].text.startswith("--"):
        return line.words[1]
    return None if not named else NOBODY_KNOWS


def _zip(_: Line, named: Sequence[Word]) -> Iterator[Change]:
    yield from (Change(word) for word in named[:1])


def _aws(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    """`aws s3api get-object … file`: the file is its last word."""
    yield from (Change(word) for word in line.words[-1:])


def _nothing(_: Line, __: Sequence[Word]) -> Iterator[Change]:
    yield from ()


_SPECIAL: dict[str, Callable[[Line, Sequence[Word]], Iterator[Change]]] = {
    "dd": _dd, "sed": _sed, "find": _find, "git": _git, "patch": _patch, "tar": _tar, "zip": _zip, "mktemp": _nothing,
    "sqlite3": _zip, "apply_patch": _nothing, "aws": _aws, "docker": _docker,
}  # fmt: skip


def _named(line: Line) -> tuple[Word, ...]:
    """The words that are neither flags nor values of flags, by what is known of this very program."""
    valued = flags.ARGUMENTS.get(line.program, flags.NONE) | flags.VALUED.get(line.program, flags.NONE)
    verb = line.words[line.named[0]].text if line.named else ""
    valued |= flags.ARGUMENTS.get(f"{line.program} {verb}", flags.NONE)
    found: list[Word] = []
    skip = ended = False
    for word in line.words:
        if skip:
            skip = False
        elif ended or not word.text.startswith("-") or word.text == "-":
            found.append(word)
        elif word.text == "--":
            ended = True
        else:
            skip = word.text in valued
    return tuple(found)


def _values(line: Line, names: Sequence[str]) -> Iterator[Word]:
    for index, word in enumerate(line.words):
        name, equals, value = word.text.partition("=")
        if equals and _means(name, names):
            yield word._replace(text=value)
        elif _means(word.text, names) or _ends_in(word.text, names):
            yield from line.words[index + 1 : index + 2]
        else:
            short = next((name for name in names if len(name) == len("-o") and word.text.startswith(name)), None)
            if short and not word.text.startswith("--"):
                yield word._replace(text=word.text[len(short) :])


def _means(text: str, names: Sequence[str]) -> bool:
    """A flag by its name; many programs take a long one by its beginning, too."""
    shortened = text.startswith("--") and len(text) > len("--x") and any(name.startswith(text) for name in names)
    return text in names or shortened


def _ends_in(text: str, names: Sequence[str]) -> bool:
    """`-fsSLo file`: the last of several letters takes the value."""
    return (
        text[:1] == "-"
        and text[1:2] not in {"", "-"}
        and len(text) > len("-o")
        and f"-{text[-1]}" in names
        and text[1:].isalpha()
    )


def _has(line: Line, flag: str) -> bool:
    return any(word.text == flag or word.text.startswith(f"{flag}=") for word in line.words)
