"""The ranking of a plan whose sections relevance fills: all that was found is ranked together, then parted.

Level: ranking (imports protocols, model and ranking only; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from germane.model.learning import Weights
from germane.model.plan import Fusion
from germane.model.query import Candidate, Found, Order, Query, TimeRange
from germane.model.trace import Ranked
from germane.protocols import Scorer
from germane.ranking.at_once import ranked_at_once
from germane.ranking.composite import Boosts, with_associations
from germane.ranking.gate import FEW, Gated, gate
from germane.ranking.relevance import rank

__all__ = ["Scoring", "by_relevance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What scores are made of beside signals, each as for `germane.ranking.relevance.rank`.

    `associated` says by memory id how near one is to what was found.
    """

    now: datetime
    method: Fusion = "floored"
    scorer: Scorer | None = None
    prefer: TimeRange | None = None
    order: Order | None = None
    without: Collection[str] = ()
    weights: Weights | None = None
    boosts: Boosts | None = None
    associated: Mapping[str, float] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether a score is the sum of what each signal says, and what multiplies into that."""
        others = self.scorer is not None or self.order is not None or self.without or self.associated
        return self.method == "floored" and not others


def by_relevance(
    sections: Sequence[Sequence[Candidate]],
    scoring: Scoring,
    *,
    found: Found,
    query: Query,
    gated: bool = False,
    exempt: Collection[str] = (),
) -> list[Gated]:
    """The candidates of each section in rank order, and those that have nothing to do with the question.

    All are ranked together, so that their scores compare across sections. What is associated passes the gate,
    as do memories whose ids are `exempt`. Raises as `rank` does.
    """
    if scoring.plain:
        at_once = ranked_at_once(
            sections,
            found=found,
            query=query,
            now=scoring.now,
            prefer=scoring.prefer,
            weights=scoring.weights,
            boosts=scoring.boosts,
            gated=gated,
            exempt=exempt,
        )
        if at_once is not None:
            return at_once
    ranked = _ranked([one for section in sections for one in section], scoring, found, query)
    passed = Gated(kept=ranked)
    if gated:
        passed = gate(
            ranked,
            prefer=scoring.prefer,
            exempt=frozenset(exempt) | scoring.associated.keys(),
            few=found.admitted <= FEW,
            information=query.information,
            least_cosine=query.least_cosine,
        )
    return _parted(sections, passed)


def _ranked(
    candidates: Sequence[Candidate], scoring: Scoring, found: Found, query: Query
) -> tuple[Ranked, ...]:
    ranked = rank(
        candidates,
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        now=scoring.now,
        method=scoring.method,
        scorer=scoring.scorer,
        query=query,
        prefer=scoring.prefer,
        order=scoring.order,
        without=scoring.without,
        weights=scoring.weights,
        boosts=scoring.boosts,
    )
    return with_associations(ranked, scoring.associated) if scoring.associated else ranked


def _parted(sections: Sequence[Sequence[Candidate]], passed: Gated) -> list[Gated]:
    """What each section has of a ranking, in the same order; of one that several have, the last."""
    section_of = {one.memory.ref: number for number, section in enumerate(sections) for one in section}
    kept: list[list[Ranked]] = [[] for _ in sections]
    dropped: list[list[Ranked]] = [[] for _ in sections]
    for parted, several in ((kept, passed.kept), (dropped, passed.dropped)):
        for one in several:
            parted[section_of[one.candidate.memory.ref]].append(one)
    return [
        Gated(kept=tuple(here), dropped=tuple(out), unsure=passed.unsure)
        for here, out in zip(kept, dropped, strict=True)
    ]
