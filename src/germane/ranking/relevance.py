"""Ranks candidates by relevance: one score with named parts, and the gate that leaves out what doesn't match.

Pure: the moment is a field of `Scoring`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.context import Ranked, TraceNote
from germane.model.learning import Weights
from germane.model.plan import Fusion
from germane.model.query import LEAST_COSINE, Candidate, CandidateTable, Order, Query, TimeRange
from germane.protocols import Scorer
from germane.ranking.scores import (
    OBSOLETE,
    VALIDITY,
    Boosts,
    asks_for_obsolete,
    favour_order,
    lower_invalid,
    lower_obsolete,
    lower_superseded,
    multiply,
    sums_of,
    weighted_sum,
)
from germane.ranking.signals import (
    COSINE_FLOOR,
    are_turns,
    check_finite,
    column_at,
    evidence,
    fuse_ranks,
    history_factors,
    shares,
    shares_of_identifiers,
    turn_parts,
)
from germane.ranking.similarity import Parts, Ranking, at_places, having, newest, ordered

WHEN_BOOST = 0.5
"""Enough to lift a memory of the right time over one that matches half a word better, not over all."""

RERANKED = 50
"""The most candidates that a reranker scores; the others keep their order behind them."""

EXACT_BOOST = 6.0
"""More than all other parts of a score together: who names an identifier means what holds it."""

_ASSOCIATION = 0.5
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_BY_SUM = ("weighted_sum", "weighted_sum_v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What scores are made of besides the signals of candidates.

    `lexical_bound` and `window_bound` are the BM25 scores of a full match. `method` fuses signals; a `scorer`
    decides alone instead. A memory of the time `prefer` scores half as much again; of those that match about
    alike, the first or last in time does by `order`. `weights` multiply parts, and `boosts` multiply into
    their sum. Parts named in `without` are left out. `associated` says by memory id how near a memory is to
    what was found for the query, `reranked` what `reranked_parts` makes of a reranker's scores.
    """

    now: datetime
    query: Query = field(default_factory=Query)
    lexical_bound: float = 0.0
    window_bound: float = 0.0
    method: Fusion = "floored"
    scorer: Scorer | None = None
    prefer: TimeRange | None = None
    order: Order | None = None
    without: Collection[str] = ()
    weights: Weights | None = None
    boosts: Boosts | None = None
    associated: Mapping[str, float] = field(default_factory=dict)
    reranked: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What passed the gate and what didn't, each in rank order.

    `unsure` says that nothing did, so that the best match stands although it is weak.
    """

    passed: Sequence[Ranked]
    dropped: Sequence[Ranked] = ()
    unsure: bool = False


def rank(candidates: Sequence[Candidate], scoring: Scoring) -> Ranking:
    """Every candidate with its score, best first: by score, then the newer, then the greater id.

    The parts add up to the score. They are `lexical` and `semantic`, each from 0 to 1 and weighed alike,
    for the signals that a candidate has; where it has both, its words count by how much they say (see
    `germane.ranking.signals.evidence`). (A turn of dialogue has more: see `germane.ranking.signals`.) What
    a reranker scored has part `reranker` (see `reranked_parts`). Or `recency`, 1 for now and halved after a
    day, when no candidate has any; or `scorer` alone, when one is given. A memory of the preferred time has
    part `when`, the first or last in time part `order`; what holds an identifier of the question verbatim,
    as few do, scores more than all else, as part `exact`; a commit scores more where the question asks for
    history and less elsewhere, as part `history`; and one that a newer version replaces scores less than
    that one, as do records that say that they no longer hold, unless the question asks for such. The order
    of the candidates doesn't matter.
    Raises InvalidInput for an unknown method, or a signal or score that is no number.
    """
    table = CandidateTable.of(candidates)
    parts, scores = score(table, scoring)
    if scoring.associated:
        near = np.array([scoring.associated.get(one.ref, np.nan) for one in table.memories], dtype=np.float64)
        parts["association"] = _ASSOCIATION * near
        scores = scores + np.nan_to_num(parts["association"])
    return Ranking(table, scores, parts, ordered((-scores,), partial(newest, memories=table.memories)))


def reranked_parts(ranked: Sequence[Ranked], scores: Sequence[float]) -> dict[str, float]:
    """A reranker's scores as a part, by memory `ref`: from 0 for the lowest to 1 for the highest of them.

    Where all are equal there are none. As every part of a turn of dialogue, its part is halved.
    """
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if not high > low:
        return {}
    parts = {}
    for one, given in zip(ranked, scores, strict=True):
        is_turn = not one.candidate.signals.keys().isdisjoint(("window_lexical", "window_semantic"))
        parts[one.memory.ref] = (given - low) / (high - low) * (0.5 if is_turn else 1.0)
    return parts


def rank_sections(
    sections: Sequence[Sequence[Candidate]],
    scoring: Scoring,
    *,
    gated: bool = False,
    few: bool = False,
    exempt: Collection[str] = (),
) -> list[Gated]:
    """The candidates of each section in rank order, and those that have nothing to do with the question.

    All are ranked and `gated` together, so that their scores compare across sections; a candidate of several
    sections stands in the last of them. What is associated passes the gate, as do memories whose ids are
    `exempt`; `few` is as for `gate`. Raises as `rank` does.
    """
    tables = [CandidateTable.of(section) for section in sections]
    ranked = rank(CandidateTable.joined(tables), scoring)
    table, order, count = ranked.table, np.array(ranked.order, dtype=np.int64), len(ranked)
    out, unsure = np.zeros(count, dtype=np.bool_), False
    if gated:
        out, unsure = _left_out(
            table,
            order,
            having(ranked.parts, "exact", count),
            prefer=scoring.prefer,
            exempt=frozenset(exempt) | scoring.associated.keys(),
            few=few,
            information=scoring.query.information,
            least_cosine=scoring.query.least_cosine,
        )
    refs = [memory.ref for memory in table.memories]
    section_of = np.repeat(np.arange(len(tables)), list(map(len, tables)))
    last = dict(zip(refs, section_of.tolist(), strict=True))
    if len(last) < len(refs):
        section_of = np.array([last[ref] for ref in refs], dtype=np.int64)
    section_of, out = section_of[order], out[order]
    return [
        Gated(
            passed=ranked.at(np.flatnonzero((section_of == number) & ~out).tolist()),
            dropped=ranked.at(np.flatnonzero((section_of == number) & out).tolist()),
            unsure=unsure,
        )
        for number in range(len(tables))
    ]


def score(table: CandidateTable, scoring: Scoring) -> tuple[Parts, NDArray[np.float64]]:
    """The parts that `rank` gives candidates, and their scores. Raises as `rank` does."""
    method, without, memories = scoring.method, scoring.without, table.memories
    parts, boosts = _base(table, scoring)
    parts = {name: part for name, part in parts.items() if name not in without}
    spared: Collection[int] = ()
    if scoring.scorer is None and method != "weighted_sum_v1":
        _adjust(table, parts, scoring)
        if boosts is not None:
            applies = ~are_turns(table)
            multiply(memories, parts, now=scoring.now, boosts=boosts, applies=applies, without=without)
        obsolete = asks_for_obsolete(scoring.query.text)
        if OBSOLETE not in without and not obsolete:
            lower_obsolete(memories, parts)
        # A memory should hold at the time that the question prefers, or now.
        if VALIDITY not in without and not (obsolete and scoring.prefer is None):
            start = end = scoring.now
            if scoring.prefer is not None:
                start, end = scoring.prefer.start or _EARLIEST, scoring.prefer.end or _LATEST
            valid = lower_invalid(memories, parts, start=start, end=end)
            spared = valid if scoring.prefer is not None else ()
        # NaN is below nothing: a memory whose coverage isn't known may hold any.
        may_hold = ~(table.column("coverage") < scoring.query.named_share)
        exacts = method == "floored" and "exact" not in without
        if exacts and (exact := shares_of_identifiers(memories, scoring.query.text, among=may_hold)):
            boosted = [EXACT_BOOST + share for share in exact.values()]
            parts["exact"] = column_at([*exact], boosted, len(table))
    scores = sums_of(parts, len(table))
    if scoring.scorer is None and method != "weighted_sum_v1":
        if scoring.order is not None and "order" not in without:
            scores = favour_order(memories, parts, scores, scoring.order)
        scores = lower_superseded(memories, parts, scores, spared)
    return parts, scores


def scored_by(scorer: Scorer, candidate: Candidate, query: Query, now: datetime) -> float:
    """What a caller's scorer gives a candidate. Raises InvalidInput where it raises or returns no number."""
    try:
        return float(scorer(candidate, query, now))
    except Exception as error:
        raise InvalidInput(
            f"The scorer failed for memory {candidate.memory.id!r}: {type(error).__name__}: {error}."
        ) from error


