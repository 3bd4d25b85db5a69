"""The orders in which a working set can be shown, and the figures they are made from.

| strategy    | score, the highest first                                                        |
|-------------|---------------------------------------------------------------------------------|
| `balanced`  | importance * decay(age): 1 / (1 + hours) unless set otherwise (the default)       |
| `recent`    | the place in the order of access, 1 for what was accessed last; no clock is read |
| `important` | importance                                                                      |
| `frequent`  | importance * (1 + ln(1 + accesses))                                             |
| `custom`    | what a scorer says                                                              |
| `clustered` | groups of what is related, by the best of each under another strategy           |
| `smart`     | recent, important or balanced, as the question's words have it                  |

Equal scores fall to what was accessed later, then to the newer, then to the smaller id, so the order is
total. `frequent` adds 1 to the logarithm of the decision record's example: without it, whatever was
never accessed would score 0, however important. It doesn't decay, as in the record on eviction.

Relevance to a question joins in where it is known: (1 - w) * strategy + w * relevance, where
`strategy` is the strategy's score, from 0 for nothing to 1 for the best of the set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.context import Ranked, TraceNote
from germane.model.memory import Memory, Vector
from germane.model.query import Candidate, Deferred, Query
from germane.protocols import Scorer
from germane.ranking.eviction import Decay, LearnedImportance, importance_of
from germane.ranking.relevance import scored_by
from germane.ranking.similarity import ClusterBy, Terms, cluster
from germane.working_sets import AgeBasis, WorkingSetItem

StrategyName: TypeAlias = Literal[
    "balanced", "recent", "important", "frequent", "custom", "clustered", "smart"
]

STRATEGIES: tuple[str, ...] = get_args(StrategyName)
"""The strategies that can be chosen by name."""

DEFAULT_STRATEGY = "balanced"

_HOUR = timedelta(hours=1)
_Floats: TypeAlias = NDArray[np.float64]
_Parts: TypeAlias = dict[str, _Floats]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How a working set is to be ordered.

    `decay` is that of `balanced`; `scorer` scores for `custom`; `base` orders what `clustered` groups, by
    `cluster_by`. `relevance` is the weight, from 0 to 1, of relevance to the question where that is known.
    Raises InvalidInput for an unknown name, for `custom` without a scorer or a scorer without `custom`,
    and for a weight outside its range.
    """

    name: StrategyName | str = DEFAULT_STRATEGY
    decay: Decay = field(default_factory=Decay)
    scorer: Scorer | None = None
    base: StrategyName | str = DEFAULT_STRATEGY
    cluster_by: ClusterBy = "auto"
    relevance: float = 0.5

    def __post_init__(self) -> None:
        for name in (self.name, self.base):
            if name not in STRATEGIES:
                raise InvalidInput(f"Unknown strategy: {name!r}. Known strategies: {', '.join(STRATEGIES)}.")
        if self.base == "clustered":
            raise InvalidInput("base='clustered' can't order what is clustered. Give another strategy.")
        is_custom = "custom" in (self.name, self.base if self.name == "clustered" else "")
        if is_custom != (self.scorer is not None):
            raise InvalidInput(
                "The strategy 'custom' needs a scorer: a function of a candidate, a query and a moment."
                if is_custom
                else f"The strategy {self.name!r} doesn't ask a scorer. Give it with strategy='custom'."
            )
        if self.cluster_by not in get_args(ClusterBy):
            raise InvalidInput(
                f"Unknown cluster_by {self.cluster_by!r}. Known: {', '.join(get_args(ClusterBy))}."
            )
        if not 0.0 <= self.relevance <= 1.0:
            raise InvalidInput(
                f"relevance={self.relevance} can't weigh relevance. Give a number from 0 (off) to 1 (alone)."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFeatures:
    """What is known of a set's memories besides themselves, by memory id; each may lack some or all.

    `learned` is what use says of importances. `relevance` runs from 0 to 1 and is None where there is
    no question: then it plays no part; a memory that it lacks has none. `vectors` are of unit length
    and `terms` a memory's words, both for `clustered`.
    """

    learned: Mapping[str, LearnedImportance] = field(default_factory=dict)
    relevance: Mapping[str, float] | None = None
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    terms: Mapping[str, Terms] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """A working set in its order: each entry once, with its score and the parts of it.

    `ranked` makes an entry's account when it is read, since most of a large set isn't shown;
    `memories` are those of `ranked`, in the same order. `strategy` is the one that ordered, which
    `smart` chooses. The parts are what a score is made of and need not add up to it.
    """

    ranked: Sequence[Ranked]
    memories: tuple[Memory, ...]
    strategy: str
    notes: tuple[TraceNote, ...] = ()


def arrange(
    items: Sequence[WorkingSetItem],
    strategy: Strategy,
    *,
    now: datetime,
    query: Query | None = None,
    known: ItemFeatures | None = None,
    figures: ItemColumns | None = None,
) -> Arranged:
    """The entries in the order of a strategy. The order in which they are given doesn't matter.

    `figures` are those of the very entries where they were made before; they save work and change nothing.

    Parts: `importance`; `decay` and `age_hours`; `recency`; `frequency` and `accesses`; `scorer`, by the
    strategy. Besides, `importance_set` and `showings` where use has taught another importance;
    `strategy` and `relevance` where relevance takes part; `cluster`, counted from 1.
    Raises InvalidInput for a scorer that raises, and for a score that is no finite number or a
    relevance outside its range; the error names the memory.
    """
    query, known, figures = query or Query(), known or ItemFeatures(), figures or ItemColumns(items)
    name = strategy.name
    notes: tuple[TraceNote, ...] = ()
    base = strategy.base if name == "clustered" else name
    if base == "smart":
        chosen = choose_strategy(query.text)
        base, notes = chosen.strategy, (chosen.note,)
        name = base if name == "smart" else name
    scores, parts = _SCORED[base](_OrderingRequest(items, strategy, now, query, known, figures))
    if known.relevance is not None and strategy.relevance > 0:
        scores = _with_relevance(figures, scores, parts, known.relevance, strategy.relevance)
    places = _best_first(items, scores, figures.orders)
    if name == "clustered":
        places = _clustered(figures.ids, places, parts, known, strategy.cluster_by)
    return Arranged(
        ranked=_ranked(tuple(items), places, scores, parts),
        memories=_at(figures.memories, places),
        strategy=name,
        notes=(*notes, *_learned_notes(parts)),
    )


def _ranked(
    items: Sequence[WorkingSetItem], places: Sequence[int], scores: _Floats, parts: _Parts
) -> Sequence[Ranked]:
    """The entries in an order, from columns of numbers; a number that is NaN is no part of that entry."""
    numbers = scores.tolist()
    columns = {name: column.tolist() for name, column in parts.items()}

    def at(rank: int) -> Ranked:
        place = places[rank]
        return Ranked(
            candidate=Candidate(memory=items[place].memory),
            score=numbers[place],
            parts={name: column[place] for name, column in columns.items() if not math.isnan(column[place])},
        )

    return Deferred(len(places), at)


@dataclass(frozen=True, slots=True)
class _OrderingRequest:
    """What the plain strategies score by."""

    items: Sequence[WorkingSetItem]
    strategy: Strategy
    now: datetime
    query: Query
    known: ItemFeatures
    figures: ItemColumns


def _recent(request: _OrderingRequest) -> tuple[_Floats, _Parts]:
    """The share of the entries that were accessed no later than each."""
    orders = request.figures.orders
    scores = np.searchsorted(np.sort(orders), orders, side="right") / max(len(orders), 1)
    return scores, {"recency": scores}


def _important(request: _OrderingRequest) -> tuple[_Floats, _Parts]:
    items, learned = request.items, request.known.learned
    if not learned:
        importances = request.figures.importances
        return importances, {"importance": importances}
    importances = np.array([importance_of(one, learned) for one in items], dtype=np.float64)
    uses = [None if one.stays else learned.get(one.memory.ref) for one in items]
    return importances, {
        "importance": importances,
        "importance_set": np.array(
            [math.nan if use is None else one.memory.importance for one, use in zip(items, uses, strict=True)]
        ),
        "showings": np.array([math.nan if use is None else use.showings for use in uses]),
    }


def _frequent(request: _OrderingRequest) -> tuple[_Floats, _Parts]:
    importances, parts = _important(request)
    accesses = [one.accesses for one in request.items]
    # Logarithms one by one: those of a whole vector may differ in the last place by where in it they
    # stand, and so by the order in which the entries came.
    frequency = np.array([1.0 + math.log1p(count) for count in accesses], dtype=np.float64)
    return importances * frequency, {
        **parts,
        "frequency": frequency,
        "accesses": np.array(accesses, dtype=np.float64),
    }


def _balanced(request: _OrderingRequest) -> tuple[_Floats, _Parts]:
    importances, parts = _important(request)
    decay = request.strategy.decay
    ages = request.figures.ages(decay.basis, now=request.now)
    weights = decay.weights(ages)
    return importances * weights, {**parts, "decay": weights, "age_hours": ages}


def _custom(request: _OrderingRequest) -> tuple[_Floats, _Parts]:
    scores = np.array([_by_scorer(request, one) for one in request.items], dtype=np.float64)
    return scores, {"scorer": scores}


_SCORED: Mapping[str, Callable[[_OrderingRequest], tuple[_Floats, _Parts]]] = {
    "recent": _recent,
    "important": _important,
    "frequent": _frequent,
    "balanced": _balanced,
    "custom": _custom,
}


def _by_scorer(request: _OrderingRequest, one: WorkingSetItem) -> float:
    """A scorer's score; its candidate has the memory and, as signals, the numbers of its entry."""
    signals = {
        "touches": float(one.touches),
        "order": float(one.order),
        "recalled": float(one.recalled),
        "entered_hours": max((request.now - one.entered_at) / _HOUR, 0.0),
        "touched_hours": max((request.now - one.touched_at) / _HOUR, 0.0),
    }
    if request.known.relevance is not None:
        signals["relevance"] = request.known.relevance.get(one.memory.ref, 0.0)
    scorer = request.strategy.scorer
    if scorer is None:  # The strategy's own check has made sure of it; this tells the type checker.
        raise InvalidInput("The strategy 'custom' needs a scorer.")
    score = scored_by(scorer, Candidate(memory=one.memory, signals=signals), request.query, request.now)
    if not math.isfinite(score):
        raise InvalidInput(
            f"The scorer gave memory {one.memory.ref!r} the score {score}, which has no place in an order. "
            "A scorer has to return a finite number."
        )
    return score


def _with_relevance(
    figures: ItemColumns, scores: _Floats, parts: _Parts, relevance: Mapping[str, float], weight: float
) -> _Floats:
    """The scores brought to 0 to 1, and relevance joined to them."""
    near = np.array([relevance.get(memory_id, 0.0) for memory_id in figures.ids], dtype=np.float64)
    wrong = np.flatnonzero(~((near >= 0.0) & (near <= 1.0)))
    if len(wrong):
        place = int(wrong[0])
        raise InvalidInput(
            f"The relevance of memory {figures.ids[place]!r} is {near[place]}. Relevance runs from 0 to 1."
        )
    least, most = min(0.0, scores.min(initial=0.0)), scores.max(initial=-math.inf)
    normalized = (scores - least) / (most - least) if most > least else np.zeros_like(scores)
    parts["strategy"], parts["relevance"] = normalized, near
    return (1.0 - weight) * normalized + weight * near


def _best_first(items: Sequence[WorkingSetItem], scores: _Floats, by_order: NDArray[np.int64]) -> list[int]:
    """The places of the entries in rank order."""
    places: list[int] = np.lexsort((-by_order, -scores)).tolist()
    best, orders = scores[places], by_order[places]
    if not np.any((best[1:] == best[:-1]) & (orders[1:] == orders[:-1])):
        return places
    # Entries of one set differ in their order; where others are ranked, time and id decide.
    numbers = scores.tolist()
    by_id = sorted(places, key=lambda place: items[place].memory.ref)
    return sorted(
        by_id,
        key=lambda place: (numbers[place], items[place].order, items[place].memory.created_at),
        reverse=True,
    )


def _at(values: Sequence[_T], places: Sequence[int]) -> tuple[_T, ...]:
    """The values at these places. For thousands of them, a loop takes several times as long."""
    return itemgetter(*places)(values) if len(places) > 1 else tuple(values[place] for place in places)


def _clustered(
    ids: Sequence[str], places: Sequence[int], parts: _Parts, known: ItemFeatures, by: ClusterBy
) -> list[int]:
    """The places group by group; each entry gets the number of its group as a part."""
    place_of = {memory_id: place for place, memory_id in enumerate(ids)}
    groups = cluster(_at(ids, places), vectors=known.vectors, terms=known.terms, by=by)
    numbers = np.zeros(len(ids))
    for number, group in enumerate(groups, start=1):
        numbers[[place_of[memory_id] for memory_id in group]] = number
    parts["cluster"] = numbers
    return [place_of[memory_id] for group in groups for memory_id in group]


def _learned_notes(parts: _Parts) -> tuple[TraceNote, ...]:
    count = int(np.isfinite(parts["showings"]).sum()) if "showings" in parts else 0
    if not count:
        return ()
    text = f"The importance of {count} of {len(parts['showings'])} memories was learned from their use."
    return (TraceNote(code="learned_importance", text=text),)


# The numbers of a set's memories in columns, each made once. Pure: they depend on the entries alone.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_HOUR = 3_600_000_000

_FIGURE_T = TypeVar("_FIGURE_T", bound=np.generic)


class ItemColumns:
    """What strategies read of entries, column by column, in the order of the entries.

    A set is ordered many times before anything moves in it, and reading ten thousand entries
    takes longer than ranking them. Nothing here depends on a moment or a question. Threads may share it:
    at worst a column is made twice.
    """

    def __init__(self, items: Sequence[WorkingSetItem]) -> None:
        self.items = tuple(items)
        self._moments: dict[AgeBasis, NDArray[np.int64]] = {}

    @cached_property
    def importances(self) -> NDArray[np.float64]:
        """The importances that were set."""
        return _read_only(np.array([one.importance for one in self.memories], dtype=np.float64))

    @cached_property
    def orders(self) -> NDArray[np.int64]:
        """The places in the order of access."""
        return _read_only(np.array([one.order for one in self.items], dtype=np.int64))

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """The memories."""
        return tuple([one.memory for one in self.items])

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the memories."""
        return tuple([one.ref for one in self.memories])

    def ages(self, basis: AgeBasis, *, now: datetime) -> NDArray[np.float64]:
        """The age of each in hours at `now`, 0 for what lies in the future."""
        moments = self._moments.get(basis)
        if moments is None:
            moments = self._moments[basis] = self._since_the_epoch(basis)
        # Whole microseconds, which is as fine as moments are, so that no age is rounded twice.
        past = (now - _EPOCH) // _MICROSECOND - moments
        return np.maximum(past / _PER_HOUR, 0.0)

    def _since_the_epoch(self, basis: AgeBasis) -> NDArray[np.int64]:
        if basis is AgeBasis.CREATED:
            # By far the most common; the detour over `moment` costs as much again.
            moments = [one.created_at for one in self.memories]
        else:
            moments = [one.moment(basis) for one in self.items]
        return np.array([(moment - _EPOCH) // _MICROSECOND for moment in moments], dtype=np.int64)


def _read_only(column: NDArray[_FIGURE_T]) -> NDArray[_FIGURE_T]:
    """A column that stays, so nobody may change it."""
    column.flags.writeable = False
    return column


# Tells from its words whether a turn goes on with a conversation or asks for what lasts. Pure.
#
# No model is called.
#
# What goes on with a conversation, debugging included, needs the latest messages. A question about
# decisions, plans or principles needs what is important. Anything else, or both alike, needs a
# balance. Whole words and phrases of English decide, so that punctuation and case don't: each that
# stands in the text counts for its side once, a phrase instead of the words in it. The side with more
# decides. Where neither has any, a turn of up to three words goes on with a conversation, and so does
# one of up to eight with a word that only points back ("it", "that"). A text in another language has
# no such words, and gets the balance unless it is that short.

Turn: TypeAlias = Literal["conversational", "strategic", "mixed"]

_STRATEGIES: Mapping[Turn, str] = MappingProxyType(
    {"conversational": "recent", "strategic": "important", "mixed": "balanced"}
)
_WORD = re.compile(r"\w+(?:'\w+)*")
_SHORT = 3
"""Words; a turn as short as this leans on the turns before it."""
_POINTS_BACK = 8
"""Words; in a longer text, what a pronoun means stands in the text itself."""


def _cues_in(text: str) -> frozenset[str]:
    return frozenset(" ".join(cue.split()) for cue in text.split(";"))


_SMALL_TALK = _cues_in(
    """
    hi; hello; hey; good morning; good evening; thanks; thank you; ok; okay; yes; yep; yeah; no; nope; sure;
    great; cool; nice; perfect; sorry; please; continue; go on; go ahead; carry on; keep going; next one;
    again; once more; what about; how about; and now; right now; just now; a moment ago; a minute ago;
    you said; you just; you mean; you mentioned; i said; i mean; i meant; i just; we just; did you;
    do you remember; earlier; previous; previously; the last one; last message; last answer; last question;
    the first one; the second one; the other one; above; below; wait; hold on; undo; instead; shorter; longer;
    another one; in other words; what else; tell me more; more detail; say that; repeat; rephrase; still;
    already; error; errors; exception; traceback; stack trace; fails; failed; failing; failure; crash;
    crashes; crashed; broken; debug; bug; doesn't work; does not work; not working; isn't working; fix; try;
    retry; rerun; run; line; log; logs; output; typo; rename; test passes; tests pass
"""
)
_POINTING = _cues_in(
    "it; that; this; these; those; them; its; he; she; him; her; they; one; there; then; now; just"
)
_LASTING = _cues_in(
    """
    should we; should i; should our; shall we; do we want; are we going to; would it be better; is it worth;
    worth it; better to; which is better; decide; decided; decides; deciding; decision; decisions; choose;
    chose; chosen; choosing; choice; choices; plan; plans; planned; planning; roadmap; strategy; strategies;
    strategic; architecture; architectural; design; designs; trade off; trade offs; tradeoff; tradeoffs;
    pros and cons; prioritise; prioritize; priority; priorities; policy; policies; principle; principles;
    long term; long run; approach; approaches; recommend; recommendation; recommendations; option; options;
    alternative; alternatives; versus; vs; compare; comparison; evaluate; goal; goals; objective;
    objectives; requirement; requirements; constraint; constraints; vision; mission; invest; investment;
    hire; hiring; adopt; standardise; standardize; next quarter; this quarter; next year; this year; q1; q2;
    q3; q4; milestone; milestones; risk; risks; convention; conventions; guideline; guidelines; standard;
    standards; best way; best practice; best practices; commit to; stick with; move to; switch to;
    migrate to; why did we; why do we; rationale; reasons; summary; summarise; summarize; overview; key facts;
    lessons; invariant; invariants; build or buy; rule; rules; values; preferences
"""
)
_LONGEST = max(len(cue.split()) for cue in _SMALL_TALK | _LASTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The strategy for a turn, and the words of either side that decided on it.

    `leaning` are the words that only point back, or all those of a short turn, where nothing else
    decided.
    """

    turn: Turn
    small_talk: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()
    leaning: tuple[str, ...] = ()

    @property
    def strategy(self) -> str:
        """The strategy that serves such a turn: recent, important or balanced."""
        return _STRATEGIES[self.turn]

    @property
    def note(self) -> TraceNote:
        """What the trace says: which strategy, and why."""
        return TraceNote(code="smart", text=f"Ranked by the strategy {self.strategy}: {self._why}.")

    @property
    def _why(self) -> str:
        talk, lasting = _quoted(self.small_talk), _quoted(self.lasting)
        if self.turn == "conversational":
            against = f", more than {lasting} for what lasts" if lasting else ""
            return f"{talk or _quoted(self.leaning)} spoke for a conversation{against}"
        if self.turn == "strategic":
            against = f", more than {talk} for a conversation" if talk else ""
            return f"{lasting} spoke for what lasts{against}"
        if talk:
            return f"{talk} spoke for a conversation as much as {lasting} for what lasts"
        return "no word of the question spoke for a conversation or for what lasts"


def choose_strategy(text: str) -> Chosen:
    """What kind of turn a text is, and so the strategy that serves it. Any text gets an answer."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    found = tuple(dict.fromkeys(_cues(words)))
    talk = tuple(cue for cue in found if cue in _SMALL_TALK)
    lasting = tuple(cue for cue in found if cue in _LASTING)
    leaning = () if found else _leaning(words)
    lead = len(talk) + len(leaning) - len(lasting)
    turn: Turn = "conversational" if lead > 0 else "strategic" if lead < 0 else "mixed"
    return Chosen(turn=turn, small_talk=talk, lasting=lasting, leaning=leaning)


def _cues(words: Sequence[str]) -> Iterable[str]:
    """The cues in the text, the longest that begins at each place, none within another."""
    place = 0
    while place < len(words):
        for length in range(min(_LONGEST, len(words) - place), 0, -1):
            cue = " ".join(words[place : place + length])
            if cue in _SMALL_TALK or cue in _LASTING:
                yield cue
                break
        place += length


def _leaning(words: Sequence[str]) -> tuple[str, ...]:
    if len(words) <= _SHORT:
        return tuple(dict.fromkeys(words))
    if len(words) <= _POINTS_BACK:
        return tuple(dict.fromkeys(word for word in words if word in _POINTING))
    return ()


def _quoted(cues: Sequence[str]) -> str:
    return ", ".join(f'"{cue}"' for cue in cues)
