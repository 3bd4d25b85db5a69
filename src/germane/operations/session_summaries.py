"""The summaries of sessions: made from the log, stored as memories, and listed beside the sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final
from zlib import crc32

from germane.conversation.groups import named_by
from germane.conversation.session_summary import summary_of
from germane.errors import InvalidInput
from germane.model.conversation import (
    ConversationChange,
    ConversationInfo,
    Message,
    MessageRole,
    PurgeMessages,
    SessionSummary,
)
from germane.model.memory import Draft, Memory, Trust
from germane.model.query import Filter
from germane.model.text import user_and_agent
from germane.operations.context import AgentContext
from germane.operations.inputs import checked_count, checked_time
from germane.operations.memories import purge_many, remember_many
from germane.operations.read import by_key, stored_pages
from germane.operations.turn_search import rarities
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import CONVERSATIONS

KEY: Final = "session:"
"""What the key of a summary begins with; the name of the session follows."""
_SOURCE: Final = "conversation:"
_THROUGH: Final = "through"
"""The metadata whose key says which messages a summary is of; values would be indexed."""
_BY_MODEL: Final = "summarized"
_USUAL_RARITY: Final = 6.5


def sessions(
    session: AgentContext,
    *,
    user: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> tuple[ConversationInfo, ...]:
    """The conversations of the agent or of one user, those with the latest message first.

    With `since`, those with a message from that time on; with `until`, as they were then. `after` is the
    session that ended the page before. Raises InvalidInput.
    """
    if user is not None:
        session = _of_user(session, user)
    start = None if since is None else checked_time(since, name="since", clock=session.clock)
    end = None if until is None else checked_time(until, name="until", clock=session.clock)
    most = None if limit is None else checked_count(limit, name="limit")
    found = [
        each
        for each in CONVERSATIONS.required(session.store).sessions(session.agent, until=end)
        if start is None or (each.last_at is not None and each.last_at >= start)
    ]
    found.sort(key=lambda each: (each.last_at is not None, each.last_at or 0), reverse=True)
    first = 0 if after is None else _place_after(found, after)
    owner = None if session.base is None else user_and_agent(session.agent)[0]
    titles = _titles(session)
    page = found[first:][:most]
    return tuple(replace(each, user=owner, title=titles.get(each.session)) for each in page)


def _place_after(found: Sequence[ConversationInfo], name: str) -> int:
    for place, each in enumerate(found):
        if each.session == name:
            return place + 1
    raise InvalidInput(f"after={name!r} is none of these conversations. Begin at the first page again.")


def summarized(
    session: AgentContext, name: str, messages: Sequence[Message], *, store: bool
) -> SessionSummary:
    """The summary of a session, stored unless `store` is False; the stored one while the log is the same.

    Raises InvalidInput for a session without a message that user or assistant wrote.
    """
    spoken = (MessageRole.USER, MessageRole.ASSISTANT)
    if not any(each.role in spoken and each.group and each.own_text.strip() for each in messages):
        raise InvalidInput(
            f"Session {name!r} has no message of a user or an assistant, so it has no summary. Append some."
        )
    known = by_key(session, f"{KEY}{name}")
    mark = f"{crc32(''.join(each.id for each in messages).encode()):08x}"
    current = known is not None and mark in known.metadata.get(_THROUGH, ())
    by_model = known is not None and bool(known.metadata.get(_BY_MODEL))
    # A model is asked once about the same log.
    reused = known if current and by_model else None
    found = summary_of(
        name,
        messages,
        topics=partial(_by_information, language=session.language),
        summarizer=None if reused is not None else session.summarizer,
    )
    if reused is not None:
        found = found.evolve(summary=reused.content.partition("\n")[2], by="summarizer")
    if current and (by_model or found.by == "words"):
        return found.evolve(memory=known and known.id)
    # A summarizer reads the results of tools as well.
    read = found.by == "summarizer" and any(each.results for each in messages)
    trust = Trust.EXTERNAL if read else Trust.AGENT
    return found.evolve(memory=_stored(session, found, mark, trust).id) if store else found


def forget_summary(
    session: AgentContext,
    name: str,
    change: ConversationChange,
    messages: Callable[..., Sequence[Message]],
) -> None:
    """Purge the stored summary of a session, if it has one, before a change of its log.

    It stays where the change names no message, since such a change is refused.
    """
    known = by_key(session, f"{KEY}{name}")
    if known is not None and (change == PurgeMessages() or named_by(change, messages(hidden=True))):
        purge_many(session, [known.id], confirm=True)


def _stored(session: AgentContext, found: SessionSummary, mark: str, trust: Trust) -> Memory:
    by_model = found.by == "summarizer"
    draft = Draft(
        content=f"{found.title}\n{found.summary}" if by_model else found.summary,
        kind="episode",
        trust=trust,
        created_at=found.last_at,
        session=found.session,
        key=f"{KEY}{found.session}",
        source=f"{_SOURCE}{found.session}",
        metadata={_THROUGH: {mark: True}, _BY_MODEL: by_model},
    )
    return remember_many(session, [draft], quality="keep")[0].memory


def _titles(session: AgentContext) -> dict[str, str]:
    """The titles of the stored summaries, by session."""
    where = Filter(where=f'source startswith "{_SOURCE}"', kinds=("episode",))
    return {
        memory.key.removeprefix(KEY): memory.content.partition("\n")[0]
        for page in stored_pages(session, where)
        for memory in page
        if memory.key is not None and memory.key.startswith(KEY)
    }


def _of_user(session: AgentContext, user: str) -> AgentContext:
    if session.base is None:
        return session.for_user(user)
    bound, _ = user_and_agent(session.agent)
    if bound != user:
        raise InvalidInput(
            f"user={user!r} can't be listed here: the engine is bound to {bound!r}. Call "
            "it on the engine of the agent, or leave user out."
        )
    return session


def _by_information(words: Counter[str], language: str) -> list[str]:
    """Words ordered by how often their stem occurs, times how rare it is in the language."""
    forms: dict[str, Counter[str]] = {}
    for word, times in words.items():
        for term in query_terms(word, language=language)[:1]:
            forms.setdefault(term, Counter())[word] += times
    terms = list(forms)
    rarity = dict(zip(terms, rarities(terms, language=language, usual=_USUAL_RARITY), strict=True))
    ordered = sorted(terms, key=lambda term: (-forms[term].total() * rarity[term], term))
    return [min(forms[term].items(), key=lambda one: (-one[1], one[0]))[0] for term in ordered]
