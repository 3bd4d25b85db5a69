"""HTM's hybrid search and its relevance scorer, as one ranker. Pure: `now` is an argument.

Level: ranking (imports model, errors and ranking only; never retrieval or stores).

First the lists of the vectors, the text and the tags are fused by reciprocal ranks (k = 60), and the
best of that stay candidates. Then four signals make the score, from 0 to 10:

    10 * (0.5 meaning + 0.3 tags + 0.1 recency + 0.1 access)

    meaning    cosine; for a memory without a vector, what its words say (BM25) stands in
    tags       hierarchical Jaccard of the memory's tags and those asked for; 0 without any
    recency    2 ^ (-age / 168 h): a true half-life, where HTM's own code takes e ^ (-age / 168 h)
    access     ln(1 + accesses) / 10, at most 1

Each signal is brought to 0 to 1 by the least and the greatest of the candidates. A signal of one
candidate alone stays as it is, equal ones count 1, and meaning or tags that no candidate has count 0.
A memory without a vector counts as near as the nearest one, times the share that its BM25 score has in
the best one or in that of a full match; where no vector is near at all, words take the place of
meaning. Unlike HTM's, the list of the vectors takes part in finding, so that what matches by meaning
alone is found; and where HTM gives a half to what it doesn't know, what isn't known counts nothing.
The parts are no shares of a good match, as those of `germane.ranking.relevance` are, and none has the
name of one that learning weighs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from germane.errors import InvalidInput
from germane.model.query import Candidate, Query
from germane.model.trace import Fused, Ranked
from germane.ranking.fusion import fuse_ranks, share_of
from germane.ranking.standing import under_successors

__all__ = ["HALF_LIFE_HOURS", "HYBRID_WEIGHTS", "hybrid", "min_max", "tag_likeness"]

HYBRID_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"meaning": 0.5, "tags": 0.3, "recency": 0.1, "access": 0.1}
)
"""What each signal is worth; together 1."""

HALF_LIFE_HOURS = 168.0
"""A week."""

_FOUND_BY = ("meaning", "lexical", "tags")
_SCALE = 10.0
_HOUR = timedelta(hours=1)


def hybrid(
    candidates: Sequence[Candidate],
    *,
    query: Query,
    now: datetime,
    tags: Collection[str] | None = None,
    keep: int | None = None,
    half_life_hours: float = HALF_LIFE_HOURS,
    lexical_bound: float = 0.0,
) -> tuple[Ranked, ...]:
    """The candidates with their scores, best first; ties fall to the fused ranks, the newer, the id.

    `tags` are those asked for, the query's filter's unless given; without any, tags count nothing.
    `keep` limits the candidates to the best by fused ranks before they are scored (HTM: three
    times the limit). `lexical_bound` is the BM25 score of a full match. The parts are the four signals,
    weighed, so that they add up to the score, and `fused` says in which lists a memory stands and what
    each adds to its fused rank; what a newer version replaces stays below that one. The order of the
    candidates doesn't matter. Raises InvalidInput for a signal that is no finite number, a half-life that
    isn't above 0, a `keep` below 1.
    """
    if not (math.isfinite(half_life_hours) and half_life_hours > 0):
        raise InvalidInput(f"half_life_hours={half_life_hours} is no half-life. Give hours above 0.")
    if keep is not None and keep < 1:
        raise InvalidInput(f"keep={keep} leaves nothing to rank. Give 1 or more, or None for all.")
    asked = frozenset(query.filter.tags if tags is None else tags)
    raw = {one.memory.ref: _raw(one, asked, now=now, half_life_hours=half_life_hours) for one in candidates}
    fused = _fused(candidates, raw)
    none = Fused(score=0.0)

    def places(one: Candidate) -> tuple[float, datetime, str]:
        return fused.get(one.memory.ref, none).score, *_newness(one)

    kept = sorted(candidates, key=places, reverse=True)[:keep]
    signals = _signals([one.memory.ref for one in kept], raw, lexical_bound=lexical_bound)
    ranked = [
        _ranked(
            one, {name: signals[name][one.memory.ref] for name in signals}, fused.get(one.memory.ref, none)
        )
        for one in kept
    ]
    ranked = under_successors(ranked)
    # They come in the order of their fused ranks, and sorting keeps that among equals.
    return tuple(sorted(ranked, key=lambda one: one.score, reverse=True))


def tag_likeness(one: Collection[str], other: Collection[str]) -> float:
    """The Jaccard index of two sets of tags, each with all that is above it: `a:b` is in `a:b` and in `a`.

    1 for the same sets, 0 where nothing is shared or either is empty.
    """
    mine, theirs = _with_those_above(one), _with_those_above(other)
    either = len(mine | theirs)
    return len(mine & theirs) / either if either else 0.0


def min_max(values: Mapping[str, float]) -> Mapping[str, float]:
    """The values from 0 for the least to 1 for the greatest; one alone stays as it is, equal ones are 1."""
    if len(values) < 2:  # noqa: PLR2004 - one value has neither a least nor a greatest beside it.
        return values
    least, most = min(values.values()), max(values.values())
    if least == most:
        return dict.fromkeys(values, 1.0)
    return {name: (value - least) / (most - least) for name, value in values.items()}


def _with_those_above(tags: Collection[str]) -> frozenset[str]:
    parts = [tag.split(":") for tag in tags]
    return frozenset(":".join(part[: end + 1]) for part in parts for end in range(len(part)))


def _raw(
    candidate: Candidate, asked: Collection[str], *, now: datetime, half_life_hours: float
) -> dict[str, float]:
    """The signals of a candidate as they are; what it lacks is absent."""
    memory = candidate.memory
    age = max((now - memory.created_at) / _HOUR, 0.0)
    found = {
        "recency": math.exp2(-age / half_life_hours),
        "access": min(math.log1p(memory.access_count) / _SCALE, 1.0),
    }
    for signal, name in (("semantic", "meaning"), ("lexical", "lexical")):
        if signal in candidate.signals:
            value = candidate.signals[signal]
            if not math.isfinite(value):
                raise InvalidInput(
                    f"The {signal} signal of memory {memory.ref!r} is {value}, which can't be ranked. "
                    "The store that found it has to return finite signals."
                )
            found[name] = value
    if "meaning" in found:
        found["meaning"] = min(max(found["meaning"], 0.0), 1.0)
    if "lexical" in found:
        # Words that speak against a memory are no worse than words that say nothing of it.
        found["lexical"] = max(found["lexical"], 0.0)
    found["tags"] = tag_likeness(memory.tags, asked)
    return found


def _fused(candidates: Sequence[Candidate], raw: Mapping[str, Mapping[str, float]]) -> Mapping[str, Fused]:
    """The reciprocal ranks of vectors, text and tags, fused; a list holds what matches at all."""
    by_newness = sorted(candidates, key=_newness, reverse=True)

    def best_first(name: str) -> list[str]:
        matching = {
            one.memory.ref: value for one in by_newness if (value := raw[one.memory.ref].get(name, 0.0)) > 0
        }
        return sorted(matching, key=matching.__getitem__, reverse=True)

    return fuse_ranks({name: best_first(name) for name in _FOUND_BY})


def _signals(
    ids: Sequence[str], raw: Mapping[str, Mapping[str, float]], *, lexical_bound: float
) -> dict[str, Mapping[str, float]]:
    """The four signals of the candidates, from 0 to 1."""
    values = {signal: {each: raw[each][signal] for each in ids} for signal in ("recency", "access")}
    found = {signal: min_max(each) for signal, each in values.items()}
    for signal, each in (
        ("meaning", _meaning(ids, raw, lexical_bound=lexical_bound)),
        ("tags", {each: raw[each]["tags"] for each in ids}),
    ):
        # Equal ones count whole, but having nothing in common is nothing, however many are equal in it.
        found[signal] = min_max(each) if any(each.values()) else each
    return {signal: {name: min(each, 1.0) for name, each in found[signal].items()} for signal in found}


def _meaning(
    ids: Sequence[str], raw: Mapping[str, Mapping[str, float]], *, lexical_bound: float
) -> Mapping[str, float]:
    """The cosines, and where there is none, what the words say of it.

    A text without any of the words is known to lack them, which is not the same as neutral.
    """
    words = {each: raw[each].get("lexical", 0.0) for each in ids}
    cosines = {each: raw[each]["meaning"] for each in ids if "meaning" in raw[each]}
    if not any(cosines.values()):
        return words
    nearest, best = max(cosines.values()), max([lexical_bound, *words.values()])
    return {each: cosines.get(each, nearest * share_of(words[each], best)) for each in ids}


def _ranked(candidate: Candidate, signals: Mapping[str, float], fused: Fused) -> Ranked:
    parts = {name: _SCALE * weight * signals[name] for name, weight in HYBRID_WEIGHTS.items()}
    return Ranked(candidate=candidate, score=math.fsum(parts.values()), parts=parts, fused=fused)


def _newness(candidate: Candidate) -> tuple[datetime, str]:
    return candidate.memory.created_at, candidate.memory.ref