def _base(table: CandidateTable, scoring: Scoring) -> tuple[Parts, Boosts | None]:
    """The parts of scores before anything adds to them, and what multiplies into them, if anything."""
    method, query, now = scoring.method, scoring.query, scoring.now
    if scoring.scorer is not None:
        scores = np.array([scored_by(scoring.scorer, one, query, now) for one in table], dtype=np.float64)
        for place in np.flatnonzero(~np.isfinite(scores)).tolist():
            raise InvalidInput(
                f"The scorer gave memory {table.memories[place].ref!r} the score {scores[place]}, which has "
                "no place in an order. A scorer has to return a finite number."
            )
        return {"scorer": scores}, None
    check_finite(table)
    if method in _BY_SUM:
        boosts = scoring.boosts or Boosts()
        return weighted_sum(table, now=now, boosts=boosts, normalised=method == "weighted_sum"), None
    if all(np.isnan(table.column(name)).all() for name in ("lexical", "semantic")):
        days = [max((now - each.created_at) / timedelta(days=1), 0.0) for each in table.memories]
        return {"recency": 1.0 / (1.0 + np.array(days))}, None
    if method == "rrf":
        return _reciprocal(table), scoring.boosts
    if method != "floored":
        raise InvalidInput(f"method={method!r} is no way to fuse signals. Use {', '.join(get_args(Fusion))}.")
    parts, given = _floored(table, scoring), scoring.reranked
    if given and (scored := [place for place, one in enumerate(table.memories) if one.ref in given]):
        values = [given[table.memories[place].ref] for place in scored]
        parts["reranker"] = column_at(scored, values, len(table))
    return parts, scoring.boosts


