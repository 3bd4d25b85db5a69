"""The ledger as the store offers it.

Level: stores (imports model and errors). The work is done in `ledger`, which the first such call loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from germane.stores.relational.connection import Connections

if TYPE_CHECKING:
    from germane.model.ledger import Alteration, Assembly
    from germane.stores.relational.ledger import LedgerIn

__all__ = ["Recordings"]


class Recordings:
    """The part of a SQLite store that is `Recording`, without `as_of`. Threads and processes may share it."""

    _connections: Connections

    def record(self, agent: str, assembly: Assembly) -> None:
        """Keep an assembly. The oldest leave where there are more than 2,000."""
        self._recorded_in.record(agent, assembly)

    def recorded(self, agent: str, assembly_id: str) -> Assembly | None:
        """The agent's assembly of that id, with the entries of memories that are still stored."""
        return self._recorded_in.recorded(agent, assembly_id)

    def recordings(
        self, agent: str, *, since: datetime | None = None, limit: int | None = None, after: str | None = None
    ) -> tuple[Assembly, ...]:
        """The agent's assemblies made at `since` or later, the latest first, after the one of that id."""
        return self._recorded_in.recordings(agent, since=since, limit=limit, after=after)

    def point(self, agent: str) -> Mapping[str, int]:
        """How far the agent's memories have come: equal points, equal memories."""
        return self._recorded_in.point(agent)

    def altered(self, agent: str, point: Mapping[str, int]) -> tuple[Alteration, ...]:
        """What happened since a point to memories that were there then, and which were added."""
        return self._recorded_in.altered(agent, point)

    @property
    def _recorded_in(self) -> LedgerIn:
        from germane.stores.relational.ledger import LedgerIn  # noqa: PLC0415 - Most processes record nothing.

        return LedgerIn(self._connections)
