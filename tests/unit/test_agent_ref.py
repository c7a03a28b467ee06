"""References to agents and their accounts: split, joined, validated, and loaded as adapters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import registry
from jackline.domain.agent_ref import AgentRef, is_account, join_agent, parse_agent, split_agent
from jackline.engine.gate_socket import find_hooks
from jackline.errors import UsageError

ACCOUNTS = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,31}", fullmatch=True)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)


@given(NAMES, st.one_of(st.just(""), ACCOUNTS))
def test_a_reference_is_split_as_it_was_joined(name: str, account: str) -> None:
    reference = join_agent(name, account)
    assert split_agent(reference) == parse_agent(reference) == AgentRef(name, account)


@given(st.text(max_size=60))
def test_a_stored_reference_can_always_be_split(text: str) -> None:
    found = split_agent(text)
    assert "@" not in found.name
    assert text.startswith(found.name)


@pytest.mark.parametrize(
    "text", ["", "claude@", "@work", "claude@Work", "claude@a/b", "claude@a@b", "claude@-x", "cl aude", f"c@{'a' * 33}"]
)
def test_what_cannot_be_a_reference_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="does not name an agent"):
        parse_agent(text)
    assert not is_account(text.partition("@")[2]) or " " in text or not text.partition("@")[0]


@pytest.mark.parametrize("name", ["ollama", "acp", "command", "scripted"])
def test_an_agent_without_accounts_says_so(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} does not log in, so it has no accounts"):
        registry.load_adapter(f"{name}@work")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "kilo", "opencode", "qwen"])
def test_the_adapter_of_an_account_is_the_agents_own_under_another_name(name: str) -> None:
    plain, account = registry.load_adapter(name), registry.load_adapter(f"{name}@work")
    assert account.declaration == plain.declaration._replace(name=f"{name}@work")
    assert (plain.declaration.agent, account.declaration.agent) == (name, name)
    assert find_hooks(account) is find_hooks(plain)
    assert account.parse == plain.parse
    assert getattr(account, "native_path", None) == getattr(plain, "native_path", None)
