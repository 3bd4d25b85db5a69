"""The lives of memories as the store tells of them.

Level: stores (imports model). The work is done in `living`, which the first such call loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from germane.stores.relational.connection import Connections

if TYPE_CHECKING:
    from germane.model.stage import LifeEvent, Standing
    from germane.stores.relational.experience.living import LivedIn

__all__ = ["Lives"]


class Lives:
    """The part of a SQLite store that is `Living`. Threads and processes may share it."""

    _connections: Connections

    def standings(self, agent: str, ids: Sequence[str]) -> tuple[Standing | None, ...]:
        """How memories stand, in the order asked; None where there is no such memory."""
        return self._lived_in.standings(agent, ids)

    def life_events(
        self, agent: str, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifeEvent, ...]:
        """What happened to all versions of a memory, or to every memory, after the event `since`, in order.

        Raises NotFound when the agent has no such memory.
        """
        return self._lived_in.life_events(agent, memory_id, since=since, limit=limit)

    @property
    def _lived_in(self) -> LivedIn:
        from germane.stores.relational.experience.living import LivedIn  # noqa: PLC0415 - Most processes ask for no life.

        return LivedIn(self._connections)
