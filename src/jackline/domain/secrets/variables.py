"""Finds secret values in environment variables, by name and by value. Pure: the environment is passed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.secrets import is_named_secret, is_telling

if TYPE_CHECKING:
    from collections.abc import Mapping

# Endings of names of secret variables, and parts of names that are not secret.
_VARIABLES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL", "CREDENTIALS", "AUTH")
_PUBLIC = ("PUBLIC_KEY", "SSH_AUTH", "XAUTH", "GPG_KEY")


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of secret variables, and the passwords in URLs."""
    # Check the value first: PWD is in every shell, and its name would need a closer check.
    found = []
    for name, value in environ.items():
        upper = name.upper()
        if not is_telling(value) or any(public in upper for public in _PUBLIC):
            continue
        if upper.endswith(_VARIABLES) or is_named_secret(name):
            found.append(value)
    for value in environ.values():
        if "@" in value and "://" in value:
            from jackline.domain.secrets.names import in_urls

            found += [value[span.start : span.end] for span in in_urls(value)]
    return tuple(dict.fromkeys(one for one in found if is_telling(one)))
