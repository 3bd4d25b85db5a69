"""Chooses the pieces of words that get a vector, and counts them in the training text.

    python tools/distil/vocabulary.py --bert vocab.txt --work FOLDER

BERT's uncased pieces of ASCII characters, and the most frequent words of the text that BERT would
break up. Writes `words.txt`, one piece a line, and `counts.npy`, how often each occurs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from germane.embedders.static import WordPieces, plain_words

_MORE_WORDS = 8_000
_SHORTEST, _RAREST = 4, 3


def main() -> None:
    """Choose, count and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bert", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    bert = given.bert.read_text(encoding="utf-8").splitlines()
    pieces = [piece for piece in bert if piece.isascii() and not piece.startswith("[unused")]
    pieces = [
        piece for piece in pieces if not (piece.startswith("[") and piece.endswith("]") and piece[1:-1])
    ]
    lines = (given.work / "text.tsv").read_text(encoding="utf-8").splitlines()
    counted = Counter(word for line in lines for word in plain_words(line.partition("\t")[2]))
    words = pieces + _more_words(pieces, counted)
    cut = WordPieces({word: number for number, word in enumerate(words)})
    counts = np.zeros(len(words), dtype=np.int64)
    for word, often in counted.items():
        for number in cut[word]:
            counts[number] += often
    (given.work / "words.txt").write_text("\n".join(words), encoding="utf-8")
    np.save(given.work / "counts.npy", counts)
    print(
        f"{len(pieces)} pieces and {len(words) - len(pieces)} words; {(counts > 0).sum()} occur in the text"
    )


def _more_words(pieces: list[str], counted: Counter[str]) -> list[str]:
    cut = WordPieces({piece: number for number, piece in enumerate(pieces)})
    broken = [
        (-often, word)
        for word, often in counted.items()
        if len(word) >= _SHORTEST and often >= _RAREST and word.isalpha() and len(cut[word]) > 1
    ]
    return [word for _, word in sorted(broken)[:_MORE_WORDS]]


if __name__ == "__main__":
    main()
