"""Measurements as values: of one question, of one retriever, and paired differences of two."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np

from germane.packing.render import fence
from germane.retrieval.tokenizer import query_terms, term_hash, words

WordPairs: TypeAlias = frozenset[tuple[int, int]]
"""Pairs of neighbouring content words, by the hashes of their stems."""
DEPTHS = (5, 10, 20)
"""How many of the best memories `recall_at` looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of one question at one budget: the context contained `contained` of its `evidence` pieces
    in full.

    `shown` counts the pieces in the context at any length, or in full if the retriever doesn't report its
    items. The context contained `phrases_contained` of the `phrases` that answer the question. `words` is
    the share of the phrases' pairs of words in the context (see `word_pairs`), or of the evidence's pairs if
    there are no phrases.

    `contained_names` and `shown_names` are the names of the pieces that `contained` and `shown` count.

    `number` is the number of the question in the run, `corpus` the index of its corpus, and `half` the half
    of the data that the corpus belongs to.
    """

    number: int
    corpus: int
    half: int
    category: int | str
    evidence: int
    contained: int
    shown: int
    tokens: int
    seconds: float
    recall_at: Mapping[int, float]
    reciprocal: float
    phrases: int = 0
    phrases_contained: int = 0
    words: float = 0.0
    contained_names: tuple[str, ...] = ()
    shown_names: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of the evidence that the context contained in full."""
        return self.contained / self.evidence

    @property
    def shown_share(self) -> float:
        """The share of the evidence in the context at any length."""
        return self.shown / self.evidence

    @property
    def whole(self) -> bool:
        """Whether the context contained all evidence in full."""
        return self.contained == self.evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFigures:
    """Figures over a set of questions, each a share from 0 to 1.

    `evidence_recall` is the mean over the questions of the share of their evidence that
    the context contains in full, `interval` its bootstrap 95 % interval; `all_evidence` is the share of
    questions with all of it, and `shown_recall` counts evidence in the context at any length: whole or
    shortened. `word_recall` is the mean share of the pairs of neighbouring content words of a question's
    answer phrases, or of its evidence where it names none, that the text contains: ROUGE-2 recall, so that
    a passage counts in part. `answer_recall` is the mean share of a question's answer phrases that the text
    contains, None where no question names any. `evidence` counts the evidence turns and `found` those
    contained. `recall_at` and `mrr` judge the ranking before anything is packed.
    """

    questions: int
    evidence: int
    found: int
    evidence_recall: float
    shown_recall: float
    all_evidence: float
    interval: tuple[float, float]
    recall_at: Mapping[int, float]
    mrr: float
    answer_recall: float | None = None
    word_recall: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The figures as a JSON object: `recall@5` is the recall at depth 5."""
        depths = {f"recall@{depth}": as_json(share) for depth, share in self.recall_at.items()}
        return fields_as_json(self, "recall_at") | depths


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLengths:
    """The lengths in tokens of the turns of a speaker, or of all turns if `speaker` is None."""

    speaker: str | None
    turns: int
    median: float
    p90: float


def turn_lengths(tokens: Mapping[str, Sequence[int]]) -> tuple[TurnLengths, ...]:
    """The lengths of all turns, then of each speaker's turns, the most frequent speaker first.

    `tokens` has the lengths of the turns by speaker; turns without a speaker are under an empty name.
    """
    groups: list[tuple[str | None, Sequence[int]]] = [(None, list(chain.from_iterable(tokens.values())))]
    groups += sorted(((name, each) for name, each in tokens.items() if name), key=lambda one: -len(one[1]))
    return tuple(
        TurnLengths(speaker=name, turns=len(each), median=percentile(each, 50), p90=percentile(each, 90))
        for name, each in groups
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One retriever at one budget.

    `tokens` is the mean length of its contexts and `fill` its ratio to the budget; `over_budget` counts the
    contexts that exceed the budget by an independent count. Latencies are in milliseconds per context.
    `halves` are the figures of the two halves of the conversations, in the order of the file; `by_evidence`
    those by the number of turns that answer a question: "1", "2" and "3+". `answers` has the outcome of each
    question, in the order of the questions.
    """

    retriever: str
    budget: int
    overall: EvaluationFigures
    categories: Mapping[int | str, EvaluationFigures]
    halves: tuple[EvaluationFigures, EvaluationFigures]
    tokens: float
    fill: float
    over_budget: int
    p50_ms: float
    p95_ms: float
    by_evidence: Mapping[str, EvaluationFigures] = field(default_factory=dict)
    answers: tuple[Answer, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The result as a JSON object without the answers; latencies with three decimals, tokens with one."""
        return {
            **fields_as_json(self, "overall", "answers", "p50_ms", "p95_ms"),
            **self.overall.as_dict(),
            "tokens": round(self.tokens, 1),
            "latency_ms": {"p50": round(self.p50_ms, 3), "p95": round(self.p95_ms, 3)},
        }


# Values as JSON, with rounded shares.

_PLACES = 4


def as_json(value: Any) -> Any:
    """The value in JSON types: its `as_dict`, or else its fields; numbers with four decimals."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if hasattr(value, "__dataclass_fields__"):
        return fields_as_json(value)
    if isinstance(value, Mapping):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(each) for each in value]
    return round(value, _PLACES) if isinstance(value, float) else value


