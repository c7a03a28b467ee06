"""References to agents: `claude`, or `claude@work` for the account `work` of claude. Pure.

A reference is what is stored wherever an agent is named: specs, turns, sessions, health, spending. So everything that
belongs to an agent belongs to one of its accounts, and the empty account is the agent as it is set up without any.
"""

from __future__ import annotations

import re

from jackline.domain import ids
from jackline.errors import UsageError
from jackline.named import NamedTuple

MARK = "@"
_ACCOUNT = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


class AgentRef(NamedTuple):
    """An agent and one of its accounts; the empty account is the agent's usual environment."""

    name: str
    account: str = ""


def split_agent(reference: str) -> AgentRef:
    """Split a stored reference; it never fails, because anything may be stored."""
    name, _, account = reference.partition(MARK)
    return AgentRef(name, account)


def join_agent(name: str, account: str = "") -> str:
    """Build the reference of an agent's account."""
    return f"{name}{MARK}{account}" if account else name


def parse_agent(text: str) -> AgentRef:
    """Split a reference that a person typed; UsageError if it cannot be one."""
    found = split_agent(text)
    if not ids.is_chosen(found.name) or (MARK in text and not is_account(found.account)):
        raise UsageError(f"{text[:80]!r} does not name an agent: write NAME, or NAME{MARK}ACCOUNT for an account of it")
    return found


def is_account(text: str) -> bool:
    """Whether the text can be the name of an account: up to 32 lower-case letters, digits, '.', '_' and '-'."""
    return _ACCOUNT.fullmatch(text) is not None
