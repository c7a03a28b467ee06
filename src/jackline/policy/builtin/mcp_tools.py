"""Rules for the tools of MCP servers: well-known servers first, then the verbs in a tool's name. Pure.

jackline's own server has separate rules, which come before these.
"""

from __future__ import annotations

import re
from functools import lru_cache

from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import NamedTuple
from jackline.policy.rules import Rule
from jackline.policy.sql_statements import is_reading_statement

_READS = "get list search read describe find fetch view show count check lookup retrieve browse inspect status"
_CHANGES = """
create post send delete update merge publish comment add remove write set push reply close approve assign
upload edit move archive unarchive invite cancel refund pay charge transfer submit trigger deploy start stop
enable disable reopen unlock rename share revoke grant react subscribe unsubscribe dismiss rerun fork save put
patch insert upsert drop restart modify replace confirm decline accept reject resolve transition notify apply
purge reset rotate install uninstall finalize capture void clear append duplicate convert request
terminate kill rm
"""
_READ_VERBS = frozenset(_READS.split())
_EFFECT_VERBS = frozenset(_CHANGES.split())
_RUN_VERBS = frozenset({"execute", "run", "exec", "eval", "evaluate", "call", "invoke"})
_SQL_FIELDS = ("sql", "query", "statement")
_FILLERS = frozenset({"mcp", "server", "plugin", "claude", "ai"})  # around the name of a server
_NOUNS = frozenset({"pull request", "merge request"})  # nouns that contain a verb


class KnownServer(NamedTuple):
    """A well-known server: how its tools are classified beyond the verbs in their names."""

    names: str  # spellings, without case and separators
    target: str = ""  # what an effect changes; empty: the tool of the server
    rest: CallClass = CallClass.EFFECT  # of tools whose names have no known verb
    changes: CallClass = CallClass.EFFECT  # of tools whose names have an effect verb
    reads: str = ""  # more tools that change nothing
    sql: str = ""  # a program of the same database: a call with one reading statement is a read


_SERVERS = (
    KnownServer(names="github", target="github:{owner|}/{repo|}", reads="query run_secret_scanning"),
    KnownServer(names="gitlab", target="gitlab:{project_id|}"),
    KnownServer(names="slack", target="slack:{channel_id|channel|}",
                reads="conversations_history channels_list users_list"),
    KnownServer(names="linear", target="linear:{id|issueId|teamId|team|}"),
    KnownServer(names="atlassian jira confluence mcpatlassian",
                target="atlassian:{issueIdOrKey|issue_key|pageId|page_id|}",
                reads="atlassianUserInfo"),
    KnownServer(names="notion notionapi", target="notion:{page_id|database_id|block_id|}",
                reads="API-post-search API-post-database-query query-database notion-search notion-fetch"),
    KnownServer(names="sentry", reads="analyze_issue_with_seer"),
    KnownServer(names="stripe", target="stripe:{customer|id|}"),
    KnownServer(names="gdrive googledrive", target="drive:{fileId|file_id|}"),
    KnownServer(names="gmail googlemail", target="mail:{to|}"),
    KnownServer(names="googlecalendar gcal calendar", target="calendar:{calendarId|calendar_id|}:{eventId|event_id|}"),
    KnownServer(names="discord telegram teams", target="message:{channel_id|chat_id|}"),
    *(
        KnownServer(names=name)
        for name in (
            "figma", "asana", "trello", "todoist", "clickup", "airtable", "monday", "hubspot", "zendesk", "pagerduty",
            "datadog", "cloudflare", "vercel", "netlify", "heroku", "supabase", "aws", "gcp", "azure", "kubernetes",
            "docker",
        )
    ),
    KnownServer(names="filesystem fs", target="file:{path|destination|}"),
    KnownServer(names="git", rest=CallClass.LOCAL, changes=CallClass.LOCAL, reads="git_log git_diff git_diff_unstaged "
                "git_diff_staged git_branch"),
    KnownServer(names="memory knowledgegraph", rest=CallClass.READ, changes=CallClass.LOCAL),
    KnownServer(names="fetch time sequentialthinking context7 bravesearch brave exa tavily deepwiki perplexity "
                "microsoftdocs awsdocs", rest=CallClass.READ, changes=CallClass.READ),
    KnownServer(names="puppeteer playwright browser chromedevtools browserbase", rest=CallClass.UNKNOWN,
                changes=CallClass.UNKNOWN,
                reads="navigate navigate_page screenshot take_screenshot snapshot take_snapshot browser_navigate "
                "browser_navigate_back browser_snapshot browser_take_screenshot browser_console_messages "
                "browser_network_requests browser_wait_for browser_hover browser_close browser_resize browser_tabs "
                "browser_tab_list puppeteer_navigate puppeteer_screenshot puppeteer_hover list_console_messages "
                "list_network_requests wait_for"),
    KnownServer(names="postgres postgresql", sql="psql"),
    KnownServer(names="mysql mariadb", sql="mysql"),
    KnownServer(names="sqlite", sql="sqlite3"),
    *(KnownServer(names=name) for name in ("mongodb", "redis", "clickhouse", "bigquery", "snowflake")),
)  # fmt: skip
_BY_SERVER = {name: server for server in _SERVERS for name in server.names.split()}
MCP_READ = Rule(name="mcp.read", tool="mcp__*", call_class=CallClass.READ, replay=Replay.REPORT)
MCP_LOCAL = Rule(name="mcp.local", tool="mcp__*", call_class=CallClass.LOCAL, replay=Replay.ASK)
MCP_EFFECT = Rule(
    name="mcp.effect", tool="mcp__*", call_class=CallClass.EFFECT, decision=Decision.ASK,
    target="mcp:{mcp.server}:{mcp.tool}",
)  # fmt: skip
_SERVER_RULES = {
    server: Rule(
        name=f"mcp.{server.names.split()[0]}", tool=f"mcp__{server.names.split()[0]}__*", call_class=CallClass.EFFECT,
        decision=Decision.ASK, target=server.target or "mcp:{mcp.server}:{mcp.tool}",
    )
    for server in _SERVERS
    if CallClass.EFFECT in (server.rest, server.changes)
}  # fmt: skip
MCP_RULES = (MCP_READ, MCP_LOCAL, MCP_EFFECT, *_SERVER_RULES.values())


