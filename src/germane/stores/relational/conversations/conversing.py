"""Conversations as the store offers them.

Level: stores (imports model and errors). The work is done in `talking`, which the first such call loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from germane.stores.relational.connection import Connections
from germane.stores.relational.conversations.kept_talks import KeptTalks

if TYPE_CHECKING:
    from germane.model.conversation import GroupScores
    from germane.model.log import ConversationChange, ConversationInfo, LastGroups
    from germane.model.message import Message
    from germane.stores.relational.conversations.talking import SaidIn

__all__ = ["Conversations"]


class Conversations:
    """The part of a SQLite store that is `Conversing` and `Glancing`. Threads and processes may share it."""

    _connections: Connections
    _talks: KeptTalks

    def converse(
        self, agent: str, session: str, changes: Sequence[ConversationChange]
    ) -> tuple[Message, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        A PurgeMessages rewrites the file as the purge of a memory does, and raises StoreBusy or
        StoreUnavailable as that does.
        """
        return self._said_in.converse(agent, session, changes)

    def messages(self, agent: str, session: str, *, hidden: bool = False) -> tuple[Message, ...]:
        """The messages of a conversation in order; those of hidden groups if asked."""
        return self._said_in.messages(agent, session, hidden=hidden)

    def last_groups(self, agent: str, session: str, count: int) -> LastGroups | None:
        """What a window of the last `count` groups shows; None where reading all is as good."""
        return self._said_in.last_groups(agent, session, count)

    def message(self, agent: str, message_id: str) -> Message | None:
        """The agent's message of that id, hidden or not; None where there is none."""
        return self._said_in.message(agent, message_id)

    def match_groups(self, agent: str, session: str, terms: Sequence[str]) -> GroupScores:
        """How well the visible groups match any of these terms, by the statistics of this session alone."""
        return self._said_in.match_groups(agent, session, terms)

    def anchors(self, agent: str, session: str) -> Mapping[str, str]:
        """The texts that stand outside any window, by name."""
        return self._said_in.anchors(agent, session)

    def conversations(self, agent: str) -> tuple[ConversationInfo, ...]:
        """All conversations of the agent, by the names of their sessions."""
        return self._said_in.conversations(agent)

    @property
    def _said_in(self) -> SaidIn:
        from germane.stores.relational.conversations.talking import SaidIn  # noqa: PLC0415 - Most processes converse nowhere.

        return SaidIn(self._connections, self._talks)
