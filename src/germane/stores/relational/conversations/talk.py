"""What a process keeps in memory of one conversation: its messages, and its index once it was asked for.

Level: stores (imports retrieval and what is above it). A cache only: every use begins by comparing two
numbers with the store's, inside the reading transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

from germane.model.conversation import GroupScores
from germane.model.message import Message, Messages
from germane.stores.relational.connection import Connection
from germane.stores.relational.conversations.message_lex import Record, rules_of
from germane.stores.relational.conversations.saying import Spoken, message_of, number_of, spread
from germane.stores.relational.conversations.talk_index import TalkIndex
from germane.stores.sql.tables import MessageRow

__all__ = ["Talk"]

_OVERHEAD = 800

# Of so few new messages the words are read sooner than the records.
_FEW = 20


class Talk:
    """One conversation as of one snapshot; hold `lock` from before the transaction as long as it is used."""

    def __init__(self, agent: str, session: str) -> None:
        self.lock = RLock()
        self._agent = agent
        self._session = session
        self._known = Spoken()
        self._messages: dict[int, Message] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._all: Messages | None = None
        self._visible: Messages | None = None
        self._index: TalkIndex | None = None
        self._made: dict[int, Record] = {}

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return 2 * self._bytes if self._index else self._bytes

    def catch_up(self, connection: Connection, known: Spoken) -> None:
        """Become as the snapshot is."""
        before = self._known
        if (before.conversation, before.said, before.revision) == (
            known.conversation,
            known.said,
            known.revision,
        ):
            return
        if before.conversation != known.conversation:
            self._messages, self._sizes, self._bytes = {}, {}, 0
            self._index, self._made, before = None, {}, Spoken()
        self._all = self._visible = None
        self._known = Spoken()
        if before.revision != known.revision:
            self._drop_changed(connection, known)
        new = []
        for row in connection.run("messages_since", spread(known, above=before.said)):
            spoken = MessageRow._make(row)
            message = message_of(spoken, self._agent, self._session)
            new.append(message)
            self._messages[message.seq] = message
            self._sizes[message.seq] = size = _OVERHEAD + 2 * len(spoken.parts)
            self._bytes += size
        if self._index is not None:
            many = len(new) > _FEW
            stored = self._stored(connection, known, self._index, above=before.said) if many else {}
            made = self._index.add(new, stored)
            # Of a few it isn't known whether they are stored; they are, unless an older version said them.
            self._made |= made if many else {}
        self._known = known

    def messages(self, *, hidden: bool) -> Messages:
        """The messages in order, with or without those that are hidden."""
        if self._all is None or self._visible is None:
            self._all = Messages(self._messages.values())
            self._visible = Messages(each for each in self._all if not each.hidden)
        return self._all if hidden else self._visible

    def match(self, connection: Connection, terms: Sequence[str], language: str) -> GroupScores:
        """How well each visible group matches the terms."""
        if self._index is None or self._index.language != language:
            index = TalkIndex(language)
            self._made = index.add(self.messages(hidden=False), self._stored(connection, self._known, index))
            self._index = index
        return self._index.match(terms)

    def take_made(self, most: int) -> dict[int, Record]:
        """Some of the records that weren't stored and had to be made, by their messages' numbers; once."""
        numbers = list(self._made)[:most]
        return {number: self._made.pop(number) for number in numbers}

    def _stored(
        self, connection: Connection, known: Spoken, index: TalkIndex, *, above: int = 0
    ) -> dict[int, Record]:
        """The stored records of the messages after a number."""
        values = {**spread(known, above=above), "rules": rules_of(index.language)}
        rows = connection.run("message_lex", values)
        return {number_of(num): Record(*record) for num, *record in rows}

    def _drop_changed(self, connection: Connection, known: Spoken) -> None:
        """Forget what was removed, and note what was hidden or put back."""
        rows = connection.run("messages_left", spread(known))
        left = {number_of(num): bool(hidden) for num, hidden in rows}
        changed = []
        for seq, message in list(self._messages.items()):
            if seq not in left:
                del self._messages[seq]
                self._bytes -= self._sizes.pop(seq)
                changed.append(message)
            elif message.hidden != left[seq]:
                self._messages[seq] = message.evolve(hidden=left[seq])
                changed.append(message)
        if self._index is not None:
            self._index.renew(changed, self._messages)
