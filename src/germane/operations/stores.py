"""What an operator does to a whole store: status, migrations, indexes, copies, removal of an agent.

Unlike other operations these are not limited to one agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from germane.errors import (
    InvalidInput,
    NotAMember,
    NotFound,
    PurgeNotConfirmed,
    StoreBusy,
    StoreUnavailable,
    UnknownSpace,
)
from germane.ledger import AgentFigures, DatabaseStatus, Erasure, Progress, RepairReport, StoreUsage
from germane.model.text import clear_text_caches, tenant_of, user_and_agent, users_prefix
from germane.operations.inputs import checked_agent, checked_count, checking
from germane.protocols import Store
from germane.spaces import Leave, SpaceInfo, decide
from germane.stores.location import (
    exists,
    is_address,
    key_bytes,
    location_of,
    open_store,
    operations_on,
    stores_in_use,
)
from germane.stores.relational import agents
from germane.stores.relational.agents import PARTS, AgentCopy, copy_agent, listed, numbers_of, settle_names
from germane.stores.relational.settings import rekey
from germane.stores.relational.store import RelationalStore
from germane.stores.relational.tables import Connections

if TYPE_CHECKING:
    from germane.stores.postgres.maintenance import PostgresOperations


@checking
def store_status(location: str | Path) -> DatabaseStatus:
    """A store's database, schema and size. Nothing is changed.

    Raises StoreUnavailable where there is none, and SchemaTooNew for one of a newer version.
    """
    return operations_on(_there(location)).status()


@checking
def store_agents(location: str | Path, *, key: bytes | str | None = None) -> tuple[AgentFigures, ...]:
    """Whose memories a store holds, how many, and when each last wrote one; in order of their first write.

    Spaces are among them. A user of PostgreSQL who may see one agent at a time gets the names alone. Raises
    StoreUnavailable where there is none, and SchemaTooNew for one of a newer version.
    """
    with closing(open_store(_there(location), embedding=None, read_only=True, key=key)) as store:
        return agents_of(store)


def agents_of(store: Store) -> tuple[AgentFigures, ...]:
    """The same of a store that is open. Raises InvalidInput for a store that isn't in tables."""
    return in_tables(store).doing(listed)


def usage_of(store: Store) -> StoreUsage:
    """What an open store takes of this process. Raises InvalidInput for a store that isn't in tables."""
    return in_tables(store).usage()


def in_tables(store: Store) -> RelationalStore:
    """The store, where it is one of germane's own. Raises InvalidInput for another."""
    if not isinstance(store, RelationalStore):
        raise InvalidInput(
            f"The store {type(store).__name__} doesn't list its agents, users and connections. Open a file "
            "or a PostgreSQL database with germane.connect."
        )
    return store


@checking
def migrate_store(
    location: str | Path, *, partitions: int = 0, role: str | None = None, key: bytes | str | None = None
) -> tuple[str, ...]:
    """Make a store, or bring it to this version's schema; the names of the migrations applied.

    In PostgreSQL the tables of a new store get `partitions` hash partitions by agent, 0 for none; and `role`
    is a database role that may then use the store, one agent at a time, and nothing else. A new store is
    encrypted by `key`, if there is one. Opening a store migrates it too, where the user may do that. Raises
    InvalidInput for partitions or a role of a file, SchemaTooNew, and StoreUnavailable.
    """
    return operations_on(location, key).migrate(partitions=partitions, role=role)


@checking
def reindex_store(
    location: str | Path, *, progress: Progress | None = None, key: bytes | str | None = None
) -> None:
    """Make the index of the words anew from the texts, and build every index of the database anew.

    Writers wait for the first, about a second for each 10,000 memories. `progress` is called with the number
    of tables done and the total. An interrupted call is repaired by the next. Raises StoreUnavailable or
    StoreBusy.
    """
    operations_on(_there(location), key).reindex(progress or _unheard)


