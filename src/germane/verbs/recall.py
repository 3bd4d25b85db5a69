"""recall: the memories that have most to do with a question, best first.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import overload

from germane.model.columns import cut, line_of
from germane.model.explanation import short_id
from germane.model.learning import Weights
from germane.model.memory import Status, as_utc
from germane.model.query import Filter, Found, Slice
from germane.model.trace import Emptiness, Note, Question, Ranked
from germane.protocols import Scorer
from germane.ranking.emptiness import RECENCY, emptiness_of, nothing_then
from germane.ranking.gate import FEW, LOW_CONFIDENCE, Gated, gate
from germane.ranking.history import asks_for_history, history_factors, rest_of_releases
from germane.ranking.identifiers import identifiers_in
from germane.ranking.learning import learned_note
from germane.ranking.picking import Best
from germane.ranking.relevance import rank
from germane.ranking.standing import superseded_notes
from germane.verbs.checks import checked_count
from germane.verbs.question import Asked, query_of, understand
from germane.verbs.rankers import DEFAULT_RANKER, Ranker, by_hybrid, check_ranker
from germane.verbs.session import Session
from germane.verbs.together import gather_together

__all__ = ["Recalled", "recall"]

_LABEL = 60
_GATHERED = 100
"""Candidates of each signal. Twice as many changed recall at 5, 10 and 20 by less than noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled(Sequence[Ranked]):
    """The answer to a recall: a sequence of ranked memories, and why it is empty if it is.

    `now` is the moment for which it was ranked; `weights` are those that the parts of the scores were
    multiplied by, where use has taught some. A ranker that was asked for by name stands in the notes.
    """

    ranked: tuple[Ranked, ...]
    question: Question
    now: datetime
    notes: tuple[Note, ...] = ()
    emptiness: Emptiness | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """A line for each memory, as a prompt or a notebook shows it."""
        found = f"{len(self.ranked)} found" if self.emptiness is None else f"none, {self.emptiness}"
        rows = (
            f"\n  {one.score:.2f}  {short_id(one.memory.ref)}  {one.memory.kind}  "
            f"{cut(line_of(one.memory.renditions.micro.text), _LABEL)}"
            for one in self.ranked
        )
        return f"<germane.Recalled {cut(line_of(self.question.text), _LABEL)!r}: {found}{''.join(rows)}>"

    def __len__(self) -> int:
        return len(self.ranked)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.ranked)

    @overload
    def __getitem__(self, index: int) -> Ranked: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Ranked, ...]: ...
    def __getitem__(self, index: int | slice) -> Ranked | tuple[Ranked, ...]:
        return self.ranked[index]


def recall(
    session: Session,
    query: str,
    *,
    where: Filter,
    limit: int = 10,
    scorer: Scorer | None = None,
    ranker: Ranker | str = DEFAULT_RANKER,
    gated: bool = True,
    spaces: Sequence[Session] = (),
) -> Recalled:
    """The best `limit` memories for a question, also of spaces. Reading changes nothing.

    With spaces nothing learned applies: what one memory's use has taught is no measure for another's;
    nor does it with another ranker. A question that names nothing is answered by the newest, whoever ranks.
    Unless `gated` is False or a scorer decides, what has nothing to do with the question is left out.
    """
    checked_count(limit, name="limit", least=1)
    check_ranker(ranker, scorer)
    now = as_utc(session.clock(), name="clock")
    asked = understand(session, query, where, now=now)
    slices, best = (Slice(limit=max(limit, _GATHERED)),), None
    if ranker == DEFAULT_RANKER and scorer is None and not spaces and _by_signals(asked):
        known = session.known_weights.known
        best = Best(query_of(asked, slices), limit=limit, gated=gated, known=known, prefer=asked.prefers)
    asked, found = gather_together(session, asked, slices, spaces, pick=best)
    if best is not None and found.picked:
        if not history_factors([one.memory for one in found.slices[0]], query):
            return _picked(asked, found, best, now=now)
        # Signals alone can't tell that these are commits, which rank lower.
        asked, found = gather_together(session, asked, slices, spaces)
    ranked, notes, weights = _ranked(
        session, asked, found, slices, now=now, scorer=scorer, ranker=ranker, limit=limit, alone=not spaces
    )
    passed = Gated(kept=ranked)
    if gated and scorer is None and found.by_relevance:
        passed = gate(
            ranked,
            prefer=asked.prefers,
            few=found.admitted <= FEW,
            information=query_of(asked, slices).information,
            least_cosine=asked.least_cosine,
        )
    kept = passed.kept[:limit]
    asked = replace(asked, notes=(*asked.notes, *notes))
    return Recalled(
        ranked=tuple(kept),
        question=asked.question,
        now=now,
        notes=(
            *_notes(asked, found, passed, weights),
            *_of_another_time(asked, kept),
            *superseded_notes([one.memory for one in kept]),
        ),
        emptiness=None if passed.kept else emptiness_of(found, [passed.kept]),
        weights={} if weights is None else weights.values,
    )


def _by_signals(asked: Asked) -> bool:
    """Whether nothing but their signals and the order of time may decide between the memories found."""
    # A newer version has a say in the score of one that it replaces.
    replaced = Status.SUPERSEDED in asked.where.statuses
    # So have the text and the kind, where the question names an identifier or asks for history.
    text = asked.question.text
    named = identifiers_in(text) or asks_for_history(text) or rest_of_releases(text) is not None
    return asked.question.order is None and not replaced and not named


def _picked(asked: Asked, found: Found, best: Best, *, now: datetime) -> Recalled:
    ranked = best.ranked(found.slices[0])
    return Recalled(
        ranked=ranked,
        question=asked.question,
        now=now,
        notes=(
            *_notes(asked, found, Gated(kept=ranked), best.weights),
            *_of_another_time(asked, ranked),
        ),
        weights={} if best.weights is None else best.weights.values,
    )


def _ranked(
    session: Session,
    asked: Asked,
    found: Found,
    slices: tuple[Slice, ...],
    *,
    now: datetime,
    scorer: Scorer | None,
    ranker: Ranker | str,
    limit: int,
    alone: bool,
) -> tuple[tuple[Ranked, ...], tuple[Note, ...], Weights | None]:
    """All that was found, best first, with what the ranker says of it and the weights that applied."""
    sought = query_of(asked, slices)
    if ranker != DEFAULT_RANKER and found.by_relevance:
        ranked, told = by_hybrid(asked, found, sought, now=now, limit=limit)
        return ranked, (told,), None
    weights: Weights | None = None
    if scorer is None and found.by_relevance and alone:
        weights = session.known_weights.of(session.store, session.agent, found.learning)
    ranked = rank(
        found.slices[0],
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        now=now,
        scorer=scorer,
        query=sought,
        prefer=asked.prefers,
        order=asked.question.order if found.by_relevance else None,
        weights=weights,
    )
    return ranked, (), weights


def _of_another_time(asked: Asked, kept: Sequence[Ranked]) -> tuple[Note, ...]:
    when = asked.question.when or asked.where.when
    if when is None:
        return ()
    # What else was gathered isn't told by a store that picks, and what is said must not depend on that.
    note = nothing_then(when, [one.memory for one in kept], None)
    return () if note is None else (note,)


def _notes(asked: Asked, found: Found, passed: Gated, weights: Weights | None) -> tuple[Note, ...]:
    notes = [*asked.notes]
    if not found.by_relevance:
        notes.append(RECENCY)
    if passed.unsure:
        notes.append(LOW_CONFIDENCE)
    if weights is not None:
        notes.append(learned_note(weights))
    return tuple(notes)
