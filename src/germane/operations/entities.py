"""about, same_name: what is known about somebody or something, and decisions on names.

Entities aren't stored. They are made from the memories at each call, so what was purged, superseded or has
expired has no part in them. Decisions on names are memories too, each stored by a run in the log of what was
learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from germane.errors import InvalidInput
from germane.extractors.entities import Resolution
from germane.extractors.mentions import NAMES_METADATA, USER, Mentions, Node, Relation, node_of
from germane.model.change import RecordRun
from germane.model.extraction import (
    Decision,
    Entity,
    EntityFact,
    EntityReport,
    LearningRun,
    Proposal,
    ProposalOutcome,
    Quote,
)
from germane.model.memory import Draft, Memory, Status
from germane.model.query import Filter, Query, Slice
from germane.model.validation import as_utc, checked_text
from germane.operations.context import AgentContext
from germane.operations.drafts import memory_of
from germane.operations.inputs import checked_count
from germane.operations.learning import LearningBatch
from germane.operations.read import by_key, stored_pages
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import LEARNING

BY_HAND: Final = "by hand"
"""The extractor of a run that stores a decision on names."""
DECISION_ON_NAMES: Final = "names:"
"""What the key of a decision on names begins with."""
_MOST_NAMES: Final = 50
"""Names of one entity that are searched for."""
_LOOKED_AT: Final = 1000
"""Memories that are read of one name."""
_SHOWN: Final = (Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED)
_WHO_THE_USER_IS: Final = "The user's name is called"


def about(
    session: AgentContext, name: str, *, limit: int | None = None, log: AgentContext | None = None
) -> EntityReport:
    """What is known about a name now, by the clock of `session`; `log` has the runs that quote messages."""
    node = _node(name, "name")
    most = None if limit is None else checked_count(limit, name="limit", least=1)
    now = as_utc(session.clock(), name="clock")
    found, is_cut = _gathered(session, node, now)
    entities = found.entities_of(node)
    attribution = _Attribution(found, entities)
    quotes = _quotes(log or session, attribution.memories, now)
    known = [
        Entity(name=names[0], names=names, merges=found.merges_of(each), facts=_facts(memories, quotes, now))
        for each, memories in zip(entities, attribution.of_entities, strict=True)
        if memories and (names := found.shown(each))
    ]
    report = EntityReport(
        name=name,
        at=now,
        entities=tuple(known),
        unclear=_facts(attribution.unclear, quotes, now),
        notes=tuple(found.notes_of({*(one for each in entities for one in each), node})),
    )
    if is_cut:
        note = (
            f"More than {_LOOKED_AT:,} memories have one of its names; only {_LOOKED_AT:,} were read of each."
        )
        report = replace(report, notes=(*report.notes, note))
    return report if most is None else _shortened(report, most)


def same_name(
    session: AgentContext, name: str, other: str, *, same: bool = True, reason: str = ""
) -> LearningRun:
    """Decide that two names are one entity, or aren't; the run by which it is undone. Raises InvalidInput."""
    names = sorted((checked_text(name, name="name"), checked_text(other, name="other")))
    nodes = _node(name, "name"), _node(other, "other")
    if nodes[0] == nodes[1]:
        raise InvalidInput(f"{name!r} and {other!r} are the same name. Give two different names.")
    LEARNING.required(session.store)
    now = as_utc(session.clock(), name="clock")
    draft = Draft(
        content=f"{names[0]} and {names[1]} are {'' if same else 'not '}the same.",
        kind="fact",
        key=f"{DECISION_ON_NAMES} {' | '.join(sorted(' '.join(map(str, each)) for each in nodes))}",
        metadata={NAMES_METADATA: {"names": names, "same": same, "reason": reason}},
    )
    new = memory_of(session, draft, now=now)
    known = by_key(session, draft.key or "")
    proposal = Proposal(content=new.content, quotes=())
    made = Decision(proposal=proposal, outcome=ProposalOutcome.NEW, reason=reason or "It was decided.")
    batch = LearningBatch(session, (), (), now)
    if known is None:
        made = batch.inserted(made, new)
    elif known.content == new.content and known.status is Status.ACTIVE:
        made = made.evolve(outcome=ProposalOutcome.NOTHING, reason="It was decided before.", memory=known.id)
    else:
        made = batch.revised(made.evolve(outcome=ProposalOutcome.REVISED), new, known)
    run = LearningRun(id=session.ids.next(now), extractor=BY_HAND, at=now, decisions=(made,))
    session.store.apply(session.agent, [*batch.changes, RecordRun(run=run)])
    return run


def _node(text: str, name: str) -> Node:
    node = node_of(checked_text(text, name=name))
    if node is None:
        raise InvalidInput(f"{name}={text!r} has no name in it. Give a name such as 'Anna' or 'my sister'.")
    return node