@checking
def repair_store(
    location: str | Path, *, now: datetime | None = None, key: bytes | str | None = None
) -> RepairReport:
    """Save what can be saved of a damaged store, and say what was lost.

    Derived data is made anew: the index of words, packed blocks, tags, places and counters. Damaged vectors
    are removed, and `Engine.embed_pending` makes new ones. A memory that differs from its checksum goes into
    quarantine under the rule "damaged", and the group of such a message is hidden. A file that SQLite can't
    read whole is left as it is: what can be read is written to a new file beside it, `NAME.repaired.db`.
    `now` is the time of what is set aside. Close every engine first. Raises StoreUnavailable where there is
    no store or nothing can be read, SchemaTooNew, and InvalidInput where the new file exists already.
    """
    moment = datetime.now(UTC) if now is None else now
    if is_address(_there(location)):
        return _server(str(location), "A repair of a server", key).repair(moment)
    from germane.stores.sqlite.salvage import repaired  # noqa: PLC0415 - Few processes repair.

    return repaired(location, now=moment, key=key_bytes(key))


@checking
def vacuum_store(
    location: str | Path, *, progress: Progress | None = None, key: bytes | str | None = None
) -> None:
    """Free the disk space of deleted rows: a file is rewritten, a server's tables are vacuumed.

    Servers do it by themselves as well. Raises StoreUnavailable or StoreBusy.
    """
    operations_on(_there(location), key).vacuum(progress or _unheard)


@checking
def erase_purged(
    location: str | Path, *, progress: Progress | None = None, key: bytes | str | None = None
) -> Erasure:
    """Leave no bytes of what was purged in the store's files, and say where some may be left all the same.

    In PostgreSQL a purge deletes rows, whose bytes stay until the server puts others in their place. This
    writes the tables anew that purges have noted (`VACUUM FULL`), of the partitions of those agents alone,
    renews the planner's statistics, which quote values, and closes the write-ahead log. Who needs a
    table waits while it is written. A purge of a file is erased at once; this finishes what it couldn't.
    `progress` is called with the steps done and their total; after an interruption the next call does the
    rest. Raises StoreBusy where somebody doesn't let go within half a minute, and StoreUnavailable.
    """
    return operations_on(_there(location), key).erase(progress or _unheard)


@checking
def index_vectors(
    location: str, agent: str, *, remove: bool = False, progress: Progress | None = None
) -> int:
    """Give the vectors of one agent in PostgreSQL an index (HNSW), or take it away; how many there are.

    It is used from 20,000 memories on, and finds nearly all of the nearest, so results may differ from the
    exact ones that an agent without it gets. Building takes a minute for each 100,000 or so, and nobody
    waits for it; a call after an interrupted one builds it anew. `progress` is called with the number
    of blocks in it and the total. Raises InvalidInput for a file or an agent without vectors, NotFound,
    and StoreBusy.
    """
    server = _server(location, "An index of an agent's vectors")
    return server.unindex(agent) if remove else server.index(agent, progress or _unheard)


@checking
def distribute_store(location: str, *, progress: Progress | None = None) -> tuple[str, ...]:
    """Spread a store's tables over a Citus cluster by agent; the tables that weren't spread before.

    All of them are, or none. Raises StoreUnavailable without the extension `citus` or with partitions,
    and InvalidInput for a file.
    """
    return _server(location, "Distribution over servers").distribute(progress or _unheard)


@checking
def rekey_store(location: str | Path, new_key: bytes | str, *, key: bytes | str | None = None) -> int:
    """Give an encrypted store another key; returns how many data keys that encrypts, one for each agent.

    Only these are encrypted again. The former key doesn't open the store any more, and is the only one that
    opens copies made before, such as backups. Close every engine first, and open the store with the new
    key. Raises InvalidInput for what is no key, and StoreUnavailable where `key` isn't that of the store.
    """
    new = key_bytes(new_key, name="new_key")
    if new is None:
        raise InvalidInput("new_key is empty. Copy the store to decrypt it: copy_store(…, target_key='').")
    with closing(open_store(_there(location), embedding=None, key=key)) as store:
        return store.doing(partial(rekey, new=new))


