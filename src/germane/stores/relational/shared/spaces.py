"""Spaces as the store offers them, and the store as a member of a space uses it.

Level: stores (imports model and errors). The work is done in `sharing`, which the first such call loads. A
space's memories and working sets are those of an agent of its own; `entering` lets members in to them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from germane.stores.relational.connection import Connections

if TYPE_CHECKING:
    from germane.model.space import SpaceAct, SpaceEvent, SpaceInfo
    from germane.stores.relational.shared.sharing import SharedIn

__all__ = ["Spaces"]


class Spaces:
    """The part of a SQLite store that is `Sharing`. Threads and processes may share it."""

    _connections: Connections

    def settle_space(self, space: str, act: SpaceAct) -> SpaceInfo | None:
        """Do one act to a space in one transaction, if its rules allow it.

        Returns the space as it is afterwards, None when it was disbanded, which rewrites the file as
        a purge does. Raises what `germane.spaces.decide` raises.
        """
        return self._shared_in.settle_space(space, act)

    def space(self, name: str) -> SpaceInfo | None:
        """A space as it is now; None where there is none of the name."""
        return self._shared_in.space(name)

    def spaces(self, agent: str) -> tuple[SpaceInfo, ...]:
        """The spaces that an agent is in, by name."""
        return self._shared_in.spaces(agent)

    def entered(self, space: str, agent: str) -> Self:
        """The store as a member of a space uses it, for the space's own memories and working sets."""
        from germane.stores.relational.shared.entering import Entrance  # noqa: PLC0415 - Most processes share nothing.

        seen = copy.copy(self)
        seen._connections = Entrance(  # noqa: SLF001 - It is a store of this very class.
            self._connections, space=space, agent=agent
        )
        return seen

    def events(
        self, space: str, agent: str, *, since: int = 0, limit: int | None = None
    ) -> tuple[SpaceEvent, ...]:
        """What happened in a space after the event numbered `since`, in order, for a member."""
        return self._shared_in.events(space, agent, since=since, limit=limit)

    def happened(self, space: str) -> int:
        """The number of a space's latest event; 0 where there never was one."""
        return self._shared_in.happened(space)

    @property
    def _shared_in(self) -> SharedIn:
        from germane.stores.relational.shared.sharing import SharedIn  # noqa: PLC0415 - Most processes share nothing.

        return SharedIn(self._connections)