def fields_as_json(value: Any, *without: str) -> dict[str, Any]:
    """The fields of a dataclass as a JSON object, in their order, except `without`."""
    names = (name for name in value.__dataclass_fields__ if name not in without)
    return {name: as_json(getattr(value, name)) for name in names}


# The measures of one question, and their aggregates. The seed of the bootstrap is an argument.

RESAMPLES = 2000
"""Resamples of the bootstrap; the ends of intervals then differ by a few tenths of a point between seeds."""

_COVERAGE = 95.0
_BULLET = re.compile(r"^[-*+]\s+")
_ESCAPE = re.compile(r"\\(?=[<#=\-`~_*>|])")


@dataclass(frozen=True, slots=True)
class Needle:
    """The text that a context must contain for a turn to count: its day, its speaker and all its words.

    Without a day it is the content of a memory, and the text that the kind's template adds may surround it.
    `texts` begins with the `speaker`, if there is one.
    """

    day: str
    texts: str
    speaker: str = ""

    @property
    def word_pairs(self) -> WordPairs:
        """The neighbouring content words of the turn, without its speaker."""
        return word_pairs(self.texts.removeprefix(f"{self.speaker}: "))


def holds(context: str, needles: Sequence[Needle]) -> list[bool]:
    """Whether the context contains each of the turns in full.

    The words are fenced, on separate lines. The day is before them on their first line, or in the heading
    above. Bullets and indents are ignored. A turn that was cut, that is under another day or is part of a
    longer line doesn't count.
    """
    parts = _parts(context)
    found = []
    for each in needles:
        words = "\n".join(_BULLET.sub("", line.strip()) for line in fence(each.texts))
        if not each.day:
            found.append(bool(words) and any(_has_words(body, words) for _, body in parts))
            continue
        words += "\n"
        dated = f"\n{each.day} {words}"
        found.append(
            any(dated in body or (each.day in heading and f"\n{words}" in body) for heading, body in parts)
        )
    return found


def holds_phrase(context: str, phrase: str) -> bool:
    """Whether a context contains the words of a phrase in their order, across line breaks.

    Case, bullets and the escapes of fencing are ignored.
    """
    wanted = _in_one_line("\n".join(fence(phrase)))
    return bool(wanted) and _has_words(f" {_in_one_line(context)} ", wanted)


def word_pairs(text: str) -> WordPairs:
    """The pairs of neighbouring content words of a text, each once.

    Content words are stemmed, and English stop words are skipped. A text with one content word is a pair of
    that word with itself.
    """
    found = [term for word in words(text) for term in _content_of(word)]
    return frozenset(pairwise(found if len(found) != 1 else found * 2))


@lru_cache(maxsize=100_000)
def _content_of(word: str) -> tuple[int, ...]:
    """The hash of a word's stem, or nothing for a stop word."""
    return tuple(map(term_hash, query_terms(word)[:1]))


def pairs_in(context: str) -> WordPairs:
    """The `word_pairs` of a context, and each of its words paired with itself, for `pair_share`."""
    return word_pairs(context := _ESCAPE.sub("", context)) | {
        (term, term) for word in words(context) for term in _content_of(word)
    }


def pair_share(wanted: WordPairs, context: WordPairs) -> float:
    """The share of the wanted pairs in the context: ROUGE-2 recall (Lin, 2004), each pair counted once.

    Single words measure little: 4,000 tokens on another topic contain most of them.
    """
    return len(wanted & context) / len(wanted)


def _in_one_line(text: str) -> str:
    parts = " ".join(_BULLET.sub("", line.strip()) for line in text.split("\n")).split()
    return _ESCAPE.sub("", " ".join(parts)).casefold()


def _has_words(body: str, words: str) -> bool:
    """Whether a text contains the words at word boundaries."""
    place = body.find(words)
    while place >= 0:
        if not body[place - 1].isalnum() and not body[place + len(words)].isalnum():
            return True
        place = body.find(words, place + 1)
    return False