def _floored(table: CandidateTable, scoring: Scoring) -> Parts:
    """Both signals on a scale of their own kind, each as a share of the best, or of a good match if more.

    Where meaning can judge a memory that stands alone, its words count by how much they say. Turns of
    dialogue are left as they are: the turns around them tell one sense of a word from another.
    """
    lexical, semantic, coverage = map(table.column, ("lexical", "semantic", "coverage"))
    turns, information = are_turns(table), scoring.query.information
    words = shares(lexical, float(np.fmax.reduce(lexical, initial=max(scoring.lexical_bound, 0.0))))
    if information:
        judged = (lexical != 0) & ~np.isnan(semantic) & ~np.isnan(coverage) & ~turns
        words[judged] *= evidence(coverage[judged], information)
    parts = {
        "lexical": words,
        "semantic": shares(semantic, float(np.fmax.reduce(semantic, initial=COSINE_FLOOR))),
    }
    if not turns.any():
        return parts
    return turn_parts(table, parts, turns, window_bound=scoring.window_bound, question=scoring.query.text)


def _reciprocal(table: CandidateTable) -> Parts:
    """What each list adds by the places of those that match in it; nothing for who doesn't stand in it."""
    memories, rankings = table.memories, {}
    for name in ("lexical", "semantic"):
        values = table.column(name)
        matching = newest(np.flatnonzero(values > 0).tolist(), memories)
        rankings[name] = sorted(matching, key=values.__getitem__, reverse=True)
    parts = {name: np.full(len(table), np.nan) for name in rankings}
    for place, fused in fuse_ranks(rankings).items():
        for name, value in fused.sources.items():
            parts[name][place] = value
    return parts


