"""What a store in tables offers besides memories, each part loaded when it is first used.

The work is done in the module of each part, which its first call loads.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Self

from germane.stores.relational.cache import ConversationCaches
from germane.stores.relational.tables import Connections

if TYPE_CHECKING:
    from germane.ledger import Assembly, MemoryChange
    from germane.model.conversation import (
        ConversationChange,
        ConversationInfo,
        GroupScores,
        LastGroups,
        Message,
    )
    from germane.model.memory import LifecycleEvent, LifecycleState
    from germane.model.space import SpaceAct, SpaceEvent, SpaceInfo
    from germane.stores.relational.conversations import ConversationTables
    from germane.stores.relational.ledger import LedgerTables
    from germane.stores.relational.lifecycle import LifecycleTables
    from germane.stores.relational.spaces import SpaceTables
    from germane.stores.relational.working_sets import CachedWorkingSet, WorkingSetTables
    from germane.working_sets import Features, HeldChange, StoredWorkingSet, WorkingSetEvent

__all__ = ["Conversations", "LifecycleQueries", "Recordings", "Spaces", "WorkingSets"]


class Conversations:
    """The part of a SQLite store that is `ConversationStore` and `Glancing`. Threads and processes may
    share it.
    """

    _connections: Connections
    _conversation_caches: ConversationCaches

    def converse(
        self, agent: str, session: str, changes: Sequence[ConversationChange]
    ) -> tuple[Message, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        A PurgeMessages rewrites the file as the purge of a memory does, and raises StoreBusy or
        StoreUnavailable as that does.
        """
        return self._conversation_tables.converse(agent, session, changes)

    def messages(self, agent: str, session: str, *, hidden: bool = False) -> tuple[Message, ...]:
        """The messages of a conversation in order; those of hidden groups if asked."""
        return self._conversation_tables.messages(agent, session, hidden=hidden)

    def last_groups(self, agent: str, session: str, count: int) -> LastGroups | None:
        """What a window of the last `count` groups shows; None where reading all is as good."""
        return self._conversation_tables.last_groups(agent, session, count)

    def message(self, agent: str, message_id: str) -> Message | None:
        """The agent's message of that id, hidden or not; None where there is none."""
        return self._conversation_tables.message(agent, message_id)

    def match_groups(self, agent: str, session: str, terms: Sequence[str]) -> GroupScores:
        """How well the visible groups match any of these terms, by the statistics of this session alone."""
        return self._conversation_tables.match_groups(agent, session, terms)

    def anchors(self, agent: str, session: str) -> Mapping[str, str]:
        """The texts that stand outside any window, by name."""
        return self._conversation_tables.anchors(agent, session)

    def conversations(self, agent: str) -> tuple[ConversationInfo, ...]:
        """All conversations of the agent, by the names of their sessions."""
        return self._conversation_tables.conversations(agent)

    @property
    def _conversation_tables(self) -> ConversationTables:
        from germane.stores.relational.conversations import ConversationTables  # noqa: PLC0415 - Most processes converse nowhere.

        return ConversationTables(self._connections, self._conversation_caches)


# The lives of memories as the store tells of them.
#
# The work is done in `living`, which the first such call loads.


class LifecycleQueries:
    """The part of a SQLite store that is `LifecycleStore`. Threads and processes may share it."""

    _connections: Connections

    def lifecycle_states(self, agent: str, ids: Sequence[str]) -> tuple[LifecycleState | None, ...]:
        """How memories stand, in the order asked; None where there is no such memory."""
        return self._lifecycle_tables.lifecycle_states(agent, ids)

    def life_events(
        self, agent: str, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifecycleEvent, ...]:
        """What happened to all versions of a memory, or to every memory, after the event `since`, in order.

        Raises NotFound when the agent has no such memory.
        """
        return self._lifecycle_tables.life_events(agent, memory_id, since=since, limit=limit)

    @property
    def _lifecycle_tables(self) -> LifecycleTables:
        from germane.stores.relational.lifecycle import LifecycleTables  # noqa: PLC0415 - Most processes ask for no life.

        return LifecycleTables(self._connections)


# The ledger as the store offers it.
#
# The work is done in `ledger`, which the first such call loads.