def _there(location: str | Path) -> str | Path:
    if not exists(location):
        raise StoreUnavailable(
            f"There is no store at {location}. `germane db migrate` makes one, as opening it does."
        )
    return location


def _server(location: str, what: str, key: bytes | str | None = "") -> PostgresOperations:
    if not is_address(location):
        raise InvalidInput(
            f"{what} is for PostgreSQL, and {location} is a file. Name a database by its address "
            "(postgresql://…); `germane db copy` moves a file there."
        )
    operations_on(location)  # It says what is missing where the driver isn't there.
    from germane.stores.postgres.maintenance import PostgresOperations  # noqa: PLC0415 - The driver is an extra.

    return PostgresOperations(location, key=key_bytes(key))


def _unheard(done: int, total: int) -> None:
    """Ignore progress."""


# copy: everything that a store holds, or what it holds of some agents, to another store.
#
# Unlike other operations it is not limited to one agent.

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What became of each agent; its figures are those of both stores, which were compared."""

    agents: tuple[AgentCopy, ...]

    @property
    def rows(self) -> int:
        """How many rows the agents have, those that had been copied before among them."""
        return sum(each.rows for each in self.agents)

    @property
    def copied(self) -> int:
        """How many of the agents were copied by this very call."""
        return sum(not each.was_there for each in self.agents)


@checking
def copy_store(
    source: str | Path,
    target: str | Path,
    *,
    agents: Sequence[str] | None = None,
    progress: Progress | None = None,
    key: bytes | str | None = None,
    target_key: bytes | str | None = None,
) -> CopyReport:
    """Copy a store to another one, in a file or in PostgreSQL; `agents` names those to copy, None all.

    Everything stored is copied: memories with their versions and vectors, working sets, conversations,
    spaces, judgements, lives and the ledger. Each agent is copied in one transaction and proved by
    counts and SHA-256 before it is committed, so an interrupted call is gone on with by the same call, and
    what is there already is only compared. `progress` is called with the number of agents done and the total.
    `key` is that of an encrypted source, and `target_key` that of an encrypted target, so a copy can encrypt
    or decrypt a store.

    Raises StoreUnavailable without a source, NotFound for an agent that isn't in it, InvalidInput where the
    target holds other things of an agent, EmbedderMismatch, and what the stores raise.
    """
    _check_apart(source, target)
    with closing(open_store(source, embedding=None, read_only=True, key=key)) as out:
        known = out.maintenance.agents()
        for name in agents or ():
            if name not in known:
                raise NotFound(name, name)
        wanted = known if agents is None else tuple(dict.fromkeys(agents))
        # Only now, so that a call that is refused makes no target.
        with closing(open_store(target, embedding=None, key=target_key)) as into:
            return _copied(out, into, wanted, progress)


def _copied(
    out: RelationalStore, into: RelationalStore, wanted: Sequence[str], progress: Progress | None
) -> CopyReport:
    _on_both(out, into, settle_names)
    numbers = out.doing(numbers_of), into.doing(numbers_of)
    found: list[list[AgentCopy]] = []
    for part, tables in enumerate(PARTS):
        found.append([])
        for name in wanted:
            copying = partial(copy_agent, name=name, tables=tables, numbers=numbers)
            found[-1].append(_on_both(out, into, copying))
            if progress is not None:
                progress(part * len(wanted) + len(found[-1]), len(PARTS) * len(wanted))
    return CopyReport(agents=tuple(_joined(*parts) for parts in zip(*found, strict=True)))


def _on_both(
    out: RelationalStore, into: RelationalStore, work: Callable[[Connections, Connections], Done]
) -> Done:
    return out.doing(lambda source: into.doing(lambda target: work(source, target)))


def _joined(*parts: AgentCopy) -> AgentCopy:
    return AgentCopy(
        agent=parts[0].agent,
        rows=sum(each.rows for each in parts),
        sha256=sha256("".join(each.sha256 for each in parts).encode()).hexdigest(),
        was_there=all(each.was_there for each in parts),
    )


def _check_apart(source: str | Path, target: str | Path) -> None:
    if not exists(source):
        raise StoreUnavailable(f"There is no store at {source}, so there is nothing to copy.")
    if str(source) == str(target):
        raise InvalidInput(f"{location_of(source)} can't be copied to itself. Name another target.")


# remove_agent: all that a store holds of one agent, purged.
#
# Unlike other operations it isn't called by the agent itself.

_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What became of an agent, or of what all agents know of a user: whether it was there, and rows removed.

    `agents` are those whose rows went, the agent's own and those of its users, or those that knew the user.
    `left` are the spaces that it was in and others still are, `ended` those that went with it. `finished`
    counts removals that an earlier call had left half done, by whomever.
    """

    agent: str
    was_there: bool
    rows: int
    agents: tuple[str, ...] = ()
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
    key: bytes | str | None = None,
) -> Removal:
    """Remove an agent from a store: memories, versions, working sets, conversations, what it assembled.

    What it knows of single users goes with it.
    It leaves its spaces, and those end in which nobody else is; what it put into the others stays there, in
    the name of the space. One transaction hides the agent from everybody, copies of the store included; then
    its rows go, a thousand memories or so in a transaction, so that others go on writing. After an error or
    an interruption the agent is there with all its memories, or it is hidden, and any call does the rest. A
    file is rewritten in the end; in PostgreSQL `erase_purged` is due. Processes that have the agent open see
    one without memories; what is written under its name afterwards is a new agent's.

    An agent that isn't there is no error. `now` is the time of leaving. `progress` is called with the rows
    removed and their total. Raises PurgeNotConfirmed, LastActive where a space would be left to members that
    may only read, InvalidInput for a space, StoreBusy and StoreUnavailable.
    """
    name = checked_agent(agent)
    if confirm is not True:
        raise PurgeNotConfirmed(agent=name)
    if not exists(location):
        raise StoreUnavailable(f"There is no store at {location}, so there is no agent to remove.")
    with closing(open_store(location, embedding=None, key=key)) as store:
        own = [each for each in _users_of(store) if user_and_agent(each)[1] == name]
        work = _RemovalRun(store, location, progress, datetime.now(UTC) if now is None else now)
        return work.done(name, [*own, name])


