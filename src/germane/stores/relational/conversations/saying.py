"""Applies changes to one conversation inside one write transaction.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from germane.errors import InvalidInput, NotSaid
from germane.model.log import (
    Append,
    ConversationChange,
    PurgeMessages,
    RemoveGroup,
    RemoveMessage,
    SetAnchor,
    SetHidden,
)
from germane.model.message import Message, Provider, Role
from germane.stores.parts import packed_parts, unpacked_parts
from germane.stores.relational.connection import Connection, Rows
from germane.stores.relational.conversations.message_lex import is_indexed, record_of, row_of
from germane.stores.relational.rows import id_bytes, id_text, microseconds, moment, try_id_bytes
from germane.stores.sql.tables import MessageRow

__all__ = ["Saying", "Spoken", "message_of", "num_of", "number_of", "spoken", "spread"]

_SHIFT: Final = 32
_MASK: Final = (1 << _SHIFT) - 1
_ROLES: Final = {each.value: each for each in Role}
_PROVIDERS: Final = {each.value: each for each in Provider}


class Spoken(NamedTuple):
    """A conversation's row; numbers of 0 where it hasn't begun."""

    agent: int = 0
    conversation: int = 0
    said: int = 0
    revision: int = 0
    opened: str | None = None
    language: str = "english"


def spoken(connection: Connection, agent: str, session: str) -> Spoken:
    """What is stored of a conversation itself."""
    values = {"agent": agent, "session": session}
    row = connection.run("conversation", values).fetchone()
    return Spoken._make(row) if row else Spoken()


def spread(known: Spoken, *, above: int = 0) -> dict[str, int]:
    """The placeholders for the messages of a conversation after the number `above`."""
    first = known.conversation << _SHIFT
    return {"agent": known.agent, "above": first + above, "below": first + (1 << _SHIFT)}


def number_of(num: int) -> int:
    """The number within its conversation of the message that a num stands for."""
    return num & _MASK


def num_of(known: Spoken, number: int) -> int:
    """The num of the message that has this number within its conversation."""
    return (known.conversation << _SHIFT) + number


def message_of(row: Sequence[Any], agent: str, session: str) -> Message:
    """The message of a row; the names of its agent and session aren't in it."""
    stored = MessageRow._make(row)
    return Message(
        role=_ROLES[stored.role],
        parts=unpacked_parts(stored.parts),
        id=id_text(stored.id),
        agent=agent,
        session=session,
        seq=number_of(stored.num),
        group=stored.group_name,
        provider=_PROVIDERS[stored.provider],
        created_at=None if stored.created_at is None else moment(stored.created_at),
        hidden=bool(stored.hidden),
        form=stored.form,
        extra=stored.extra,
    )


