"""How a database is doing, as JSON.

Level: integrations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from germane import AgentFigures, DatabaseStatus

__all__ = ["agents_shape", "status_shape"]


def agents_shape(agents: Iterable[AgentFigures]) -> list[dict[str, Any]]:
    """The agents of `germane db agents --json`."""
    return [
        {
            "name": each.name,
            "memories": each.memories,
            "written_at": None if each.written_at is None else each.written_at.isoformat(),
        }
        for each in agents
    ]


def status_shape(status: DatabaseStatus) -> dict[str, Any]:
    """The fields of `germane db status --json`."""
    return {
        "location": status.location,
        "engine": status.engine,
        "schema_version": status.schema_version,
        "newest_version": status.newest_version,
        "pending": list(status.pending),
        "agents": status.agents,
        "memories": status.memories,
        "bytes": status.bytes,
        "embedding": None
        if status.embedding is None
        else {"name": status.embedding.name, "dimension": status.embedding.dimension},
        "extensions": dict(status.extensions),
        "partitions": status.partitions,
        "replicas": status.replicas,
        "standby": status.standby,
        "distributed": status.distributed,
        "due": status.due,
        "removing": status.removing,
        "indexes": [
            {"agent": each.agent, "vectors": each.vectors, "bytes": each.bytes, "valid": each.valid}
            for each in status.indexes
        ],
    }
