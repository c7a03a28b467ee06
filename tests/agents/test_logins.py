"""What the real CLIs say about a log-in, in an empty home and with credentials that only exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackline.agents import registry
from jackline.app.agent_logins import find_login_problem
from tests.real_agents import binary

NAMES = ("claude", "codex", "gemini", "qwen")


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_home_is_not_logged_in(name: str, tmp_path: Path) -> None:
    declaration = registry.load_adapter(name).declaration
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    assert find_login_problem(declaration, binary(name), environ).startswith("not logged in: run `")
    assert declaration.login is not None
    for variable in declaration.login.variables:
        assert find_login_problem(declaration, binary(name), {**environ, variable: "1"}) == ""


def test_claude_reports_a_helper_for_keys_itself(tmp_path: Path) -> None:
    """Neither a variable nor a file shows it: only the CLI knows."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"apiKeyHelper": "echo key"}')
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    assert find_login_problem(registry.load_adapter("claude").declaration, binary("claude"), environ) == ""
