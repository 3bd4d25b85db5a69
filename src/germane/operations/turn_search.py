"""Search a conversation for the turns that match a prompt, ranked as memories are."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.conversation.formats.parts import spoken_lines
from germane.conversation.groups import derive_query
from germane.conversation.views import Tiers, tiered
from germane.kinds import MESSAGE
from germane.model.conversation import DerivedQuery, GroupScores, Message
from germane.model.memory import Memory, Rendition, Renditions, Scope
from germane.model.query import CandidateTable, Filter, Query, SearchResult, Slice
from germane.model.validation import checked_text
from germane.operations.context import AgentContext
from germane.operations.inputs import embed_texts
from germane.operations.passages import by_passages
from germane.operations.search import ParsedQuery, passage_search, query_of, understand
from germane.protocols import Embedder
from germane.ranking.relevance import Scoring, outside, rank
from germane.retrieval.quality import english_idf
from germane.retrieval.tokenizer import query_terms, term_hash
from germane.stores.relational.conversation_cache import TurnVectors
from germane.stores.relational.conversation_records import SPEAKER, is_named

_USUAL_RARITY = 6.5
"""The rarity of every term in a language without word statistics: that of a fairly rare word."""
_GATHERED = 100
"""Turns of each signal, as many as `recall` gathers of memories."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The moment of messages that have none."""
LATEST = 100
"""Messages that show whether a conversation is such a transcript."""


FindTurns: TypeAlias = Callable[..., SearchResult]
"""Searches the turns of a conversation, as `ConversationIndex.search` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSearch:
    """A question about a conversation.

    `known` are the turns that were made before, by tiers and renditions like these.
    """

    session: AgentContext
    parsed: ParsedQuery
    query: Query
    find: FindTurns
    names: bool
    tiers: Tiers
    renditions: Callable[[str], Renditions]
    known: dict[Hashable, Memory]

    @classmethod
    def of(
        cls,
        session: AgentContext,
        find: FindTurns,
        messages: Sequence[Message],
        text: str,
        *,
        tiers: Tiers | None = None,
        renditions: Callable[[str], Renditions] | None = None,
        known: dict[Hashable, Memory] | None = None,
    ) -> TurnSearch:
        """The search for a text. A time in its words counts from the latest message, so no clock is read."""
        now = next((each.created_at for each in reversed(messages) if each.created_at), LONG_AGO)
        parsed = understand(session, text, Filter(), now=now)
        return cls(
            session=session,
            parsed=parsed,
            query=query_of(parsed, (Slice(limit=_GATHERED),)),
            find=find,
            names=_has_names(messages),
            tiers=tiers or Tiers(),
            renditions=renditions or _whole,
            known={} if known is None else known,
        )

    def found(self, groups: Container[str] | None = None) -> SearchResult:
        """The best turns of these groups, or of all, by words and by meaning; none without a word to find."""
        if not self.query.informative:
            return SearchResult(slices=((),), by_relevance=False)
        embedder = self.session.embedder
        vectors = None
        if embedder is not None and self.query.vector is not None:
            vectors = turn_vectors(embedder)
        found = self.find(self.query, self._made, vectors=vectors, groups=groups)
        return by_passages(passage_search(self.session, self.query, found), found)

    def scoring(self, found: SearchResult) -> Scoring:
        """What the scores of turns are made of, as those of memories."""
        return Scoring(
            now=LONG_AGO,
            query=self.query,
            lexical_bound=found.lexical_bound,
            window_bound=found.window_bound,
            prefer=self.parsed.prefers,
            order=self.parsed.question.order,
        )

    def by_group(self, *, gated: bool = True) -> GroupScores:
        """The best score of a turn in each group that passes the gate, or else that has any word at all."""
        found = self.found()
        ranking = rank(found.slices[0], self.scoring(found))
        table = ranking.table
        out = np.nan_to_num(table.column("lexical")) <= 0
        if gated or out.all():
            out = outside_alone(table, self.query)
        scores: dict[str, float] = {}
        for place, score in zip(ranking.order, ranking.scores, strict=True):
            if not out[place]:
                scores.setdefault(group_of(table.memories[place]), score)
        return GroupScores(scores=scores, bound=1.0 if scores else 0.0)

    def _made(self, turn: Sequence[Message], session: str) -> Memory:
        """A turn as what is ranked and shown: its words, who speaks, and its group."""
        key = (turn[0].seq, len(turn), session, self.names)
        if key not in self.known:
            self.known[key] = memory_of(
                turn,
                session,
                names=self.names,
                tiers=self.tiers,
                renditions=self.renditions,
                memory_id=f"{turn[0].seq:010}",
                kind="episode",
            )
        return self.known[key]


def memory_of(
    turn: Sequence[Message],
    session: str,
    *,
    names: bool,
    tiers: Tiers,
    renditions: Callable[[str], Renditions],
    memory_id: str | None = None,
    kind: str = MESSAGE,
) -> Memory:
    """A turn of a conversation as a memory that no store has: its words, with the id of its first message.

    Its metadata name the speaker and the group. With `names`, a message of a transcript begins with that of
    its speaker.
    """
    first = turn[0]
    named = SPEAKER.match(first.text) if names else None
    lines = spoken_lines(tiered(turn, active=None, tiers=tiers))
    speaker = named[1] if named else first.author if names else first.role.value
    # Who is named in the text needs no role before it.
    text = "\n".join(words if named else f"{author}: {words}" for author, words in lines)
    at = first.created_at or LONG_AGO
    return Memory(
        id=memory_id or first.id,
        agent=first.agent,
        kind=kind,
        content=text,
        renditions=renditions(text),
        created_at=at,
        updated_at=at,
        scope=Scope(name="session", value=session),
        metadata={"speaker": speaker, "group": first.group},
    )


def outside_alone(table: CandidateTable, query: Query) -> NDArray[np.bool_]:
    """Which turns the gate leaves out. Turns of dialogue pass it; here each is judged by itself."""
    alone = {name: table.column(name) for name in ("lexical", "semantic", "coverage")}
    return outside(
        CandidateTable(table.memories, alone),
        exempt=np.zeros(len(table), dtype=np.bool_),
        information=query.information,
        least_cosine=query.least_cosine,
    )


def turn_vectors(embedder: Embedder) -> TurnVectors:
    """The vectors of messages by a model; one that is `instant` makes those that aren't stored."""
    instant = getattr(embedder, "instant", False)
    embed = partial(embed_texts, embedder) if instant else None
    return TurnVectors(embedder.name, embedder.dimension, embed)


