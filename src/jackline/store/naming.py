"""Whose instance a database is: the names of its host and its agent, said once. No SQL here."""

from __future__ import annotations

from jackline.store.base import Base
from jackline.store.driver import Statements, clean


class Naming(Base):
    """The part of the store that knows its own name."""

    def name_instance(self, host: str, agent: str) -> tuple[str, str]:
        """Give it these names of a host and an agent, unless it has some already; the names that it has now."""
        return self._driver.write(lambda one: (_first(one, "host", host), _first(one, "agent", agent)))


def _first(statements: Statements, name: str, value: str) -> str:
    """The value that was said first, which may be this one."""
    statements.run("add_instance_value", {"name": name, "value": clean(value)})
    row = statements.one("instance_value", {"name": name})
    return str(row[0]) if row else value
