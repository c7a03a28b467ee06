"""kilo, a fork of opencode: the same turns under other names. Starts nothing, and leaves the user's settings alone."""

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
    "SESSION_RETRY_LIMIT": "1",  # else it tries for a minute and more what jackline would try again anyway
}
# Nobody takes up a suggestion, and nobody is there any more when it would be woken.
_REFUSED = (*opencode.QUESTIONS, "suggest", "schedule_wakeup", "cron_create")
DECLARATION = Declaration(
    name="kilo",
    binary="kilo",
    gate="advisory",
    gate_reason=opencode.GATE_REASON,
    chooses_session=False,
    resumes=True,
    forks=True,
    cost=True,
    minimum=(7, 7),
    install="npm install -g @kilocode/cli",
    passes=(*opencode.passes("KILO"), "KILO_API_URL", "KILO_ORG_ID"),
    passes_if=opencode.KEYS_IF,
    efforts=opencode.EFFORTS,
    mcp=True,
)
ADAPTER: Adapter = opencode.Opencode(DECLARATION, "KILO", "@kilocode/cli", "@kilocode/cli", _SWITCHES, _REFUSED)