def _has_names(messages: Sequence[Message]) -> bool:
    """Whether most messages have a name, or begin with one as `germane chat import` writes a dialogue."""
    latest = [each for each in messages[-LATEST:] if each.text]
    return 2 * sum(is_named(each.text, each.extra) for each in latest) > len(latest)


def _whole(text: str) -> Renditions:
    """A text at its full length, for a view that shows no shorter one: its tokens are about counted."""
    full = Rendition(text=text, tokens=len(text.encode()) // 4)
    return Renditions(micro=full, summary=full, full=full, counter="bytes_div_4_floor")


def group_of(turn: Memory) -> str:
    """The group of a turn that a search found."""
    return str(turn.metadata["group"])


def derived(session: AgentContext, messages: Sequence[Message], query: str | None) -> DerivedQuery:
    """The query's own terms, or those of the latest prompt and its topic."""
    terms_of = partial(query_terms, language=session.language)
    if query is not None:
        return DerivedQuery(prompt=query, own=terms_of(checked_text(query, name="query")))
    rarity = partial(rarities, language=session.language, usual=_USUAL_RARITY)
    return derive_query(messages, terms_of=terms_of, rarity=rarity)


def rarities(terms: Sequence[str], *, language: str, usual: float) -> Sequence[float]:
    """The rarity of each term in English; `usual` for each in another language."""
    if language != "english" or not terms:
        return [usual] * len(terms)
    hashes = np.array([term_hash(term) for term in terms], dtype=np.uint32)
    weights: list[float] = english_idf().of(hashes).tolist()
    return weights
