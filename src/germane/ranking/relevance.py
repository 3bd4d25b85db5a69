"""Turns what gathering found into one score with named parts, in one total order.

Level: ranking (imports protocols, model and errors; never retrieval or stores). Pure: `now` is an
argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from germane.errors import InvalidInput
from germane.model.learning import Weights
from germane.model.query import Candidate, Order, Query, TimeRange
from germane.model.trace import Ranked
from germane.protocols import Scorer
from germane.ranking.dialogue import TURN_SIGNALS, is_turn, turn_parts
from germane.ranking.fusion import (
    evidence_of_words,
    floored_lexical,
    floored_semantic,
    reciprocal_rank_fusion,
)
from germane.ranking.standing import leaning, under_successors

__all__ = ["WHEN_BOOST", "Method", "rank"]

Method: TypeAlias = Literal["floored", "rrf"]

_SIGNALS = ("lexical", "semantic")
WHEN_BOOST = 0.5
"""Enough to lift a memory of the right time over one that matches half a word better, not over all."""

_Parts: TypeAlias = Callable[[Candidate], Mapping[str, float]]


def rank(
    candidates: Sequence[Candidate],
    *,
    lexical_bound: float,
    now: datetime,
    window_bound: float = 0.0,
    method: Method = "floored",
    scorer: Scorer | None = None,
    query: Query | None = None,
    prefer: TimeRange | None = None,
    order: Order | None = None,
    without: Collection[str] = (),
    weights: Weights | None = None,
) -> tuple[Ranked, ...]:
    """Every candidate with its score, best first: by score, then the newer, then the greater id.

    The parts add up to the score. They are `lexical` and `semantic`, each from 0 to 1 and weighed
    alike, for the signals that a candidate has; where it has both, its words count by how much they
    say (see `germane.ranking.fusion.evidence_of_words`). (A turn of dialogue has more: see
    `germane.ranking.dialogue`.) Or `recency`, 1 for now and halved after a day, when
    no candidate has any; or `scorer` alone, when a scorer is given. A memory of the time that
    `prefer` names scores half as much again, as part `when`; of those that match about alike, the
    first or last in time does by `order`; and one that a newer version replaces scores less than that
    one (see `germane.ranking.standing`). Parts that `without` names are left out of the sum, and the
    others multiplied by their `weights`. The order of the candidates doesn't matter. Raises
    InvalidInput for an unknown method, or a signal or score that is no number.
    """
    if scorer is not None:
        parts_of = _by_scorer(scorer, query if query is not None else Query(), now)
    elif any(name in candidate.signals for candidate in candidates for name in _SIGNALS):
        _check_signals(candidates)
        information = query.information if query is not None else 0.0
        parts_of = _fused(candidates, lexical_bound, information, method)
        if method == "floored" and any(name in each.signals for each in candidates for name in TURN_SIGNALS):
            alone = {each.memory.id: parts_of(each) for each in candidates}
            question = query.text if query is not None else ""
            parts_of = turn_parts(candidates, alone, window_bound=window_bound, question=question)
    else:
        parts_of = _by_recency(now)
    if without:
        parts_of = _leaving_out(without, parts_of)
        prefer = None if "when" in without else prefer
    if prefer is not None:
        parts_of = _preferring(prefer, parts_of)
    if weights is not None:
        parts_of = _weighed(weights, parts_of)
    ranked = [_ranked(each, parts_of(each)) for each in candidates]
    if scorer is None:
        ranked = under_successors(ranked if order is None or "order" in without else leaning(ranked, order))
    return tuple(sorted(ranked, key=_score_and_newness, reverse=True))


def _leaving_out(names: Collection[str], whole: _Parts) -> _Parts:
    return lambda candidate: {name: part for name, part in whole(candidate).items() if name not in names}


def _weighed(weights: Weights, whole: _Parts) -> _Parts:
    values = weights.values
    return lambda candidate: {name: values.get(name, 1.0) * part for name, part in whole(candidate).items()}


def _by_scorer(scorer: Scorer, query: Query, now: datetime) -> _Parts:
    return lambda candidate: {"scorer": float(scorer(candidate, query, now))}


def _by_recency(now: datetime) -> _Parts:
    def parts(candidate: Candidate) -> Mapping[str, float]:
        days = (now - candidate.memory.created_at) / timedelta(days=1)
        return {"recency": 1.0 / (1.0 + max(days, 0.0))}

    return parts


def _fused(candidates: Sequence[Candidate], lexical_bound: float, information: float, method: str) -> _Parts:
    if method == "floored":
        return _floored(candidates, lexical_bound, information)
    if method == "rrf":
        return _reciprocal(candidates)
    raise InvalidInput(f"method={method!r} is no way to fuse signals. Use 'floored' or 'rrf'.")


def _check_signals(candidates: Sequence[Candidate]) -> None:
    for candidate in candidates:
        for name, value in candidate.signals.items():
            if not math.isfinite(value):
                raise InvalidInput(
                    f"The {name} signal of memory {candidate.memory.id!r} is {value}, "
                    "which can't be ranked. The store that found it has to return finite signals."
                )


def _floored(candidates: Sequence[Candidate], lexical_bound: float, information: float) -> _Parts:
    """Both signals on a scale of their own kind.

    Where meaning can judge a memory that stands alone, its words count by how much they say. Turns of
    dialogue are left as they are: the turns around them tell one sense of a word from another.
    """
    top = {name: max((each.signals.get(name, 0.0) for each in candidates), default=0.0) for name in _SIGNALS}

    def parts(candidate: Candidate) -> Mapping[str, float]:
        found = {}
        bm25 = candidate.signals.get("lexical", 0.0)
        if "lexical" in candidate.signals:
            found["lexical"] = floored_lexical(bm25, top=top["lexical"], bound=lexical_bound)
        if "semantic" in candidate.signals:
            if bm25 and information and "coverage" in candidate.signals and not is_turn(candidate):
                found["lexical"] *= evidence_of_words(candidate.signals["coverage"], information)
            found["semantic"] = floored_semantic(candidate.signals["semantic"], top=top["semantic"])
        return found

    return parts


def _reciprocal(candidates: Sequence[Candidate]) -> _Parts:
    fused: dict[str, Mapping[str, float]] = {}
    for name in _SIGNALS:
        having = [each for each in candidates if name in each.signals]
        having.sort(key=lambda each: (each.signals[name], *_newness(each)), reverse=True)
        fused[name] = reciprocal_rank_fusion([list(dict.fromkeys(each.memory.id for each in having))])
    return lambda candidate: {
        name: fused[name][candidate.memory.id] for name in _SIGNALS if name in candidate.signals
    }


def _preferring(prefer: TimeRange, whole: _Parts) -> _Parts:
    """The parts with the boost of the time that the question names; it multiplies into the score."""

    def parts(candidate: Candidate) -> Mapping[str, float]:
        found = whole(candidate)
        if candidate.memory.created_at not in prefer:
            return found
        return {**found, "when": WHEN_BOOST * math.fsum(found.values())}

    return parts


def _ranked(candidate: Candidate, parts: Mapping[str, float]) -> Ranked:
    score = math.fsum(parts.values())
    if not math.isfinite(score):
        raise InvalidInput(
            f"The scorer gave memory {candidate.memory.id!r} the score {score}, which has no place in an "
            "order. A scorer has to return a finite number."
        )
    return Ranked(candidate=candidate, score=score, parts=parts)


def _newness(candidate: Candidate) -> tuple[datetime, str]:
    return candidate.memory.created_at, candidate.memory.id


def _score_and_newness(ranked: Ranked) -> tuple[float, datetime, str]:
    return ranked.score, *_newness(ranked.candidate)