def _adjust(table: CandidateTable, parts: Parts, scoring: Scoring) -> None:
    """Add what the preferred time and the kind of question change, and weigh parts by what use has taught."""
    without, count = scoring.without, len(table)
    if scoring.prefer is not None and "when" not in without:
        preferred = _of_time(table, scoring.prefer)
        parts["when"] = np.where(preferred, WHEN_BOOST * sums_of(parts, count), np.nan)
    if scoring.weights is not None:
        for name in parts:
            parts[name] = scoring.weights.values.get(name, 1.0) * parts[name]
    weighs = scoring.method == "floored" and "history" not in without
    if weighs and (factors := history_factors(table.memories, scoring.query.text)):
        places = [*factors]
        sums = sums_of(parts, count)[places]
        parts["history"] = column_at(places, np.array([*factors.values()]) * sums, count)


def _of_time(table: CandidateTable, time: TimeRange) -> NDArray[np.bool_]:
    """By place, which memories were valid in a time; without a validity, which were created in it."""
    start, end = time.start or _EARLIEST, time.end or _LATEST
    return np.array(
        [one.holds(start, end) if one.is_dated else start <= one.created_at < end for one in table.memories],
        dtype=np.bool_,
    )


# The gate tells what has to do with a question from what was merely found beside it.
#
# A score that only orders can't say that nothing fits. The gate looks at two measures that mean the
# same in every store: the cosine of a memory with the question, and the share of the question's
# information that stands in the memory. It removes and never reorders.

FEW = 5
"""In a store of so few memories any likeness counts: leaving out what matters costs more than it saves."""

LEAST_COVERAGE = 0.15
"""The share of a question's information below which its words say little, if nothing else judges a memory."""

_OF_THE_BEST = 0.45
_SHARED_WORDS = 0.3
"""How much nearer two texts on different matters are where one has all words of the other."""
_COSINE_OF_FEW = 0.15
_OF_BEST_WORDS = 0.3
"""The share of the best BM25 that words need."""
_WORDS_ALONE = 0.23
"""The same of a memory without a cosine."""
_NEARLY_ALL = 0.75
"""The share of a question's information with which words need no BM25 score."""
_HALF = 0.5
"""As much evidence lets such a memory pass, however much better others match."""
_HOPELESS = 0.5

