"""Finds secrets by their shape: provider keys, tokens, private keys. Pure; compiled on first use.

Each shape needs a distinctive prefix: hashes, UUIDs, ids and base64 images must not match.
"""

from __future__ import annotations

import re
from functools import cache

from jackline.named import NamedTuple

SHORTEST_RUN = 20  # of letters, digits, '-' and '_'; every token below contains one

# Before a token with a short prefix: no letter or digit, unless it ends an escape or a colour code.
_LEFT = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbfv])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2})"
    r"|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))"
)
_WORD = "[A-Za-z0-9]"
_WIDE = "[A-Za-z0-9_-]"

_GITLAB = ("pat", "rt", "dt", "cbt", "ptt", "oas", "soat", "ft", "agent", "imt", "ffct")

# A literal prefix, and the pattern that starts with it.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("sk-", rf"{_LEFT}sk-{_WORD}{{20,}}"),
    *((f"sk-{one}-", rf"sk-{one}-{_WIDE}{{14,}}") for one in ("ant", "proj", "or", "svcacct", "admin", "None", "lf")),
    ("AIza", rf"{_LEFT}AIza{_WIDE}{{35,}}"),
    ("AQ.Ab8R", rf"AQ\.Ab8R{_WIDE}{{30,}}"),
    ("GOCSPX-", rf"GOCSPX-{_WIDE}{{20,}}"),
    ("ya29.", rf"ya29\.{_WIDE}{{20,}}"),
    ("1//0", rf"1//0{_WIDE}{{30,}}"),
    ("xai-", rf"xai-{_WORD}{{30,}}"),
    ("gsk_", rf"gsk_{_WORD}{{30,}}"),
    ("hf_", rf"{_LEFT}hf_{_WORD}{{30,}}"),
    ("r8_", rf"{_LEFT}r8_{_WORD}{{30,}}"),
    ("pplx-", rf"pplx-{_WORD}{{30,}}"),
    ("csk-", rf"{_LEFT}csk-{_WORD}{{30,}}"),
    ("tgp_v1_", rf"tgp_v1_{_WIDE}{{30,}}"),
    ("jina_", rf"jina_{_WIDE}{{40,}}"),
    ("tvly-", rf"tvly-{_WIDE}{{20,}}"),
    ("nvapi-", rf"nvapi-{_WIDE}{{30,}}"),
    *((f"gh{one}_", rf"gh{one}_{_WORD}{{30,}}") for one in "pousr"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{30,}"),
    *((f"gl{one}-", rf"gl{one}-{_WIDE}{{20,}}") for one in _GITLAB),
    *((f"xox{one}-", rf"xox{one}-{_WIDE}{{16,}}") for one in "abcdeoprs"),
    ("xapp-", rf"xapp-{_WIDE}{{16,}}"),
    ("services/T", r"services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}"),
    ("webhooks/", rf"(?<=api/)webhooks/\d{{15,}}/{_WIDE}{{40,}}"),
    *((f"A{one}A", rf"{_LEFT}A{one}A[A-Z0-9]{{16,}}") for one in ("KI", "SI", "BI", "CC")),
    *((f"{one}k_live_", rf"{one}k_live_{_WORD}{{16,}}") for one in "sr"),
    *((f"{one}k_test_", rf"{one}k_test_{_WORD}{{16,}}") for one in "sr"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("npm_", rf"npm_{_WORD}{{30,}}"),
    ("pypi-", rf"pypi-{_WIDE}{{40,}}"),
    ("rubygems_", r"rubygems_[0-9a-f]{40,}"),
    ("dckr_pat_", rf"dckr_pat_{_WIDE}{{20,}}"),
    *((f"do{one}_v1_", rf"do{one}_v1_[0-9a-f]{{40,}}") for one in "por"),
    *((f"sq0{one}-", rf"sq0{one}-{_WIDE}{{20,}}") for one in ("atp", "csp")),
    ("PMAK-", rf"PMAK-{_WORD}{{20,}}-{_WORD}{{30,}}"),
    ("pul-", rf"{_LEFT}pul-[0-9a-f]{{40}}"),
    ("ntn_", rf"{_LEFT}ntn_{_WORD}{{40,}}"),
    ("secret_", rf"{_LEFT}secret_{_WORD}{{40,}}"),
    ("sbp_", rf"{_LEFT}sbp_[0-9a-f]{{40}}"),
    ("sb_secret_", rf"sb_secret_{_WIDE}{{20,}}"),
    ("phx_", rf"{_LEFT}phx_{_WORD}{{40,}}"),
    ("re_", rf"{_LEFT}re_{_WORD}{{8}}_{_WORD}{{24}}"),
    ("vcp_", rf"{_LEFT}vcp_{_WORD}{{40,}}"),
    ("rnd_", rf"{_LEFT}rnd_{_WORD}{{28,}}"),
    ("nfp_", rf"{_LEFT}nfp_{_WORD}{{36,}}"),
    ("fm2_", r"fm2_[A-Za-z0-9+/=_-]{40,}"),
    ("fo1_", rf"{_LEFT}fo1_{_WIDE}{{40,}}"),
    *(
        (f"dp.{one}.", rf"{_LEFT}dp\.{one}\.(?:[a-z0-9_-]{{2,35}}\.)?{_WORD}{{40,}}")
        for one in ("pt", "st", "ct", "sa")
    ),
    ("CFPAT-", rf"CFPAT-{_WIDE}{{40,}}"),
    ("glc_", rf"{_LEFT}glc_[A-Za-z0-9+/=]{{32,}}"),
    ("glsa_", rf"glsa_{_WORD}{{32}}_[0-9a-fA-F]{{8}}"),
    ("NRAK-", r"NRAK-[A-Z0-9]{27}"),
    ("8Q~", r"8Q~[A-Za-z0-9_~.-]{31,}"),  # Azure client secret; a few characters precede the marker
    ("sl.", rf"{_LEFT}sl\.(?:u\.)?{_WIDE}{{60,}}"),
    *((f"shp{one}_", rf"shp{one}_[A-Fa-f0-9]{{30,}}") for one in ("at", "ss", "ca", "pa")),
    *((f"hv{one}.", rf"hv{one}\.{_WIDE}{{24,}}") for one in "sbr"),
    ("lin_api_", rf"lin_api_{_WORD}{{30,}}"),
    ("figd_", rf"figd_{_WIDE}{{30,}}"),
    *((f"AT{one}TT3", rf"{_LEFT}AT{one}TT3{_WIDE}{{30,}}=*{_WORD}*") for one in "AC"),
    ("ATBB", rf"{_LEFT}ATBB{_WORD}{{32}}"),
    *((f"sntry{one}_", rf"sntry{one}_[A-Za-z0-9_+/=-]{{30,}}") for one in "su"),
    ("dapi", rf"{_LEFT}dapi[0-9a-f]{{32}}"),
    ("SG.", rf"SG\.{_WIDE}{{16,}}\.{_WIDE}{{16,}}"),
    ("SK", rf"{_LEFT}SK[0-9a-f]{{32}}"),
    (":AA", rf"(?<=\d{{8}}):AA{_WIDE}{{30,}}"),  # a Telegram token; the number of the bot precedes it
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{30,}"),
    ("eyJ", rf"{_LEFT}eyJ{_WIDE}{{14,1024}}+\.{_WIDE}{{8,}}+(?:\.{_WIDE}*+){{0,3}}"),
)
_PREFIXES = tuple(prefix for prefix, _ in _SHAPES)
_SIGNLESS = tuple(prefix for prefix in _PREFIXES if prefix.isalnum())
_SIGNED = tuple(prefix for prefix in _PREFIXES if not prefix.isalnum())
_SLASHED = tuple(prefix for prefix in _PREFIXES if "/" in prefix)
_LONGEST_BEGINNING = 32
_FAR = 1_024
_HEXADECIMAL = "0123456789abcdef-"  # hashes and UUIDs
_TABLE = bytes(97 if (chr(one).isascii() and chr(one).isalnum()) or one in b"-_" else 32 for one in range(256))
_RUN = b"a" * SHORTEST_RUN


@cache
def _compile_pattern() -> re.Pattern[str]:
    return re.compile("|".join(shape for _, shape in _SHAPES), re.ASCII)


class Span(NamedTuple):
    """The position of a secret; `context` is the start of its evidence, such as a name before it."""

    start: int
    end: int
    context: int


def find_tokens(text: str) -> list[Span]:
    """Find tokens of a known shape. The pattern is compiled only if the text contains a prefix."""
    found: list[Span] = []
    for start in sorted(_find_candidates(text)):
        if found and found[-1].end - start > _FAR:
            continue  # deep inside another token; skipped to stay linear
        match = _compile_pattern().match(text, start)
        if match is not None:
            found.append(Span(*match.span(), start))
    return found


def has_long_run(data: bytes) -> bool:
    """Check for a run of characters as long as a token."""
    return len(data) >= SHORTEST_RUN and _RUN in data.translate(_TABLE)


def _find_candidates(text: str) -> list[int]:
    """Find prefixes in runs as long as a token."""
    # One byte per character, so positions in both are the same.
    folded = text.encode("latin-1", "replace").translate(_TABLE)
    found = [at for prefix in _SIGNLESS if prefix in text for at in find_positions(prefix, text)]
    start = folded.find(_RUN)
    while start >= 0:
        end = folded.find(b" ", start)
        end = len(text) if end < 0 else end
        first = max(0, start - _LONGEST_BEGINNING)
        prefixes = _find_prefixes(text, start, end)
        region = text[first:end] if prefixes else ""
        found += [first + at for prefix in prefixes if prefix in region for at in find_positions(prefix, region)]
        start = folded.find(_RUN, end)
    return found


def _find_prefixes(text: str, start: int, end: int) -> tuple[str, ...]:
    """Return the prefixes that a run may contain; none for most long runs: base64, hashes, UUIDs."""
    before = text[start - 1] if start > 0 else ""
    run = text[start:end]
    has_sign = ("-" in run or "_" in run) and run.strip(_HEXADECIMAL)
    if has_sign or before in (".", ":", "~"):
        return _SIGNED
    return _SLASHED if before == "/" else ()


def find_positions(needle: str, text: str) -> list[int]:
    """Find all positions of the needle in the text."""
    found, at = [], text.find(needle)
    while at >= 0:
        found.append(at)
        at = text.find(needle, at + 1)
    return found


# --- private keys ----------------------------------------------------------------------------------------

PRIVATE_KEY = "PRIVATE KEY"
_LONG_WORD = 20  # characters; every line of a key except the last is longer


class _KeyPatterns(NamedTuple):
    begin: re.Pattern[str]
    end: re.Pattern[str]
    line: re.Pattern[str]
    word: re.Pattern[str]
    header: re.Pattern[str]
    inline: re.Pattern[str]


@cache
def _compile_key() -> _KeyPatterns:
    header = r"(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash)[ \t]*:"
    return _KeyPatterns(
        begin=re.compile(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
        end=re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
        line=re.compile(r"[^\r\n]+"),
        word=re.compile(r"[A-Za-z0-9+/=]+"),
        header=re.compile(header),
        # As in one line of JSON, possibly cut off.
        inline=re.compile(
            rf"(?:(?:\\+[rnt]|[ \t])*+(?:[A-Za-z0-9+/=]{{16,}}+|{header}[ \t]*[A-Za-z0-9,-]++))*+"
            r"(?:\\+[rn])?+[A-Za-z0-9+/=]*+",
            re.ASCII,
        ),
    )


def find_private_keys(text: str, *, inside: bool = False) -> tuple[list[Span], bool]:
    """Find the bodies of private keys line by line; also return whether the text ends inside a key.

    A key may lack its end marker, so it also ends at the first line that cannot be part of a key.
    """
    found: list[Span] = []
    if not inside and PRIVATE_KEY not in text:
        return found, False
    for line in _compile_key().line.finditer(text):
        inside = _read_line(text, line.start(), line.end(), found, inside=inside)
    return found, inside


def _read_line(text: str, start: int, stop: int, found: list[Span], *, inside: bool) -> bool:
    key = _compile_key()
    context = start
    while True:
        if inside:
            ended = key.end.search(text, start, stop)
            if ended is None:
                return _read_body(text, start, stop, context, found)
            if ended.start() > start and key.word.search(text, start, ended.start()):
                found.append(Span(start=start, end=ended.start(), context=context))
            start = ended.end()
        begun = key.begin.search(text, start, stop)
        if begun is None:
            return False
        inside, start, context = True, begun.end(), begun.start()


def _read_body(text: str, start: int, stop: int, context: int, found: list[Span]) -> bool:
    """Read a line without the end marker; return True if the next line may also belong to the key."""
    key = _compile_key()
    begun_here = context < start
    inline = key.inline.match(text, start, stop)
    if begun_here and inline is not None and inline.end() > inline.start():
        found.append(Span(*inline.span(), context))
        return inline.end() == stop
    words = list(key.word.finditer(text, start, stop))
    if words and words[0][0] == "redacted":
        return False
    if not words or key.header.search(text, start, stop):
        return True
    if begun_here:  # other text follows the begin marker: the line only mentions a key
        return False
    long = [word for word in words if word.end() - word.start() >= _LONG_WORD]
    found += [Span(*word.span(), context) for word in long]
    if not long and len(words) == 1:  # the last line
        found.append(Span(*words[0].span(), context))
    return bool(long)
