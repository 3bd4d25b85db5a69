"""compact: propose a shorter form of a conversation, do it, and undo it.

Level: verbs.
"""

from __future__ import annotations

from germane.conversation.compacting import ANCHOR, Compacting, compacted
from germane.conversation.tiers import Tiers
from germane.errors import InvalidInput
from germane.model.compaction import Compaction
from germane.model.log import ConversationChange, SetAnchor, SetHidden
from germane.protocols import TokenCounter
from germane.tokens import CachedCounter, get_counter, spendable
from germane.verbs.checks import checked_count
from germane.verbs.conversation import Conversation, conversing
from germane.verbs.session import Session

__all__ = ["compact", "compaction", "uncompact"]


def compaction(
    session: Session,
    conversation: Conversation,
    *,
    budget: int,
    keep: int,
    counter: str | TokenCounter | None,
    tiers: Tiers | None,
) -> Compaction:
    """What would make a conversation fit a budget. Raises BudgetTooSmall or InvalidInput."""
    _check_own(session, conversation)
    checked_count(budget, name="budget", least=1)
    checked_count(keep, name="keep", least=1)
    counting = session.counter if counter is None else CachedCounter(get_counter(counter))
    how = Compacting(
        budget=spendable(budget, counting),
        counter=counting,
        keep=keep,
        tiers=tiers or Tiers(),
        previous=conversation.anchors().get(ANCHOR, ""),
        summarizer=session.summarizer,
    )
    return compacted(conversation.messages(), how)


def compact(session: Session, conversation: Conversation, proposed: Compaction) -> Compaction:
    """Hide what a compaction hides and keep its summary, in one transaction. Raises NotSaid."""
    _check_own(session, conversation)
    if proposed.hides:
        _converse(session, conversation, proposed, hidden=True, text=proposed.summary)
    return proposed


def uncompact(session: Session, conversation: Conversation, done: Compaction) -> Compaction:
    """Put back what a compaction hid, with the summary that stood before it. Raises NotSaid."""
    _check_own(session, conversation)
    if done.hides:
        _converse(session, conversation, done, hidden=False, text=done.replaces)
    return done


def _converse(
    session: Session, conversation: Conversation, moved: Compaction, *, hidden: bool, text: str
) -> None:
    hiding = [SetHidden(group=group, hidden=hidden) for group in moved.hides]
    changes: list[ConversationChange] = [*hiding, SetAnchor(name=moved.anchor, text=text)]
    conversing(session).converse(session.agent, conversation.session, changes)


def _check_own(session: Session, conversation: Conversation) -> None:
    if conversation.agent != session.agent:
        raise InvalidInput(
            f"The conversation belongs to agent {conversation.agent!r}, and the engine to {session.agent!r}. "
            "Use the engine that it came from."
        )
