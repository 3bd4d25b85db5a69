"""Ranking and gating one candidate after another: slow, and what the ranking in columns has to equal."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from germane import Memory, Order, Outcome, Ranked, Status
from germane.lifecycle import Stage, withdrawal
from germane.protocols import Candidate
from germane.ranking import fuse_ranks
from germane.ranking.relevance import Gated, Scoring
from germane.ranking.scores import Boosts, asks_for_obsolete, is_of
from germane.ranking.signals import history_factors, named_speaker, shares_of_identifiers

__all__ = ["gate", "rank"]

Parts: TypeAlias = dict[str, float]
_OUTCOMES = {Outcome.SUCCESS: 1.2, Outcome.PENDING: 0.9, Outcome.FAILURE: 0.8}


def rank(candidates: Sequence[Candidate], scoring: Scoring) -> list[Ranked]:
    """The candidates with their scores, best first; of the methods "floored" and "rrf", without a scorer."""
    without, text = scoring.without, scoring.query.text
    relevant = any({"lexical", "semantic"} & set(one.signals) for one in candidates)
    if not relevant:
        days = [(scoring.now - one.memory.created_at) / timedelta(days=1) for one in candidates]
        found: list[Parts] = [{"recency": 1.0 / (1.0 + max(each, 0.0))} for each in days]
    else:
        found = _reciprocal(candidates) if scoring.method == "rrf" else _floored(candidates, scoring)
    found = [{name: value for name, value in parts.items() if name not in without} for parts in found]
    commits = history_factors((one.memory for one in candidates), text) if scoring.method == "floored" else {}
    exact = shares_of_identifiers([one.memory for one in candidates], text)
    for place, (one, parts) in enumerate(zip(candidates, found, strict=True)):
        if scoring.prefer is not None and one.memory.created_at in scoring.prefer and "when" not in without:
            parts["when"] = 0.5 * math.fsum(parts.values())
        for name in parts if scoring.weights is not None else ():
            parts[name] *= scoring.weights.values.get(name, 1.0) if scoring.weights else 1.0
        if place in commits and "history" not in without:
            parts["history"] = commits[place] * math.fsum(parts.values())
        if scoring.boosts is not None and relevant and not _is_turn(one):
            _multiply(one.memory, parts, scoring)
        lowered = withdrawal(one.memory) and one.memory.status is not Status.SUPERSEDED
        if lowered and "obsolete" not in without and not asks_for_obsolete(text):
            score = math.fsum(parts.values())
            parts.update({"obsolete": -0.5 * score} if score > 0 else {})
        if place in exact and scoring.method == "floored" and "exact" not in without:
            parts["exact"] = 6.0 + exact[place]
    ranked = [_ranked(one, parts) for one, parts in zip(candidates, found, strict=True)]
    if scoring.order is not None and "order" not in without:
        ranked = _in_time(ranked, scoring.order)
    ranked = [_associated(one, scoring) for one in _under_successors(ranked)]
    return sorted(ranked, key=lambda one: (one.score, one.memory.created_at, one.memory.ref), reverse=True)


def gate(
    ranked: Sequence[Ranked], scoring: Scoring, *, exempt: Collection[str] = (), few: bool = False
) -> Gated:
    """The ranking in two: what has to do with the question, and what doesn't."""
    query = scoring.query
    measures: dict[int, tuple[float, float, float, float]] = {}
    for place, one in enumerate(ranked):
        passes = one.memory.ref in exempt or "exact" in one.parts or "association" in one.parts
        if one.candidate.signals and not _is_turn(one.candidate) and not passes:
            cosine = one.candidate.signals.get("semantic", 0.0)
            share = one.candidate.signals.get("coverage", 0.0)
            of_time = scoring.prefer is not None and one.memory.created_at in scoring.prefer
            lift = 1.5 if of_time else 1.0
            words = lift * one.candidate.signals.get("lexical", 0.0)
            measures[place] = lift * cosine, lift * (cosine - 0.3 * share), lift * share, words
    if few:
        return _split(
            ranked, {place for place, (near, _, has, _) in measures.items() if near < 0.15 and not has}
        )
    cosine = max(query.least_cosine, 0.45 * max((near for near, *_ in measures.values()), default=0.0))
    best = max((words for *_, words in measures.values()), default=0.0)
    out = {
        place
        for place, (_, meaning, has, words) in measures.items()
        if meaning < cosine
        and not _words_say(ranked[place].candidate, query.information, has, words=words, best=best)
    }
    if not out or len(out) < len(ranked):
        return _split(ranked, out)
    for place, (near, _, has, _) in sorted(measures.items()):
        if has > 0 or near >= 0.5 * query.least_cosine:
            return replace(_split(ranked, out - {place}), unsure=True)
    return _split(ranked, out)