class McpTool(NamedTuple):
    """The server and the tool in a tool's name."""

    server: str
    tool: str


def split_tool_name(name: str) -> McpTool | None:
    """Split `mcp__SERVER__TOOL`, `mcp_SERVER_TOOL`, or `SERVER_TOOL` of a well-known server; None for other tools."""
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").rpartition("__")
        return McpTool(server, tool) if server and tool else None
    plain = name.removeprefix("mcp_")
    words = re.split(r"([_-]+)", plain)
    for end in range(len(words) - 2, 0, -2):  # the longest name of a server wins
        server = "".join(words[:end])
        if _normalize(server) in _BY_SERVER:
            return McpTool(server, "".join(words[end + 1 :]))
    if plain == name or len(words) == 1:
        return None
    return McpTool(words[0], "".join(words[2:]))


@lru_cache(maxsize=1024)
def find_mcp_rule(name: str) -> Rule | None:
    """Return the rule of an MCP tool; None if its name says nothing about it."""
    found = split_tool_name(name)
    if found is None:
        return None
    server = _find_server(found.server)
    words = _split_words(found.tool)
    changes, reads = bool(words & _EFFECT_VERBS), bool(words & _READ_VERBS)
    if server is not None:
        if found.tool in server.reads.split():
            return MCP_READ
        if server.changes is CallClass.LOCAL and "push" in words:
            return MCP_EFFECT
        return _choose_rule(
            server, server.changes if changes else CallClass.READ if _only_reads(words) else server.rest
        )
    if changes:
        return MCP_EFFECT
    # A letter of another script may look like one of a verb.
    return MCP_READ if reads and found.tool.isascii() and not words & _RUN_VERBS else None


def find_statement_rule(name: str, given: object) -> Rule | None:
    """Return the rule of a call that sends one reading statement to a well-known database; None otherwise."""
    found = split_tool_name(name)
    server = _find_server(found.server) if found else None
    if server is None or not server.sql or not isinstance(given, dict):
        return None
    texts = [given[field] for field in _SQL_FIELDS if field in given]
    if len(texts) != 1 or not isinstance(texts[0], str):
        return None
    return MCP_READ if is_reading_statement(texts[0], server.sql) else None


def _choose_rule(server: KnownServer, kind: CallClass) -> Rule | None:
    by_class = {CallClass.READ: MCP_READ, CallClass.LOCAL: MCP_LOCAL, CallClass.EFFECT: _SERVER_RULES.get(server)}
    return by_class.get(kind)


def _only_reads(words: frozenset[str]) -> bool:
    return bool(words & _READ_VERBS) and not words & _RUN_VERBS


def _find_server(name: str) -> KnownServer | None:
    """Find a server by its name, with or without `server`, `mcp` and the name of a plugin around it."""
    whole = _normalize(name)
    if whole in _BY_SERVER:
        return _BY_SERVER[whole]
    words = [
        word
        for word in re.split(r"[_\-\s.:]+", name.lower())
        if word not in {"mcp", "server", "plugin", "claude", "ai"}
    ]
    return _BY_SERVER.get("".join(words)) or (_BY_SERVER.get(words[-1]) if words else None)


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _split_words(tool: str) -> frozenset[str]:
    """Split a name in camelCase, snake_case or kebab-case into its words, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+", " ", tool).lower()
    for noun in _NOUNS:
        spaced = re.sub(rf"\b{noun}\b", "", spaced)
    return frozenset(spaced.split())
