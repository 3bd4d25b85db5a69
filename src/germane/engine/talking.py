"""The verbs that give an agent its conversations.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface

if TYPE_CHECKING:
    from germane.model.log import ConversationInfo
    from germane.verbs.conversation import Conversation

__all__ = ["Talking"]


class Talking(Surface):
    """What an agent says and hears."""

    def conversation(self, session: str) -> Conversation:
        """The log of a session, by its name: the same log each time, also after a restart.

        Raises InvalidInput for an empty name, or a store that keeps no conversations.
        """
        return verbs.conversation.conversation(self._session, session)

    def conversations(self) -> tuple[ConversationInfo, ...]:
        """All conversations of this agent, by the names of their sessions.

        Raises InvalidInput for a store that keeps none.
        """
        return verbs.conversation.conversing(self._session).conversations(self.agent)
