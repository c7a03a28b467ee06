"""The stable API for agents in other packages: import everything that an adapter needs from here.

Names are never removed or renamed within a major version. Other modules of jackline may change at any time.
"""

from __future__ import annotations

from jackline.agents import event_lines
from jackline.agents.cli_args import encode_prompt, mcp_servers, model_flag, reject_arguments
from jackline.agents.events import (
    call_finished,
    call_started,
    compacted_event,
    error_event,
    retry_event,
    session_events,
)
from jackline.agents.json_fields import (
    RAW,
    as_count,
    as_dict,
    as_list,
    as_number,
    as_str,
    parse_duration_ms,
    parse_line,
    parse_object,
    seconds_to_ms,
    strip_colours,
    usd_to_micros,
)
from jackline.agents.outcomes import (
    decode_signal,
    failure_of_status,
    failure_of_text,
    last_event,
    last_line,
    outcome_of_complaints,
    outcome_of_event,
    outcome_of_exit,
)
from jackline.domain.adapter import (
    Adapter,
    Asked,
    Compaction,
    Declaration,
    Helper,
    Hooks,
    Launch,
    McpServer,
    Moment,
    Told,
    TurnRequest,
)
from jackline.domain.outcome import Exit, Heard, Outcome, Scope, Usage
from jackline.domain.states import Decision, Failure, WaitReason
from jackline.errors import AgentUnavailable, JacklineError, UsageError

__all__ = [
    "RAW",
    "Adapter",
    "AgentUnavailable",
    "Asked",
    "Compaction",
    "Decision",
    "Declaration",
    "Exit",
    "Failure",
    "Heard",
    "Helper",
    "Hooks",
    "JacklineError",
    "Launch",
    "McpServer",
    "Moment",
    "Outcome",
    "Scope",
    "Told",
    "TurnRequest",
    "Usage",
    "UsageError",
    "WaitReason",
    "as_count",
    "as_dict",
    "as_list",
    "as_number",
    "as_str",
    "call_finished",
    "call_started",
    "compacted_event",
    "decode_signal",
    "encode_prompt",
    "error_event",
    "event_lines",
    "failure_of_status",
    "failure_of_text",
    "last_event",
    "last_line",
    "mcp_servers",
    "model_flag",
    "outcome_of_complaints",
    "outcome_of_event",
    "outcome_of_exit",
    "parse_duration_ms",
    "parse_line",
    "parse_object",
    "reject_arguments",
    "retry_event",
    "seconds_to_ms",
    "session_events",
    "strip_colours",
    "usd_to_micros",
]
