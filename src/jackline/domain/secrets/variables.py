"""Which variables of an environment hold secrets, by name and by value. Pure: the environment is handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.secrets import is_named_secret
from jackline.domain.secrets.literals import is_telling

if TYPE_CHECKING:
    from collections.abc import Mapping

# Words that end the name of a variable with a secret in it, and parts of names that look so and are none.
_VARIABLES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL", "CREDENTIALS", "AUTH")
_PUBLIC = ("PUBLIC_KEY", "SSH_AUTH", "XAUTH", "GPG_KEY")


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What the variables hold whose names say that it is secret, and the passwords in their URLs."""
    # The value first: every shell has a PWD, which is a path, and its name would be looked at more closely.
    found = [value for name, value in environ.items() if is_telling(value) and _is_secret_variable(name)]
    for value in environ.values():
        if "@" in value and "://" in value:
            from jackline.domain.secrets.urls import in_urls

            found += [value[span.start : span.end] for span in in_urls(value)]
    return tuple(dict.fromkeys(one for one in found if is_telling(one)))


def _is_secret_variable(name: str) -> bool:
    upper = name.upper()
    if any(public in upper for public in _PUBLIC):
        return False
    return upper.endswith(_VARIABLES) or is_named_secret(name)