def users_of(
    store: Store, *, agent: str | None = None, limit: int | None = None, after: str | None = None
) -> Mapping[str, tuple[str, ...]]:
    """The users of a store, each with the agents that know something of them, by name.

    `after` is the user that ended the page before. Raises InvalidInput, also for a store that isn't in
    tables.
    """
    most = None if limit is None else checked_count(limit, name="limit")
    found: dict[str, list[str]] = {}
    for name in _users_of(in_tables(store)):
        user, owner = user_and_agent(name)
        if agent in (None, owner) and (user or "") > (after or ""):
            found.setdefault(user or "", []).append(owner)
    return {user: tuple(sorted(found[user])) for user in sorted(found)[:most]}


def purge_user(
    store: Store,
    location: object,
    user: str,
    *,
    agent: str | None,
    confirm: bool,
    progress: Progress | None,
    now: datetime,
) -> Removal:
    """Remove all that the agents of a store, or one of them, know of a user, and check that none is left.

    Raises PurgeNotConfirmed, LastActive, StoreBusy, StoreUnavailable, and InvalidInput for a store that isn't
    in tables.
    """
    prefix = users_prefix(user)
    if confirm is not True:
        raise PurgeNotConfirmed(user=user)
    tables = in_tables(store)
    of_one = None if agent is None else prefix + checked_agent(agent)

    def there() -> list[str]:
        known = _users_of(tables)
        return [each for each in known if (each.startswith(prefix) if of_one is None else each == of_one)]

    names = there()
    done = _RemovalRun(tables, location, progress, now).done(user, names)
    if there():
        raise StoreBusy(
            f"User {user!r} was written about again while it was being purged. End the engines that are "
            "bound to that user, and purge it again."
        )
    return done


