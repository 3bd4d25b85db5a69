"""What a process keeps in memory of one conversation: its messages, and its index once it was asked for.

Level: stores (imports retrieval and what is above it). A cache only: every use begins by comparing two
numbers with the store's, inside the reading transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock

import numpy as np

from germane.model.conversation import GroupScores
from germane.model.message import Message, Messages, Role
from germane.retrieval.postings import UNIT, Postings
from germane.retrieval.terms import LONGEST, Forward, index_terms, term_hash
from germane.stores.parts import indexed_words
from germane.stores.relational.connection import Connection
from germane.stores.relational.saying import Spoken, message_of, number_of, spread

__all__ = ["Talk"]

_OVERHEAD = 800
_MOST_FREQUENT = 0xFF


class Talk:
    """One conversation as of one snapshot; hold `lock` from before the transaction as long as it is used."""

    def __init__(self, agent: str, session: str) -> None:
        self.lock = RLock()
        self._agent = agent
        self._session = session
        self._known = Spoken()
        self._messages: dict[int, Message] = {}
        self._bytes = 0
        self._all: Messages | None = None
        self._visible: Messages | None = None
        self._index: _Index | None = None

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
            self._messages, self._bytes, self._index, before = {}, 0, None, Spoken()
        self._all = self._visible = None
        self._known = Spoken()
        if before.revision != known.revision:
            self._drop_changed(connection, known)
        new = [
            message_of(row, self._agent, self._session)
            for row in connection.run("messages_since", spread(known, above=before.said))
        ]
        for message in new:
            self._messages[message.seq] = message
            self._bytes += _size(message)
        if self._index is not None:
            self._index.add(new)
        self._known = known

    def messages(self, *, hidden: bool) -> Messages:
        """The messages in order, with or without those that are hidden."""
        if self._all is None or self._visible is None:
            self._all = Messages(self._messages.values())
            self._visible = Messages(each for each in self._all if not each.hidden)
        return self._all if hidden else self._visible

    def match(self, terms: Sequence[str], language: str) -> GroupScores:
        """How well each visible group matches the terms."""
        if self._index is None or self._index.language != language:
            self._index = _Index(language)
            self._index.add(self.messages(hidden=False))
        return self._index.match(terms)

    def _drop_changed(self, connection: Connection, known: Spoken) -> None:
        """Forget what was removed, and note what was hidden or put back."""
        rows = connection.run("messages_left", spread(known))
        left = {number_of(num): bool(hidden) for num, hidden in rows}
        changed = []
        for seq, message in list(self._messages.items()):
            if seq not in left:
                del self._messages[seq]
                self._bytes -= _size(message)
                changed.append(message)
            elif message.hidden != left[seq]:
                self._messages[seq] = message.evolve(hidden=left[seq])
                changed.append(message)
        if self._index is not None:
            self._index.renew({each.group for each in changed}, self._messages.values())


class _Index:
    """BM25 over the visible groups of a conversation, what is hidden left out of its statistics."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._postings = Postings()
        self._ordinals: dict[str, int] = {}
        self._names: list[str] = []
        self._forwards: dict[str, list[Forward]] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Index messages that are new."""
        touched: dict[str, None] = {}
        for message in messages:
            # The system speaks in every window, so no group is found by it.
            if message.group is None or message.hidden or message.role is Role.SYSTEM:
                continue
            forward = index_terms(indexed_words(message), language=self.language)
            self._forwards.setdefault(message.group, []).append(forward)
            touched[message.group] = None
        for group in touched:
            if group not in self._ordinals:
                self._ordinals[group] = len(self._names)
                self._names.append(group)
            self._postings.add(self._ordinals[group], _joined(self._forwards[group]))

    def renew(self, groups: Iterable[str | None], messages: Iterable[Message]) -> None:
        """Index these groups anew, from what is left of them."""
        renewed = {group for group in groups if group is not None}
        for group in renewed:
            self._forwards.pop(group, None)
            if group in self._ordinals:
                self._postings.remove(self._ordinals[group])
        self.add(each for each in messages if each.group in renewed)

    def match(self, terms: Sequence[str]) -> GroupScores:
        found = self._postings.score([term_hash(term) for term in terms])
        scores = {
            self._names[ordinal]: score
            for ordinal, score in zip(found.ordinals.tolist(), found.scores.tolist(), strict=True)
        }
        return GroupScores(scores=scores, bound=round(found.bound * UNIT))


def _joined(forwards: Sequence[Forward]) -> Forward:
    """The forward record of several texts as one."""
    if len(forwards) == 1:
        return forwards[0]
    hashes = np.concatenate([each.hashes for each in forwards])
    often = np.concatenate([each.frequencies for each in forwards]).astype(np.int64)
    distinct, places = np.unique(hashes, return_inverse=True)
    counted = np.bincount(places, weights=often, minlength=len(distinct))
    return Forward(
        hashes=distinct,
        frequencies=np.minimum(counted, _MOST_FREQUENT).astype(np.uint8),
        length=min(sum(each.length for each in forwards), LONGEST),
    )


def _size(message: Message) -> int:
    words = len(message.text) + sum(len(result.text) for result in message.results)
    return _OVERHEAD + 2 * words + sum(len(call.arguments) for call in message.calls)
