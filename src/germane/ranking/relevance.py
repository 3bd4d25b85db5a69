"""Turns what gathering found into one score with named parts, in one total order.

Level: ranking (imports protocols, model and errors; never retrieval or stores). Pure: `now` is an
argument.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from operator import attrgetter
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.learning import Weights
from germane.model.plan import Fusion
from germane.model.query import Candidate, Order, Query, TimeRange
from germane.model.trace import Ranked
from germane.protocols import Scorer
from germane.ranking.composite import Boosts, multiply, newton, newton_v1
from germane.ranking.dialogue import is_turn, turn_parts
from germane.ranking.fusion import (
    COSINE_FLOOR,
    evidence_in_column,
    evidence_of_words,
    fuse_ranks,
    share_of,
    shares_in_column,
)
from germane.ranking.history import SHARE_OF_COMMITS, commits_among
from germane.ranking.identifiers import shares_of_identifiers
from germane.ranking.in_columns import Signals
from germane.ranking.standing import (
    OBSOLETE,
    asks_for_history,
    leaning,
    lower_obsolete,
    under_successors,
)

__all__ = ["EXACT_BOOST", "WHEN_BOOST", "parts_of", "rank"]

_SIGNALS = ("lexical", "semantic")
WHEN_BOOST = 0.5
"""Enough to lift a memory of the right time over one that matches half a word better, not over all."""

EXACT_BOOST = 6.0
"""More than all other parts of a score together: who names an identifier means what holds it."""

_Parts: TypeAlias = list[dict[str, float]]
"""The parts of each candidate's score, in the order of the candidates."""

_COMPOSITE = {"newton": newton, "newton_v1": newton_v1}
_SCORE = attrgetter("score")
_SCORE_AND_NEWNESS = attrgetter("score", "candidate.memory.created_at", "candidate.memory.ref")


def rank(
    candidates: Sequence[Candidate],
    *,
    lexical_bound: float,
    now: datetime,
    window_bound: float = 0.0,
    method: Fusion = "floored",
    scorer: Scorer | None = None,
    query: Query | None = None,
    prefer: TimeRange | None = None,
    order: Order | None = None,
    without: Collection[str] = (),
    weights: Weights | None = None,
    boosts: Boosts | None = None,
) -> tuple[Ranked, ...]:
    """Every candidate with its score, best first: by score, then the newer, then the greater id.

    The parts add up to the score. They are `lexical` and `semantic`, each from 0 to 1 and weighed
    alike, for the signals that a candidate has; where it has both, its words count by how much they
    say (see `germane.ranking.fusion.evidence_of_words`). (A turn of dialogue has more: see
    `germane.ranking.dialogue`.) Or `recency`, 1 for now and halved after a day, when no candidate has any;
    or `scorer` alone, when one is given. A memory of the time that `prefer` names scores half as much
    again, as part `when`; of those that match about alike, the first or last in time does by `order`;
    what holds an identifier of the question verbatim, as few do, scores more than all else, as part `exact`;
    a commit scores less unless the question asks for history, as part `history`; and
    one that a newer version replaces scores less than that one, as do records that say that they no longer
    hold, unless the question asks for such (see `germane.ranking.standing`). Parts that
    `without` names are left out of the sum, the others multiplied by their `weights`; `boosts` multiply into
    that (see `germane.ranking.composite`, whose "newton_v1" is left as it is). The order of the candidates
    doesn't matter. Raises InvalidInput for an unknown method, or a signal or score that is no number.
    """
    asked = query if query is not None else Query()
    exact = scorer is not None or method == "newton_v1"
    by_signals = method == "floored"
    if scorer is not None:
        parts: _Parts = [{"scorer": scored_by(scorer, each, asked, now)} for each in candidates]
    elif method in _COMPOSITE:
        parts, boosts = _summed(candidates, method, now, boosts or Boosts()), None
    elif any(name in candidate.signals for candidate in candidates for name in _SIGNALS):
        parts = _fused(candidates, lexical_bound, window_bound, asked, method)
    else:
        parts, boosts = _by_recency(candidates, now), None
    if without:
        parts = [{name: part for name, part in each.items() if name not in without} for each in parts]
    if not exact:
        _adjust(candidates, parts, prefer=None if "when" in without else prefer, weights=weights)
        if by_signals and "history" not in without:
            _lower_commits(candidates, parts, asked.text)
        if boosts is not None:
            multiply(candidates, parts, now=now, boosts=boosts, without=without)
        _lower_and_lift(candidates, parts, asked.text, without=without if by_signals else (*without, "exact"))
    ranked = _scored(candidates, parts)
    if not exact:
        ranked = under_successors(ranked if order is None or "order" in without else leaning(ranked, order))
    # Where no score occurs twice, the rest of the order can't show, and needn't be read.
    distinct = len({one.score for one in ranked}) == len(ranked)
    return tuple(sorted(ranked, key=_SCORE if distinct else _SCORE_AND_NEWNESS, reverse=True))


