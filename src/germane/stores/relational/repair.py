"""Repair of a store's rows: what is derived is made anew, and damaged memories and messages are set aside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from germane.errors import StoreUnavailable
from germane.ids import id_text
from germane.ledger import Damage, Finding, RepairReport
from germane.model.memory import Outcome, Status, Trust
from germane.model.query import EmbeddingIdentity
from germane.provenance import DAMAGED, QUARANTINE
from germane.scopes import further_places
from germane.stores.relational.checksums import CHECKED, checksum_of
from germane.stores.relational.conversation_records import MessageRow, message_of
from germane.stores.relational.damage import check_agent, is_record_intact, wrong_vectors
from germane.stores.relational.lifecycle import gone_from_sets
from germane.stores.relational.settings import everyone, reindex_agent, remove_embedding, stored_embedding
from germane.stores.relational.tables import (
    UNREADABLE,
    AgentRow,
    Connection,
    Connections,
    numbered_memory,
    span,
)
from germane.stores.sql import memory_columns

_COLUMNS: Final = (*memory_columns(), "successor")


def repair(connections: Connections, *, now: datetime) -> RepairReport:
    """Repair the rows of all agents in one transaction; agents without damage stay as they are."""
    losses = Losses([], [])
    found, left, pending = list[Finding](), list[Finding](), 0
    with connections.writing() as connection:
        embedding, damage = _embedding(connection)
        found += damage
        for each in everyone(connection, connections.location):
            (seq,) = connection.run("lock_agent", {"agent": each.agent}).fetchone()
            known = AgentRow._make(connection.run("agent", {"name": each.name}).fetchone())
            its = list(check_agent(connection, known))
            if its or damage:
                work = _AgentRepair(connection, known, each.name, now, losses)
                work.memories()
                work.vectors(embedding)
                work.messages()
                reindex_agent(connection, each.agent, seq, each.language)
                connection.run("set_agent_memories", {"agent": each.agent})
                left += check_agent(connection, known)
            found += its
            pending += connection.run("count_unembedded", span(each.agent)).fetchone()[0]
    return RepairReport(
        location=connections.location,
        found=tuple(found),
        set_aside=tuple(losses.set_aside),
        lost=tuple(losses.lost),
        left=tuple(left),
        pending=pending,
    )


class Losses(NamedTuple):
    """What a repair has set aside so far, and what is lost."""

    set_aside: list[Damage]
    lost: list[Damage]


def _embedding(connection: Connection) -> tuple[EmbeddingIdentity | None, list[Finding]]:
    """The model of the vectors; None, with a finding, where its name is damaged and was removed."""
    try:
        return stored_embedding(dict(connection.run("settings").fetchall())), []
    except (StoreUnavailable, *UNREADABLE) as error:
        remove_embedding(connection)
        remedy = "Make all vectors anew with `germane embedder use NAME`."
        return None, [Finding(code="embedding", text=str(error), remedy=remedy)]


class _AgentRepair:
    """The repair of one agent's rows."""

    def __init__(
        self, connection: Connection, known: AgentRow, name: str, now: datetime, losses: Losses
    ) -> None:
        self._connection = connection
        self._agent, self._language = known.agent, known.language or "english"
        self._name, self._now, self._losses = name, now, losses

    def memories(self) -> None:
        """Set damaged memories aside, and make tags and places anew from the others."""
        for num, chain in self._connection.run("half_memories", {"agent": self._agent}).fetchall():
            self._purge(num, id_text(chain), "Its texts are gone.")
        tags, places = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        for row in self._records():
            try:
                num, memory = numbered_memory(row, self._name)
            except StoreUnavailable:
                num, sound = self._set_aside(row)
                if sound is None:
                    continue
                memory = sound
            tags += [(self._agent, tag, num) for tag in memory.tags]
            places += [(self._agent, place, num) for place in further_places(memory)]
        for remove, insert, rows in (
            ("remove_tags", "insert_tag", tags),
            ("remove_places", "insert_place", places),
        ):
            self._connection.run(remove, {"agent": self._agent})
            if rows:
                self._connection.many(insert, rows)

    def vectors(self, embedding: EmbeddingIdentity | None) -> None:
        """Let the memories with damaged vectors wait for new ones."""
        place = span(self._agent)
        if embedding is None:
            self._connection.run("purge_vectors", place)
            self._connection.run("insert_all_unembedded", place)
            self._connection.run("drop_message_vectors", {"agent": self._agent})
            return
        wrong = wrong_vectors(self._connection, self._agent, embedding.dimension)
        for num in wrong:
            self._connection.run("remove_vector", {"num": num, "agent": self._agent})
        self._connection.run("remove_embedded", span(self._agent))
        if wrong:
            self._connection.many("insert_unembedded", [(num, self._agent) for num in wrong])

    def messages(self) -> None:
        """Hide the groups of damaged messages, remove unreadable ones, and forget damaged records."""
        place, changed = {"agent": self._agent, "above": 0}, False
        while rows := list(map(MessageRow._make, self._connection.run("message_rows", place))):
            nums = {"agent": self._agent, "nums": json.dumps([row.num for row in rows])}
            stored = {num: record for num, *record in self._connection.run("message_records", nums)}
            for row in rows:
                if not row.is_intact or not _is_readable(row):
                    self._set_message_aside(row)
                elif row.num not in stored or is_record_intact(row, stored[row.num], self._language):
                    continue
                changed = True
                self._connection.run("remove_message_record", {"num": row.num, "agent": self._agent})
            place["above"] = rows[-1].num
        if changed:
            self._connection.run("unpack_messages", {"agent": self._agent})
            self._connection.run("renew_conversations", {"agent": self._agent})

    def _records(self) -> Iterator[tuple[Any, ...]]:
        place = span(self._agent)
        while rows := self._connection.run("forwards_to_renew", place).fetchall():
            nums = {"agent": self._agent, "nums": json.dumps([num for num, *_ in rows])}
            yield from self._connection.run("records", nums).fetchall()
            if rows[-1][0] <= place["above"]:
                return  # Not in the order of their numbers, which only a new file mends.
            place["above"] = rows[-1][0]

    def _set_aside(self, row: Iterable[Any]) -> tuple[int, Any]:
        """Take a damaged memory out of results; its number, and the memory unless it had to be removed."""
        values = dict(zip(_COLUMNS, row, strict=True))
        num = values["num"]
        if values["version"] == 1:
            # What begins a chain has its id, so that damage of either is known.
            (values["chain"], *_) = self._connection.run(
                "edge", {"agent": self._agent, "num": num}
            ).fetchone()
            with suppress(StoreUnavailable):
                memory = numbered_memory(tuple(values.values()), self._name)[1]
                self._connection.run("set_aside_memory", {**values, "agent": self._agent})
                return num, memory
        metadata, tags = _parsed(values["metadata"], dict), _parsed(values["tags"], list)
        values["metadata"] = json.dumps({**metadata, QUARANTINE: {"rules": [DAMAGED]}}, ensure_ascii=False)
        values["tags"] = json.dumps([each for each in tags if isinstance(each, str)], ensure_ascii=False)
        values["trust"] = _word(Trust, values["trust"], Trust.EXTERNAL.value)
        values["outcome"] = values["outcome"] and _word(Outcome, values["outcome"], None)
        if values["status"] != Status.SUPERSEDED.value:
            values["status"] = Status.FORGOTTEN.value
        values["checksum"] = checksum_of(tuple([values[name] for name in CHECKED]))
        memory_id = id_text(values["chain"])
        try:
            _, memory = numbered_memory(tuple(values.values()), self._name)
        except (StoreUnavailable, *UNREADABLE) as error:
            self._purge(num, memory_id, f"It can't be read: {error}")
            return num, None
        for query in ("set_aside_memory", "set_aside_texts"):
            self._connection.run(query, {**values, "agent": self._agent})
        gone_from_sets(self._connection, self._agent, num, "forget", at=self._now)
        text = f"It differs from its checksum. Its content reads now: {memory.content}"
        self._losses.set_aside.append(Damage(what="memory", agent=self._name, id=memory_id, text=text))
        return num, memory

    def _purge(self, num: int, memory_id: str, why: str) -> None:
        self._connection.run("purge_memory", {"num": num, "agent": self._agent})
        self._losses.lost.append(Damage(what="memory", agent=self._name, id=memory_id, text=why))

    def _set_message_aside(self, row: MessageRow) -> None:
        if not _is_readable(row):
            self._connection.run("remove_message", {"num": row.num, "agent": self._agent})
            text = f"Its parts can't be read: {row.parts}"
            self._losses.lost.append(Damage(what="message", agent=self._name, id=id_text(row.id), text=text))
            return
        values = {"num": row.num, "agent": self._agent, "checksum": row.sealed().checksum}
        self._connection.run("seal_message", values)
        if row.group_name is not None:
            group = {"conversation": row.conversation, "group_name": row.group_name, "hidden": 1}
            self._connection.run("hide_group", {"agent": self._agent, **group})
        text = f"It differs from its checksum. Its parts read now: {row.parts}"
        self._losses.set_aside.append(Damage(what="message", agent=self._name, id=id_text(row.id), text=text))


def _is_readable(row: MessageRow) -> bool:
    try:
        message_of(row._replace(checksum=None), "", "")
    except (StoreUnavailable, *UNREADABLE):
        return False
    return True


def _parsed(text: str, kind: type[Any]) -> Any:
    """The value of a JSON text of this type, or an empty one for what can't be read."""
    try:
        found = json.loads(text)
    except UNREADABLE:
        return kind()
    return found if isinstance(found, kind) else kind()


def _word(words: type[Any], value: str, otherwise: str | None) -> str | None:
    return value if value in {each.value for each in words} else otherwise