def _parts(context: str) -> list[tuple[str, str]]:
    """Each heading with the text below it, every line of which has a line feed before and after it."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in context.split("\n"):
        if line.startswith("#"):
            parts.append((line, []))
        else:
            parts[-1][1].append(_BULLET.sub("", line.removeprefix("- ").strip()))
    return [(heading, "\n" + "\n".join(lines) + "\n") for heading, lines in parts]


def recall_at(ranking: Sequence[str], wanted: Collection[str], k: int) -> float:
    """The share of the wanted ids among the first `k` of a ranking."""
    return len(set(ranking[:k]) & set(wanted)) / len(set(wanted))


def reciprocal_rank(ranking: Sequence[str], wanted: Collection[str]) -> float:
    """1 / rank of the first wanted id, ranks from 1; 0 if the ranking has none."""
    places = (place for place, each in enumerate(ranking, start=1) if each in wanted)
    first = next(places, None)
    return 0.0 if first is None else 1.0 / first


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 without values."""
    return float(np.mean(values)) if len(values) else 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile, interpolated linearly; 0 without values."""
    return float(np.percentile(values, percent)) if len(values) else 0.0


def bootstrap_interval(
    values: Sequence[float],
    *,
    seed: int,
    clusters: Sequence[int] | None = None,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """The 95 % percentile interval of the mean (Efron, 1979); (0, 0) without values.

    With `clusters`, one per value, whole clusters are resampled instead of single values. Questions about one
    conversation are correlated, so only this interval holds for other conversations.

    The same seed and number of values give the same resamples, so two retrievers that answered the same
    questions are resampled in pairs.
    """
    if not len(values):
        return 0.0, 0.0
    _, owners = np.unique(range(len(values)) if clusters is None else clusters, return_inverse=True)
    sums, sizes = np.bincount(owners, weights=np.asarray(values, dtype=np.float64)), np.bincount(owners)
    drawn = np.random.default_rng(seed).integers(0, sums.size, size=(resamples, sums.size))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    tail = (100.0 - _COVERAGE) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail])
    return float(low), float(high)


# Paired differences of two configurations that answered the same questions.


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The difference of two retrievers at one budget: shares from -1 to 1, `second` minus `first`.

    `evidence_recall` and `all_evidence` are mean differences over the questions. `interval` is the bootstrap
    95 % interval of `evidence_recall` over questions, `interval_over_conversations` over whole conversations
    (None for fewer than two). `halves` are the differences in each half of the data, None for a half without
    questions. `word_recall` is the mean difference in pairs of words, and `words_interval` its interval over
    questions. `wins` counts the questions for which `second` has more evidence.
    """

    first: str
    second: str
    budget: int
    questions: int
    evidence_recall: float
    all_evidence: float
    interval: tuple[float, float]
    interval_over_conversations: tuple[float, float] | None
    halves: tuple[float | None, float | None]
    wins: int
    losses: int
    word_recall: float = 0.0
    words_interval: tuple[float, float] = (0.0, 0.0)

    @property
    def is_significant(self) -> bool:
        """Whether the interval over questions excludes zero."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def as_dict(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return fields_as_json(self)


def differences(
    first: Sequence[Result], second: Sequence[Result], *, seed: int
) -> tuple[PairedDifference, ...]:
    """One difference per budget. Both must have the same questions at the same budgets."""
    return tuple(_difference(one, other, seed) for one, other in zip(first, second, strict=True))


def _difference(first: Result, second: Result, seed: int) -> PairedDifference:
    pairs = list(zip(first.answers, second.answers, strict=True))
    if first.budget != second.budget or any(one.number != other.number for one, other in pairs):
        raise AssertionError(f"{first.retriever} and {second.retriever} did not answer the same questions.")
    gains = [other.share - one.share for one, other in pairs]
    in_words = [other.words - one.words for one, other in pairs]
    corpora = [one.corpus for one, _ in pairs]
    over = bootstrap_interval(gains, seed=seed, clusters=corpora) if len(set(corpora)) > 1 else None
    halves = [
        [gain for gain, (one, _) in zip(gains, pairs, strict=True) if one.half == half] for half in (0, 1)
    ]
    return PairedDifference(
        first=first.retriever,
        second=second.retriever,
        budget=first.budget,
        questions=len(pairs),
        evidence_recall=mean(gains),
        all_evidence=mean([float(other.whole) - float(one.whole) for one, other in pairs]),
        interval=bootstrap_interval(gains, seed=seed),
        interval_over_conversations=over,
        halves=(mean(halves[0]) if halves[0] else None, mean(halves[1]) if halves[1] else None),
        wins=sum(gain > 0 for gain in gains),
        losses=sum(gain < 0 for gain in gains),
        word_recall=mean(in_words),
        words_interval=bootstrap_interval(in_words, seed=seed),
    )


# Shares as text.


def percent(share: float) -> str:
    """A share in per cent with one decimal, without the sign."""
    return f"{100 * share:.1f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    shown = f"{100 * difference:+.1f}"
    return "0.0" if shown in ("+0.0", "-0.0") else shown
