"""One score with named parts for what was gathered, and the gate that keeps out what has nothing to do
with the question.

Pure: `now` is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from operator import attrgetter
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.context import Ranked, TraceNote
from germane.model.learning import Weights
from germane.model.plan import Fusion
from germane.model.query import LEAST_COSINE, Candidate, Order, Query, TimeRange
from germane.protocols import Scorer
from germane.ranking.scores import (
    OBSOLETE,
    Boosts,
    asks_for_history,
    leaning,
    lower_obsolete,
    multiply,
    under_successors,
    weighted_sum,
    weighted_sum_v1,
)
from germane.ranking.signals import (
    COSINE_FLOOR,
    Signals,
    evidence_in_column,
    evidence_of_words,
    fuse_ranks,
    history_factors,
    is_turn,
    share_of,
    shares_in_column,
    shares_of_identifiers,
    turn_parts,
)

__all__ = [
    "EXACT_BOOST",
    "FEW",
    "LEAST_COVERAGE",
    "LOW_CONFIDENCE",
    "WHEN_BOOST",
    "Gated",
    "gate",
    "outside",
    "parts_of",
    "rank",
]

_SIGNALS = ("lexical", "semantic")
WHEN_BOOST = 0.5
"""Enough to lift a memory of the right time over one that matches half a word better, not over all."""

EXACT_BOOST = 6.0
"""More than all other parts of a score together: who names an identifier means what holds it."""

_Parts: TypeAlias = list[dict[str, float]]
"""The parts of each candidate's score, in the order of the candidates."""

_COMPOSITE = {"weighted_sum": weighted_sum, "weighted_sum_v1": weighted_sum_v1}
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
    say (see `germane.ranking.signals.evidence_of_words`). (A turn of dialogue has more: see
    `germane.ranking.signals`.) Or `recency`, 1 for now and halved after a day, when no candidate has any;
    or `scorer` alone, when one is given. A memory of the time that `prefer` names scores half as much
    again, as part `when`; of those that match about alike, the first or last in time does by `order`;
    what holds an identifier of the question verbatim, as few do, scores more than all else, as part `exact`;
    a commit scores more where the question asks for history and less elsewhere, as part `history`; and
    one that a newer version replaces scores less than that one, as do records that say that they no longer
    hold, unless the question asks for such (see `germane.ranking.scores`). Parts that
    `without` names are left out of the sum, the others multiplied by their `weights`; `boosts` multiply into
    that (see `germane.ranking.scores`, whose "weighted_sum_v1" is left as it is). The order of the candidates
    doesn't matter. Raises InvalidInput for an unknown method, or a signal or score that is no number.
    """
    asked = query if query is not None else Query()
    exact = scorer is not None or method == "weighted_sum_v1"
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
            _weigh_commits(candidates, parts, asked.text)
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


def _weigh_commits(candidates: Sequence[Candidate], parts: _Parts, question: str) -> None:
    """Lower commits where nobody asks for history, and lift them where somebody does."""
    for place, factor in history_factors((each.memory for each in candidates), question).items():
        parts[place]["history"] = factor * math.fsum(parts[place].values())


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


# Tells what has to do with a question from what was merely found beside it.
#
# A score that only orders can't say that nothing fits. The gate looks at two measures that mean the
# same in every store: the cosine of a memory with the question, and the share of the question's
# information that stands in the memory. It removes and never reorders.

FEW = 5
"""In a store of so few memories any likeness counts: leaving out what matters costs more than it saves."""

LEAST_COVERAGE = 0.3
"""The share of a question's information below which its words say as little as that cosine."""

_OF_THE_BEST = 0.4
_SHARED_WORDS = 0.3
"""How much nearer two texts on different matters are where one has all words of the other."""
_COSINE_OF_FEW = 0.15
_WORDS_ALONE = 2 / 3
"""What is asked of words where they are all there is to go by: a paraphrase then has no second chance."""
_HOPELESS = 0.5

LOW_CONFIDENCE = TraceNote(
    code="low_confidence", text="Nothing matches the question well; the best match is shown all the same."
)
"""What a trace says when the gate would have left nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What passed and what didn't, each in rank order.

    `unsure` says that nothing did, so that the best match stands although it is weak.
    """

    passed: Sequence[Ranked]
    dropped: Sequence[Ranked] = ()
    unsure: bool = False


