"""The ranking of a plan whose kinds come first: relevance by the same scores as anywhere, then the order.

Level: ranking (imports protocols, model and errors; never retrieval or stores). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from germane.model.learning import Weights
from germane.model.memory import Status
from germane.model.query import Candidate, Found, Query
from germane.model.slate import Slate
from germane.model.work import KindsFirst, Work
from germane.protocols import Scorer
from germane.ranking.gate import Gated, gate, outside
from germane.ranking.identifiers import identifiers_in
from germane.ranking.in_columns import Signals, signals_of
from germane.ranking.kinds_first import NOTHING_KNOWN, Known, each_once, kinds_first
from germane.ranking.relevance import parts_of, rank
from germane.ranking.standing import OBSOLETE, asks_for_history

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
    kept = each_once([Slate.of(section) for section in sections])
    known: Sequence[Known] = [NOTHING_KNOWN for _ in kept]
    if how.relevance and found.by_relevance:
        in_columns = gated and scorer is None and not identifiers_in(query.text)
        signals = signals_of(kept) if in_columns else None
        alone = None if signals is None else _judged(kept, signals, query.least_cosine)
        if signals is not None and alone is not None:
            known = _known_at_once(
                kept, signals, alone, lexical_bound=found.lexical_bound, query=query, weights=weights
            )
        else:
            known = _known_one_by_one(
                kept, found=found, query=query, now=now, scorer=scorer, gated=gated, weights=weights
            )
    if asks_for_history(query.text):
        how = replace(how, obsolete_last=False)
    return [
        Gated(kept=kinds_first(section, how, known=each, work=work, now=now))
        for section, each in zip(kept, known, strict=True)
    ]


def _judged(kept: Sequence[Slate], signals: Signals, least_cosine: float) -> NDArray[np.bool_] | None:
    """Which the gate could let pass.

    None where more than their signals has a say in their scores: a newer version, or their age alone.
    """
    may_pass = _may_pass(signals, least_cosine)
    memories = [one for section in kept for one in section.memories]
    replaced = [place for place, one in enumerate(memories) if one.status is _SUPERSEDED]
    those = signals.at(may_pass)
    none = np.isnan(those.lexical).all() and np.isnan(those.semantic).all()
    return None if none or may_pass[replaced].any() else may_pass


def _may_pass(signals: Signals, least_cosine: float) -> NDArray[np.bool_]:
    """Which the gate could let pass: they share a word with the task, or are near to it in meaning."""
    shares = (np.nan_to_num(signals.coverage) != 0) | (np.nan_to_num(signals.lexical) != 0)
    passing: NDArray[np.bool_] = shares | (np.nan_to_num(signals.semantic) >= least_cosine)
    return passing


def _known_at_once(
    kept: Sequence[Slate],
    signals: Signals,
    judged: NDArray[np.bool_],
    *,
    lexical_bound: float,
    query: Query,
    weights: Weights | None,
) -> list[Known]:
    """What relevance says of the candidates of each section, where each stands alone."""
    those = signals.at(judged)
    out = outside(those, information=query.information, least_cosine=query.least_cosine)
    parts = parts_of(those, lexical_bound=lexical_bound, query=query, weights=weights)
    columns: dict[str, NDArray[np.float64]] = {}
    for name, part in parts.items():
        columns[name] = np.full(len(judged), np.nan)
        columns[name][judged] = np.where(out, np.nan, part)
    ends = np.cumsum([0, *map(len, kept)]).tolist()
    return [
        Known.in_columns({name: column[start:end] for name, column in columns.items()})
        for start, end in pairwise(ends)
    ]


def _known_one_by_one(
    kept: Sequence[Slate],
    *,
    found: Found,
    query: Query,
    now: datetime,
    scorer: Scorer | None,
    gated: bool,
    weights: Weights | None,
) -> list[Known]:
    """The same by ranking them all, whatever they are."""
    everything = [
        one for section in kept for one in section if not gated or _could_pass(one, query.least_cosine)
    ]
    ranked = rank(
        everything,
        lexical_bound=found.lexical_bound,
        now=now,
        scorer=scorer,
        query=query,
        weights=weights,
        # The order by kinds sees to these by itself.
        without=(OBSOLETE,),
    )
    passed = (
        gate(ranked, information=query.information, least_cosine=query.least_cosine)
        if gated
        else Gated(kept=ranked)
    )
    relevant = {} if passed.unsure else {one.memory.ref: one.parts for one in passed.kept}
    return [Known.by_id(section, relevant) for section in kept]


def _could_pass(candidate: Candidate, least_cosine: float) -> bool:
    """The same as `_may_pass` says, of one with any signals."""
    signals = candidate.signals
    return bool(signals.get("coverage") or signals.get("lexical")) or (
        signals.get("semantic", 0.0) >= least_cosine
    )
