"""The agents of a store with their figures, as far as who asks may see them.

Level: stores (imports model and errors only).
"""

from __future__ import annotations

from germane.model.database import AgentFigures
from germane.model.names import is_removed
from germane.stores.relational.agents.everyone import Someone
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.rows import moment

__all__ = ["listed"]


def listed(connections: Connections) -> tuple[AgentFigures, ...]:
    """Every agent, in the order in which they first wrote; none whose removal has begun.

    Names can be seen by all. Where policies keep the rest from who asks, the figures are None.
    """
    with connections.reading() as connection:
        agents = list(map(Someone._make, connection.run("agents")))
        return tuple(
            _figures(connection, each.agent, each.name, hidden=each.seq is None)
            for each in agents
            if not is_removed(each.name)
        )


def _figures(connection: Connection, agent: int, name: str, *, hidden: bool) -> AgentFigures:
    if hidden:
        return AgentFigures(name=name, memories=None, written_at=None)
    ((count, written),) = connection.run("agent_figures", {"agent": agent}).fetchall()
    at = None if written is None else moment(written)
    return AgentFigures(name=name, memories=count, written_at=at)
