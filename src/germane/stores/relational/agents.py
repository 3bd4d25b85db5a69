"""Whole agents in tables: listed, copied to another store, and removed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from germane.errors import EmbedderMismatch, InvalidInput, StoreError
from germane.ledger import AgentFigures
from germane.model.text import is_removed, removed_name
from germane.spaces import Leave, SpaceInfo, decide
from germane.stores.relational.settings import (
    EVERY_REPLY,
    ListedAgent,
    all_of_them,
    everyone,
    pack_agent,
    store_embedding,
    stored_embedding,
)
from germane.stores.relational.spaces import required_space, spaces_of
from germane.stores.relational.tables import AGENT_SHIFT, Connection, Connections, moment
from germane.stores.sql import agent_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCopy:
    """What became of an agent: how many rows it has, their digest, and whether nothing was left to copy."""

    agent: str
    rows: int
    sha256: str
    was_there: bool


def settle_names(source: Connections, target: Connections) -> None:
    """Make the source's agents and the model of its vectors known to the target, before anything is copied.

    Agents whose removal has begun count as removed. Raises EmbedderMismatch where another model has made the
    target's vectors.
    """
    with source.reading() as connection:
        wanted = stored_embedding(dict(connection.run("settings").fetchall()))
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
    """The number of every agent of a store, by its name, with those whose removal has begun."""
    with connections.reading() as connection:
        return {each.name: each.agent for each in all_of_them(connection, connections.location)}


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
        given = _Numbers(out, name, theirs)
        rows, digest = _digest(out, given, tables)
        with target.writing(name) as into:
            present = _Numbers(into, name, ours)
            if not _has_none(into, present, tables):
                if _digest(into, present, tables)[1] != digest:
                    raise _differs(name, target.location)
                return AgentCopy(agent=name, rows=rows, sha256=digest, was_there=True)
            if "memories" in tables:
                _begin(given, into, ours, name)
                present = _Numbers(into, name, ours)
            for table in tables:
                _insert(into, present, table, _rows_of(out, given, table))
            if _digest(into, present, tables) != (rows, digest):
                raise StoreError(
                    f"What was copied of agent {name!r} to {target.location} isn't what {source.location} "
                    "holds, so nothing of it was stored. Run `germane db doctor` on both, and report this."
                )
            if "lex" in tables:
                pack_agent(into, present.agent)
    return AgentCopy(agent=name, rows=rows, sha256=digest, was_there=not rows)


def _has_none(connection: Connection, numbers: _Numbers, tables: Sequence[str]) -> bool:
    if "memories" in tables:
        return _is_empty(connection, numbers)
    return not any(next(_rows_of(connection, numbers, table), None) for table in tables)


def _differs(name: str, location: str) -> InvalidInput:
    return InvalidInput(
        f"Agent {name!r} is in {location} already, with other contents, and a copy never mixes two. "
        "Copy to another store, name other agents, or export and import to unite them."
    )


# Copies all that a store holds of one agent into another store, row by row, between any two databases.
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

# Numbers that are made of another number and a shift of that.
_WITHIN: Final[Mapping[str, tuple[str, int]]] = {
    _MESSAGE: (_CONVERSATION, _CONVERSATION_SHIFT),
    _MEMORY: (_OWNER, AGENT_SHIFT),
    _MEMORY_OF_ANY: (_AGENT, AGENT_SHIFT),
}

# Made from the messages, where it is needed first: two stores hold the same with it or without.
_DERIVED: Final = frozenset({"message_lex"})

_BY_CONTEXT: Final = ("shown", "outcomes")

# What was assembled may name memories of spaces, so those of all agents have to be there before.
_LAST: Final = ("assemblies", "assembled")

PARTS: Final = (tuple(each for each in agent_tables() if each not in _LAST), _LAST)
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


class _Numbers:
    """The numbers of one store for one agent, its working sets and its conversations, by their names."""

    def __init__(self, connection: Connection, name: str, agents: Mapping[str, int]) -> None:
        """`agents` are the numbers of all agents of the store by name."""
        self.name = name
        self.agent = agents[name]
        self.removed = {number for name, number in agents.items() if is_removed(name)}
        self.state = _State._make(connection.run("carried_state", {"agent": self.agent}).fetchone())
        sets = connection.run("carried_working_sets", {"agent": self.agent})
        self.sets = {each.name: each for each in map(_Set._make, sets)}
        conversations = connection.run("carried_conversations", {"agent": self.agent})
        self.conversations = {each.session: each for each in map(_Conversation._make, conversations)}
        self._by_name: dict[str, Mapping[Any, int]] = {
            _AGENT: agents,
            _SET: {each.name: each.working_set for each in self.sets.values()},
            _CONVERSATION: {each.session: each.conversation for each in self.conversations.values()},
        }
        self._by_number = {
            what: {number: name for name, number in numbers.items()}
            for what, numbers in self._by_name.items()
        }

    def name_of(self, what: str, number: int) -> Any:
        """The name of what a number of this store stands for, which is the same in every store."""
        if what == _OWNER:
            return None
        if what == _AGENT and number in self.removed:
            # As `_disown` would leave it.
            return self.name
        if what not in _WITHIN:
            return self._by_number[what][number]
        of, shift = _WITHIN[what]
        within = number & ((1 << shift) - 1)
        return within if of == _OWNER else (self._by_number[of][number >> shift], within)

    def number_of(self, what: str, name: Any) -> int:
        """The number that this store gives to what a name stands for."""
        if what == _OWNER:
            return self.agent
        if what not in _WITHIN:
            return self._by_name[what][name]
        of, shift = _WITHIN[what]
        if of == _OWNER:
            # 0 stands for all memories of an agent.
            return (self.agent << shift) + int(name) if name else 0
        container, within = name
        return (self._by_name[of][container] << shift) + int(within)


def _begin(source: _Numbers, target: Connection, agents: Mapping[str, int], name: str) -> None:
    """Give an agent its sets, conversations and counters in another store."""
    agent = {"agent": agents[name]}
    for each in source.sets.values():
        target.run("add_working_set", {**agent, "set_name": each.name, "max_tokens": each.max_tokens})
    for session in source.conversations:
        target.run("add_conversation", {"agent": name, "session": session})
    numbers = _Numbers(target, name, agents)
    for each in source.sets.values():
        here = {"working_set": numbers.sets[each.name].working_set, "number": each.moved}
        target.run("advance_set", {**agent, **here})
    for session, conversation in source.conversations.items():
        number = {"conversation": numbers.conversations[session].conversation}
        target.run("advance_conversation", {**conversation._asdict(), **agent, **number})
    target.run("carry_state", {**agent, **source.state._asdict()})


def _rows_of(connection: Connection, numbers: _Numbers, table: str) -> Iterator[tuple[Any, ...]]:
    """The agent's rows of a table in their order, with names in place of the store's numbers."""
    references = _references(table)
    for row in _without_removed(connection, numbers, table):
        yield tuple(
            value if what is None or value is None else numbers.name_of(what, value)
            for what, value in zip(references, row, strict=True)
        )


def _stored_rows(connection: Connection, numbers: _Numbers, table: str) -> Iterator[tuple[Any, ...]]:
    rows = connection.run(f"carried_{table}", {"agent": numbers.agent, "space": numbers.agent})
    if table in _BY_CONTEXT:
        # An encrypted store has them in another order.
        context, num = map(agent_tables()[table].columns.index, ("context", "num"))
        yield from sorted(rows, key=itemgetter(context, num))
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        yield from some


def _without_removed(connection: Connection, numbers: _Numbers, table: str) -> Iterator[tuple[Any, ...]]:
    """The rows as they will be once every removal that has begun is done: see `purge_memory`."""
    if table not in _LAST or not numbers.removed:
        yield from _stored_rows(connection, numbers, table)
        return
    num, number, reason = map(agent_tables()["assembled"].columns.index, ("num", "number", "reason"))
    sha256, own = map(agent_tables()["assemblies"].columns.index, ("sha256", "number"))
    assembled = tuple(_stored_rows(connection, numbers, "assembled"))
    gone = {row for row in assembled if row[num] >> AGENT_SHIFT in numbers.removed}
    if table == "assembled":
        yield from (row for row in assembled if row not in gone)
        return
    withheld = {row[number] for row in gone if row[reason] is None}
    for row in _stored_rows(connection, numbers, table):
        yield (*row[:sha256], None, *row[sha256 + 1 :]) if row[own] in withheld else row


def _insert(connection: Connection, numbers: _Numbers, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Store rows that `_rows_of` gave."""
    references, rest = _references(table), iter(rows)
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        numbered = [
            tuple(
                value
                if what is None or (value is None and what != _OWNER)
                else numbers.number_of(what, value)
                for what, value in zip(references, row, strict=True)
            )
            for row in some
        ]
        connection.many(f"carry_{table}", numbered)