def _factors_of(memory: Memory, scoring: Scoring) -> Parts:
    """What a memory's score is multiplied by, by name."""
    boosts = scoring.boosts or Boosts()
    age = max((scoring.now - memory.created_at) / timedelta(days=30), 0.0)
    uses, worth = memory.access_count, 1.0 if memory.outcome is None else _OUTCOMES.get(memory.outcome, 1.0)
    usage = min(1.0 + 0.1 * math.log10(uses), 1.5) if uses else 1.0
    return {
        "frame": 1.0 + 0.15 / 0.5 * (boosts.priorities.get(memory.kind, 0.5) - 0.5),
        "recency": 1.0 + 0.1 * (math.exp2(-age) - 1.0),
        "outcome": 1.0 + 0.1 / 0.5 * (worth - 1.0),
        "usage": 1.0 + 0.05 / 0.5 * (usage - 1.0),
        "confidence": 1.0 + 0.05 / 0.5 * (memory.confidence - 1.0),
        "domain": 1.1 if boosts.domain and is_of(memory, boosts.domain) else 1.0,
        "core": 1.1 if memory.stage is Stage.CORE else 1.0,
        "useful": boosts.usefulness.get(memory.ref, 1.0),
    }


def _is_turn(candidate: Candidate) -> bool:
    """Whether a candidate is a turn of dialogue, with the signals of the turns around it."""
    return bool({"window_lexical", "window_semantic"} & set(candidate.signals))


def _floored(candidates: Sequence[Candidate], scoring: Scoring) -> list[Parts]:
    def most(name: str, least: float) -> float:
        return max([least, *(one.signals.get(name, 0.0) for one in candidates)])

    best, nearest = most("lexical", scoring.lexical_bound), most("semantic", 0.4)
    alone = [_alone(one, best, nearest, scoring.query.information) for one in candidates]
    sessions: dict[str, float] = {}
    speaking: dict[str, set[str]] = {}
    for one, parts in zip(candidates, alone, strict=True):
        if _is_turn(one):
            session = one.memory.scope.value
            sessions[session] = max(sessions.get(session, 0.0), 0.5 * sum(parts.values()))
            speaking.setdefault(session, set()).add(str(one.memory.metadata.get("speaker") or ""))
    speakers = {str(one.memory.metadata.get("speaker") or "") for one in candidates}
    speaker = named_speaker(speakers, scoring.query.text) if sessions else None
    window, around = most("window_lexical", scoring.window_bound), most("window_semantic", 0.4)

    def of_turn(one: Candidate, own: Parts) -> Parts:
        near_by = 40.0 / max(one.memory.renditions.full.tokens, 40.0)
        itself = 1.0 - 0.5 * near_by
        parts = {name: 0.5 * value for name, value in own.items()}
        if "lexical" in own:
            parts["lexical"] = 0.5 * (0.5 + itself) * own["lexical"]
        if "window_lexical" in one.signals:
            double = 2.0 if len(speaking[one.memory.scope.value] - {""}) > 2 else 1.0
            parts["window"] = 0.5 * near_by * _share(one.signals["window_lexical"], window) * double
        if "window_semantic" in one.signals:
            near = _share(one.signals["window_semantic"], around)
            parts["semantic"] = 0.5 * (itself * own.get("semantic", 0.0) + 0.5 * near_by * near)
        parts["session"] = 0.5 * sessions[one.memory.scope.value]
        by_speaker = speaker is not None and one.memory.metadata.get("speaker") == speaker
        return parts | ({"speaker": 0.4} if by_speaker else {})

    pairs = zip(candidates, alone, strict=True)
    return [of_turn(one, own) if _is_turn(one) else own for one, own in pairs]


