"""The ranking of a plan whose kinds come first: relevance by the same scores as anywhere, then the order.

Level: ranking (imports protocols, model and errors; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from germane.model.learning import Weights
from germane.model.memory import Status
from germane.model.query import Candidate, Found, Query
from germane.model.work import KindsFirst, Work
from germane.protocols import Scorer
from germane.ranking.dialogue import is_turn
from germane.ranking.gate import Gated, gate, outside
from germane.ranking.kinds_first import each_once, kinds_first
from germane.ranking.relevance import parts_of, rank

__all__ = ["by_kind"]

_SUPERSEDED = Status.SUPERSEDED


def by_kind(
    sections: Sequence[Sequence[Candidate]],
    how: KindsFirst,
    *,
    found: Found,
    query: Query,
    work: Work,
    now: datetime,
    scorer: Scorer | None = None,
    gated: bool = True,
    weights: Weights | None = None,
) -> list[Gated]:
    """The candidates of each section in rank order, each chain once; none is dropped.

    What the gate would leave out has no relevance here, so that among it the latest comes first.
    """
    kept = each_once(sections)
    relevant: Mapping[str, Mapping[str, float]] = {}
    if how.relevance and found.by_relevance:
        everything = [one for section in kept for one in section if not gated or _may_pass(one, query)]
        if gated and scorer is None and all(map(_stands_alone, everything)):
            out = outside(everything, information=query.information, least_cosine=query.least_cosine)
            passing = [one for place, one in enumerate(everything) if place not in out]
            parts = parts_of(
                passing,
                among=everything,
                lexical_bound=found.lexical_bound,
                now=now,
                query=query,
                weights=weights,
            )
            relevant = {one.memory.id: each for one, each in zip(passing, parts, strict=True)}
        else:
            ranked = rank(
                everything,
                lexical_bound=found.lexical_bound,
                now=now,
                scorer=scorer,
                query=query,
                weights=weights,
            )
            passed = Gated(kept=ranked)
            if gated:
                passed = gate(ranked, information=query.information, least_cosine=query.least_cosine)
            relevant = {} if passed.unsure else {one.memory.id: one.parts for one in passed.kept}
    return [Gated(kept=kinds_first(section, how, relevant=relevant, work=work, now=now)) for section in kept]


def _stands_alone(candidate: Candidate) -> bool:
    """Whether no other candidate has a say in its score, as those around a turn and a newer version do."""
    return candidate.memory.status is not _SUPERSEDED and not is_turn(candidate)


def _may_pass(candidate: Candidate, query: Query) -> bool:
    """Whether the gate could let it pass: it shares a word with the task, or is near to it in meaning."""
    signals = candidate.signals
    return bool(signals.get("coverage") or signals.get("lexical")) or (
        signals.get("semantic", 0.0) >= query.least_cosine
    )