def _digest(connection: Connection, numbers: _Numbers, tables: Sequence[str]) -> tuple[int, str]:
    """How many rows an agent has in these tables, and the SHA-256 of all that they say that isn't derived."""
    count, digest = 0, hashlib.sha256()
    if "memories" in tables:
        sets, conversations = numbers.sets.values(), numbers.conversations.values()
        # Without the numbers of this store, which come first.
        frames = [*(each[1:] for each in sets), *(each[1:] for each in conversations)]
        digest.update(repr(tuple(numbers.state)).encode())
        digest.update(repr(frames).encode())
    for table in tables:
        rows = _rows_of(connection, numbers, table)
        if table in _DERIVED:
            count += sum(1 for _ in rows)
            continue
        digest.update(table.encode())
        for row in rows:
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
            count += 1
    return count, digest.hexdigest()


def _is_empty(connection: Connection, numbers: _Numbers) -> bool:
    """Whether a store holds nothing of an agent but its name."""
    state = numbers.state
    if state.seq or state.memories or state.terms or numbers.sets or numbers.conversations:
        return False
    values = {"agent": numbers.agent, "space": numbers.agent}
    return not any(
        connection.run(name, values).fetchone() for name in ("carried_spaces", "carried_assemblies")
    )


def _references(table: str) -> tuple[str | None, ...]:
    """What each column of a table holds; None for a value of its own."""
    return tuple(_HOLDS_ELSE.get((table, name), _HOLDS.get(name)) for name in agent_tables()[table].columns)


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


