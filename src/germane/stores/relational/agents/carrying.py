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
from typing import Any, Final

from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import AGENT_SHIFT

__all__ = ["PARTS", "Carried", "begin", "digest_of", "is_empty", "put_in", "taken_out"]

_ROWS_AT_ONCE: Final = 1000
_TALK_SHIFT: Final = 32

# What a column holds where that isn't a value of its own: o the agent itself, w some agent, n a memory of the
# agent's, m one of any agent's, s a working set, t a conversation, d a message.
_TABLES: Final[Mapping[str, tuple[str, str]]] = {
    "memories": ("no.......................", "insert_memory"),
    "texts": ("no..........", "insert_texts"),
    "tags": ("o.n", "insert_tag"),
    "places": ("o.n", "insert_place"),
    "lex": ("no...", "insert_lex"),
    "vectors": ("no.", "insert_vector"),
    "unembedded": ("no", "insert_unembedded"),
    "changes": ("o.n.", "insert_change"),
    "shown": ("o.n...", "carry_shown"),
    "outcomes": ("o.n....", "carry_outcomes"),
    "held": ("sno......", "carry_held"),
    "moves": ("o.s...w.", "insert_move"),
    "lives": ("no......", "carry_lives"),
    "life_events": ("o.n....wn.", "carry_life_events"),
    "messages": ("dot.........", "insert_message"),
    "message_lex": ("do....", "insert_message_lex"),
    "anchors": ("to..", "carry_anchors"),
    "spaces": ("o....", "carry_spaces"),
    "members": ("ow....", "carry_members"),
    "space_events": ("o..wn..w..", "carry_space_events"),
    "assemblies": ("o........", "carry_assemblies"),
    "assembled": ("o..m........", "carry_assembled"),
}

# Made from the messages, where it is needed first: two stores hold the same with it or without.
_DERIVED: Final = frozenset({"message_lex"})

# What was assembled may name memories of spaces, so those of all agents have to be there before.
_LAST: Final = ("assemblies", "assembled")

PARTS: Final = (tuple(each for each in _TABLES if each not in _LAST), _LAST)
"""The tables that are copied in one transaction, and those that come after all agents have these."""

_STATE: Final = ("seq", "memories", "terms", "language", "learning", "judged", "moved", "attested", "lived")


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
        values = {"agent": agents[name]}
        return cls(
            agent=agents[name],
            agents=agents,
            sets={row[2]: row[0] for row in connection.run("carried_working_sets", values)},
            talks={row[1]: row[0] for row in connection.run("carried_conversations", values)},
        )


def begin(
    source: Connection, given: Carried, target: Connection, agents: Mapping[str, int], name: str
) -> Carried:
    """Give an agent its sets, conversations and counters in another store, and return the numbers there."""
    agent = {"agent": agents[name]}
    sets = source.run("carried_working_sets", {"agent": given.agent}).fetchall()
    for _, _, set_name, max_tokens, _ in sets:
        target.run("add_working_set", {**agent, "set_name": set_name, "max_tokens": max_tokens})
    talks = source.run("carried_conversations", {"agent": given.agent}).fetchall()
    for _, session, *_ in talks:
        target.run("add_conversation", {"agent": name, "session": session})
    numbers = Carried.of(target, name, agents)
    for _, _, set_name, _, moved in sets:
        target.run("advance_set", {**agent, "working_set": numbers.sets[set_name], "number": moved})
    for _, session, said, revision, opened in talks:
        values = {
            "conversation": numbers.talks[session],
            "said": said,
            "revision": revision,
            "opened": opened,
        }
        target.run("advance_conversation", {**agent, **values})
    target.run("carry_state", {**agent, **dict(zip(_STATE, _state(source, given.agent), strict=True))})
    return numbers


def taken_out(connection: Connection, numbers: Carried, table: str) -> Iterator[tuple[Any, ...]]:
    """The agent's rows of a table in their order, with names where the store has numbers."""
    kinds, _ = _TABLES[table]
    names = _Names(
        agents={number: name for name, number in numbers.agents.items()},
        sets={number: name for name, number in numbers.sets.items()},
        talks={number: name for name, number in numbers.talks.items()},
    )
    rows = connection.run(f"carried_{table}", {"agent": numbers.agent, "space": numbers.agent})
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        for row in some:
            yield tuple(
                value if kind == "." or value is None else names.named(kind, value)
                for kind, value in zip(kinds, row, strict=True)
            )


def put_in(connection: Connection, numbers: Carried, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
    """Store rows that `taken_out` gave, and return how many."""
    kinds, query = _TABLES[table]
    count, rest = 0, iter(rows)
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        numbered = [
            tuple(
                value if kind == "." or (value is None and kind != "o") else _numbered(numbers, kind, value)
                for kind, value in zip(kinds, row, strict=True)
            )
            for row in some
        ]
        connection.many(query, numbered)
        count += len(some)
    return count


def digest_of(connection: Connection, numbers: Carried, tables: Sequence[str]) -> tuple[int, str]:
    """How many rows an agent has in these tables, and the SHA-256 of all that they say that isn't derived."""
    count, digest = 0, hashlib.sha256()
    if "memories" in tables:
        digest.update(repr(_state(connection, numbers.agent)).encode())
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
    names = ("carried_working_sets", "carried_conversations", "carried_spaces", "carried_assemblies")
    values = {"agent": agent, "space": agent}
    return not any(state[:3]) and not any(connection.run(name, values).fetchone() for name in names)


def _state(connection: Connection, agent: int) -> tuple[Any, ...]:
    return tuple(connection.run("carried_state", {"agent": agent}).fetchone())


def _frames(connection: Connection, numbers: Carried) -> list[Any]:
    """The sets and the conversations themselves, without their numbers."""
    values = {"agent": numbers.agent}
    sets = [row[2:] for row in connection.run("carried_working_sets", values)]
    return [*map(tuple, sets), *(tuple(row[1:]) for row in connection.run("carried_conversations", values))]


@dataclass(slots=True, frozen=True)
class _Names:
    agents: Mapping[int, str]
    sets: Mapping[int, str]
    talks: Mapping[int, str]

    def named(self, kind: str, value: int) -> Any:
        """What a number stands for."""
        if kind == "o":
            return None
        if kind == "w":
            return self.agents[value]
        if kind == "s":
            return self.sets[value]
        if kind == "t":
            return self.talks[value]
        if kind == "d":
            return self.talks[value >> _TALK_SHIFT], value & ((1 << _TALK_SHIFT) - 1)
        within = value & ((1 << AGENT_SHIFT) - 1)
        return (self.agents[value >> AGENT_SHIFT], within) if kind == "m" else within


def _numbered(numbers: Carried, kind: str, value: Any) -> int:
    """The number that this store gives to what a value names."""
    if kind == "o":
        return numbers.agent
    if kind in "wst":
        return {"w": numbers.agents, "s": numbers.sets, "t": numbers.talks}[kind][value]
    if kind == "d":
        session, number = value
        return (numbers.talks[session] << _TALK_SHIFT) + int(number)
    owner, within = (numbers.agents[value[0]], value[1]) if kind == "m" else (numbers.agent, value)
    # 0 stands for all memories of an agent.
    return (owner << AGENT_SHIFT) + int(within) if within else 0
