"""reflect: summaries of memories of one topic, each of which names its members and ends with any of them.

The store ends them: in the transaction that purges a member, and in the one that replaces or hides it. They
expire with the first of their members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from germane.conversation.compaction import representative
from germane.lifecycle import least_trust
from germane.model.change import Change, Purge, RecordRun, SetStatus
from germane.model.extraction import Decision, LearningRun, Proposal, ProposalOutcome
from germane.model.memory import MEMBERS, REFLECTION, Draft, Memory, Status
from germane.model.query import Filter
from germane.model.text import cut, line_of
from germane.model.validation import as_utc
from germane.operations.context import AgentContext
from germane.operations.drafts import memory_of
from germane.operations.entities import DECISION_ON_NAMES
from germane.operations.inputs import embed_texts
from germane.operations.learning import LearningBatch
from germane.operations.read import stored_pages
from germane.operations.session_summaries import KEY as SESSION_SUMMARY
from germane.ranking.similarity import cluster
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import LEARNING

REFLECTING: Final = "reflection"
"""The extractor of a run that stores summaries of memories."""
FEWEST: Final = 4
"""Memories of one topic that are summarized."""
_MOST: Final = 40
_LOOKED_AT: Final = 2000
_TOKENS: Final = 120
_REASON: Final = 200
"""Characters of what a summarizer raised that a reason quotes."""
_LEAST_OVERLAP: Final = 0.25
_NOT_SUMMARIZED: Final = (REFLECTION, SESSION_SUMMARY, DECISION_ON_NAMES)
_SAME_TOPIC: Final = 0.5
"""The share of a reflection's members that a topic has to have, to become its next version."""


def reflect(session: AgentContext, *, dry_run: bool = False) -> LearningRun | None:
    """Summarize each topic of at least four memories that isn't summarized as it stands; None for none."""
    LEARNING.required(session.store)
    now = as_utc(session.clock(), name="clock")
    known = _reflections(session)
    batch = LearningBatch(session, (), (), now)
    decisions = []
    for members in _topics(session, now):
        ids = {each.id for each in members}
        former = max(known, key=lambda each: (len(ids & _members_of(each)), each.id), default=None)
        if former is not None and len(ids & _members_of(former)) < _SAME_TOPIC * len(_members_of(former)):
            former = None
        if former is not None:
            known.remove(former)
            if former.status is Status.ACTIVE and _members_of(former) == ids:
                continue
        decisions.append(_decided(session, batch, members, former, now))
    if not decisions:
        return None
    run = LearningRun(
        id=session.ids.next(now), extractor=REFLECTING, at=now, decisions=tuple(decisions), dry_run=dry_run
    )
    if not dry_run:
        session.store.apply(session.agent, [*batch.changes, RecordRun(run=run)])
        _end_stale(session, run, now)
    return run


def _end_stale(session: AgentContext, run: LearningRun, now: datetime) -> None:
    """End the reflections whose members somebody else changed while they were summarized."""
    changes: list[Change] = []
    for reflection in filter(None, session.store.get(session.agent, run.memories)):
        wanted = reflection.metadata.get(MEMBERS, {})
        found = session.store.get(session.agent, list(wanted))
        if None in found:
            changes.append(Purge(memory_id=reflection.id, at=now))
        elif any(each and (each.version, each.status) != (wanted[each.id], Status.ACTIVE) for each in found):
            changes.append(SetStatus(memory_id=reflection.id, status=Status.SUPERSEDED, at=now))
    if changes:
        session.store.apply(session.agent, changes)


def _reflections(session: AgentContext) -> list[Memory]:
    """The current versions of the session's own reflections, those that have ended too."""
    where = Filter(where=f"{MEMBERS} exists", statuses=(Status.ACTIVE, Status.SUPERSEDED))
    found = (each for page in stored_pages(session, where) for each in page)
    return [each for each in found if each.superseded_by is None and (each.key or "").startswith(REFLECTION)]


def _topics(session: AgentContext, now: datetime) -> Iterable[Sequence[Memory]]:
    """Facts and episodes of one topic, in the order of their creation."""
    aging = tuple(kind.name for kind in session.kinds if kind.lifecycle in ("fact", "episode"))
    found = session.store.find(session.agent, Filter(kinds=aging), limit=_LOOKED_AT)
    memories = {
        each.id: each
        for each in reversed(found)
        if each.holds(now, now) and not (each.key or "").startswith(_NOT_SUMMARIZED)
    }
    texts = [each.content for each in memories.values()]
    vectors = {
        name: vector
        for name, vector in zip(memories, embed_texts(session.embedder, texts), strict=True)
        if vector is not None
    }
    terms = {each.id: _terms(each, session.language) for each in memories.values()}
    groups = cluster(list(memories), vectors=vectors, terms=terms, least_overlap=_LEAST_OVERLAP)
    for group in groups:
        if len(group) >= FEWEST:
            yield [memories[name] for name in group[:_MOST]]


def _terms(memory: Memory, language: str) -> frozenset[str]:
    return frozenset(query_terms(memory.content, language=language)) - {"user"}


def _decided(
    session: AgentContext,
    batch: LearningBatch,
    members: Sequence[Memory],
    former: Memory | None,
    now: datetime,
) -> Decision:
    text, failure = _text(session, members)
    new = _reflection(session, text, members, former, now)
    reason = f"It summarizes {len(members)} memories of one topic.{failure}"
    made = Decision(
        proposal=Proposal(content=new.content, quotes=(), kind=new.kind),
        outcome=ProposalOutcome.NEW if former is None else ProposalOutcome.REVISED,
        reason=reason,
    )
    if former is None:
        return batch.inserted(made, new)
    return batch.revised(made, new, former.evolve(expires_at=new.expires_at))


def _reflection(
    session: AgentContext, text: str, members: Sequence[Memory], former: Memory | None, now: datetime
) -> Memory:
    """A summary as a memory, as trusted as the least trusted member, which ends when the first one does."""
    ends: Mapping[str, list[datetime]] = {
        name: [at for each in members if (at := getattr(each, name)) is not None]
        for name in ("expires_at", "valid_until")
    }
    draft = Draft(
        content=text,
        kind="note",
        trust=least_trust(each.trust for each in members),
        confidence=min(each.confidence for each in members),
        key=former.key if former is not None else f"{REFLECTION} {members[0].id}",
        metadata={MEMBERS: {each.id: each.version for each in members}},
        valid_until=min(ends["valid_until"], default=None),
        expires_at=min(ends["expires_at"], default=None),
    )
    return memory_of(session, draft, now=now)


def _text(session: AgentContext, members: Sequence[Memory]) -> tuple[str, str]:
    """The text of the summarizer, or else of the most representative sentences, and why not the first."""
    sentences = [" ".join(each.content.split()) for each in members]
    failure = ""
    if session.summarizer is not None:
        try:
            text = session.summarizer.summarize("\n".join(sentences), _TOKENS).strip()
        except Exception as error:  # noqa: BLE001 - A model may fail in any way; the reason of the decision says so.
            text, failure = (
                "",
                f" By their sentences, since the summarizer failed: {cut(line_of(repr(error)), _REASON)}",
            )
        if text:
            return text, ""
        failure = failure or " By their sentences, since the summarizer returned no text."
    return representative(sentences, sentences, _TOKENS, session.counter) or sentences[0], failure


def _members_of(reflection: Memory) -> frozenset[str]:
    members = reflection.metadata.get(MEMBERS)
    return frozenset(members) if isinstance(members, Mapping) else frozenset()