def gate(
    ranked: Sequence[Ranked],
    *,
    prefer: TimeRange | None = None,
    exempt: Collection[str] = (),
    few: bool = False,
    information: float = 0.0,
    least_cosine: float = LEAST_COSINE,
) -> Gated:
    """Part what has to do with the question from what doesn't.

    The signal `coverage` is the share of the question's information that stands in a memory; without
    it a memory has none. `information` is what the question says, in nats, where that is known.
    A memory passes by meaning, with a cosine, less 0.3 of the coverage, of at least `least_cosine` and
    0.4 of the best one: words in common bring vectors near that have nothing else in common;
    or by words that say something, with a coverage of at least `LEAST_COVERAGE` and 0.4 of the
    best one. Each is held against its own best, since a memory that repeats the question's words is
    no reason to doubt one that answers in others. Where no memory has a cosine, two thirds of what is
    asked of words are enough. Both count half as much again in a memory of the
    time that `prefer` names. Turns of dialogue pass, for their sense lies in the turns around them;
    so do memories without any signal, what holds an identifier of the question, and those whose ids are
    `exempt`. Where nothing passes, the first in rank order does that shares a word with the question or
    has half of the least cosine.
    Among a `few` memories, a shared word or a cosine of 0.15 is enough, and nothing may be left.
    """
    candidates = [one.candidate for one in ranked]
    exempt = frozenset(exempt) | {one.memory.id for one in ranked if "exact" in one.parts}
    judged = _verdict_of(candidates, prefer, exempt)
    if few:
        return _split_ranking(
            ranked,
            {place for place, (near, _, has) in judged.items() if near < _COSINE_OF_FEW and not has},
        )
    out = _outside(candidates, judged, information, least_cosine)
    unsure = False
    if len(out) == len(ranked):
        saying = (place for place in range(len(ranked)) if _says_something(judged[place], least_cosine))
        best = next(saying, None)
        unsure = best is not None
        out.discard(-1 if best is None else best)
    return _split_ranking(ranked, out, unsure=unsure)


def outside(
    signals: Signals,
    *,
    information: float = 0.0,
    least_cosine: float = LEAST_COSINE,
    preferred: NDArray[np.bool_] | None = None,
    exempt: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Which of these `gate` leaves out, none of them a turn; where all, it may keep the best nevertheless.

    `preferred` are those of the time that the question names, `exempt` those that pass whatever they are.
    """
    judged = signals.any if exempt is None else signals.any & ~exempt
    near = np.where(np.isnan(signals.semantic), 0.0, signals.semantic)
    covered = np.where(np.isnan(signals.coverage), 0.0, signals.coverage)
    meaning, has = near - _SHARED_WORDS * covered, covered
    if preferred is not None:
        lift = np.where(preferred, 1.0 + WHEN_BOOST, 1.0)
        near, meaning, has = lift * near, lift * meaning, lift * has
    if not judged.any():
        return judged
    cosine = max(least_cosine, _OF_THE_BEST * float(near[judged].max()))
    share = max(LEAST_COVERAGE, _OF_THE_BEST * float(has[judged].max()))
    alone = np.isnan(signals.semantic)
    if alone.all():
        share *= _WORDS_ALONE
    unlike = judged & (meaning < cosine)
    if not information:
        return unlike & (has < share)
    return unlike & ((has < share) | (~alone & (evidence_in_column(covered, information) <= 0)))


_Verdict: TypeAlias = dict[int, tuple[float, float, float]]
"""What `_measures` says of a candidate, by its place; those that aren't judged have none."""


def _verdict_of(
    candidates: Sequence[Candidate], prefer: TimeRange | None, exempt: Collection[str]
) -> _Verdict:
    return {
        place: _measures(one, prefer)
        for place, one in enumerate(candidates)
        if one.signals and not is_turn(one) and not (exempt and one.memory.ref in exempt)
    }


def _outside(
    candidates: Sequence[Candidate], judged: _Verdict, information: float, least_cosine: float
) -> set[int]:
    cosine = max(least_cosine, _OF_THE_BEST * max((near for near, _, _ in judged.values()), default=0.0))
    share = max(LEAST_COVERAGE, _OF_THE_BEST * max((has for _, _, has in judged.values()), default=0.0))
    if not any("semantic" in one.signals for one in candidates):
        share *= _WORDS_ALONE
    return {
        place
        for place, (_, meaning, has) in judged.items()
        if meaning < cosine and (has < share or not _words_say(candidates[place], information))
    }


def _split_ranking(ranked: Sequence[Ranked], out: Collection[int], *, unsure: bool = False) -> Gated:
    """`out` names places in the ranking."""
    if not out:
        return Gated(passed=tuple(ranked), unsure=unsure)
    return Gated(
        passed=tuple(one for place, one in enumerate(ranked) if place not in out),
        dropped=tuple(one for place, one in enumerate(ranked) if place in out),
        unsure=unsure,
    )


def _measures(candidate: Candidate, prefer: TimeRange | None) -> tuple[float, float, float]:
    """The cosine of a memory, what of it isn't owed to words in common, and its coverage."""
    cosine = candidate.signals.get("semantic", 0.0)
    share = candidate.signals.get("coverage", 0.0)
    meaning = cosine - _SHARED_WORDS * share
    if prefer is None or candidate.memory.created_at not in prefer:
        return cosine, meaning, share
    return (1.0 + WHEN_BOOST) * cosine, (1.0 + WHEN_BOOST) * meaning, (1.0 + WHEN_BOOST) * share


def _words_say(candidate: Candidate, information: float) -> bool:
    """Whether the words in common say something; they are all that a memory without a vector has."""
    signals = candidate.signals
    if not information or "semantic" not in signals:
        return True
    return evidence_of_words(signals.get("coverage", 0.0), information) > 0


def _says_something(measured: tuple[float, float, float], least_cosine: float) -> bool:
    cosine, _, share = measured
    return share > 0 or cosine >= _HOPELESS * least_cosine