def _gathered(session: AgentContext, node: Node, now: datetime) -> tuple[Resolution, bool]:
    """The names in the memories that an entity's names lead to, and whether one has too many of them."""
    decided = Filter(where=f"{NAMES_METADATA}.same exists")
    found = [one for side in session.sides for page in stored_pages(side, decided) for one in page]
    found += _with_words(session, _WHO_THE_USER_IS, _MOST_NAMES)
    memories = {each.version_id: each for each in found}
    searched: set[Node] = set()
    waiting: set[Node] = {node}
    is_cut = False
    while True:
        for each in sorted(waiting, key=str):
            found = list(_naming(session, each))
            is_cut = is_cut or len(found) >= _LOOKED_AT
            memories.update((memory.version_id, memory) for memory in found)
        searched |= waiting
        resolution = Resolution(memories.values(), now=now, wanted=(node,))
        waiting = {one for entity in resolution.entities_of(node) for one in entity} - searched
        if not waiting or len(searched) >= _MOST_NAMES:
            return resolution, is_cut


def _naming(session: AgentContext, node: Node) -> Iterator[Memory]:
    """The memories that may name an entity by one of its names."""
    if node == USER:
        for side in session.sides:
            where = Filter(subject=USER[0], statuses=_SHOWN)
            yield from side.store.find(side.agent, where, limit=_LOOKED_AT)
    words = (*node.owner, node.relation) if isinstance(node, Relation) else node
    yield from _with_words(session, " ".join(words), _LOOKED_AT)


def _with_words(session: AgentContext, text: str, limit: int) -> Iterator[Memory]:
    terms = query_terms(text, language=session.language)
    query = Query(text=text, terms=terms, filter=Filter(statuses=_SHOWN), slices=(Slice(limit=limit),))
    for side in session.sides if terms else ():
        yield from (each.memory for each in side.store.search(side.agent, query).slices[0])


@dataclass(slots=True, init=False)
class _Attribution:
    """Which memories are about which of some entities, each with whether it merely mentions it."""

    of_entities: list[list[tuple[Memory, bool]]]
    unclear: list[tuple[Memory, bool]]

    def __init__(self, found: Resolution, entities: Sequence[frozenset[Node]]) -> None:
        roots = [found.root(next(iter(each))) for each in entities]
        self.of_entities = [[] for _ in roots]
        self.unclear = []
        for mention in found.mentions:
            if NAMES_METADATA in mention.memory.metadata:
                continue
            sure, possible = found.attributed(mention)
            for root, memories in zip(roots, self.of_entities, strict=True):
                if root in sure:
                    memories.append((mention.memory, _is_mentioned(found, mention, root)))
            if possible & set(roots) and not sure & set(roots):
                self.unclear.append((mention.memory, False))

    @property
    def memories(self) -> Iterable[Memory]:
        """All of the memories."""
        return (memory for each in (*self.of_entities, self.unclear) for memory, _ in each)


def _is_mentioned(found: Resolution, mention: Mentions, root: Node) -> bool:
    """Whether a memory is about somebody else."""
    return mention.about is not None and root not in {
        found.root(each) for each in found.options(mention.about)
    }


def _facts(
    memories: Iterable[tuple[Memory, bool]], quotes: Mapping[str, tuple[Quote, ...]], now: datetime
) -> tuple[EntityFact, ...]:
    facts = (
        EntityFact(
            memory=memory,
            since=memory.valid_from or memory.created_at,
            until=memory.valid_until,
            current=memory.status is Status.ACTIVE
            and memory.superseded_by is None
            and memory.holds(now, now),
            mentioned=is_mentioned,
            quotes=quotes.get(memory.version_id, ()),
        )
        for memory, is_mentioned in memories
    )
    return tuple(sorted(facts, key=lambda each: (each.since, each.memory.created_at, each.memory.version_id)))


def _quotes(
    session: AgentContext, memories: Iterable[Memory], now: datetime
) -> Mapping[str, tuple[Quote, ...]]:
    """The messages that state memories of the session's own, by their versions, as the runs until now say."""
    tables = LEARNING.of(session.store)
    own = {(each.id, each.content): each for each in memories if each.agent == session.agent}
    found: dict[str, list[Quote]] = {}
    sessions = {each.session for each in own.values() if each.session} if tables else ()
    for name in sorted(sessions):
        for run in reversed(tables.runs(session.agent, session=name) if tables else ()):
            for decision in run.decisions if run.at <= now else ():
                stated = own.get((decision.memory or "", decision.proposal.content))
                if stated is not None and decision.effects and not decision.undone:
                    found.setdefault(stated.version_id, []).extend(decision.proposal.quotes)
    return {version: tuple(dict.fromkeys(quotes)) for version, quotes in found.items()}


def _shortened(report: EntityReport, most: int) -> EntityReport:
    """The report with the latest facts of each entity."""
    entities = tuple(replace(each, facts=each.facts[-most:]) for each in report.entities)
    short = replace(report, entities=entities, unclear=report.unclear[-most:])
    left = len(list(report)) - len(list(short))
    notes = (*report.notes, f"The earliest facts were left out: {left:,}.") if left else report.notes
    return replace(short, notes=notes)