LOW_CONFIDENCE = TraceNote(
    code="low_confidence", text="Nothing matches the question well; the best match is shown all the same."
)
"""What a trace says when the gate would have left nothing."""


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
    0.45 of the best one: words in common bring vectors near that have nothing else in common;
    or by words that say something (see `germane.ranking.signals.evidence`), with a BM25 score of at least
    0.3 of the best one, or three quarters of the question. Each is compared with its own best, since a
    memory that repeats the question's words is no reason to doubt one that answers in others. A memory
    without a cosine is judged by its words alone: they pass if they are half as certain as can be, or
    with a coverage of `LEAST_COVERAGE` and 0.23 of the best BM25 score. All measures count half as much
    again in a memory of the time that `prefer` names. Turns of dialogue pass, for their sense lies in the
    turns around them; so do memories without any signal, what holds an identifier of the question, and
    those whose ids are `exempt`. Where nothing passes, the first in rank order does that shares a word
    with the question or has half of the least cosine.
    Among a `few` memories, a shared word or a cosine of 0.15 is enough, and nothing may be left.
    """
    if isinstance(ranked, Ranking):
        table, order = ranked.table, np.array(ranked.order, dtype=np.int64)
        exact = having(ranked.parts, "exact", len(table))
    else:
        table, order = CandidateTable.of([one.candidate for one in ranked]), np.arange(len(ranked))
        exact = np.array(["exact" in one.parts for one in ranked], dtype=np.bool_)
    out, unsure = _left_out(
        table,
        order,
        exact,
        prefer=prefer,
        exempt=exempt,
        few=few,
        information=information,
        least_cosine=least_cosine,
    )
    return Gated(
        passed=at_places(ranked, np.flatnonzero(~out[order]).tolist()),
        dropped=at_places(ranked, np.flatnonzero(out[order]).tolist()),
        unsure=unsure,
    )


def _left_out(
    table: CandidateTable,
    order: NDArray[np.int64],
    exact: NDArray[np.bool_],
    *,
    prefer: TimeRange | None,
    exempt: Collection[str],
    few: bool,
    information: float,
    least_cosine: float,
) -> tuple[NDArray[np.bool_], bool]:
    """Which candidates the gate leaves out, in the order of the table, and whether it is unsure of the rest.

    `order` has the places in rank order; `exact` are those that hold an identifier of the question.
    """
    if exempt:
        exact = exact | np.array([one.ref in exempt for one in table.memories], dtype=np.bool_)
    lifts = None
    if prefer is not None:
        lifts = np.where(_of_time(table, prefer), 1.0 + WHEN_BOOST, 1.0)
    out = outside(
        table, exempt=exact, lifts=lifts, few=few, information=information, least_cosine=least_cosine
    )
    if few or not len(order) or not out[order].all():
        return out, False
    near, covered = (np.nan_to_num(table.column(name)) for name in ("semantic", "coverage"))
    near = near if lifts is None else lifts * near
    matching = order[((covered > 0) | (near >= _HOPELESS * least_cosine))[order]]
    out[matching[:1]] = False
    return out, len(matching) > 0


def outside(
    table: CandidateTable,
    *,
    exempt: NDArray[np.bool_],
    lifts: NDArray[np.float64] | None = None,
    few: bool = False,
    information: float = 0.0,
    least_cosine: float = LEAST_COSINE,
) -> NDArray[np.bool_]:
    """Which candidates `gate` leaves out; where that is all of them, it may still let one pass.

    Those that are `exempt` pass. `lifts` multiply what each has in common with the question.
    """
    judged = ~exempt & ~are_turns(table)
    if table.signals:
        judged &= ~np.logical_and.reduce([np.isnan(column) for column in table.signals.values()])
    if not table.signals or not judged.any():
        return np.zeros(len(table), dtype=np.bool_)
    alone = np.isnan(table.column("semantic"))
    near, covered = np.nan_to_num(table.column("semantic")), np.nan_to_num(table.column("coverage"))
    words = np.nan_to_num(table.column("lexical"))
    meaning, has = near - _SHARED_WORDS * covered, covered
    if lifts is not None:
        near, meaning, has, words = lifts * near, lifts * meaning, lifts * has, lifts * words
    if few:
        weak: NDArray[np.bool_] = judged & (near < _COSINE_OF_FEW) & (has == 0)
        return weak
    unlike = judged & (meaning < max(least_cosine, _OF_THE_BEST * float(near[judged].max())))
    best, says, covers = float(words[judged].max()), evidence(has, information), has >= LEAST_COVERAGE
    by_words = np.where(
        alone,
        (covers & (words >= _WORDS_ALONE * best)) | (says >= _HALF),
        (says > 0 if information else covers) & ((words >= _OF_BEST_WORDS * best) | (has >= _NEARLY_ALL)),
    )
    out: NDArray[np.bool_] = unlike & ~by_words
    return out
