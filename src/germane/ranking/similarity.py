"""Which memories are alike: same statement, same subject, same group; and the orders that no question
decides.

Vectors of words know neither order nor number: the limits of 40 and of 50 MB lie as near to each other as
two copies. So what has to agree is checked in words.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import regex
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.context import EmptyReason, Ranked, TraceNote
from germane.model.memory import Memory, Trust, Vector
from germane.model.plan import Alike
from germane.model.query import Candidate, CandidateTable, Deferred, Order, SearchResult, TimeRange

_WORDS = regex.compile(r"\d+(?:[.,:]\d+)*|[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*|[^\w\s.,;:!?…\"“”()*`'’_-]")
_NEGATIONS = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "nobody",
        "nothing",
        "nor",
        "neither",
        "without",
        "cannot",
        "unlike",
        "except",
    ]
)
_ARTICLES = ("a", "an", "the", "our")
_AUXILIARIES = (
    "is",
    "are",
    "was",
    "were",
    "be",
    "been",
    "being",
    "am",
    "has",
    "have",
    "had",
    "do",
    "does",
    "did",
)
_LIGHT = frozenset((*_ARTICLES, *_AUXILIARIES, "it", "its", "there", "also", "just", "then", "so"))
"""Words that may be there or not without a change of meaning."""
_EVERY, _EVERYS = "every", frozenset({"each", "every"})
_SHORTEST_FORM, _ENDING = 3, 3
_FEWEST_QUOTED = 4
"""Words of which a text must have at least so many before another counts as quoting it."""


def words_of(text: str) -> list[str]:
    """The words, numbers and symbols of a text in order, folded; punctuation is left out."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _WORDS.findall(folded)


def normalised(text: str) -> str:
    """A text in the form in which two that differ in case, spaces and punctuation alone are equal."""
    return " ".join(words_of(text))


def could_be_same(one: str, other: str) -> bool:
    """Whether nothing in the words forbids that the texts say the same.

    Their numbers and negations have to agree, what words they share has to stand in one order, and no word of
    the one may stand in place of another word of the other: Friday for Thursday, off for on. Articles
    and auxiliaries are free, and so are forms of one word.
    """
    first, second = words_of(one), words_of(other)
    if first == second:
        return True
    if _figures(first) != _figures(second) or _negations(first) != _negations(second):
        return False
    if sorted(first) == sorted(second):
        return False
    heavy, others = _heavy(first), _heavy(second)
    common = Counter(heavy) & Counter(others)
    if _common_words(heavy, common) != _common_words(others, common):
        return False
    left, right = Counter(heavy) - common, Counter(others) - common
    return not left or not right or _are_forms(left, right)


