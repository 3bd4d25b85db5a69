"""Fit the weights by which the rule-based extractor tells what is worth learning from other sentences.

    python bench/clause_weights.py [--write]

It reads the dialogues of `dev` alone (see `dialogues.py`), and prints how well weights judge the sentences of
authors to whom they weren't fitted: each author's dialogues are left out in turn. `--write` fits them to all
and writes `src/germane/extractors/english-clauses.json`. The fit is a logistic regression with a penalty on
large weights, by Newton's method; it gives the same weights each time.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dialogues import UNLABELLED, Dialogue, dialogues, judged_text
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from germane.extractors.clauses import (
    EARLIER,
    LATER,
    OUT_OF_PLACE,
    PLAIN,
    UNCLEAR,
    Weights,
    dialogue_features,
    features,
    likelihood,
    out_of_place,
    share_of,
)
from germane.extractors.rules import doubts_of, may_teach, read
from germane.extractors.statements import Statement, third_person
from germane.model.conversation import MessageRole

WEIGHTS = Path(__file__).parents[1] / "src/germane/extractors/english-clauses.json"
_BY_DIALOGUE = ("role_play", "fiction", "quotation", "example", "plan_dropped", "retracted")
"""Why a sentence must not be learned that reads like any other: its dialogue tells."""
_SEED = 1
_MOST_TEXTS = 4
_MIXED = 0.6
"""How likely a message of a long chat has something else in it, too."""
_STEPS = 12
_CONJUGATE = 60
_EXACT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How weights are fitted: whether features share a conversation, and the penalty of large weights.

    Features of fewer samples than `fewest` and weights below `smallest` are left out; the rest have so many
    `decimals`.
    """

    shared: bool = False
    penalty: float = 1 / 0.3
    fewest: int = 3
    smallest: float = 0.05
    decimals: int = 2

    def share(self, name: str, found: Collection[str]) -> float:
        """How much of its weight a feature adds where it stands with others; the empty one adds all."""
        return share_of(found) if self.shared and name else 1.0


SENTENCES = Fit()
DIALOGUES = Fit(shared=True, penalty=0.1, fewest=16, smallest=0.5, decimals=1)


@dataclass(frozen=True, slots=True)
class Sample:
    """A sentence with its author, its features, those of its dialogue, and whether it states a fact.

    `longer` are the features of its dialogue with texts of others between, as if it were a long chat.
    `why` says why it must not be learned, empty where only nothing of worth is stated. `least` is how likely
    it has to be in order to be learned without a pattern; above 1 it can't be.
    """

    author: str
    features: frozenset[str]
    dialogue: frozenset[str]
    longer: frozenset[str]
    is_fact: bool
    why: str
    least: float


def main() -> None:
    """Print how well weights judge unknown authors; with `--write`, fit and write those of the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = list(samples(dialogues("dev")))
    Console(highlight=False).print(left_out(found))
    if given.write:
        text = json.dumps(fitted(found), ensure_ascii=False, indent=0)
        WEIGHTS.write_text(f"{text}\n", encoding="utf-8")


def samples(given: Sequence[Dialogue]) -> Iterator[Sample]:
    """The sentences of dialogues, without those that are neither right nor wrong.

    The author of a dialogue is the letters at the beginning of its id.
    """
    chance = random.Random(_SEED)
    spoken = [
        each.own_text for dialogue in given for each in dialogue.messages if each.role is MessageRole.USER
    ]
    for dialogue in given:
        for each in read(dialogue.messages):
            facts, wrong = judged_text(dialogue, third_person(each.resolved))
            if (facts or wrong) and may_teach(each.resolved):
                question = "" if each.question is None else each.question.text
                text, doubts = each.message.own_text, doubts_of(each)
                yield Sample(
                    author=dialogue.id.rstrip("0123456789"),
                    features=features(each.resolved, text, question, doubts),
                    dialogue=dialogue_features(each.text, text, each.earlier, each.later),
                    longer=dialogue_features(each.text, *_longer(each, spoken, chance)),
                    is_fact=bool(facts),
                    why="" if wrong == UNLABELLED else wrong,
                    least=UNCLEAR if doubts else PLAIN,
                )


def _longer(
    statement: Statement, texts: Sequence[str], chance: random.Random
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The message of a statement, those before and those after it, with some of these texts between."""

    def more() -> str:
        return " ".join(chance.choices(texts, k=chance.randint(1, _MOST_TEXTS)))

    def filled(messages: Sequence[str], most: int) -> tuple[str, ...]:
        new = (more() for _ in range(chance.randint(0, most - len(messages))))
        return (*new, *(f"{each} {more()}" if chance.random() < _MIXED else each for each in messages))

    before, after = (more() if chance.random() < _MIXED else "" for _ in range(2))
    message = f"{before} {statement.message.own_text} {after}"
    return message, filled(statement.earlier, EARLIER), filled(statement.later, LATER)[::-1]


