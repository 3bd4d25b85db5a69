"""assemble of a working set: put what is held in order, and make one list of it.

Level: verbs. It changes nothing that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from germane.model.context import Context
from germane.model.holding import Features, HeldSet
from germane.model.memory import Level, as_utc
from germane.model.plan import Overflow, Plan
from germane.model.query import Filter
from germane.model.trace import Note
from germane.packing.listing import assemble_list
from germane.ranking.fusion import floored_semantic
from germane.ranking.strategies import Arranged, Known, Strategy, arrange
from germane.retrieval.informative import coverages
from germane.verbs.checks import checked_count
from germane.verbs.entering import Side
from germane.verbs.question import Asked, query_of, understand

__all__ = ["NOTHING_ASKED", "assemble_held"]

NOTHING_ASKED = Note(
    code="nothing_asked", text="No token was allowed, so the text is empty, and what is pinned isn't in it."
)
"""What a trace says where a text of 0 tokens was asked of a set with pinned memories."""


def assemble_held(
    side: Side,
    query: str,
    *,
    strategy: Strategy,
    plan: Plan,
    max_tokens: int | None,
    held: HeldSet | None = None,
) -> Context:
    """The context of what is held, by a plan of one list. The clock is read once, and so is the set.

    `held` is the set where it is read already.
    """
    held = held or side.now.read()
    budget = held.max_tokens if max_tokens is None else checked_count(max_tokens, name="max_tokens")
    now = as_utc(side.session.clock(), name="clock")
    asked = understand(side.session, query, Filter(), now=now)
    found = _arranged(side, held, asked, strategy=strategy, now=now)
    required = side.now.pinned(held)
    notes = [*asked.notes, *found.notes]
    if budget == 0 and required:
        # Asking for no text is no way to ask for what is pinned.
        required = frozenset()
        notes.append(NOTHING_ASKED)
    if shortened := side.now.shortened(held):
        plan = _degrading(plan)
        notes.append(_shortened_note(len(shortened), held.max_tokens))
    return assemble_list(
        plan,
        found.ranked,
        memories=found.memories,
        paragraphs=side.now.paragraphs(plan.sections[0].style),
        budget=budget,
        now=now,
        question=asked.question,
        required=required,
        notes=notes,
    )


def _degrading(plan: Plan) -> Plan:
    """The plan, with shorter texts for what doesn't fit whole."""
    (section,) = plan.sections
    overflow = Overflow.DEGRADE_STOP if section.overflow.stops else Overflow.DEGRADE
    shorter = (Level.FULL, Level.SUMMARY, Level.MICRO)
    return replace(plan, sections=(replace(section, levels=shorter, overflow=overflow),))


def _shortened_note(count: int, max_tokens: int) -> Note:
    some = "1 memory is" if count == 1 else f"{count:,} memories are"
    return Note(
        code="shortened",
        text=f"{some} longer than the whole set of {max_tokens:,} tokens, which holds a shorter text of it; "
        "what doesn't fit whole is shown shorter.",
    )


def _arranged(side: Side, held: HeldSet, asked: Asked, *, strategy: Strategy, now: datetime) -> Arranged:
    """What is held, in the order of a strategy, with what is known of it."""
    asks = bool(asked.informative) and strategy.relevance > 0
    clusters = strategy.name == "clustered"
    features = side.now.features(held) if asks or clusters else {}
    known = Known(
        learned=side.now.learned(),
        relevance=_relevance(asked, features) if asks else None,
        vectors={name: each.vector for name, each in features.items() if each.vector is not None},
        terms={name: each.hashes for name, each in features.items()} if clusters else {},
    )
    return arrange(
        held.items,
        strategy,
        now=now,
        query=query_of(asked, ()),
        known=known,
        figures=side.now.figures(held),
    )


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
