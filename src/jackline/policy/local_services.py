"""Finds the laxer rule of a request or a database command that stays on this machine, or only reads. Pure.

It applies since policy version 2: a run that began earlier keeps its classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.policy import builtin, command_line, databases, loopback

if TYPE_CHECKING:
    from jackline.policy.call_context import CallContext
    from jackline.policy.command_line import CommandLine
    from jackline.policy.rules import Rule
    from jackline.shell.model import ShellCommand

_FIRST_VERSION = 2
_REQUESTS = frozenset({"http.send", "net.send"})
_DATABASES = frozenset({"database.run", "database.change"})
_DOCUMENTS = (".html", ".htm", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".md", ".txt", ".csv", ".json")


def find_laxer_rule(
    rule: Rule, line: CommandLine, command: ShellCommand, context: CallContext, *, is_written: bool
) -> tuple[Rule, str] | None:
    """Return the rule to use instead of an effect's rule, with the reason; None if the effect's rule stays.

    `is_written`: the line is what the command says, not what an interpreter or a link makes of it.
    """
    ports = context.closed_ports
    if context.version < _FIRST_VERSION:
        return None
    if rule.name == "database.migrate" and databases.names_local_database(line, command, ports):
        return builtin.LOCAL_DATABASE, "the command names a database at a literal loopback address"
    if not is_written or not command_line.is_known_program(line, builtin.LOCAL_DATABASE):
        return None
    if rule.name in _REQUESTS and loopback.is_local_request(line, command, ports):
        return builtin.LOOPBACK_REQUEST, "every request goes to a literal loopback address"
    if rule.name in _DATABASES and databases.is_local_database(line, command, ports):
        return builtin.LOCAL_DATABASE, "the database is named by a literal loopback address or a socket"
    if rule.name in _DATABASES and databases.is_read_query(line, command):
        return builtin.DATABASE_READ, "it is one statement that only reads"
    if rule.name == "desktop.open" and _opens_document(line, context):
        return builtin.LOCAL_VIEW, "it shows a document of the workspace"
    return None


def _opens_document(line: CommandLine, context: CallContext) -> bool:
    """Check for `open index.html`: one document or a page on loopback, shown by the program that the user chose."""
    if line.program not in {"open", "xdg-open", "start"} or len(line.words) != 1 or not line.words[0].exact:
        return False
    word = line.words[0]
    if "://" in word.text:
        return loopback.is_local_url(word, context.closed_ports)
    return word.text.lower().endswith(_DOCUMENTS) and not word.text.startswith("-")