class Recordings:
    """The part of a SQLite store that is `LedgerStore`, without `as_of`. Threads and processes may
    share it.
    """

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

    def altered(self, agent: str, point: Mapping[str, int]) -> tuple[MemoryChange, ...]:
        """What happened since a point to memories that were there then, and which were added."""
        return self._recorded_in.altered(agent, point)

    @property
    def _recorded_in(self) -> LedgerTables:
        from germane.stores.relational.ledger import LedgerTables  # noqa: PLC0415 - Most processes record nothing.

        return LedgerTables(self._connections)


# Spaces as the store offers them, and the store as a member of a space uses it.
#
# A space's memories and working sets belong to an agent of its own; `entered` gives members access to them.


class Spaces:
    """The part of a SQLite store that is `SpaceStore`. Threads and processes may share it."""

    _connections: Connections

    def settle_space(self, space: str, act: SpaceAct) -> SpaceInfo | None:
        """Do one act to a space in one transaction, if its rules allow it.

        Returns the space as it is afterwards, None when it was disbanded, which rewrites the file as
        a purge does. Raises what `germane.spaces.decide` raises.
        """
        return self._space_tables.settle_space(space, act)

    def space(self, name: str) -> SpaceInfo | None:
        """A space as it is now; None where there is none of the name."""
        return self._space_tables.space(name)

    def spaces(self, agent: str) -> tuple[SpaceInfo, ...]:
        """The spaces that an agent is in, by name."""
        return self._space_tables.spaces(agent)

    def entered(self, space: str, agent: str) -> Self:
        """The store as a member of a space uses it, for the space's own memories and working sets."""
        from germane.stores.relational.spaces import MemberConnections  # noqa: PLC0415 - Most processes share nothing.

        seen = copy.copy(self)
        seen._connections = MemberConnections(  # noqa: SLF001 - It is a store of this very class.
            self._connections, space=space, agent=agent
        )
        return seen

    def events(
        self, space: str, agent: str, *, since: int = 0, limit: int | None = None
    ) -> tuple[SpaceEvent, ...]:
        """What happened in a space after the event numbered `since`, in order, for a member."""
        return self._space_tables.events(space, agent, since=since, limit=limit)

    def latest_event(self, space: str) -> int:
        """The number of a space's latest event; 0 where there never was one."""
        return self._space_tables.latest_event(space)

    @property
    def _space_tables(self) -> SpaceTables:
        from germane.stores.relational.spaces import SpaceTables  # noqa: PLC0415 - Most processes share nothing.

        return SpaceTables(self._connections)


# Working sets as the store offers them.
#
# The work is done in `sets`, which the first such call loads.


class WorkingSets:
    """The part of a SQLite store that is `WorkingSetStore`. Threads and processes may share it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._cached: OrderedDict[tuple[str, str], CachedWorkingSet] = OrderedDict()
        self._cache_guard = Lock()

    def hold(
        self, owner: str, name: str, changes: Sequence[HeldChange], *, seen: int | None = None, by: str = ""
    ) -> tuple[WorkingSetEvent, ...] | None:
        """Apply all changes to a set in one transaction, in order, or none of them; returns the moves.

        With `seen`, only if the set's latest move has that number; else nothing is done, and None returned.
        """
        return self._working_set_tables.hold(owner, name, changes, seen=seen, by=by)

    def stored_working_set(self, owner: str, name: str) -> StoredWorkingSet:
        """A set as it is now, from one snapshot of the store; an empty one where there is none."""
        return self._working_set_tables.stored_working_set(owner, name)

    def working_sets(self, owner: str) -> tuple[str, ...]:
        """The names of the sets of an owner that anything was ever done to, in order."""
        return self._working_set_tables.working_sets(owner)

    def moves(self, owner: str, *, since: int = 0, limit: int | None = None) -> tuple[WorkingSetEvent, ...]:
        """What became of the owner's sets after the move numbered `since`, in order, at most `limit`."""
        return self._working_set_tables.moves(owner, since=since, limit=limit)

    def moved(self, owner: str) -> int:
        """The number of the owner's latest move."""
        return self._working_set_tables.moved(owner)

    def features(self, owner: str, ids: Sequence[str]) -> tuple[Features | None, ...]:
        """What the index knows of these memories, in the order asked; None where there is no memory."""
        return self._working_set_tables.features(owner, ids)

    def _drop_cached(self) -> None:
        with self._cache_guard:
            self._cached.clear()

    @property
    def _working_set_tables(self) -> WorkingSetTables:
        from germane.stores.relational.working_sets import WorkingSetTables  # noqa: PLC0415 - Most processes hold nothing.

        return WorkingSetTables(self._connections, self._cached, self._cache_guard)
