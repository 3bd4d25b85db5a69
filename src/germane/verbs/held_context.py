"""assemble of a working set: put what is held in order, and let the pipeline make the text.

Level: verbs. It changes nothing that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from germane.model.context import Context
from germane.model.held import Held
from germane.model.holding import Features
from germane.model.memory import as_utc
from germane.model.plan import Overflow
from germane.model.query import Filter, Found
from germane.pipeline import Request, assemble
from germane.plans.working import working
from germane.ranking.fusion import floored_semantic
from germane.ranking.strategies import Arranged, Known, Strategy, arrange
from germane.retrieval.informative import coverages
from germane.verbs.checks import checked_count
from germane.verbs.entering import Side
from germane.verbs.question import Asked, query_of, understand

__all__ = ["assemble_held"]


def assemble_held(
    side: Side,
    query: str,
    *,
    strategy: Strategy,
    max_tokens: int | None,
    overflow: Overflow | str,
    order: str,
) -> Context:
    """The context of what is held. The clock is read once, and so is the set."""
    session = side.session
    held = side.now.read()
    budget = held.max_tokens if max_tokens is None else checked_count(max_tokens, name="max_tokens")
    now = as_utc(session.clock(), name="clock")
    asked = understand(session, query, Filter(), now=now)
    found = _arranged(side, held.items, asked, strategy=strategy, now=now)
    scores = {one.memory.id: -float(place) for place, one in enumerate(found.ranked)}
    kinds = tuple(sorted({one.memory.kind for one in held.items})) or ("note",)
    plan = working(overflow=overflow, order=order)
    section = replace(plan.sections[0], kinds=kinds, limit=max(len(held.items), 1))
    request = Request(
        plan=replace(plan, sections=(section,)),
        question=asked.question,
        query=query_of(asked, ()),
        budget=budget,
        counter=session.counter,
        kinds=session.kinds,
        now=now,
        scorer=lambda candidate, _query, _now: scores[candidate.memory.id],
        notes=(*asked.notes, *found.notes),
        lines=session.lines,
    )
    candidates = tuple(one.candidate for one in found.ranked)
    return assemble(request, Found(slices=(candidates,), stored=len(candidates), admitted=len(candidates)))


def _arranged(
    side: Side, items: Sequence[Held], asked: Asked, *, strategy: Strategy, now: datetime
) -> Arranged:
    """What is held, in the order of a strategy, with what is known of it."""
    asks = bool(asked.informative) and strategy.relevance > 0
    clusters = strategy.name == "clustered"
    features = side.now.features(items) if asks or clusters else {}
    known = Known(
        learned=side.now.learned(),
        relevance=_relevance(asked, features) if asks else None,
        vectors={name: each.vector for name, each in features.items() if each.vector is not None},
        terms={name: each.hashes for name, each in features.items()} if clusters else {},
    )
    return arrange(items, strategy, now=now, query=query_of(asked, ()), known=known)


def _relevance(asked: Asked, features: Mapping[str, Features]) -> Mapping[str, float]:
    """How much each memory has to do with the question, from 0 to 1.

    The share of the question's information that stands in its words, and where both have a vector the
    mean of that and of their cosine on the scale that a recall uses.
    """
    names = list(features)
    shares = coverages(asked.informative, [features[name].hashes for name in names]).tolist()
    found = dict(zip(names, shares, strict=True))
    if asked.vector is None:
        return found
    near = {
        name: float(asked.vector @ each.vector)
        for name, each in features.items()
        if each.vector is not None and each.vector.shape == asked.vector.shape
    }
    top = max(near.values(), default=0.0)
    for name, cosine in near.items():
        found[name] = (found[name] + floored_semantic(cosine, top=top)) / 2
    return {name: min(max(share, 0.0), 1.0) for name, share in found.items()}
