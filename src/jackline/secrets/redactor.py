"""Redacts secrets in text and JSON, by known value, by shape and by name. Pure: known values are passed in.

The keys of calls are built before redaction, from the whole input. Patterns are compiled only when a text needs them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.named import NamedTuple
from jackline.secrets.tokens import PRIVATE_KEY, Span, find_positions, find_private_keys, find_tokens, has_long_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


REDACTED = "[redacted]"
_SHORTEST_TEXT = 6
_SHORTEST_COMMAND = 2  # words
_LONGEST_PROGRAM = 40  # characters of its path that are checked
_MOST_ROUNDS = 5  # the text between two redacted secrets may itself look like one

TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+/=\\"
# As in `names`, which is loaded only if one of them occurs. Each costs a pass over every text.
_STEMS = (b"pass", b"secret", b"token", b"key", b"auth", b"cookie")
_OTHER_STEMS = (b"pwd", b"credential")  # only for JSON names, which are short
_BEARER = "earer "  # matches both cases of the first letter
_URL, _AT, _PRIVATE_KEY = b"://", b"@", PRIVATE_KEY.encode()
_SIGNATURES = (b"sig=", b"nature=")  # of signed URLs
# As in `command_flags`: programs and words that take secrets, with a flag, without one, or with a stem in the name.
_PROGRAMS = (b"curl", b"mysql", b"mariadb", b"redis-cli", b" login")
_FLAGLESS = (b"machine ", b"asic ")
_STEMMED = (b"sshpass", b"openssl")


class SecretClues(NamedTuple):
    """Hints that some bytes may contain secrets."""

    names: bool
    runs: bool
    urls: bool
    keys: bool
    flags: bool = False

    @classmethod
    def find_clues(cls, data: bytes) -> SecretClues:
        """Search for hints in a few fast passes; there are no false negatives."""
        # A name with a value needs one of these; a search for one character is nearly free.
        has_joint = b"=" in data or b":" in data or b"-" in data or b">" in data
        names = has_joint and _contains_any(_STEMS, data.lower())
        urls = _URL in data and (_AT in data or _contains_any(_SIGNATURES, data))
        flags = (
            (b"-" in data and _contains_any(_PROGRAMS, data))
            or _contains_any(_FLAGLESS, data)
            or (names and _contains_any(_STEMMED, data))
        )
        return cls(names, has_long_run(data), urls, _PRIVATE_KEY in data, flags)


def _contains_any(pieces: tuple[bytes, ...], data: bytes) -> bool:
    for piece in pieces:  # noqa: SIM110 - any() takes twice as long, and every text passes here
        if piece in data:
            return True
    return False


class Redactor:
    """Redacts known secret values, and secrets recognized by their shape or name."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are matched literally, and as escaped in JSON or URLs."""
        self.values = tuple(dict.fromkeys(values))
        self._needles = build_needles(self.values)

    def learn(self, values: Iterable[str]) -> None:
        """Redact these values, too, from now on."""
        self.values = tuple(dict.fromkeys((*self.values, *values)))
        self._needles = build_needles(self.values)

    def redact(self, text: str) -> str:
        """Replace each secret with `[redacted]`; an existing `[redacted]` is kept."""
        for _ in range(_MOST_ROUNDS):
            found = self._find_spans(text)
            if not found:
                break
            text = _replace_spans(text, found)
        return text

    def has_secret(self, text: str) -> bool:
        """Check whether the text contains a secret."""
        return bool(self._find_spans(text))

    def redact_value(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Redact nested data, including values under a secret name."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            named = value.get("name") if "value" in value else None  # an entry of a list of variables
            return {
                self.redact(name) if isinstance(name, str) else name: self._redact_named(
                    named if name == "value" and named else name, one
                )
                for name, one in value.items()
            }
        if isinstance(value, list | tuple):
            return self._redact_list(value)
        return value

    def redact_json(self, text: str) -> str:
        """Redact JSON text so that it stays JSON; other text is redacted as plain text."""
        clues = SecretClues.find_clues(text.encode("utf-8", "surrogatepass"))
        may_have_names = clues.names or any(stem.decode() in text.lower() for stem in _OTHER_STEMS)
        if not (may_have_names or find_spans(text, clues) or any(needle in text for needle in self._needles)):
            return text
        try:
            value = json.loads(text)
            clean = self.redact_value(value)
        except (ValueError, RecursionError):
            return self.redact(text)
        return text if clean == value else canonical(clean)

    def _find_spans(self, text: str) -> list[Span]:
        if len(text) < _SHORTEST_TEXT:
            return []
        found = [*find_literals(text, self._needles), *find_cut_values(text, self._needles)]
        clues = SecretClues.find_clues(text.encode("utf-8", "surrogatepass"))
        return merge_spans([*found, *find_spans(text, clues)]) if any(clues) else merge_spans(found)

    def _redact_named(self, name: object, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(name, str) and isinstance(value, str | int | list) and is_named_secret(name):
            return self._redact_secret(name, value)
        return REDACTED if isinstance(value, str) and _is_basic_auth(name, value) else self.redact_value(value)

    def _redact_secret(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
        from jackline.secrets.names import is_placeholder

        if isinstance(value, str):
            return self.redact(value) if not value or is_placeholder(value) else REDACTED
        if isinstance(value, list):
            return [self._redact_named(name, one) for one in value]
        # A numeric `token` is the number of an attempt; a numeric password is a secret.
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return REDACTED if is_number and "pass" in name.lower() else value

    def _redact_list(self, words: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Redact a list, which may be a command: the word after `--api-key` is its value."""
        clean, before = [], ""
        program = _find_program(words)
        for word in words:
            behind_flag = before.startswith("-") and "=" not in before and isinstance(word, str)
            is_value = behind_flag and not word.startswith("-") and is_named_secret(before.lstrip("-"))
            if is_value:
                clean.append(self._redact_secret(before, word))
            elif program and isinstance(word, str):
                from jackline.secrets.command_flags import find_word_secrets

                clean.append(self.redact(_replace_spans(word, find_word_secrets([program, before, word]))))
            else:
                clean.append(self.redact_value(word))
            before = word if isinstance(word, str) else ""
        return clean


def _find_program(words: list[Any] | tuple[Any, ...]) -> str:
    """Return the start of a command whose flags take secrets; empty for any other list."""
    if len(words) < _SHORTEST_COMMAND or not (isinstance(words[0], str) and isinstance(words[1], str)):
        return ""
    begun = f"{words[0][-_LONGEST_PROGRAM:]} {words[1] if words[1] == 'login' else ''}"
    return begun if _contains_any(_PROGRAMS + _STEMMED, begun.encode("utf-8", "surrogatepass")) else ""


def find_spans(text: str, clues: SecretClues) -> list[Span]:
    """Find every secret by its shape or name."""
    found = find_tokens(text) if clues.runs else []
    is_borne = clues.runs and _BEARER in text
    if is_borne or clues.names or clues.urls:  # an id is as long as a token, but is not a reason to load `names`
        from jackline.secrets import names

        found += names.find_bearer_tokens(text) if clues.runs else []
        if clues.names:
            # Lower-case ASCII only, so that the length stays the same.
            lower = text.lower()
            if not text.isascii():
                lower = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
            found += names.find_named_secrets(text, lower)
        found += names.find_url_secrets(text) if clues.urls else []
    if clues.flags:
        from jackline.secrets.command_flags import find_flag_secrets

        found += find_flag_secrets(text)
    if clues.keys:
        found += _join_key_lines(text, find_private_keys(text)[0])
    return found


def _join_key_lines(text: str, lines: list[Span]) -> list[Span]:
    """Join the lines of a private key into one secret."""
    result: list[Span] = []
    for line in lines:
        if result and not any(one.isalnum() for one in text[result[-1].end : line.start]):
            result[-1] = result[-1]._replace(end=line.end)
        else:
            result.append(line)
    return result


def merge_spans(found: list[Span]) -> list[Span]:
    """Sort spans and merge overlapping ones."""
    result: list[Span] = []
    for span in sorted(found):
        if result and span.start <= result[-1].end:
            last = result[-1]
            result[-1] = Span(start=last.start, end=max(last.end, span.end), context=min(last.context, span.context))
        else:
            result.append(span)
    return result


def _replace_spans(text: str, found: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, _ in found:
        pieces += [text[at:start], REDACTED]
        at = end
    return "".join([*pieces, text[at:]])


def is_named_secret(name: str) -> bool:
    """Check whether a value under this name is a secret; fast for other names."""
    lower = name.lower().encode("utf-8", "surrogatepass")
    if not _contains_any(_STEMS, lower) and not _contains_any(_OTHER_STEMS, lower):
        return False
    from jackline.secrets.names import is_secret_name

    return is_secret_name(name)


def _is_basic_auth(name: object, value: str) -> bool:
    """Check for `auth` entries as in the configuration files of docker and npm."""
    if not isinstance(name, str) or not name.lower().endswith("auth"):
        return False
    from jackline.secrets.command_flags import is_basic_credential

    return is_basic_credential(value)


# --- known values

_SHORTEST = 8
_LONGEST_NEEDLE = 2_048
_SHORTEST_NUMBER = 12  # shorter numbers may be a date, a port or a size
_AWS_SECRET_KEY = 40  # length; it may begin with a slash
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Common words, which occur everywhere and are never searched for.
_COMMON = frozenset({
    "password", "passw0rd", "changeme", "changeit", "postgres", "postgresql", "username", "administrator", "default",
    "production", "development", "staging", "testing", "localhost", "anonymous", "disabled", "enabled", "required",
    "jackline", "scripted", "undefined", "redacted", "[redacted]", "keychain", "keyring", "interactive", "automatic",
})  # fmt: skip


def is_searchable(value: str) -> bool:
    """Check whether a value can be searched for; a short or common one would match unrelated text."""
    word = value.strip()
    if len(word) < _SHORTEST or word.lower() in _COMMON or not word.strip("*x.-_0"):
        return False
    if word.isdigit() and len(word) < _SHORTEST_NUMBER:
        return False
    if len(word) == _AWS_SECRET_KEY and word.replace("/", "").replace("+", "").isalnum():
        return True
    is_path = word.startswith(("/", "./", "../", "~/")) and "\n" not in word
    return not is_path


def build_needles(values: Iterable[str]) -> tuple[str, ...]:
    """Return the search strings of each value: line by line, in all spellings."""
    found: list[str] = []
    for value in values:
        for line in value.splitlines():
            for start in range(0, len(line), _LONGEST_NEEDLE):
                piece = line[start : start + _LONGEST_NEEDLE].strip()
                if len(piece) >= _SHORTEST:
                    found += _build_spellings(piece)
    return tuple(dict.fromkeys(found))


def _build_spellings(value: str) -> list[str]:
    percent = "".join(
        one if one in _UNRESERVED else "".join(f"%{byte:02X}" for byte in one.encode("utf-8", "surrogatepass"))
        for one in value
    )
    plus = percent.replace("%20", "+")
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    twice = [json.dumps(one)[1:-1] for one in escaped]  # JSON in JSON: the output of a tool in the output of its agent
    return [value, *escaped, *twice, percent, plus]


def find_literals(text: str, found: Iterable[str]) -> list[Span]:
    """Find every occurrence of the search strings, including overlapping ones."""
    return [Span(start=at, end=at + len(needle), context=at) for needle in found for at in find_positions(needle, text)]


def find_cut_values(text: str, found: Iterable[str]) -> list[Span]:
    """Find known values that are cut off at the start or the end of the text."""
    result = []
    for needle in found:
        size = min(len(text), len(needle) - 1)
        at = text.find(needle[:_SHORTEST], len(text) - size) if size >= _SHORTEST else -1
        if at >= 0 and needle.startswith(text[at:]):
            result.append(Span(start=at, end=len(text), context=at))
        end = text.rfind(needle[-_SHORTEST:], 0, size) + _SHORTEST if size >= _SHORTEST else 0
        if end >= _SHORTEST and needle.endswith(text[:end]):
            result.append(Span(start=0, end=end, context=0))
    return result


# --- environment variables

# Endings of names of secret variables, and parts of names that are not secret.
_VARIABLES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL", "CREDENTIALS", "AUTH")
_PUBLIC = ("PUBLIC_KEY", "SSH_AUTH", "XAUTH", "GPG_KEY")


_SHORTEST_KEY = 16
_KEY_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+/=")


def is_secret_variable(name: str) -> bool:
    """Check whether the value of a variable with this name is a secret."""
    upper = name.upper()
    if any(public in upper for public in _PUBLIC):
        return False
    return upper.endswith(_VARIABLES) or is_named_secret(name)


def is_key_like(value: str) -> bool:
    """Check whether a value may be a key, whatever its name: long, in one word, with letters and digits."""
    if len(value) < _SHORTEST_KEY or not _KEY_CHARACTERS.issuperset(value) or not is_searchable(value):
        return False
    return any(one.isdigit() for one in value) and any(one.isalpha() for one in value)


def find_secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of secret variables, and the passwords in URLs."""
    # Check the value first: PWD is in every shell, and its name would need a closer check.
    found = []
    for name, value in environ.items():
        if is_searchable(value) and is_secret_variable(name):
            found.append(value)
    for value in environ.values():
        if "@" in value and "://" in value:
            from jackline.secrets.names import find_url_secrets

            found += [value[span.start : span.end] for span in find_url_secrets(value)]
    return tuple(dict.fromkeys(one for one in found if is_searchable(one)))
