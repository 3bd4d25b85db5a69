"""Fit the weights by which learning tells that a sentence speaks against what is known.

    python bench/conflict_weights.py [--write]

It reads the dialogues of `dev` alone (see `dialogues.py`): each sentence of the user's with each memory known
before. It prints for each author how many of the memories that the dialogues replace or contradict are found
by weights of all other authors, and how many of those found are right, at the limits of the package.
`--write` fits the weights to all and writes `src/germane/extractors/english-conflicts.json`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path

from clause_weights import logistic
from dialogues import Dialogue, Expected, dialogues, has
from rich.console import Console
from rich.table import Table

from germane.embedders import StaticEmbedder
from germane.extractors.conflicts import CONTRADICTS, REVISES, Remark, conflict_features, is_comparable
from germane.extractors.references import is_state
from germane.extractors.rules import read
from germane.extractors.statements import Statement, third_person

WEIGHTS = Path(__file__).parents[1] / "src/germane/extractors/english-conflicts.json"
_Weights = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and a known memory: the author, the features, and what the labels say of both.

    `about` names the dialogue and the memory, and `sentence` the dialogue and the sentence. Only what is
    `comparable` is judged. `against` is whether the sentence states a fact that replaces or contradicts the
    memory, and `changed` whether it replaces it.
    """

    author: str
    about: tuple[str, str]
    sentence: tuple[str, str]
    features: frozenset[str]
    comparable: bool
    against: bool
    changed: bool


def main() -> None:
    """Print how well weights judge unknown authors; with `--write`, fit and write those of the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = [pair for dialogue in dialogues("dev") for pair in pairs(dialogue)]
    Console(highlight=False).print(left_out(found))
    if given.write:
        text = json.dumps(fitted(found), ensure_ascii=False, indent=0)
        WEIGHTS.write_text(f"{text}\n", encoding="utf-8")


def pairs(dialogue: Dialogue) -> Iterator[Pair]:
    """Each sentence of the user's with each memory known before, and with each sentence before it.

    The sentences before show what stands beside each other in one conversation.
    """
    embedder = StaticEmbedder()
    known = list(dialogue.known)
    rows = [*embedder.embed(known)] if known else []
    numbers = {message.id: number for number, message in enumerate(dialogue.messages, 1)}
    for each in read(dialogue.messages):
        stated = third_person(each.resolved)
        vector = embedder.embed([stated])[0]
        cosines = [float(row @ vector) for row in rows]
        places = sorted(range(len(cosines)), key=lambda place: -cosines[place])
        facts = list(_facts(dialogue, each, numbers[each.message.id]))
        for place, text in enumerate(known):
            if not is_state(text):
                continue
            remark, replaced = _remark(each, stated), any(has(text, fact.replaces) for fact in facts)
            yield Pair(
                author=dialogue.id.rstrip("0123456789"),
                about=(dialogue.id, text),
                sentence=(dialogue.id, each.text),
                features=conflict_features(remark, text, cosine=cosines[place], rank=places.index(place)),
                comparable=is_comparable(remark, text),
                against=replaced or any(has(text, fact.contradicts) for fact in facts),
                changed=replaced,
            )
        known.append(stated)
        rows.append(vector)


def fitted(given: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """The weights that tell what is against a memory, and those that tell whether it was true until then.

    A sentence beside the one that the labels name often says the same in other words, so that it is left out.
    """
    named = {each.about for each in given if each.against}
    clear = [each for each in given if each.against or each.about not in named]
    against = [each for each in given if each.against]
    return {
        "against": _fit(clear, [each.against for each in clear]),
        "changed": _fit(against, [each.changed for each in against]),
    }


def left_out(given: Sequence[Pair]) -> Table:
    """For each author, what weights of all others find against a memory, and how much of it rightly."""
    table = Table(title="Judged by weights fitted to other authors", title_justify="left", box=None)
    for heading in ("author", "memories", "against", "found", "right", "revised", "rightly"):
        table.add_column(heading, justify="left" if heading == "author" else "right")
    for author in sorted({each.author for each in given}):
        mine = [each for each in given if each.author == author]
        weights = fitted([each for each in given if each.author != author])
        table.add_row(author, *map(str, _counts(mine, weights)))
    return table


def _facts(dialogue: Dialogue, statement: Statement, number: int) -> Iterator[Expected]:
    """The facts that a sentence states, alone or with the question before it."""
    question = "" if statement.question is None else statement.question.text
    texts = (third_person(statement.resolved), f"{question} {statement.text}")
    for fact in dialogue.facts:
        if number in fact.messages and any(has(text, fact.keys) for text in texts):
            yield fact


def _remark(statement: Statement, stated: str) -> Remark:
    before = "" if statement.before is None else statement.before.own_text
    return Remark(
        sentence=statement.quotes[-1].text,
        statement=stated,
        message=statement.message.own_text,
        before=before,
    )


def _fit(given: Sequence[Pair], wanted: Sequence[bool]) -> dict[str, float]:
    return logistic([each.features for each in given], wanted=wanted)


def _counts(given: Sequence[Pair], weights: _Weights) -> Iterator[int]:
    """The counts of a row: a sentence speaks against one memory at most, the likeliest."""
    best: dict[tuple[str, str], tuple[float, float, Pair]] = {}
    for each in (pair for pair in given if pair.comparable):
        against, changed = (_chance(weights[name], each) for name in ("against", "changed"))
        if each.sentence not in best or against > best[each.sentence][0]:
            best[each.sentence] = (against, against * changed, each)
    named = {each.about for each in given if each.against}
    replaced = {each.about for each in given if each.changed}
    found = {each.about for against, _, each in best.values() if against >= CONTRADICTS}
    revised = {each.about for _, replaces, each in best.values() if replaces >= REVISES}
    yield len({each.about for each in given})
    yield len(named)
    yield len(found)
    yield len(found & named)
    yield len(revised)
    yield len(revised & replaced)


def _chance(weights: Mapping[str, float], pair: Pair) -> float:
    return 1 / (1 + exp(-sum(weights.get(name, 0.0) for name in pair.features)))


if __name__ == "__main__":
    main()
