"""Copies all that a store holds of one agent into another store, row by row, whatever either is kept in.

Level: stores (imports model). Numbers are a store's own: those of agents, sets and conversations are given
anew, and what is made of them with it. In between, a row names things by their names; so two stores that hold
the same give the same digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import AGENT_SHIFT
from germane.stores.sql.tables import TABLES

__all__ = ["PARTS", "Carried", "begin", "digest_of", "is_empty", "put_in", "taken_out"]

_ROWS_AT_ONCE: Final = 1000
_TALK_SHIFT: Final = 32

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
class Carried:
    """The numbers of one store for one agent, by the names of things, and back."""

    agent: int
    agents: Mapping[str, int]
    sets: dict[str, int] = field(default_factory=dict)
    talks: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: Connection, name: str, agents: Mapping[str, int]) -> Carried:
        """Those that a store has given; `agents` are its agents by name."""
        number = agents[name]
        return cls(
            agent=number,
            agents=agents,
            sets={each.name: each.working_set for each in _sets(connection, number)},
            talks={each.session: each.conversation for each in _conversations(connection, number)},
        )


def begin(
    source: Connection, given: Carried, target: Connection, agents: Mapping[str, int], name: str
) -> Carried:
    """Give an agent its sets, conversations and counters in another store, and return the numbers there."""
    agent = {"agent": agents[name]}
    sets, talks = _sets(source, given.agent), _conversations(source, given.agent)
    for each in sets:
        target.run("add_working_set", {**agent, "set_name": each.name, "max_tokens": each.max_tokens})
    for talk in talks:
        target.run("add_conversation", {"agent": name, "session": talk.session})
    numbers = Carried.of(target, name, agents)
    for each in sets:
        target.run("advance_set", {**agent, "working_set": numbers.sets[each.name], "number": each.moved})
    for talk in talks:
        here = {"conversation": numbers.talks[talk.session]}
        target.run("advance_conversation", {**talk._asdict(), **agent, **here})
    target.run("carry_state", {**agent, **_state(source, given.agent)._asdict()})
    return numbers


def taken_out(connection: Connection, numbers: Carried, table: str) -> Iterator[tuple[Any, ...]]:
    """The agent's rows of a table in their order, with names where the store has numbers."""
    names = _Names(
        agents={number: name for name, number in numbers.agents.items()},
        sets={number: name for name, number in numbers.sets.items()},
        talks={number: name for name, number in numbers.talks.items()},
    )
    held = _held(table)
    rows = connection.run(f"carried_{table}", {"agent": numbers.agent, "space": numbers.agent})
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        for row in some:
            yield tuple(
                value if what is None or value is None else names.named(what, value)
                for what, value in zip(held, row, strict=True)
            )


def put_in(connection: Connection, numbers: Carried, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
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


def digest_of(connection: Connection, numbers: Carried, tables: Sequence[str]) -> tuple[int, str]:
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


def _frames(connection: Connection, numbers: Carried) -> list[Any]:
    """The sets and the conversations themselves, without their numbers."""
    sets = [(each.name, each.max_tokens, each.moved) for each in _sets(connection, numbers.agent)]
    talks = _conversations(connection, numbers.agent)
    return [*sets, *((each.session, each.said, each.revision, each.opened) for each in talks)]


@dataclass(slots=True, frozen=True)
class _Names:
    agents: Mapping[int, str]
    sets: Mapping[int, str]
    talks: Mapping[int, str]

    def named(self, what: str, value: int) -> Any:
        """What a number stands for."""
        if what == _OWNER:
            return None
        if what == _AGENT:
            return self.agents[value]
        if what == _SET:
            return self.sets[value]
        if what == _CONVERSATION:
            return self.talks[value]
        if what == _MESSAGE:
            return self.talks[value >> _TALK_SHIFT], value & ((1 << _TALK_SHIFT) - 1)
        within = value & ((1 << AGENT_SHIFT) - 1)
        return (self.agents[value >> AGENT_SHIFT], within) if what == _MEMORY_OF_ANY else within


def _numbered(numbers: Carried, what: str, value: Any) -> int:
    """The number that this store gives to what a value names."""
    if what == _OWNER:
        return numbers.agent
    if what == _AGENT:
        return numbers.agents[value]
    if what == _SET:
        return numbers.sets[value]
    if what == _CONVERSATION:
        return numbers.talks[value]
    if what == _MESSAGE:
        session, number = value
        return (numbers.talks[session] << _TALK_SHIFT) + int(number)
    owner, within = numbers.agent, value
    if what == _MEMORY_OF_ANY:
        name, within = value
        owner = numbers.agents[name]
    # 0 stands for all memories of an agent.
    return (owner << AGENT_SHIFT) + int(within) if within else 0