def _lower_and_lift(
    candidates: Sequence[Candidate], parts: _Parts, question: str, *, without: Collection[str]
) -> None:
    """Lower what no longer holds, unless the question asks for it, and lift what holds its identifiers."""
    if OBSOLETE not in without and not asks_for_history(question):
        lower_obsolete([one.memory for one in candidates], parts)
    if "exact" not in without:
        _lift_holders(candidates, parts, question)


def parts_of(
    signals: Signals,
    *,
    lexical_bound: float,
    query: Query,
    weights: Weights | None = None,
    preferred: NDArray[np.bool_] | None = None,
) -> Mapping[str, NDArray[np.float64]]:
    """The parts that `rank` gives memories with these signals, a column for each; NaN where one has no part.

    That is by the method "floored", and for memories that stand alone: neither turns of dialogue nor
    versions that a newer one replaces. The signals are finite, and some memory has one of relevance.
    `preferred` are those of the time that the question names.
    """
    lexical, semantic, coverage = signals.lexical, signals.semantic, signals.coverage
    best_match = float(np.fmax.reduce(lexical, initial=max(lexical_bound, 0.0)))
    nearest = float(np.fmax.reduce(semantic, initial=COSINE_FLOOR))
    words = shares_in_column(lexical, best_match)
    if query.information:
        judged = (lexical != 0) & ~np.isnan(semantic) & ~np.isnan(coverage)
        words[judged] *= evidence_in_column(coverage[judged], query.information)
    parts = {"lexical": words, "semantic": shares_in_column(semantic, nearest)}
    if preferred is not None:
        whole = np.nan_to_num(parts["lexical"]) + np.nan_to_num(parts["semantic"])
        parts["when"] = np.where(preferred, WHEN_BOOST * whole, np.nan)
    if weights is not None:
        parts = {name: weights.values.get(name, 1.0) * part for name, part in parts.items()}
    return parts


def scored_by(scorer: Scorer, candidate: Candidate, query: Query, now: datetime) -> float:
    """What a caller's scorer gives a candidate. Raises InvalidInput where it raises or returns no number."""
    try:
        return float(scorer(candidate, query, now))
    except Exception as error:
        raise InvalidInput(
            f"The scorer failed for memory {candidate.memory.id!r}: {type(error).__name__}: {error}."
        ) from error


def _by_recency(candidates: Sequence[Candidate], now: datetime) -> _Parts:
    days = [(now - each.memory.created_at) / timedelta(days=1) for each in candidates]
    return [{"recency": 1.0 / (1.0 + max(each, 0.0))} for each in days]


def _summed(candidates: Sequence[Candidate], method: str, now: datetime, boosts: Boosts) -> _Parts:
    _check_signals(candidates)
    return [_COMPOSITE[method](each, now=now, boosts=boosts) for each in candidates]


def _fused(
    candidates: Sequence[Candidate], lexical_bound: float, window_bound: float, asked: Query, method: str
) -> _Parts:
    _check_signals(candidates)
    if method == "rrf":
        return _reciprocal(candidates)
    if method != "floored":
        raise InvalidInput(f"method={method!r} is no way to fuse signals. Use {', '.join(get_args(Fusion))}.")
    parts = _floored(candidates, lexical_bound, asked.information)
    if any(map(is_turn, candidates)):
        return turn_parts(candidates, parts, window_bound=window_bound, question=asked.text)
    return parts


