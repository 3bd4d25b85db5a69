"""The verbs that give an agent its conversations.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from germane.engine.surface import Surface
from germane.model.log import ConversationInfo
from germane.verbs.conversation import Conversation, conversation, conversing

__all__ = ["Talking"]


class Talking(Surface):
    """What an agent says and hears."""

    def conversation(self, session: str) -> Conversation:
        """The log of a session, by its name: the same log each time, also after a restart.

        Raises InvalidInput for an empty name, or a store that keeps no conversations.
        """
        return conversation(self._session, session)

    def conversations(self) -> tuple[ConversationInfo, ...]:
        """All conversations of this agent, by the names of their sessions.

        Raises InvalidInput for a store that keeps none.
        """
        return conversing(self._session).conversations(self.agent)