def fitted(given: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """The weights of sentences and of dialogues; rare features and small weights are left out.

    What only its dialogue shows to be no statement of the user's is left out of the former.
    """
    alone = [each for each in given if each.why not in _BY_DIALOGUE]
    known = [each for each in given if each.is_fact or each.why]
    return {
        "sentence": logistic([each.features for each in alone], wanted=[each.is_fact for each in alone]),
        "dialogue": logistic(
            [*(each.dialogue for each in known), *(each.longer for each in known)],
            wanted=[not each.is_fact for each in known] * 2,
            fit=DIALOGUES,
        ),
    }


def logistic(
    found: Sequence[frozenset[str]], *, wanted: Sequence[bool], fit: Fit = SENTENCES
) -> dict[str, float]:
    """The weights with which the features of samples tell those that are wanted: a logistic regression."""
    counts = Counter(name for each in found for name in each)
    names = sorted(name for name, count in counts.items() if count >= fit.fewest)
    if not names:
        return {}
    places = {name: place for place, name in enumerate(names)}
    rows = [sorted(each & places.keys()) for each in found]
    weights = _descended(
        _Rows(
            np.array([places[name] for row in rows for name in row], dtype=np.int64),
            np.array([fit.share(name, each) for row, each in zip(rows, found, strict=True) for name in row]),
            np.array([len(row) for row in rows]),
            len(names),
        ),
        wanted=np.array(wanted, dtype=np.float64),
        penalty=fit.penalty,
    )
    pairs = zip(names, weights, strict=True)
    return {
        name: round(float(each), fit.decimals)
        for name, each in pairs
        if not name or abs(each) >= fit.smallest
    }


@dataclass(frozen=True, slots=True)
class _Rows:
    """Which features each sample has: their numbers and values in one array, and how many each sample has."""

    features: NDArray[np.int64]
    values: NDArray[np.float64]
    lengths: NDArray[np.int64]
    width: int

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of its features' weights times their values, for each sample."""
        starts = np.concatenate(([0], np.cumsum(self.lengths)[:-1]))
        return np.add.reduceat(weights[self.features] * self.values, starts)

    def gathered(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the values of the samples that have it, for each feature."""
        spread = np.repeat(values, self.lengths) * self.values
        return np.bincount(self.features, weights=spread, minlength=self.width).astype(np.float64)


def _descended(rows: _Rows, *, wanted: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """The weights of a logistic regression, by Newton's method with conjugate gradients."""
    weights = np.zeros(rows.width)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-rows.sums(weights)))
        bend = chance * (1 - chance)
        rest = -(rows.gathered(chance - wanted) + penalty * weights)
        step, way, length = np.zeros(rows.width), rest, rest @ rest
        least = _EXACT * length
        for _ in range(_CONJUGATE if length else 0):
            curved = rows.gathered(bend * rows.sums(way)) + penalty * way
            far = length / (way @ curved)
            step, rest = step + far * way, rest - far * curved
            before, length = length, rest @ rest
            if length <= least:
                break
            way = rest + length / before * way
        weights = weights + step
    return weights


def left_out(given: Sequence[Sample]) -> Table:
    """For each author, how many sentences weights of all others would learn, and how many state facts."""
    table = Table(title="Judged by weights fitted to other authors", title_justify="left", box=None)
    for heading in ("author", "sentences", "facts", "learned", "of them facts"):
        table.add_column(heading, justify="left" if heading == "author" else "right")
    authors = sorted({each.author for each in given})
    for author in authors:
        mine = [each for each in given if each.author == author]
        weights = fitted([each for each in given if each.author != author])
        learned = [each for each in mine if _is_learned(each, weights)]
        table.add_row(author, *map(str, _counts(mine, learned)))
    return table


def _is_learned(sample: Sample, weights: Weights) -> bool:
    likely = likelihood(sample.features, sample.dialogue, weights)
    return likely >= sample.least and out_of_place(sample.dialogue, weights) < OUT_OF_PLACE


def _counts(given: Collection[Sample], learned: Collection[Sample]) -> tuple[Any, ...]:
    right = sum(each.is_fact for each in learned)
    share = f"{right} ({right / len(learned):.0%})" if learned else "none"
    return len(given), sum(each.is_fact for each in given), len(learned), share


if __name__ == "__main__":
    main()