class Saying:
    """One transaction's work on one conversation, of which `known` is what is stored of itself."""

    def __init__(self, connection: Connection, agent: str, session: str, known: Spoken) -> None:
        self._connection = connection
        self._agent = agent
        self._session = session
        self._known = known
        self._values = {"agent": self._known.agent, "conversation": self._known.conversation}
        self._gone = False

    def apply(self, changes: Sequence[ConversationChange]) -> tuple[Message, ...]:
        """Apply all changes in order, and note how far the conversation has come."""
        moved: list[Message] = []
        for change in changes:
            moved += self._apply(change)
        if not self._gone:
            said, revision, opened = self._known.said, self._known.revision, self._known.opened
            values = {**self._values, "said": said, "revision": revision, "opened": opened}
            self._run("advance_conversation", values)
        return tuple(moved)

    def _apply(self, change: ConversationChange) -> Sequence[Message]:
        if self._gone:
            raise InvalidInput("A conversation can't be changed after it was purged in the same transaction.")
        if isinstance(change, Append):
            return self._append(change)
        if isinstance(change, SetAnchor):
            query = "set_anchor" if change.text else "remove_anchor"
            self._run(query, {**self._values, "name": change.name, "text": change.text})
            return ()
        self._known = self._known._replace(revision=self._known.revision + 1)
        if isinstance(change, SetHidden):
            self._of_group(change.group)
            self._run(
                "hide_group",
                {**self._values, "group_name": change.group, "hidden": int(change.hidden)},
            )
            return self._of_group(change.group)
        if isinstance(change, RemoveGroup):
            return self._remove_group(change.group)
        if isinstance(change, RemoveMessage):
            return self._remove_message(change.message_id)
        if isinstance(change, PurgeMessages):
            return self._purge(change)
        raise InvalidInput(
            f"{change!r} is no change of a conversation. Use Append, SetHidden, RemoveGroup, RemoveMessage, "
            "PurgeMessages or SetAnchor."
        )

    def _append(self, change: Append) -> list[Message]:
        if self._known.said + len(change.messages) > _MASK:
            raise InvalidInput(f"Conversation {self._session!r} is full. Go on in another session.")
        made: list[Message] = []
        hidden: dict[str, bool] = {}
        for place, message in enumerate(change.messages):
            group = message.group
            if group is None and place < change.joining and message.role is not Role.SYSTEM:
                group = self._known.opened
            if group is not None and group not in hidden:
                hidden[group] = self._enters(group)
            said = self._known.said + 1
            self._known = self._known._replace(said=said)
            made.append(
                message.evolve(
                    agent=self._agent,
                    session=self._session,
                    seq=said,
                    group=group,
                    hidden=group is not None and hidden[group],
                )
            )
        self._connection.many("insert_message", [self._row(each) for each in made])
        records = [self._record_row(each) for each in made if is_indexed(each)]
        if records:
            self._connection.many("insert_message_lex", records)
        return made

    def _enters(self, group: str) -> bool:
        """Whether a group that gets a message is hidden; a new one is the one that was opened last."""
        values = {**self._values, "group_name": group}
        row = self._run("group_hidden", values).fetchone()
        if row is None:
            self._known = self._known._replace(opened=group)
        return bool(row and row[0])

    def _remove_group(self, group: str) -> list[Message]:
        going = self._of_group(group)
        self._run("remove_group", {**self._values, "group_name": group})
        self._reopen()
        return going

    def _remove_message(self, message_id: str) -> list[Message]:
        raw = try_id_bytes(message_id)
        row = raw and self._run("message", {"agent": self._agent, "id": raw}).fetchone()
        if not row:
            raise NotSaid("message", message_id, self._session)
        *columns, _ = row
        stored = MessageRow._make(columns)
        if stored.conversation != self._known.conversation:
            raise NotSaid("message", message_id, self._session)
        self._run("remove_message", {"agent": self._known.agent, "num": stored.num})
        self._reopen()
        return [message_of(stored, self._agent, self._session)]

    def _purge(self, change: PurgeMessages) -> list[Message]:
        if change.group is not None:
            return self._remove_group(change.group)
        if not self._known.conversation:
            raise NotSaid("conversation", self._session, self._session)
        rows = self._run("messages_since", spread(self._known)).fetchall()
        self._run("remove_conversation", self._values)
        self._gone = True
        return [message_of(row, self._agent, self._session) for row in rows]

    def _of_group(self, group: str) -> list[Message]:
        rows = self._run("messages_of_group", {**self._values, "group_name": group}).fetchall()
        if not rows:
            raise NotSaid("group", group, self._session)
        return [message_of(row, self._agent, self._session) for row in rows]

    def _reopen(self) -> None:
        row = self._run("opened_last", spread(self._known)).fetchone()
        self._known = self._known._replace(opened=row[0] if row else None)

    def _record_row(self, message: Message) -> tuple[Any, ...]:
        language = self._known.language
        return row_of(
            num_of(self._known, message.seq), self._known.agent, language, record_of(message, language)
        )

    def _row(self, message: Message) -> MessageRow:
        at = message.created_at
        return MessageRow(
            num=num_of(self._known, message.seq),
            agent=self._known.agent,
            conversation=self._known.conversation,
            id=id_bytes(message.id),
            group_name=message.group,
            role=message.role.value,
            provider=message.provider.value,
            form=message.form,
            created_at=None if at is None else microseconds(at, name="created_at"),
            hidden=int(message.hidden),
            parts=packed_parts(message.parts),
            extra=message.extra,
        )

    def _run(self, query: str, values: dict[str, Any]) -> Rows:
        return self._connection.run(query, values)
