"""Whole agents in tables: listed, copied to another store, and removed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from germane.errors import EmbedderMismatch, InvalidInput, StoreBusy, StoreError
from germane.ledger import AgentFigures
from germane.model.space import Leave, SpaceInfo
from germane.model.text import is_removed, removed_name, space_of
from germane.spaces import decide
from germane.stores.relational.settings import (
    ListedAgent,
    all_of_them,
    everyone,
    store_embedding,
    stored_embedding,
)
from germane.stores.relational.spaces import required_space
from germane.stores.relational.tables import AGENT_SHIFT, Connection, Connections, moment
from germane.stores.sql.tables import TABLES

__all__ = [
    "BATCHES",
    "PARTS",
    "AgentCopy",
    "IdMap",
    "begin",
    "copy_agent",
    "digest_of",
    "disown",
    "is_empty",
    "left_over",
    "listed",
    "numbers_of",
    "others_spaces",
    "put_in",
    "remove_row",
    "remove_some",
    "rename",
    "settle_names",
    "shared_by",
    "taken_out",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCopy:
    """What became of an agent: how many rows it has, their digest, and whether nothing was left to copy."""

    agent: str
    rows: int
    sha256: str
    was_there: bool


def settle_names(source: Connections, target: Connections) -> None:
    """Make the source's agents and the model of its vectors known to the target, before anything is copied.

    Raises EmbedderMismatch where another model has made the target's vectors, and StoreBusy where an agent
    is half removed, whom what is left may name.
    """
    with source.reading() as connection:
        wanted = stored_embedding(dict(connection.run("settings").fetchall()))
        if any(is_removed(each.name) for each in all_of_them(connection, source.location)):
            raise StoreBusy(
                f"An agent of {source.location} is half removed. Let `germane db remove` finish it first."
            )
        names = [each.name for each in everyone(connection, source.location)]
    with target.writing() as connection:
        present = stored_embedding(dict(connection.run("settings").fetchall()))
        if present is not None and wanted is not None and present != wanted:
            raise EmbedderMismatch(stored=str(present), given=str(wanted))
        if present is None and wanted is not None:
            store_embedding(connection, wanted)
        known = {each.name for each in everyone(connection, target.location)}
        for name in names:
            if name not in known:
                connection.run("add_agent", {"name": name})


def numbers_of(connections: Connections) -> Mapping[str, int]:
    """The number of every agent of a store, by its name."""
    with connections.reading() as connection:
        return {each.name: each.agent for each in everyone(connection, connections.location)}


def copy_agent(
    source: Connections,
    target: Connections,
    name: str,
    tables: Sequence[str],
    *,
    numbers: tuple[Mapping[str, int], Mapping[str, int]],
) -> AgentCopy:
    """Copy what these tables hold of an agent, in one transaction; one that is there already is compared.

    `numbers` are those of all agents in both stores. Raises InvalidInput where the target holds something
    else of the agent, and StoreError where the copy differs; then nothing of it is stored.
    """
    theirs, ours = numbers
    with source.reading(name) as out:
        given = IdMap.of(out, name, theirs)
        rows, digest = digest_of(out, given, tables)
        with target.writing(name) as into:
            present = IdMap.of(into, name, ours)
            if not _has_none(into, present, tables):
                if digest_of(into, present, tables)[1] != digest:
                    raise _differs(name, target.location)
                return AgentCopy(agent=name, rows=rows, sha256=digest, was_there=True)
            if "memories" in tables:
                present = begin(out, given, into, ours, name)
            for table in tables:
                put_in(into, present, table, taken_out(out, given, table))
            if digest_of(into, present, tables) != (rows, digest):
                raise StoreError(
                    f"What was copied of agent {name!r} to {target.location} isn't what {source.location} "
                    "holds, so nothing of it was stored. Run `germane db doctor` on both, and report this."
                )
    return AgentCopy(agent=name, rows=rows, sha256=digest, was_there=not rows)


def _has_none(connection: Connection, numbers: IdMap, tables: Sequence[str]) -> bool:
    if "memories" in tables:
        return is_empty(connection, numbers.agent)
    return not any(next(taken_out(connection, numbers, table), None) for table in tables)


def _differs(name: str, location: str) -> InvalidInput:
    return InvalidInput(
        f"Agent {name!r} is in {location} already, with other contents, and a copy never mixes two. "
        "Copy to another store, name other agents, or export and import to unite them."
    )


# Copies all that a store holds of one agent into another store, row by row, whatever either is kept in.
#
# Numbers are a store's own: those of agents, sets and conversations are given anew, and what is made of
# them with it. In between, a row names things by their names; so two stores that hold the same give the
# same digest.

_ROWS_AT_ONCE: Final = 1000
_CONVERSATION_SHIFT: Final = 32

# What a column holds where that isn't a value of its own.
_OWNER, _AGENT, _SET, _CONVERSATION, _MESSAGE, _MEMORY, _MEMORY_OF_ANY = (
    *("the agent itself", "an agent", "a working set", "a conversation", "a message"),
    *("a memory of the agent's", "a memory of any agent's"),
)
_HOLDS: Final[Mapping[str, str]] = {
    "agent": _OWNER,
    "space": _OWNER,
    "by": _AGENT,
    "member": _AGENT,
    "working_set": _SET,
    "conversation": _CONVERSATION,
    "num": _MEMORY,
    "other": _MEMORY,
}
_HOLDS_ELSE: Final[Mapping[tuple[str, str], str]] = {
    ("members", "agent"): _AGENT,
    ("messages", "num"): _MESSAGE,
    ("message_lex", "num"): _MESSAGE,
    ("assembled", "num"): _MEMORY_OF_ANY,
}

# Made from the messages, where it is needed first: two stores hold the same with it or without.
_DERIVED: Final = frozenset({"message_lex"})

# What was assembled may name memories of spaces, so those of all agents have to be there before.
_LAST: Final = ("assemblies", "assembled")

PARTS: Final = (tuple(each for each in TABLES if each not in _LAST), _LAST)
"""The tables that are copied in one transaction, and those that come after all agents have these."""


class _State(NamedTuple):
    """The counters and settings of an agent."""

    seq: int
    memories: int
    terms: int
    language: str
    learning: int
    judged: int
    moved: int
    attested: int
    lived: int


class _Set(NamedTuple):
    """A working set."""

    working_set: int
    name: str
    max_tokens: int
    moved: int


class _Conversation(NamedTuple):
    """A conversation."""

    conversation: int
    session: str
    said: int
    revision: int
    opened: str | None


@dataclass(slots=True)
class IdMap:
    """The numbers of one store for one agent, by the names of things, and back."""

    agent: int
    agents: Mapping[str, int]
    sets: dict[str, int] = field(default_factory=dict)
    conversations: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: Connection, name: str, agents: Mapping[str, int]) -> IdMap:
        """Those that a store has given; `agents` are its agents by name."""
        number = agents[name]
        return cls(
            agent=number,
            agents=agents,
            sets={each.name: each.working_set for each in _sets(connection, number)},
            conversations={each.session: each.conversation for each in _conversations(connection, number)},
        )


def begin(
    source: Connection, given: IdMap, target: Connection, agents: Mapping[str, int], name: str
) -> IdMap:
    """Give an agent its sets, conversations and counters in another store, and return the numbers there."""
    agent = {"agent": agents[name]}
    sets, talks = _sets(source, given.agent), _conversations(source, given.agent)
    for each in sets:
        target.run("add_working_set", {**agent, "set_name": each.name, "max_tokens": each.max_tokens})
    for talk in talks:
        target.run("add_conversation", {"agent": name, "session": talk.session})
    numbers = IdMap.of(target, name, agents)
    for each in sets:
        target.run("advance_set", {**agent, "working_set": numbers.sets[each.name], "number": each.moved})
    for talk in talks:
        here = {"conversation": numbers.conversations[talk.session]}
        target.run("advance_conversation", {**talk._asdict(), **agent, **here})
    target.run("carry_state", {**agent, **_state(source, given.agent)._asdict()})
    return numbers


def taken_out(connection: Connection, numbers: IdMap, table: str) -> Iterator[tuple[Any, ...]]:
    """The agent's rows of a table in their order, with names where the store has numbers."""
    names = _Names(
        agents={number: name for name, number in numbers.agents.items()},
        sets={number: name for name, number in numbers.sets.items()},
        conversations={number: name for name, number in numbers.conversations.items()},
    )
    held = _held(table)
    rows = connection.run(f"carried_{table}", {"agent": numbers.agent, "space": numbers.agent})
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        for row in some:
            yield tuple(
                value if what is None or value is None else names.named(what, value)
                for what, value in zip(held, row, strict=True)
            )


