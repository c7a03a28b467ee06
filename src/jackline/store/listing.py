"""The list of runs, put together from what it is narrowed by. Text only: it runs nothing.

Every part reads one index from its newest end and stops after a page, so that it costs the same however many
runs there are. Several states are several parts that are merged: `IN (...)` would sort everything that matches.
"""

from __future__ import annotations

from jackline.store.contract import RunQuery
from jackline.store.driver import clean
from jackline.store.rows import columns

_PLACE = "runs.id AS id, runs.created_at AS created_at"
# From the few runs of the session to their rows, never through all the newest runs until one of them fits.
_FROM_SESSION = "sessions CROSS JOIN runs"


def listing(query: RunQuery) -> tuple[str, dict[str, object]]:
    """The query and its parameters."""
    values: dict[str, object] = {"limit": max(0, query.limit)}
    shared = _conditions(query, values)
    states = {f"state_{place}": str(state) for place, state in enumerate(dict.fromkeys(query.states))}
    part = _part if query.session is None else _part_of_session
    parts = [part([*shared, f"runs.state = :{name}"]) for name in states]
    return _page(" UNION ALL ".join(parts) or part(shared)), values | states


def _page(found: str) -> str:
    """The rows of one page; only the ids that stand on it are looked up."""
    return (
        f"SELECT {', '.join(columns('listed'))} FROM ("  # noqa: S608 - values are parameters
        f"SELECT id FROM ({found}) AS merged ORDER BY created_at DESC, id DESC LIMIT :limit) AS found "
        "JOIN runs ON runs.id = found.id JOIN repositories AS places ON places.id = runs.repository "
        "ORDER BY runs.created_at DESC, runs.id DESC"
    )


def _part(conditions: list[str]) -> str:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = "ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit"
    return f"SELECT id, created_at FROM (SELECT {_PLACE} FROM runs{where} {order}) AS part"  # noqa: S608


def _part_of_session(conditions: list[str]) -> str:
    return f"SELECT DISTINCT {_PLACE} FROM {_FROM_SESSION} WHERE {' AND '.join(conditions)}"  # noqa: S608


def _conditions(query: RunQuery, values: dict[str, object]) -> list[str]:
    conditions = []
    for name in ("agent", "task", "repository"):
        value = getattr(query, name)
        if value is not None:
            conditions.append(f"runs.{name} = :{name}")
            values[name] = clean(value)
    if query.session is not None:
        conditions.append("sessions.session = :session AND runs.id = sessions.run_id")
        values["session"] = clean(query.session)
    if query.since is not None:
        conditions.append("runs.created_at >= :since")
        values["since"] = query.since
    if query.before is not None:
        conditions.append("(runs.created_at, runs.id) < (:before_at, :before_id)")
        values["before_at"], values["before_id"] = query.before
    return conditions