# Removes a whole agent: first its name, at once, then all its rows, in batches.
#
# From the moment on in which an agent has the name of one that is being removed nobody finds it, and
# whoever writes under its old name begins a new agent. What is left to do shows in that name, so whoever
# removes next goes on with it.
#
# What an agent did in spaces stays there, in the space's own name from the same moment on. Only members act
# in what isn't theirs, so nothing of it is anywhere else, and an agent that is in no space can't add to it.

BATCHES: Final = (
    *("assemblies", "learning_runs", "memories", "messages"),
    *("conversations", "changes", "moves"),
)
"""The tables whose rows are removed in batches, in this order, each with what its foreign keys take along."""


def shared_by(
    connections: Connections, name: str, at: datetime
) -> tuple[tuple[SpaceInfo, ...], tuple[SpaceInfo, ...]]:
    """The spaces that an agent has to leave, and those that go with it since nobody else is in them.

    Raises LastActive where others are in a space, and none of them could lead it.
    """
    with connections.reading(name) as connection:
        spaces = [required_space(connection, each).info for each in spaces_of(connection, name)]
    ends = tuple(space for space in spaces if len(space.members) == 1)
    leaves = tuple(space for space in spaces if len(space.members) > 1)
    for space in leaves:
        decide(space.name, space, Leave(agent=name, by=name, at=at))
    return leaves, ends


def rename(connections: Connections, name: str, *, only_member: str | None = None) -> bool:
    """Take an agent's name away, if it is in no space; whether there is none of that name any more.

    In the same transaction what it did in spaces becomes the spaces' own doing. With `only_member` it is a
    space's name, and taken away if nobody else is in it.
    """
    with connections.writing(name) as connection:
        row = connection.run("number", {"name": name}).fetchone()
        if row is None:
            return True
        (number,) = row
        members = {member for member, *_ in connection.run("members", {"space": number})}
        if members - {only_member} or spaces_of(connection, name):
            return False
        connection.run("remove_members", {"space": number})
        _disown(connection, number)
        connection.run("rename_agent", {"agent": number, "name": removed_name(number)})
        # Of an encrypted store nobody can read from here on what is left of it.
        connection.run("remove_data_key", {"agent": number})
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


def disown(connections: Connections, agent: int) -> None:
    """Do what `rename` does in spaces for an agent that an earlier version renamed without it."""
    with connections.writing(removed_name(agent)) as connection:
        _disown(connection, agent)


def remove_some(connections: Connections, agent: int, table: str) -> int:
    """Remove one batch of an agent's rows of a table, and return how many; 0 where none are left."""
    with connections.writing(removed_name(agent)) as connection:
        if table == "memories" and connection.run("is_space", {"space": agent}).fetchone()[0]:
            return _take_back(connection, agent)
        return len(connection.run(f"remove_some_{table}", {"agent": agent, "most": _ROWS_AT_ONCE}).fetchall())


def remove_row(connections: Connections, agent: int) -> None:
    """Remove what is left of an agent once there are no rows of it to remove in batches any more."""
    with connections.writing(removed_name(agent)) as connection:
        connection.run("remove_working_sets", {"agent": agent})
        connection.run("remove_memberships", {"agent": agent})
        for each in ("remove_members", "remove_events", "remove_space"):
            connection.run(each, {"space": agent})
        connection.run("remove_replies", {"agent": agent, **EVERY_REPLY})
        connections.note_purge(connection, "agent")
        connection.run("retire_number", {"agent": agent})
        connection.run("remove_agent", {"agent": agent})


def _take_back(connection: Connection, agent: int) -> int:
    """Remove some memories of a space, also from what others assembled with them."""
    nums = connection.run("some_memories", {"agent": agent, "most": _ROWS_AT_ONCE}).fetchall()
    for (num,) in nums:
        connection.run("purge_memory", {"agent": agent, "num": num})
    return len(nums)


def _disown(connection: Connection, agent: int) -> None:
    """Let what an agent did in spaces be the spaces' own doing."""
    for space, _ in connection.run("every_space").fetchall():
        values = {"space": space, "agent": space, "gone": agent}
        if space != agent and connection.run("has_acted", values).fetchone()[0]:
            for each in ("disown_events", "disown_moves", "disown_life_events"):
                connection.run(each, values)
