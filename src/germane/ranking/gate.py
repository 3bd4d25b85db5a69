"""Tells what has to do with a question from what was merely found beside it.

Level: ranking (imports model and ranking only; never retrieval or stores). Pure.

A score that only orders can't say that nothing fits. The gate looks at two measures that mean the
same in every store: the cosine of a memory with the question, and the share of the question's
information that stands in the memory. It removes and never reorders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.model.query import LEAST_COSINE, Candidate, TimeRange
from germane.model.trace import Note, Ranked
from germane.ranking.dialogue import is_turn
from germane.ranking.fusion import evidence_in_column, evidence_of_words
from germane.ranking.in_columns import Signals
from germane.ranking.relevance import WHEN_BOOST

__all__ = ["FEW", "LEAST_COVERAGE", "LOW_CONFIDENCE", "Gated", "gate", "outside"]

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

LOW_CONFIDENCE = Note(
    code="low_confidence", text="Nothing matches the question well; the best match is shown all the same."
)
"""What a trace says when the gate would have left nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What passed and what didn't, each in rank order.

    `unsure` says that nothing did, so that the best match stands although it is weak.
    """

    kept: Sequence[Ranked]
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
    judged = _judged(candidates, prefer, exempt)
    if few:
        return _parted(
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
    return _parted(ranked, out, unsure=unsure)


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


_Judged: TypeAlias = dict[int, tuple[float, float, float]]
"""What `_measures` says of a candidate, by its place; those that aren't judged have none."""


def _judged(candidates: Sequence[Candidate], prefer: TimeRange | None, exempt: Collection[str]) -> _Judged:
    return {
        place: _measures(one, prefer)
        for place, one in enumerate(candidates)
        if one.signals and not is_turn(one) and not (exempt and one.memory.ref in exempt)
    }


def _outside(
    candidates: Sequence[Candidate], judged: _Judged, information: float, least_cosine: float
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


def _parted(ranked: Sequence[Ranked], out: Collection[int], *, unsure: bool = False) -> Gated:
    """`out` names places in the ranking."""
    if not out:
        return Gated(kept=tuple(ranked), unsure=unsure)
    return Gated(
        kept=tuple(one for place, one in enumerate(ranked) if place not in out),
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
