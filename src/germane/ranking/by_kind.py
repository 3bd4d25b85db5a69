"""The ranking of a plan whose kinds come first: relevance by the same scores as anywhere, then the order.

Level: ranking (imports protocols, model and errors; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from germane.model.learning import Weights
from germane.model.query import Candidate, Found, Query
from germane.model.trace import Ranked
from germane.model.work import KindsFirst, Work
from germane.protocols import Scorer
from germane.ranking.gate import LEAST_COSINE, Gated, gate
from germane.ranking.kinds_first import each_once, kinds_first
from germane.ranking.relevance import rank

__all__ = ["by_kind"]


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
    relevant: Mapping[str, Ranked] = {}
    if how.relevance and found.by_relevance:
        ranked = rank(
            [one for section in kept for one in section if not gated or _may_pass(one)],
            lexical_bound=found.lexical_bound,
            now=now,
            scorer=scorer,
            query=query,
            weights=weights,
        )
        passed = Gated(kept=ranked)
        if gated:
            passed = gate(ranked, information=query.information)
        relevant = {} if passed.unsure else {one.memory.id: one for one in passed.kept}
    return [Gated(kept=kinds_first(section, how, relevant=relevant, work=work, now=now)) for section in kept]


def _may_pass(candidate: Candidate) -> bool:
    """Whether the gate could let it pass: it shares a word with the task, or is near to it in meaning."""
    signals = candidate.signals
    return bool(signals.get("coverage") or signals.get("lexical")) or (
        signals.get("semantic", 0.0) >= LEAST_COSINE
    )