def _users_of(store: RelationalStore) -> Sequence[str]:
    """The names under which the store has what its agents know of single users."""
    return [each for each in store.maintenance.agents() if user_and_agent(each)[0] is not None]


@dataclass(slots=True)
class _RemovalRun:
    store: RelationalStore
    location: object
    progress: Progress | None
    now: datetime
    rows: int = 0
    left: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    def done(self, of: str, names: Sequence[str]) -> Removal:
        """Remove these agents, which are all `of` one. What can be refused is refused before any change."""
        known = set(self.store.maintenance.agents())
        present = [name for name in names if name in known]
        halves = set(self.store.doing(agents.left_over))
        self._check_spaces(present)
        for name in present:
            self._take_name(name)
        rest = self.store.doing(agents.left_over)
        for number in rest:
            self._remove(number, sum(rest.values()))
        if rest:
            self.store.doing(lambda connections: connections.erase())
        for store in (self.store, *stores_in_use(self.location)):
            store.clear_caches()
        clear_text_caches()
        return Removal(
            agent=of,
            was_there=bool(present),
            agents=tuple(user_and_agent(name)[1] for name in present),
            rows=self.rows,
            left=self.left,
            ended=self.ended,
            finished=len(halves),
        )

    def _check_spaces(self, names: Sequence[str]) -> None:
        """Raise LastActive where all of them leave a space to members of whom none could lead it."""
        after: dict[str, SpaceInfo] = {}
        for name in names:
            for space in self.store.spaces.find(name):
                now = after.get(space.name, space)
                if len(now.members) > 1:
                    left = decide(space.name, now, Leave(agent=name, by=name, at=self.now)).space
                    after[space.name] = now if left is None else left

    def _take_name(self, agent: str) -> None:
        """Let an agent leave its spaces, and let nobody find it any more."""
        for _ in range(_TRIES):
            leaves, ends = self.store.doing(partial(agents.shared_by, name=agent, at=self.now))
            self._unindex(agent)
            for space in leaves:
                self._leave(agent, space.name)
            for space in ends:
                self._unindex(tenant_of(space.name))
                self._rename(tenant_of(space.name), only_member=agent)
            self.left = tuple(dict.fromkeys([*self.left, *(space.name for space in leaves)]))
            self.ended = tuple(dict.fromkeys([*self.ended, *(space.name for space in ends)]))
            if self._rename(agent):
                return
        raise StoreBusy(
            f"Agent {agent!r} has joined spaces again and again while it left them. End its processes, "
            "and remove it then."
        )

    def _rename(self, name: str, *, only_member: str | None = None) -> bool:
        return self.store.doing(partial(agents.rename, name=name, only_member=only_member))

    def _leave(self, agent: str, space: str) -> None:
        try:
            self.store.spaces.apply(space, Leave(agent=agent, by=agent, at=self.now))
        except (NotAMember, UnknownSpace):
            # Somebody else put it out, or ended the space, in the meantime.
            return

    def _unindex(self, name: str) -> None:
        """Take away what an agent with very many vectors may have besides its rows."""
        if isinstance(self.location, str) and is_address(self.location):
            from germane.stores.postgres.maintenance import PostgresOperations  # noqa: PLC0415 - An extra.

            PostgresOperations(self.location).unindex(name)

    def _remove(self, number: int, total: int) -> None:
        self.store.doing(partial(agents.disown, agent=number))
        for table in agents.BATCHES:
            some = partial(agents.remove_some, agent=number, table=table)
            while count := self.store.doing(some):
                self.rows += count
                if self.progress is not None:
                    self.progress(min(self.rows, total), total)
        self.store.doing(partial(agents.remove_row, agent=number))
