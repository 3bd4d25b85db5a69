"""The operations on conversations, and on what is learned from them, of the REST server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane import Conversation, Engine, Space
from germane.conversation.compaction import ANCHOR
from germane.errors import InvalidInput
from germane.extractors import LearningRun
from germane.model.conversation import Compaction, Message
from germane.servers.shared import Page, known_conversation, page_of

if TYPE_CHECKING:
    from germane.model.conversation import Provider


def any_conversation(engine: Any, path: Mapping[str, str]) -> Conversation:
    """The conversation of that name, which may be new."""
    found: Conversation = engine.conversation(path["session"])
    return found


def show_conversation(
    conversation: Conversation, *, hidden: bool = False, limit: Page = 100, after: int = 0
) -> dict[str, Any]:
    """The messages of a conversation after the one numbered `after`, and its anchors."""
    found = conversation.messages(hidden=hidden, limit=limit + 1, after=after)
    return {
        "session": conversation.session,
        "anchors": conversation.anchors(),
        "state": conversation.state,
        **page_of("messages", found, limit, "seq"),
    }


def append(
    conversation: Conversation,
    messages: Iterable[Mapping[str, Any] | Message] | Mapping[str, Any],
    *,
    provider: str | Provider | None = None,
) -> Sequence[Message]:
    """Add messages at the end, all or none, in any provider's layout."""
    return conversation.extend(messages, provider=provider)


def window(
    conversation: Conversation, *, groups: int = 0, budget: int | None = None, counter: str | None = None
) -> Any:
    """The last groups of messages, of at most `budget` tokens."""
    return conversation.window(groups, budget=budget, counter=counter)


def set_anchor(conversation: Conversation, name: str, text: str) -> dict[str, Any]:
    """Store a text outside any window; an empty one removes it."""
    conversation.anchor(name, text)
    return {"anchors": conversation.anchors()}


def set_state(conversation: Conversation, text: str) -> dict[str, str]:
    """Write another state of the work."""
    conversation.set_state(text)
    return {"state": conversation.state}


def purge_conversation(conversation: Conversation, *, confirm: bool = False) -> dict[str, Any]:
    """Delete a conversation and every trace of its text. Needs `confirm`."""
    return {"session": conversation.session, "purged": conversation.purge(confirm=confirm)}


def compact(
    engine: Engine,
    session: str,
    *,
    budget: int,
    keep: int = 2,
    counter: str | None = None,
    dry_run: bool = False,
) -> Compaction:
    """Hide the oldest groups until `budget` tokens are enough, all but the last `keep`, behind a summary."""
    found = known_conversation(engine, {"session": session})
    proposed = engine.compaction(found, budget=budget, keep=keep, counter=counter)
    return proposed if dry_run else engine.compact(found, proposed)


def uncompact(
    engine: Engine, session: str, *, hides: Sequence[str], anchor: str = ANCHOR, replaces: str = ""
) -> Compaction:
    """Undo a compaction: give back its groups `hides`, and the summary that it `replaces`."""
    made = Compaction(hides=tuple(hides), anchor=anchor, replaces=replaces)
    return engine.uncompact(known_conversation(engine, {"session": session}), made)


def expand_message(conversation: Conversation, message_id: str) -> dict[str, Any]:
    """The whole of a message, where a view has cut it."""
    return {"content": conversation.expand(message_id)}


def sessions(
    engine: Engine, *, since: datetime | str | None = None, limit: Page = 100, after: str | None = None
) -> dict[str, Any]:
    """The conversations, the latest first; a further page has them as they were at the first."""
    # The cursor is a session, after the time from which messages don't count any more.
    until, _, name = (after or "").partition(" ")
    try:
        end = datetime.fromisoformat(until) if until else None
    except ValueError:
        raise InvalidInput(f"after={after!r} is no `after` of a page of conversations.") from None
    found = engine.sessions(since=since, until=end, limit=limit + 1, after=name or None)
    made = page_of("conversations", found, limit, "session")
    if made["after"] is not None:
        latest = end or found[0].last_at
        # A "+" is a space in the query of an address.
        made["after"] = f"{latest.isoformat().replace('+00:00', 'Z') if latest else ''} {made['after']}"
    return made


# What was learned from conversations.


def learn(
    engine: Engine | Space,
    session: str,
    *,
    since: datetime | str | None = None,
    again: bool = False,
    dry_run: bool = False,
    private: bool = False,
) -> LearningRun:
    """Learn facts by rules from the messages of a conversation that weren't read. Raises MessageNotFound.

    Into a space a user learns only with `private`, since all members see it.
    """
    if isinstance(engine, Space):
        return engine.learn_from(session, since=since, again=again, dry_run=dry_run, private=private)
    return engine.learn_from(session, since=since, again=again, dry_run=dry_run)


def consolidate(
    engine: Engine | Space, *, reflect: bool = False, dry_run: bool = False, private: bool = False
) -> tuple[LearningRun, ...]:
    """Learn by rules from every conversation with new messages; with `reflect`, summarize topics as well.

    Into a space a user learns only with `private`, since all members see it; topics aren't summarized there.
    """
    if not isinstance(engine, Space):
        return engine.consolidate(reflect=reflect, dry_run=dry_run)
    if reflect:
        raise InvalidInput("`reflect` summarizes an agent's own memories. Leave it out in a space.")
    return engine.consolidate(dry_run=dry_run, private=private)


def learning_runs(
    engine: Engine | Space,
    *,
    session: str | None = None,
    memory_id: str | None = None,
    limit: Page = 50,
    after: str | None = None,
) -> dict[str, Any]:
    """What was learned from conversations, the latest run first."""
    found = engine.learning_runs(session=session, memory_id=memory_id, limit=limit + 1, after=after)
    return page_of("runs", found, limit, "id")