def _adjust(
    candidates: Sequence[Candidate], parts: _Parts, *, prefer: TimeRange | None, weights: Weights | None
) -> None:
    """Add the boost of the time that is asked for, and weigh each part by what use has taught."""
    if prefer is not None:
        _prefer(prefer, candidates, parts)
    if weights is not None:
        for each in parts:
            for name, part in each.items():
                each[name] = weights.values.get(name, 1.0) * part


def _lower_commits(candidates: Sequence[Candidate], parts: _Parts, question: str) -> None:
    """Take most of the score of commits where nobody asks for history."""
    for place in commits_among((each.memory for each in candidates), question):
        parts[place]["history"] = (SHARE_OF_COMMITS - 1) * math.fsum(parts[place].values())


def _lift_holders(candidates: Sequence[Candidate], parts: _Parts, question: str) -> None:
    """Lift what holds an identifier of the question above all else."""
    shares = shares_of_identifiers([each.memory for each in candidates], question)
    for place, share in shares.items():
        parts[place]["exact"] = EXACT_BOOST + share


def _check_signals(candidates: Sequence[Candidate]) -> None:
    # One test for all of them: which one is at fault is only asked once one is.
    if all(map(math.isfinite, chain.from_iterable(each.signals.values() for each in candidates))):
        return
    for candidate in candidates:
        for name, value in candidate.signals.items():
            if not math.isfinite(value):
                raise InvalidInput(
                    f"The {name} signal of memory {candidate.memory.ref!r} is {value}, "
                    "which can't be ranked. The store that found it has to return finite signals."
                )


def _floored(candidates: Sequence[Candidate], lexical_bound: float, information: float) -> _Parts:
    """Both signals on a scale of their own kind, as `floored_lexical` and `floored_semantic` give it.

    Where meaning can judge a memory that stands alone, its words count by how much they say. Turns of
    dialogue are left as they are: the turns around them tell one sense of a word from another.
    """
    best_match = max([lexical_bound, *(each.signals.get("lexical", 0.0) for each in candidates)])
    nearest = max([COSINE_FLOOR, *(each.signals.get("semantic", 0.0) for each in candidates)])
    parts: _Parts = []
    for candidate in candidates:
        signals, found = candidate.signals, {}
        bm25, cosine = signals.get("lexical"), signals.get("semantic")
        if bm25 is not None:
            found["lexical"] = share_of(bm25, best_match)
        if cosine is not None:
            if bm25 and information and "coverage" in signals and not is_turn(candidate):
                found["lexical"] *= evidence_of_words(signals["coverage"], information)
            found["semantic"] = share_of(cosine, nearest)
        parts.append(found)
    return parts


def _reciprocal(candidates: Sequence[Candidate]) -> _Parts:
    """What each list adds by the places of those that match in it; nothing for who doesn't stand in it."""
    rankings = {}
    for name in _SIGNALS:
        matching = [each for each in candidates if each.signals.get(name, 0.0) > 0]
        matching.sort(
            key=lambda each: (each.signals[name], each.memory.created_at, each.memory.ref), reverse=True
        )
        rankings[name] = list(dict.fromkeys(each.memory.ref for each in matching))
    fused = fuse_ranks(rankings)
    return [dict(fused[each.memory.ref].sources) if each.memory.ref in fused else {} for each in candidates]


def _prefer(prefer: TimeRange, candidates: Sequence[Candidate], parts: _Parts) -> None:
    """Add the boost of the time that the question names; it multiplies into the score."""
    for candidate, found in zip(candidates, parts, strict=True):
        if candidate.memory.created_at in prefer:
            found["when"] = WHEN_BOOST * math.fsum(found.values())


def _scored(candidates: Sequence[Candidate], parts: _Parts) -> list[Ranked]:
    scores = [math.fsum(each.values()) for each in parts]
    if not all(map(math.isfinite, scores)):
        place = next(place for place, score in enumerate(scores) if not math.isfinite(score))
        raise InvalidInput(
            f"The scorer gave memory {candidates[place].memory.ref!r} the score {scores[place]}, which has "
            "no place in an order. A scorer has to return a finite number."
        )
    return [
        Ranked(candidate=candidate, score=score, parts=found)
        for candidate, score, found in zip(candidates, scores, parts, strict=True)
    ]
