"""remove_agent: all that a store holds of one agent, purged.

Level: verbs. Unlike the other verbs it isn't called by the agent itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from germane.errors import NotAMember, PurgeNotConfirmed, StoreBusy, StoreUnavailable, UnknownSpace
from germane.model.names import tenant_of
from germane.model.space import Leave
from germane.stores.opening import exists, is_address, open_store
from germane.stores.relational.agents import removing
from germane.stores.relational.store import RelationalStore
from germane.verbs.checks import checked_agent, checking
from germane.verbs.embedding import Progress

__all__ = ["Removal", "remove_agent"]

_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What became of an agent: whether it was there, and how many rows were removed.

    `left` are the spaces that it was in and others still are, `ended` those that went with it. `finished`
    counts removals that an earlier call had left half done, by whomever.
    """

    agent: str
    was_there: bool
    rows: int
    left: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    finished: int = 0


@checking
def remove_agent(
    location: str | Path,
    agent: str,
    *,
    confirm: bool = False,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Removal:
    """Remove an agent from a store: memories, versions, working sets, conversations, what it assembled.

    It leaves its spaces, and those end in which nobody else is; what it put into the others stays there, in
    the name of the space. From one moment on nobody finds the agent; then its rows go, a thousand memories or
    so in a transaction, so that others go on writing. After an interruption any call does the rest. A file is
    rewritten in the end; in PostgreSQL `erase_purged` is due. Processes that have the agent open see one
    without memories; what is written under its name afterwards is a new agent's.

    An agent that isn't there is no error. `now` is the time of leaving. `progress` is told how many rows are
    removed, and of how many. Raises PurgeNotConfirmed, LastActive where a space would be left to members that
    may only read, InvalidInput for a space, StoreBusy and StoreUnavailable.
    """
    name = checked_agent(agent)
    if confirm is not True:
        raise PurgeNotConfirmed(agent=name)
    if not exists(location):
        raise StoreUnavailable(f"There is no store at {location}, so there is no agent to remove.")
    store = open_store(location, embedding=None)
    try:
        work = _Work(store, location, name, progress, datetime.now(UTC) if now is None else now)
        return work.done()
    finally:
        store.close()


@dataclass(slots=True)
class _Work:
    store: RelationalStore
    location: str | Path
    agent: str
    progress: Progress | None
    now: datetime
    rows: int = 0
    left: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    def done(self) -> Removal:
        """Do all of it. What can be refused is refused before anything is changed."""
        was_there = self.agent in self.store.agents()
        halves = set(self.store.doing(removing.left_over))
        if was_there:
            self._take_name()
        rest = self.store.doing(removing.left_over)
        for number in rest:
            self._remove(number, sum(rest.values()))
        if rest:
            self.store.doing(lambda connections: connections.erase())
        return Removal(
            agent=self.agent,
            was_there=was_there,
            rows=self.rows,
            left=self.left,
            ended=self.ended,
            finished=len(halves),
        )

    def _take_name(self) -> None:
        """Let it leave its spaces, and let nobody find it any more."""
        for _ in range(_TRIES):
            leaves, ends = self.store.doing(partial(removing.shared_by, name=self.agent, at=self.now))
            self._unindex(self.agent)
            for space in leaves:
                self._leave(space.name)
            for space in ends:
                self._unindex(tenant_of(space.name))
                self._rename(tenant_of(space.name), only_member=self.agent)
            self.left = tuple(dict.fromkeys([*self.left, *(space.name for space in leaves)]))
            self.ended = tuple(dict.fromkeys([*self.ended, *(space.name for space in ends)]))
            if self._rename(self.agent):
                return
        raise StoreBusy(
            f"Agent {self.agent!r} has joined spaces again and again while it left them. End its processes, "
            "and remove it then."
        )

    def _rename(self, name: str, *, only_member: str | None = None) -> bool:
        return self.store.doing(partial(removing.rename, name=name, only_member=only_member))

    def _leave(self, space: str) -> None:
        try:
            self.store.settle_space(space, Leave(agent=self.agent, by=self.agent, at=self.now))
        except (NotAMember, UnknownSpace):
            # Somebody else put it out, or ended the space, in the meantime.
            return

    def _unindex(self, name: str) -> None:
        """Take away what an agent with very many vectors may have besides its rows."""
        if is_address(self.location):
            from germane.stores.postgres.operating.operations import PostgresOperations  # noqa: PLC0415 - An extra.

            PostgresOperations(str(self.location)).unindex(name)

    def _remove(self, number: int, total: int) -> None:
        for tenant in self.store.doing(partial(removing.others_spaces, agent=number)):
            self.store.doing(partial(removing.disown, tenant=tenant, agent=number))
        for batch in removing.BATCHES:
            some = partial(removing.remove_some, agent=number, batch=batch)
            while count := self.store.doing(some):
                self.rows += count
                if self.progress is not None:
                    self.progress(min(self.rows, total), total)
        self.store.doing(partial(removing.remove_row, agent=number))
