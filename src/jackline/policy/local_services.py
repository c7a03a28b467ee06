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


def find_laxer_rule(
    rule: Rule, line: CommandLine, command: ShellCommand, context: CallContext
) -> tuple[Rule, str] | None:
    """Return the rule to use instead of an effect's rule, with the reason; None if the effect's rule stays."""
    if context.version < _FIRST_VERSION or not command_line.is_known_program(line, builtin.LOCAL_DATABASE):
        return None
    ports = context.closed_ports
    if rule.name in _REQUESTS and loopback.is_local_request(line, command, ports):
        return builtin.LOOPBACK_REQUEST, "every request goes to a literal loopback address"
    if rule.name in _DATABASES and databases.is_local_database(line, command, ports):
        return builtin.LOCAL_DATABASE, "the database is named by a literal loopback address or a socket"
    if rule.name in _DATABASES and databases.is_read_query(line, command):
        return builtin.DATABASE_READ, "it is one statement that only reads"
    if rule.name == "database.migrate" and databases.names_local_database(line, command, ports):
        return builtin.LOCAL_DATABASE, "the command names a database at a literal loopback address"
    return None