def could_be_same_among(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of each two texts of which `could_be_same` is true, the earlier first.

    Not all are compared with all: of two such texts one has every word of the other, but for endings.
    """
    groups: dict[Hashable, list[int]] = {}
    roots: list[frozenset[str]] = []
    for place, text in enumerate(texts):
        words = words_of(text)
        groups.setdefault((frozenset(_figures(words).items()), _negations(words)), []).append(place)
        roots.append(frozenset(word[:_SHORTEST_FORM] for word in _heavy(words)))
    for group in groups.values():
        having: dict[str, set[int]] = {}
        for place in group:
            for root in roots[place]:
                having.setdefault(root, set()).add(place)
        for place in group:
            fewest, *more = sorted((having[root] for root in roots[place]), key=len) or [set(group)]
            for other in fewest.intersection(*more):
                # Of two with the same roots each finds the other.
                first, last = sorted((place, other))
                is_new = other > place or roots[other] != roots[place]
                if is_new and first != last and could_be_same(texts[first], texts[last]):
                    yield first, last


def _heavy(words: Sequence[str]) -> list[str]:
    """The words that carry the meaning, in order."""
    return [_EVERY if word in _EVERYS else word for word in words if word not in _LIGHT]


def _common_words(words: Sequence[str], common: Counter[str]) -> list[str]:
    """The words that are in common, in order; of a word that occurs more often, the first times."""
    left = Counter(common)
    found = []
    for word in words:
        if left[word] > 0:
            left[word] -= 1
            found.append(word)
    return found


def _are_forms(left: Counter[str], right: Counter[str]) -> bool:
    """Whether the words of one side are forms of those of the other, each of one of them."""
    some, others = sorted(left.elements()), sorted(right.elements())
    return len(some) == len(others) and all(map(_is_form, some, others))


def _is_form(one: str, other: str) -> bool:
    """Whether two words differ in a short ending alone: showed and shown, not authorise and authenticate."""
    short, long = sorted((len(one), len(other)))
    shared = max(_SHORTEST_FORM, short - 1)
    return one[:shared] == other[:shared] and long - short <= _ENDING


def is_quoted(quoted: str, text: str) -> bool:
    """Whether the text holds all words of `quoted` in one piece; of fewer than four that says nothing."""
    words = words_of(quoted)
    if len(words) < _FEWEST_QUOTED:
        return False
    return f" {' '.join(words)} " in f" {' '.join(words_of(text))} "


def _figures(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words if not word[0].isalpha())


def _negations(words: Sequence[str]) -> int:
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words)


# Groups what is related, so that it stands together. Pure; the same input gives the same groups.
#
# Leader clustering (Hartigan 1975), in rank order: the best item that stands in no group leads the next
# one, and takes in everything ungrouped that is like it. Groups come in the order of their best members,
# and members in rank order. It is an approximation: likeness is to the leader and not between all members,
# and a member goes to the first group that takes it. Only `MOST_GROUPS` groups are looked for. What is left
# then stands alone, and that is what ranks last.

ClusterBy: TypeAlias = Literal["auto", "vectors", "terms"]

LEAST_COSINE = 0.5
"""From this cosine on two memories are about the same thing."""

LEAST_OVERLAP = 0.12
"""From this share of common terms on (Jaccard) they are, as surely as from that cosine on: among the 315
memories of the demonstration, half of the pairs beyond either share a subject or a tag."""

MOST_GROUPS = 128
_BLOCK = 32
_WITHOUT_THREADS = 1 << 18
"""Multiplications in a product for which OpenBLAS starts no threads."""
_LARGEST_TABLE = 1_000_000
"""Numbers; up to here a table of items by terms is quicker than lists of the items that have a term."""

Terms: TypeAlias = Collection[Hashable] | NDArray[np.uint32]
"""The terms of a memory, or an array of their hashes, each once."""

_Floats: TypeAlias = NDArray[np.float32]


def cluster(
    ids: Sequence[str],
    *,
    vectors: Mapping[str, Vector] | None = None,
    terms: Mapping[str, Terms] | None = None,
    by: ClusterBy = "auto",
    least_cosine: float = LEAST_COSINE,
    least_overlap: float = LEAST_OVERLAP,
) -> list[list[str]]:
    """The ids in groups: groups by their best member, members in the order given, which is rank order.

    `vectors` are of unit length, `terms` the words of each; either may lack some ids or all. "auto"
    goes by vectors, and then by terms for what none of their groups took in, against their leaders as
    well; without any vectors by terms alone. What has neither stands alone. Raises InvalidInput for
    an unknown `by`, for ids that repeat, for a least likeness that isn't above 0 and at most 1, and
    for vectors of different lengths.
    """
    _check(ids, by, {"least_cosine": least_cosine, "least_overlap": least_overlap})
    found = _Groups(len(ids))
    if by != "terms" and vectors:
        known = [place for place, name in enumerate(ids) if name in vectors and len(vectors[name])]
        if known:
            found.gather(_Directions([vectors[ids[place]] for place in known]), known, least_cosine)
    if by != "vectors" and terms:
        known = [place for place, name in enumerate(ids) if len(terms.get(name, ()))]
        if known:
            found.gather(_Words([terms[ids[place]] for place in known]), known, least_overlap)
    groups: dict[int, list[str]] = {}
    for place, leader in enumerate(found.leaders()):
        groups.setdefault(leader, []).append(ids[place])
    # By terms, an item can join a leader that ranks below it; groups go by the best member all the same.
    return list(groups.values())


def _check(ids: Sequence[str], by: str, least: Mapping[str, float]) -> None:
    if by not in get_args(ClusterBy):
        raise InvalidInput(f"Unknown cluster_by {by!r}. Known: {', '.join(get_args(ClusterBy))}.")
    if len(set(ids)) < len(ids):
        raise InvalidInput("A memory stands twice among those to be clustered; each is in a set once.")
    for name, value in least.items():
        if not 0.0 < value <= 1.0:
            raise InvalidInput(f"{name}={value} is no likeness to ask for. Give a number above 0, at most 1.")


class _Likeness(Protocol):
    """How alike items are, by their places among those that it knows."""

    def to(self, places: NDArray[np.int64]) -> _Floats:
        """A row for each of these places, a column for each item; 1 for what is the same."""
        ...


class _Groups:
    """Who leads whom. A leader leads itself, and an item without a group has leader -1."""

    def __init__(self, count: int) -> None:
        self._leader = np.full(count, -1, dtype=np.int64)
        self._found = 0

    def gather(self, likeness: _Likeness, known: Sequence[int], least: float) -> None:
        """Let the leaders so far take in what is like them; then the others lead, in rank order."""
        places = np.asarray(known, dtype=np.int64)
        own = self._leader[places]
        leading = np.flatnonzero(own == places)
        for start in range(0, len(leading), _BLOCK):
            self._take_in(likeness, places, leading[start : start + _BLOCK], least, found=True)
        while self._found < MOST_GROUPS:
            ungrouped = np.flatnonzero(self._leader[places] < 0)[:_BLOCK]
            if not len(ungrouped):
                return
            self._take_in(likeness, places, ungrouped, least, found=False)

    def _take_in(
        self,
        likeness: _Likeness,
        places: NDArray[np.int64],
        leading: NDArray[np.int64],
        least: float,
        *,
        found: bool,
    ) -> None:
        alike = likeness.to(leading) >= least
        # Most items are like none but themselves, and need no further look.
        many = (alike.sum(axis=1) > 1).tolist()
        for row, place, has_others in zip(alike, places[leading].tolist(), many, strict=True):
            if not found:
                if self._leader[place] >= 0:
                    continue  # A better one of the same block took it in.
                if self._found == MOST_GROUPS:
                    return
                self._found += 1
                self._leader[place] = place
            if has_others:
                taken = places[row]
                self._leader[taken[self._leader[taken] < 0]] = place

    def leaders(self) -> list[int]:
        """The leader of each item; what no group took in leads itself."""
        own = np.arange(len(self._leader))
        leaders: list[int] = np.where(self._leader < 0, own, self._leader).tolist()
        return leaders


class _Directions:
    """Likeness by cosine."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        lengths = sorted({len(vector) for vector in vectors})
        if len(lengths) > 1:
            raise InvalidInput(
                f"Vectors of {' and '.join(map(str, lengths))} dimensions can't be compared. "
                "All have to be made by one model."
            )
        self._rows = np.concatenate(vectors).reshape(len(vectors), -1)

    def to(self, places: NDArray[np.int64]) -> _Floats:
        return _products(self._rows[places], self._rows)


class _Words:
    """Likeness by the share of terms in common (Jaccard)."""

    def __init__(self, terms: Sequence[Terms]) -> None:
        self._lengths, flat = _numbered(terms)
        items = np.repeat(np.arange(len(terms)), self._lengths)
        # A term that only one of them has is in no intersection.
        shared = np.bincount(flat) > 1
        width = int(shared.sum())
        self._table: _Floats | None = None
        if width * len(terms) <= _LARGEST_TABLE:
            self._table = np.zeros((len(terms), width), dtype=np.float32)
            among = shared[flat]
            self._table[items[among], (np.cumsum(shared) - 1)[flat[among]]] = 1.0
        else:
            by_term = np.argsort(flat, kind="stable")
            self._items = items[by_term]
            self._starts = np.searchsorted(flat[by_term], np.arange(len(shared) + 1))
            self._own = np.split(flat, np.cumsum(self._lengths)[:-1])

    def to(self, places: NDArray[np.int64]) -> _Floats:
        if self._table is not None:
            common = _products(self._table[places], self._table)
        else:
            common = np.stack([self._common(place) for place in places.tolist()]).astype(np.float32)
        either = (self._lengths + self._lengths[places][:, None]).astype(np.float32) - common
        alike: _Floats = np.divide(common, either, dtype=np.float32)
        return alike

    def _common(self, place: int) -> NDArray[np.int64]:
        own = self._own[place]
        bounds = zip(self._starts[own].tolist(), self._starts[own + 1].tolist(), strict=True)
        having = [self._items[start:end] for start, end in bounds]
        return np.bincount(np.concatenate(having), minlength=len(self._own))


def _products(some: _Floats, rows: _Floats) -> _Floats:
    """The product of each of some rows with each of all rows."""
    # A large product wakes a thread for each processor. On a busy machine, waiting for them costs many
    # times the work; products as small as these are made without, and gain nearly nothing by them.
    width = max(1, _WITHOUT_THREADS // max(1, some.size))
    parts = [some @ rows[start : start + width].T for start in range(0, len(rows), width)]
    return np.concatenate(parts, axis=1)


def _numbered(terms: Sequence[Terms]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many terms each item has, and all of them one after another, numbered from 0."""
    hashed = [each for each in terms if isinstance(each, np.ndarray)]
    if len(hashed) == len(terms):
        _, flat = np.unique(np.concatenate(hashed), return_inverse=True)
        return np.fromiter(map(len, hashed), dtype=np.int64, count=len(hashed)), flat
    numbers: dict[Hashable, int] = {}
    distinct = [set(each.tolist() if isinstance(each, np.ndarray) else each) for each in terms]
    own = [[numbers.setdefault(term, len(numbers)) for term in each] for each in distinct]
    lengths = np.fromiter(map(len, own), dtype=np.int64, count=len(own))
    return lengths, np.fromiter(chain.from_iterable(own), dtype=np.int64)


# Keeps one subject from filling a section: of the memories that are alike, only the best.


def of_each(
    ranked: Sequence[Ranked], *, alike: Alike, most: int, exempt: Collection[str] = ()
) -> tuple[Sequence[Ranked], Sequence[Ranked]]:
    """The memories of a section with at most so many of those that are alike, and the others, in rank order.

    A memory that lacks what makes it alike is like none. What is `exempt` stays and counts as well.
    """
    memories = memories_of(ranked)
    likenesses = [likeness(one, alike) for one in memories]
    stays = [one.ref in exempt for one in memories]
    counts = Counter(shared for shared, exempted in zip(likenesses, stays, strict=True) if exempted)
    selected: list[int] = []
    over: list[int] = []
    for place, (shared, exempted) in enumerate(zip(likenesses, stays, strict=True)):
        if shared is None or exempted:
            selected.append(place)
        elif counts[shared] < most:
            counts[shared] += 1
            selected.append(place)
        else:
            over.append(place)
    return at_places(ranked, selected), at_places(ranked, over)


def likeness(memory: Memory, alike: Alike) -> str | None:
    """What a memory shares with those that it is like: its subject, its category, its first tag, its kind, or
    the page or file of its source.

    By tags, what belongs to a session is like nothing.
    """
    if alike == "kind":
        return memory.kind
    if alike == "subject":
        return memory.subject.casefold() if memory.subject else None
    if alike == "tag":
        # The turns of a session are parts of one conversation, and shown in full or not at all.
        return memory.tags[0] if memory.tags and memory.scope.name != "session" else None
    if alike == "source":
        return source_of(memory)
    category = memory.metadata.get("category")
    return str(category).casefold() if category else None


def source_of(memory: Memory) -> str:
    """The page, file or conversation that a memory is from, without the place in it; empty for none."""
    return (memory.source or "").partition("#")[0] or f"{memory.scope}"


def is_outside(memory: Memory) -> bool:
    """Whether a memory is a text from outside; not a turn of dialogue, which belongs to those around it."""
    turn = memory.scope.name == "session" and "speaker" in memory.metadata
    return memory.trust is Trust.EXTERNAL and not turn


_EXTERNAL = Trust.EXTERNAL
_OF_A_SOURCE, _OF_OUTSIDE = 5, 20
"""So many texts of one outside source, and of all together, come before those that are from elsewhere."""


def crowding(sections: Sequence[Sequence[Ranked]]) -> set[str]:
    """The refs of texts from outside that come after all others, since so many better ones are from there.

    A limit holds only where others are there to be crowded out, and doesn't depend on the budget, so that a
    larger one shows no less.
    """
    outside = [
        (ranked.scores[place] if isinstance(ranked, Ranking) else ranked[place].score, memory)
        for ranked in sections
        for place, memory in enumerate(memories_of(ranked))
        if memory.trust is _EXTERNAL and is_outside(memory)
    ]
    if len(outside) <= _OF_A_SOURCE:
        return set()
    mixed = len(outside) < sum(map(len, sections))
    late: set[str] = set()
    taken: Counter[str] = Counter()
    several = mixed or len({source_of(memory) for _, memory in outside}) > 1
    for _, memory in sorted(outside, key=lambda one: (-one[0], one[1].ref)):
        source = source_of(memory)
        if (several and taken[source] >= _OF_A_SOURCE) or (mixed and taken.total() >= _OF_OUTSIDE):
            late.add(memory.ref)
        else:
            taken[source] += 1
    return late


# Orders that no question decides: newest, oldest, most important.
#
# The same orders as a store's `find` has.


def in_order(candidates: Iterable[Candidate], order: Order) -> tuple[Candidate, ...]:
    """The candidates in that order; ties fall to the newer, then to the greater id, so it is total."""
    newest_first = sorted(
        candidates, key=lambda one: (one.memory.created_at, one.memory.ref), reverse=order is not Order.OLDEST
    )
    if order is Order.IMPORTANT:
        newest_first.sort(key=lambda one: one.memory.importance, reverse=True)
    return tuple(newest_first)


# Rankings whose candidates are made when they are looked at: of hundreds, few ever are.

Parts: TypeAlias = dict[str, NDArray[np.float64]]
"""The named parts of scores, each a column; NaN where a candidate doesn't have the part."""


class Ranking(Deferred[Ranked]):
    """Candidates in rank order, each with its score and its parts, made when it is looked at.

    `order` has the places of the candidates in `table`, the best first, and `parts` are in the order of the
    table; `memories` and `scores` are those of the candidates in rank order.
    """

    __slots__ = ("_scores", "memories", "order", "parts", "scores", "table")

    def __init__(
        self, table: CandidateTable, scores: NDArray[np.float64], parts: Parts, order: Sequence[int]
    ) -> None:
        """`scores` and `parts` are in the order of the table."""
        super().__init__(len(order), self._ranked)
        self.table, self._scores, self.parts, self.order = table, scores, parts, order
        self.memories = [table.memories[place] for place in order]
        self.scores: list[float] = scores[np.array(order, dtype=np.int64)].tolist()

    def at(self, ranks: Sequence[int]) -> Ranking:
        """The candidates of these ranks, which count from 0, in the order in which they are named."""
        return Ranking(self.table, self._scores, self.parts, [self.order[rank] for rank in ranks])

    def _ranked(self, rank: int) -> Ranked:
        place = self.order[rank]
        values = {name: column.item(place) for name, column in self.parts.items()}
        return Ranked(
            candidate=self.table[place],
            score=self.scores[rank],
            parts={name: value for name, value in values.items() if not math.isnan(value)},
        )


def having(parts: Parts, name: str, count: int) -> NDArray[np.bool_]:
    """Which of `count` candidates have a part."""
    return ~np.isnan(parts[name]) if name in parts else np.zeros(count, dtype=np.bool_)


def memories_of(ranked: Sequence[Ranked]) -> Sequence[Memory]:
    """The memories of a ranking, in its order."""
    return ranked.memories if isinstance(ranked, Ranking) else [one.candidate.memory for one in ranked]


def at_places(ranked: Sequence[Ranked], places: Sequence[int]) -> Sequence[Ranked]:
    """The candidates at these places of a ranking, which ascend; none is made for it."""
    if len(places) == len(ranked):
        return ranked
    return ranked.at(places) if isinstance(ranked, Ranking) else tuple([ranked[place] for place in places])


def newest(places: Iterable[int], memories: Sequence[Memory]) -> list[int]:
    """The places in the order of their memories: the newest first, then the greater id."""
    return sorted(places, key=lambda place: (memories[place].created_at, memories[place].ref), reverse=True)


def ordered(keys: Sequence[NDArray[Any]], order_of_ties: Callable[[list[int]], list[int]]) -> list[int]:
    """The places of columns in ascending order of their values: by the last column, then the one before.

    `order_of_ties` puts the places whose values are all equal into their order.
    """
    order = np.lexsort(keys)
    places: list[int] = order.tolist()
    differs = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
    starts = [0, *(np.flatnonzero(differs) + 1).tolist(), len(places)]
    if len(starts) <= len(places):
        for start, end in pairwise(starts):
            if end - start > 1:
                places[start:end] = order_of_ties(places[start:end])
    return places


# Why there is nothing to show, and the note for an empty question.

RECENCY = TraceNote(
    code="recency", text="The question names nothing to look for, so the newest memories come first."
)
"""What a trace says of a question without a term."""


def nothing_then(
    when: TimeRange | None, shown: Sequence[Memory], others: Sequence[Memory] | None
) -> TraceNote | None:
    """What to say where a time was named, and nothing that relevance brought is of it; else None.

    `others` are those that were gathered and aren't shown, None where these aren't known.
    """
    if when is None or any(memory.created_at in when for memory in shown):
        return None
    sentences = [f"Nothing shown is of the time named, {when}."]
    if others is not None:
        count = sum(memory.created_at in when for memory in others)
        few = {0: "No memory that was found is of it.", 1: "The 1 memory of it that was found isn't shown."}
        sentences.append(few.get(count, f"The {count} memories of it that were found aren't shown."))
    if shown:
        one = "The 1 memory shown is of another time."
        sentences.append(one if len(shown) == 1 else f"The {len(shown)} memories shown are of other times.")
    return TraceNote(code="nothing_then", text=" ".join(sentences))


def empty_reason_of(found: SearchResult, ranked: Sequence[Sequence[Ranked]]) -> EmptyReason:
    """Why nothing is shown: the first of the reasons that holds."""
    if found.stored == 0:
        return EmptyReason.NOTHING_STORED
    if found.admitted == 0:
        return EmptyReason.FILTERED
    if not any(ranked):
        return EmptyReason.NOTHING_RELEVANT
    return EmptyReason.OVER_BUDGET
