"""Finds output files that any program may be given by a flag: of logs, traces, reports, profiles, backups. Pure.

It looks at the names of flags, because no table lists them all. Only paths that lead out of the workspace count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy import curl_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.policy.command_line import CommandLine
    from jackline.shell.model import Word

ELSEWHERE = ("/", "~", "..", "$HOME", "${HOME}")
# A flag with one of these words in its name may name an output file.
_STEM_WORDS = """
out output outfile outdir outputfile outputdir log logs logfile logdir trace report reports reportdir dump dest
destination destdir save write record backup profile coverprofile cpuprofile memprofile blockprofile mutexprofile junit
junitxml xml html sarif artifact artifacts emit tee redirect redirection snapshot coverage cov basetemp workdir warc
result results map iidfile cidfile pidfile cursor debug timings events profiling graphviz transcript resultlog
serialize svg event metadata reporter logger dist site junitfile jsonfile info
"""
_STEMS = frozenset(_STEM_WORDS.split())
# As the last word of its name, the flag takes the next word as its value.
_END_WORDS = """
file dir directory folder path output out log logs outfile outdir outputfile outputdir logfile logdir dest destination
destdir xml junitxml report reportdir coverprofile cpuprofile memprofile blockprofile mutexprofile basetemp workdir
iidfile cidfile pidfile resultlog redirect trace junit format options section logger junitfile jsonfile
"""
_ENDS = frozenset(_END_WORDS.split())
_NAME = re.compile(r"--?[A-Za-z][\w.-]*")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_PIECES = re.compile(r"[=:,;]")
# The values of these programs' flags are names on a server.
_SERVER_CLIENTS = frozenset({"aws", "gcloud", "az", "gh", "glab", "heroku", "fly"})
_COMPILERS = frozenset({"gcc", "g++", "cc", "c++", "clang", "clang++"})
_COMPILER_OUTPUT = re.compile(
    r"-(?:MF|MJ|aux-info|dumpdir|dumpbase|fdump-[\w-]+=|fprofile-(?:dir|generate)=|ftime-trace=|fopt-info[\w-]*="
    r"|foptimization-record-file=|Wp,-MM?D,|Wl,-Map[=,]|Wl,--dependency-file[=,]|Wl,-o,|Wa,-a\w*=)(.*)"
)


def find_named_outputs(line: CommandLine, *, only_reads: bool) -> Iterator[Word]:
    """Yield the paths outside that the flags of a harmless program name as output; `-o` has other meanings in reads."""
    if line.program == "curl":
        yield from curl_requests.find_written_files(line.words)
    if line.program in _SERVER_CLIENTS:
        return
    for index, word in enumerate(line.words):
        if not word.text.startswith("-"):
            continue
        following = line.words[index + 1] if index + 1 < len(line.words) else None
        name, equals, value = word.text.partition("=")
        if line.program in _COMPILERS and (found := _COMPILER_OUTPUT.match(word.text)):
            joined = word._replace(text=found[1]) if found[1] else following
            yield from (joined,) if joined is not None and joined.text.startswith(ELSEWHERE) else ()
        elif name == "-o":
            yield from _find_path(following) if following is not None and not only_reads else ()
        elif len(name) > len("-o") and _NAME.fullmatch(name):
            parts = [part.lower() for part in _PARTS.findall(name)]
            if equals and _STEMS.intersection(parts):
                yield from _find_path(word._replace(text=value))
            elif not equals and following is not None and parts[-1] in _ENDS and _STEMS.intersection(parts):
                yield from _find_path(following)


def _find_path(word: Word) -> Iterator[Word]:
    """Yield the path in a value such as `html:/there` or `type=local,dest=/there`."""
    if "://" in word.text:
        return
    for text in (word.text, *(_PIECES.split(word.text)[1:])):
        if text.startswith(ELSEWHERE):
            yield word._replace(text=text)
            return