def put_in(connection: Connection, numbers: IdMap, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
    """Store rows that `taken_out` gave, and return how many."""
    held = _held(table)
    count, rest = 0, iter(rows)
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        numbered = [
            tuple(
                value
                if what is None or (value is None and what != _OWNER)
                else _numbered(numbers, what, value)
                for what, value in zip(held, row, strict=True)
            )
            for row in some
        ]
        connection.many(f"carry_{table}", numbered)
        count += len(some)
    return count


def digest_of(connection: Connection, numbers: IdMap, tables: Sequence[str]) -> tuple[int, str]:
    """How many rows an agent has in these tables, and the SHA-256 of all that they say that isn't derived."""
    count, digest = 0, hashlib.sha256()
    if "memories" in tables:
        digest.update(repr(tuple(_state(connection, numbers.agent))).encode())
        digest.update(repr(_frames(connection, numbers)).encode())
    for table in tables:
        rows = taken_out(connection, numbers, table)
        if table in _DERIVED:
            count += sum(1 for _ in rows)
            continue
        digest.update(table.encode())
        for row in rows:
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
            count += 1
    return count, digest.hexdigest()


def is_empty(connection: Connection, agent: int) -> bool:
    """Whether a store holds nothing of an agent but its name."""
    state = _state(connection, agent)
    if state.seq or state.memories or state.terms:
        return False
    names = ("carried_working_sets", "carried_conversations", "carried_spaces", "carried_assemblies")
    values = {"agent": agent, "space": agent}
    return not any(connection.run(name, values).fetchone() for name in names)


def _held(table: str) -> tuple[str | None, ...]:
    """What each column of a table holds; None for a value of its own."""
    return tuple(_HOLDS_ELSE.get((table, name), _HOLDS.get(name)) for name in TABLES[table].columns)


def _state(connection: Connection, agent: int) -> _State:
    return _State._make(connection.run("carried_state", {"agent": agent}).fetchone())


def _sets(connection: Connection, agent: int) -> list[_Set]:
    return list(map(_Set._make, connection.run("carried_working_sets", {"agent": agent})))


def _conversations(connection: Connection, agent: int) -> list[_Conversation]:
    return list(map(_Conversation._make, connection.run("carried_conversations", {"agent": agent})))


def _frames(connection: Connection, numbers: IdMap) -> list[Any]:
    """The sets and the conversations themselves, without their numbers."""
    sets = [(each.name, each.max_tokens, each.moved) for each in _sets(connection, numbers.agent)]
    talks = _conversations(connection, numbers.agent)
    return [*sets, *((each.session, each.said, each.revision, each.opened) for each in talks)]


@dataclass(slots=True, frozen=True)
class _Names:
    agents: Mapping[int, str]
    sets: Mapping[int, str]
    conversations: Mapping[int, str]

    def named(self, what: str, value: int) -> Any:
        """What a number stands for."""
        if what == _OWNER:
            return None
        if what == _AGENT:
            return self.agents[value]
        if what == _SET:
            return self.sets[value]
        if what == _CONVERSATION:
            return self.conversations[value]
        if what == _MESSAGE:
            return self.conversations[value >> _CONVERSATION_SHIFT], value & ((1 << _CONVERSATION_SHIFT) - 1)
        within = value & ((1 << AGENT_SHIFT) - 1)
        return (self.agents[value >> AGENT_SHIFT], within) if what == _MEMORY_OF_ANY else within


def _numbered(numbers: IdMap, what: str, value: Any) -> int:
    """The number that this store gives to what a value names."""
    if what == _OWNER:
        return numbers.agent
    if what == _AGENT:
        return numbers.agents[value]
    if what == _SET:
        return numbers.sets[value]
    if what == _CONVERSATION:
        return numbers.conversations[value]
    if what == _MESSAGE:
        session, number = value
        return (numbers.conversations[session] << _CONVERSATION_SHIFT) + int(number)
    owner, within = numbers.agent, value
    if what == _MEMORY_OF_ANY:
        name, within = value
        owner = numbers.agents[name]
    # 0 stands for all memories of an agent.
    return (owner << AGENT_SHIFT) + int(within) if within else 0


# The agents of a store with their figures, as far as who asks may see them.


def listed(connections: Connections) -> tuple[AgentFigures, ...]:
    """Every agent, in the order in which they first wrote; none whose removal has begun.

    Names can be seen by all. Where policies keep the rest from who asks, the figures are None.
    """
    with connections.reading() as connection:
        agents = list(map(ListedAgent._make, connection.run("agents")))
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


# Removes a whole agent: first its name, at once, then all that is kept of it, in batches.
#
# From the moment on in which an agent has the name of one that is being removed nobody finds it, and
# whoever writes under its old name begins a new agent. What is left to do shows in that name, so whoever
# removes next goes on with it.
#
# What an agent did in spaces stays there, in the space's own name. Only members act in what isn't theirs, so
# nothing of it is anywhere else.

BATCHES: Final = (
    "remove_assemblies",
    "remove_memories",
    "remove_messages",
    "remove_conversations",
    "remove_changes",
    "remove_moves",
)
"""What is removed in batches, in this order: each with what its foreign keys take along."""


def shared_by(
    connections: Connections, name: str, at: datetime
) -> tuple[tuple[SpaceInfo, ...], tuple[SpaceInfo, ...]]:
    """The spaces that an agent has to leave, and those that go with it since nobody else is in them.

    Raises LastActive where others are in a space, and none of them could lead it.
    """
    with connections.reading(name) as connection:
        tenants = connection.run("spaces_of", {"name": name}).fetchall()
        spaces = [required_space(connection, space_of(tenant)).info for (tenant,) in tenants]
    ends = tuple(space for space in spaces if len(space.members) == 1)
    leaves = tuple(space for space in spaces if len(space.members) > 1)
    for space in leaves:
        decide(space.name, space, Leave(agent=name, by=name, at=at))
    return leaves, ends


def rename(connections: Connections, name: str, *, only_member: str | None = None) -> bool:
    """Take an agent's name away, if it is in no space; whether there is none of that name any more.

    With `only_member` it is a space's, and taken away if nobody else is in it.
    """
    with connections.writing(name) as connection:
        row = connection.run("number", {"name": name}).fetchone()
        if row is None:
            return True
        (number,) = row
        members = {member for member, *_ in connection.run("members", {"space": number})}
        if members - {only_member} or connection.run("spaces_of", {"name": name}).fetchall():
            return False
        connection.run("remove_members", {"space": number})
        connection.run("rename_agent", {"agent": number, "name": removed_name(number)})
        connections.note_purge(connection, "agent")
    return True


def left_over(connections: Connections) -> dict[int, int]:
    """The agents whose removal has begun: how many rows there are of each to remove in batches."""
    with connections.reading() as connection:
        numbers = [
            each.agent for each in all_of_them(connection, connections.location) if is_removed(each.name)
        ]
        counts = (connection.run("count_rows", {"agent": each}).fetchone() for each in numbers)
        return {number: int(count) for number, (count,) in zip(numbers, counts, strict=True)}


def others_spaces(connections: Connections, agent: int) -> tuple[str, ...]:
    """The spaces in which an agent may have done something, by the names of their agents."""
    with connections.reading() as connection:
        rows = connection.run("every_space").fetchall()
        return tuple(
            name
            for space, name in rows
            if space != agent
            and connection.run("has_acted", {"space": space, "agent": space, "gone": agent}).fetchone()[0]
        )


def disown(connections: Connections, tenant: str, agent: int) -> None:
    """Let what an agent did in a space be the space's own doing."""
    with connections.writing(tenant) as connection:
        for (number,) in connection.run("number", {"name": tenant}).fetchall():
            connection.run("disown_events", {"space": number, "gone": agent})
            connection.run("disown_moves", {"agent": number, "gone": agent})
            connection.run("disown_life_events", {"agent": number, "gone": agent})


def remove_some(connections: Connections, agent: int, batch: str) -> int:
    """Remove one batch of an agent's rows, and return how many; 0 where none are left."""
    with connections.writing(removed_name(agent)) as connection:
        if batch == "remove_memories" and connection.run("is_space", {"space": agent}).fetchone()[0]:
            return _take_back(connection, agent)
        return len(connection.run(batch, {"agent": agent, "most": _ROWS_AT_ONCE}).fetchall())


def remove_row(connections: Connections, agent: int) -> None:
    """Remove what is left of an agent once there are no rows of it to remove in batches any more."""
    with connections.writing(removed_name(agent)) as connection:
        connection.run("remove_working_sets", {"agent": agent})
        connection.run("remove_memberships", {"agent": agent})
        for each in ("remove_members", "remove_events", "remove_space"):
            connection.run(each, {"space": agent})
        connections.note_purge(connection, "agent")
        connection.run("retire_number", {"agent": agent})
        connection.run("remove_agent", {"agent": agent})


def _take_back(connection: Connection, agent: int) -> int:
    """Remove some memories of a space, also from what others assembled with them."""
    nums = connection.run("some_memories", {"agent": agent, "most": _ROWS_AT_ONCE}).fetchall()
    for (num,) in nums:
        connection.run("purge_memory", {"agent": agent, "num": num})
    return len(nums)