def _alone(candidate: Candidate, best: float, nearest: float, information: float) -> Parts:
    signals, parts = candidate.signals, {}
    if "lexical" in signals:
        parts["lexical"] = _share(signals["lexical"], best)
    if "semantic" in signals:
        parts["semantic"] = _share(signals["semantic"], nearest)
        if signals.get("lexical") and information and "coverage" in signals and not _is_turn(candidate):
            parts["lexical"] *= _evidence(signals["coverage"], information)
    return parts


def _reciprocal(candidates: Sequence[Candidate]) -> list[Parts]:
    rankings = {}
    for name in ("lexical", "semantic"):
        matching = [one for one in candidates if one.signals.get(name, 0.0) > 0]
        matching.sort(
            key=lambda one: (one.signals[name], one.memory.created_at, one.memory.ref),
            reverse=True,
        )
        rankings[name] = [one.memory.ref for one in matching]
    fused = fuse_ranks(rankings)
    return [dict(fused[one.memory.ref].sources) if one.memory.ref in fused else {} for one in candidates]


def _share(value: float, whole: float) -> float:
    return min(value / whole, 1.0) if value > 0 and whole > 0 else 0.0


def _evidence(coverage: float, information: float) -> float:
    return min(max((coverage * information - 8.0) / 4.0, (coverage - 0.5) / 0.5, 0.0), 1.0)


def _words_say(candidate: Candidate, information: float, has: float, *, words: float, best: float) -> bool:
    says = _evidence(has, information)
    if "semantic" not in candidate.signals:
        return says >= 0.5 or (has >= 0.15 and words >= 0.23 * best)
    return (says > 0 if information else has >= 0.15) and (words >= 0.3 * best or has >= 0.75)


def _multiply(memory: Memory, parts: Parts, scoring: Scoring) -> None:
    score = math.fsum(parts.values())
    for name, factor in _factors_of(memory, scoring).items() if score > 0 else ():
        if factor != 1.0 and name not in scoring.without:
            parts[name] = score * (factor - 1.0)
            score *= factor


def _in_time(ranked: Sequence[Ranked], order: Order) -> list[Ranked]:
    least = 0.5 * max((one.score for one in ranked), default=0.0)
    times = [one.memory.created_at for one in ranked if one.score >= least]
    if least <= 0 or min(times) == max(times):
        return list(ranked)
    found = []
    for one in ranked:
        place = (one.memory.created_at - min(times)) / (max(times) - min(times))
        boost = 0.5 * (1.0 - place if order is Order.OLDEST else place) * one.score
        takes_part = one.score >= least and boost > 0
        found.append(_ranked(one.candidate, {**one.parts, "order": boost}) if takes_part else one)
    return found


def _under_successors(ranked: Sequence[Ranked]) -> list[Ranked]:
    found = {one.memory.version_id: one for one in ranked}
    by_version = sorted(ranked, key=lambda one: one.memory.version)
    latest = {one.memory.id: one.memory.version_id for one in by_version}
    for one in sorted(ranked, key=lambda one: one.memory.version, reverse=True):
        if one.memory.status is Status.SUPERSEDED:
            score = one.score - 0.5 * abs(one.score)
            after = one.memory.superseded_by or ""
            successor = found.get(latest.get(after, after))
            if successor is not None:
                score = min(score, successor.score - (1.0 - 0.99) * abs(successor.score))
            parts = {**one.parts, "superseded": score - one.score}
            found[one.memory.version_id] = _ranked(one.candidate, parts)
    return [found[one.memory.version_id] for one in ranked]


def _associated(one: Ranked, scoring: Scoring) -> Ranked:
    if one.memory.ref not in scoring.associated:
        return one
    value = 0.5 * scoring.associated[one.memory.ref]
    return replace(one, parts={**one.parts, "association": value}, score=one.score + value)


def _ranked(candidate: Candidate, parts: Parts) -> Ranked:
    return Ranked(candidate=candidate, score=math.fsum(parts.values()), parts=parts)


def _split(ranked: Sequence[Ranked], out: Collection[int]) -> Gated:
    return Gated(
        passed=[one for place, one in enumerate(ranked) if place not in out],
        dropped=[one for place, one in enumerate(ranked) if place in out],
    )
