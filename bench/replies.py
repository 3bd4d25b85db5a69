"""How often a context shows a sentence that stands inside a long reply.

    python bench/replies.py FILE [--budgets 500,1000,2000,4000]

From each conversation of a file that `germane eval` reads, up to 15 replies of more than 1,500 characters are
taken, the longest first. Of each, one sentence of 60 to 260 characters behind its first quarter is searched
for by four of its words, the two rarest of the conversation and two others: "What did you say about ...?"
Prints the share of sentences that the default call shows word for word at each budget.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import regex

from germane.evaluation import Configuration, Corpus
from germane.evaluation.material import read_material
from germane.evaluation.retrievers import BUNDLED, GermaneReader
from germane.renditions.prose import sentences_of
from germane.tokens import CachedCounter, get_counter

_REPLIES = 15
_LONG = 1_500
_SENTENCE = range(60, 261)
_WORDS = 4


def main() -> None:
    """Ask for the sentences of every conversation, and print the shares shown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--budgets", default="500,1000,2000,4000")
    given = parser.parse_args()
    budgets = [int(each) for each in given.budgets.split(",")]
    material = read_material(given.file, counter=CachedCounter(get_counter("o200k")), embedder=BUNDLED)
    shown = Counter[int]()
    total = 0
    for corpus in material.corpora:
        reader = GermaneReader(corpus, Configuration())
        for question, sentence in questions(corpus):
            total += 1
            for budget in budgets:
                text = " ".join(reader.context(question, budget).text.split())
                shown[budget] += sentence in text
        reader.close()
    print(f"{total} sentences inside long replies of {given.file.name}, in % shown word for word")
    print(" ".join(f"{budget:>7,}" for budget in budgets))
    print(" ".join(f"{100 * shown[budget] / max(total, 1):7.1f}" for budget in budgets))


def questions(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """A question and the sentence that it asks for, from each of the longest replies."""
    often = Counter(word for turn in corpus.turns for word in set(_words(turn.texts)))
    long = sorted((turn.texts for turn in corpus.turns if len(turn.texts) > _LONG), key=len, reverse=True)
    for reply in long[:_REPLIES]:
        behind = reply[len(reply) // 4 :]
        for sentence in sentences_of(behind)[1:]:
            words = sorted(dict.fromkeys(_words(sentence)), key=lambda word: (often[word], word))
            if len(sentence) in _SENTENCE and "\n" not in sentence and len(words) >= _WORDS:
                chosen = [*words[:2], *words[-2:]]
                yield f"What did you say about {' '.join(chosen)}?", " ".join(sentence.split())
                break


def _words(text: str) -> list[str]:
    return [word.lower() for word in regex.findall(r"\p{L}{4,}", text)]


if __name__ == "__main__":
    main()
