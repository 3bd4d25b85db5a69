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

from germane.extractors.clauses import OUT_OF_PLACE, PLAIN, UNCLEAR, dialogue_features, features
from germane.extractors.rules import clause_of, may_teach, read
from germane.extractors.statements import third_person

WEIGHTS = Path(__file__).parents[1] / "src/germane/extractors/english-clauses.json"
_PENALTY = 1 / 0.3
_FEWEST = 3
"""Sentences that have a feature with a weight, at least."""
_PENALTY_AROUND = 10.0
"""The penalty of the words around a sentence, of which there are many that tell little."""
_FEWEST_AROUND = 8
"""Sentences that have such a word around them, at least."""
_BY_DIALOGUE = ("role_play", "fiction", "quotation", "example", "plan_dropped", "retracted")
_SMALLEST = 0.02
"""A weight that isn't left out."""
_STEPS = 12
_CONJUGATE = 60
_EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Sample:
    """A sentence with its author, its features, those of its dialogue, and whether it states a fact.

    `why` says why it must not be learned, empty where only nothing of worth is stated. `least` is how likely
    it has to be in order to be learned without a pattern; above 1 it can't be.
    """

    author: str
    features: frozenset[str]
    dialogue: frozenset[str]
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
    for dialogue in given:
        for each in read(dialogue.messages):
            facts, wrong = judged_text(dialogue, third_person(each.resolved))
            if (facts or wrong) and may_teach(each.resolved):
                clause = clause_of(each, each.resolved)
                yield Sample(
                    author=dialogue.id.rstrip("0123456789"),
                    features=features(clause),
                    dialogue=dialogue_features(clause_of(each, each.text)),
                    is_fact=bool(facts),
                    why="" if wrong == UNLABELLED else wrong,
                    least=UNCLEAR if clause.doubts else PLAIN,
                )


def fitted(given: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """The weights of sentences and of dialogues; rare features and small weights are left out.

    What only its dialogue shows to be no statement of the user's is left out of the former.
    """
    alone = [each for each in given if each.why not in _BY_DIALOGUE]
    known = [each for each in given if each.is_fact or each.why]
    return {
        "sentence": logistic(
            [each.features for each in alone],
            wanted=[each.is_fact for each in alone],
        ),
        "dialogue": logistic(
            [each.dialogue for each in known],
            wanted=[not each.is_fact for each in known],
            penalty=_PENALTY_AROUND,
            fewest=_FEWEST_AROUND,
        ),
    }


def logistic(
    found: Sequence[frozenset[str]],
    *,
    wanted: Sequence[bool],
    penalty: float = _PENALTY,
    fewest: int = _FEWEST,
) -> dict[str, float]:
    """The weights with which the features of samples tell those that are wanted.

    A logistic regression. Features of fewer samples than `fewest` and small weights are left out.
    """
    counts = Counter(name for each in found for name in each)
    names = sorted(name for name, count in counts.items() if count >= fewest)
    if not names:
        return {}
    places = {name: place for place, name in enumerate(names)}
    numbers = [
        np.array([places[name] for name in sorted(each) if name in places], dtype=np.int64) for each in found
    ]
    weights = _descended(
        _Rows(np.concatenate(numbers), np.array([len(row) for row in numbers]), len(names)),
        wanted=np.array(wanted, dtype=np.float64),
        penalty=penalty,
    )
    rounded = {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}
    return {name: weight for name, weight in rounded.items() if abs(weight) >= _SMALLEST}


@dataclass(frozen=True, slots=True)
class _Rows:
    """Which features each sample has: their numbers in one array, and how many each sample has."""

    features: NDArray[np.int64]
    lengths: NDArray[np.int64]
    width: int

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of its features' weights, for each sample."""
        starts = np.concatenate(([0], np.cumsum(self.lengths)[:-1]))
        return np.add.reduceat(weights[self.features], starts)

    def gathered(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the values of the samples that have it, for each feature."""
        spread = np.repeat(values, self.lengths)
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


def _is_learned(sample: Sample, weights: dict[str, dict[str, float]]) -> bool:
    by_itself = _likelihood(sample.features, weights["sentence"])
    return by_itself >= sample.least and _likelihood(sample.dialogue, weights["dialogue"]) < OUT_OF_PLACE


def _likelihood(found: Collection[str], weights: dict[str, float]) -> float:
    return float(1 / (1 + np.exp(-sum(weights.get(name, 0.0) for name in found))))


def _counts(given: Collection[Sample], learned: Collection[Sample]) -> tuple[Any, ...]:
    right = sum(each.is_fact for each in learned)
    share = f"{right} ({right / len(learned):.0%})" if learned else "none"
    return len(given), sum(each.is_fact for each in given), len(learned), share


if __name__ == "__main__":
    main()
