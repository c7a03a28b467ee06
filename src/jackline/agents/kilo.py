"""kilo, a fork of opencode: the same adapter under other names. Starts nothing, and changes no user settings."""

from __future__ import annotations

from jackline.agents import opencode
from jackline.domain.adapter import Adapter, Declaration

_SWITCHES = {
    **opencode.SWITCHES,
    "DISABLE_SESSION_INGEST": "1",
    "DISABLE_PRESENCE": "1",
    "DISABLE_CODEBASE_INDEXING": "1",
    "NO_DAEMON": "1",
    "TELEMETRY_LEVEL": "off",
    "SESSION_RETRY_LIMIT": "1",  # otherwise it retries for more than a minute, and jackline retries anyway
}
# A run has no person to accept a suggestion, and the process has ended when it would be woken.
_DENIED_TOOLS = (*opencode.QUESTIONS, "suggest", "schedule_wakeup", "cron_create")
_CHANGING_TOOLS = (*opencode.CHANGING_TOOLS, "background_process", "board_post", "link_pr", "goal")
DECLARATION = Declaration(
    name="kilo",
    binary="kilo",
    gate="advisory",
    gate_reason=opencode.GATE_REASON,
    chooses_session=False,
    resumes=True,
    forks=True,
    cost=True,
    live_usage=True,
    prices="all",
    minimum=(7, 7),
    install="npm install -g @kilocode/cli",
    switches_off=opencode.SWITCHES_OFF,
    read_only=opencode.READ_ONLY,
    passes=(*opencode.list_variables("KILO"), "KILO_API_URL", "KILO_ORG_ID"),
    passes_if=opencode.KEYS_IF,
    efforts=opencode.EFFORTS,
    mcp=True,
    project_files=opencode.build_project_files(("kilo", "opencode"), (".kilo", ".kilocode", ".opencode")),
    account_variables=(*opencode.list_account_variables("KILO"), "KILO_ORG_ID"),
)
ADAPTER: Adapter = opencode.OpencodeAdapter(
    DECLARATION, "KILO", "@kilocode/cli", "@kilocode/cli", _SWITCHES, _DENIED_TOOLS, "code", _CHANGING_TOOLS
)
