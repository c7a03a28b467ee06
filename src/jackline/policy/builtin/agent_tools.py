"""Rules for the tools of agent CLIs, by the names that they report. Data only."""

from __future__ import annotations

from jackline.domain.states import CallClass, Replay
from jackline.policy.rules import Rule

_READS = """
read Read read_file read_many_files view view_image zoom_image NotebookRead cat_file open_file
list LS ls list_files list_directory list_dir file_search find_files
grep Grep grep_search search_file_content search search_files codesearch codebase_search
glob Glob
WebFetch WebSearch web_fetch web_search webfetch websearch google_web_search fetch
TaskGet TaskList
ToolSearch tool_search ListAgents list_agents ListMcpResourcesTool ReadMcpResourceTool list_mcp_resources \
read_mcp_resource
get_goal cron_list board_read kilo_local_recall lsp diagnostics read_lints get_internal_docs
"""
# Of these, the tools that request an address that they are given.
FETCHERS = frozenset({"WebFetch", "web_fetch", "webfetch", "fetch"})
_LOCALS = """
edit Edit MultiEdit write Write write_file replace create_file write_to_file insert_edit_into_file multiedit patch \
apply_patch
str_replace_editor str_replace_based_edit_tool search_replace NotebookEdit notebook_edit edit_notebook delete_file \
commit
TodoWrite TodoRead todowrite todoread write_todos todo_write update_plan TaskCreate TaskUpdate KillShell KillBash \
TaskStop task_stop
Skill skill activate_skill ExitPlanMode EnterPlanMode exit_plan_mode enter_plan_mode AskUserQuestion ask_user \
request_user_input question
EnterWorktree ExitWorktree enter_worktree exit_worktree create_goal update_goal goal save_memory record_artifact
ReportFindings report_findings invalid DeferredToolPlaceholder
"""
# They ask for the output of a background task that a crash has ended: never replayed.
_OUTPUTS = "TaskOutput TaskResult BashOutput AgentOutputTool get_command_output read_background"
_TASKS = "Task Agent task agent spawn_agent delegate_to_agent"  # subagents, whose own calls pass the gate
# An agent's own list of what it still has to do.
_NOTES = "TodoWrite TodoRead todowrite todoread write_todos todo_write update_plan TaskCreate TaskUpdate"
_BRIDGE = "send_to_agent receive_messages bridge_status"  # of jackline's own server: messages between agents
# Tools of jackline's own MCP server, with the prefixes that the CLIs add. They only change jackline's own state.
_OWN_PREFIXES = ("mcp__jackline__", "mcp_jackline_", "jackline_")
_OWN_READS = """
case_status case_handoff case_learning_review work_get work_list events_tail events_search run_status bridge_status
"""
_OWN_LOCALS = """
case_start case_hypothesis_add case_hypothesis_resolve case_evidence_add case_command_add case_learning_add case_close
work_enqueue work_next work_claim work_renew work_resolve work_release work_annotate work_wait_human
events_append ask_human ask_human_result send_to_agent receive_messages
"""
# Closing a case runs its verification commands, so both tools are classified like a shell.
VERIFIER_FIELDS = {
    f"{prefix}{tool}": field
    for tool, field in (("case_close", "verification"), ("case_start", "verify"))
    for prefix in _OWN_PREFIXES
}


def _add_prefixes(names: str) -> str:
    return " ".join(f"{prefix}{name}" for name in names.split() for prefix in _OWN_PREFIXES)


# What a turn that only reads may call besides reads: nothing of this changes a file.
READER_TOOLS = frozenset(f"{_TASKS} {_NOTES} {_add_prefixes(_BRIDGE)}".split())


def _build_rules(names: str, kind: CallClass) -> tuple[Rule, ...]:
    return tuple(
        Rule(name=f"builtin.{tool}", tool=tool, call_class=kind, replay=Replay.REPORT) for tool in names.split()
    )


TOOL_RULES = (
    *_build_rules(_READS, CallClass.READ),
    *_build_rules(_LOCALS, CallClass.LOCAL),
    *(
        Rule(name=f"builtin.{tool}", tool=tool, call_class=CallClass.READ, replay=Replay.ASK)
        for tool in _OUTPUTS.split()
    ),
    *(
        Rule(
            name=f"builtin.{tool}",
            tool=tool,
            call_class=CallClass.LOCAL,
            replay=Replay.RELAUNCH,
            key=("subagent_type", "prompt"),
        )
        for tool in _TASKS.split()
    ),
    *_build_rules(_add_prefixes(_OWN_READS), CallClass.READ),
    # Never replayed by force: a repeated call would create a duplicate entry.
    *(
        Rule(name=f"builtin.{tool}", tool=tool, call_class=CallClass.LOCAL, replay=Replay.ASK)
        for tool in _add_prefixes(_OWN_LOCALS).split()
    ),
    Rule(name="builtin.mcp", tool="mcp__*", call_class=CallClass.UNKNOWN),  # the effects of a server's tool are unknown
)
